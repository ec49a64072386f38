# Each public header compiles alone, with this build's compiler and with clang. Built when the tests ask for it, so that
# a second run only looks at what changed.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/*.h)
find_program(XRT_CLANGXX NAMES clang++)
set(sources "")
set(clang_stamps "")
foreach(header IN LISTS headers)
  string(REPLACE "/" "_" name ${header})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cpp)
  # Twice, to see that it guards itself.
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n" @ONLY)
  list(APPEND sources ${source})
  add_custom_command(OUTPUT ${source}.stamp
    COMMAND ${XRT_CLANGXX} -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror
            -I${PROJECT_SOURCE_DIR}/include -MD -MF ${source}.d -MT ${source}.stamp ${source}
    COMMAND ${CMAKE_COMMAND} -E touch ${source}.stamp
    DEPENDS ${source} DEPFILE ${source}.d COMMENT "Compiling ${header} alone with clang" VERBATIM)
  list(APPEND clang_stamps ${source}.stamp)
endforeach()

add_library(public_headers OBJECT EXCLUDE_FROM_ALL ${sources})
target_include_directories(public_headers PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(public_headers PRIVATE xrt_flags)
add_custom_target(public_headers_clang DEPENDS ${clang_stamps})

add_test(NAME headers COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target public_headers)
if(XRT_CLANGXX)
  add_test(NAME headers_clang COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target public_headers_clang)
else()
  add_test(NAME headers_clang COMMAND ${CMAKE_COMMAND} -E echo "skipped: clang++ is not installed")
  set_tests_properties(headers_clang PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: ")
endif()
set_tests_properties(headers headers_clang PROPERTIES LABELS structure RESOURCE_LOCK build_tree)

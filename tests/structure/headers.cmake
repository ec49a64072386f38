# Each public header compiles alone, with clang where it is there: this build's compiler sees them all in what it builds.
# Built when the test asks for it, so that a second run only looks at what changed.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/*.h)
find_program(XRT_CLANGXX NAMES clang++)
set(compiler ${CMAKE_CXX_COMPILER})
if(XRT_CLANGXX)
  set(compiler ${XRT_CLANGXX})
endif()
set(stamps "")
foreach(header IN LISTS headers)
  string(REPLACE "/" "_" name ${header})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cpp)
  # Twice, to see that it guards itself.
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n" @ONLY)
  add_custom_command(OUTPUT ${source}.stamp
    COMMAND ${compiler} -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror
            -I${PROJECT_SOURCE_DIR}/include -MD -MF ${source}.d -MT ${source}.stamp ${source}
    COMMAND ${CMAKE_COMMAND} -E touch ${source}.stamp
    DEPENDS ${source} DEPFILE ${source}.d COMMENT "Compiling ${header} alone" VERBATIM)
  list(APPEND stamps ${source}.stamp)
endforeach()
add_custom_target(public_headers DEPENDS ${stamps})
add_test(NAME headers COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target public_headers)
set_tests_properties(headers PROPERTIES LABELS structure RESOURCE_LOCK build_tree)

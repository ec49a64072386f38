include(GNUInstallDirs)

set(XRT_LAYERS "")

# Whatever links core's objects: see src/core/mutex.cpp.
set(xrt_wrapped_guards acquire release abort)
list(TRANSFORM xrt_wrapped_guards PREPEND LINKER:--wrap=__cxa_guard_)

# Most of what a file costs the compiler is headers: several files at once need much less time. Kernels are left out:
# files of theirs give different things the same name.
function(xrt_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${XRT_UNITY} UNITY_BUILD_BATCH_SIZE 12)
endfunction()

# One folder, one target. Sources are globbed: a new file belongs to the layer whose folder it lies in.
function(xrt_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp ${PROJECT_SOURCE_DIR}/src/${name}/*.h
       ${PROJECT_SOURCE_DIR}/src/${name}/*/*.cpp ${PROJECT_SOURCE_DIR}/src/${name}/*/*.h
       ${PROJECT_SOURCE_DIR}/include/xpuruntime/${name}/*.h)
  set(alone ${sources})
  # The tables of ops share names; the child process that tries kernels may exit, which no other object may.
  list(FILTER alone INCLUDE REGEX "/core/ops/|/tune/probe.cpp|/process/(helper_process|run_child).cpp")
  set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(xrt_${name} OBJECT ${sources})
  set_target_properties(xrt_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX)
  xrt_compile_together(xrt_${name})
  target_include_directories(xrt_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(xrt_${name} PRIVATE xrt_flags nlohmann_json::nlohmann_json)
  target_compile_definitions(xrt_${name} PRIVATE XRT_VERSION="${PROJECT_VERSION}")
  set(XRT_LAYERS ${XRT_LAYERS} xrt_${name} PARENT_SCOPE)
endfunction()

# All layers and the CPU backend in one shared library, in `folder`. Which of its names others see is said by
# version_script.py, which gets the rest of the arguments.
function(xrt_shared_library name folder)
  add_library(${name} SHARED)
  list(TRANSFORM XRT_LAYERS REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  list(APPEND objects $<TARGET_OBJECTS:xrt_backend_cpu>)
  target_sources(${name} PRIVATE ${objects})
  set(version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME xpuruntime VERSION ${version}
                        SOVERSION ${version} LIBRARY_OUTPUT_DIRECTORY ${folder})
  if(NOT XRT_SANITIZE)
    # A missing symbol is our error, not that of whoever links us.
    target_link_options(${name} PRIVATE -Wl,--no-undefined)
    set(script ${PROJECT_SOURCE_DIR}/cmake/version_script.py)
    set(names ${PROJECT_BINARY_DIR}/${name}.map)
    file(GENERATE OUTPUT ${names}.objects CONTENT "$<JOIN:${objects},\n>\n")
    file(GLOB_RECURSE programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/* ${PROJECT_SOURCE_DIR}/src/python/*.h
         ${PROJECT_SOURCE_DIR}/src/python/*.cpp)
    # Part of the link, not a file of the build: whoever links the library would wait for it before compiling.
    add_custom_command(TARGET ${name} PRE_LINK VERBATIM
                       COMMAND Python3::Interpreter -B ${script} ${PROJECT_SOURCE_DIR} ${names}.objects ${names}
                               ${CMAKE_NM} ${ARGN})
    set_target_properties(${name} PROPERTIES LINK_DEPENDS "${script};${programs}")
    target_link_options(${name} PRIVATE -Wl,--version-script,${names})
  endif()
  # Calls inside it are direct. Inline functions are its own copies, not those of tests that no sanitizer instruments.
  target_link_options(${name} PRIVATE -Wl,-Bsymbolic-functions ${xrt_wrapped_guards})
  # The pool's threads run the library's code until the process ends: it must not be unloaded under them.
  target_link_options(${name} PRIVATE -Wl,-z,nodelete)
  if(XRT_HAVE_ONEDNN)
    add_dependencies(${name} xrt_onednn)  # opened from beside it
  endif()
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:xrt_flags> $<BUILD_INTERFACE:xrt_cpu_libraries>
                        $<BUILD_INTERFACE:SQLite::SQLite3> Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

# The library, installed as xpuruntime::xpuruntime. Tests and benchmarks that reach into it link xpuruntime_internals: the
# same objects under the same name, so that a process has one of them, with all names.
macro(xrt_library)
  xrt_shared_library(xpuruntime ${PROJECT_BINARY_DIR})
  add_library(xpuruntime::xpuruntime ALIAS xpuruntime)
  if(XRT_SANITIZE)
    add_library(xpuruntime_internals ALIAS xpuruntime)
  else()
    xrt_shared_library(xpuruntime_internals ${PROJECT_BINARY_DIR}/internals --all)
    set_target_properties(xpuruntime_internals PROPERTIES EXCLUDE_FROM_ALL ON)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/internals)
    file(CREATE_LINK ../xpuruntime ${PROJECT_BINARY_DIR}/internals/xpuruntime SYMBOLIC)
  endif()
  include(packaging)
endmacro()

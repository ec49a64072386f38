option(XRT_BUILD_TESTS "Build the tests" ON)
option(XRT_BUILD_BENCH "Build the benchmarks" ON)
option(XRT_BUILD_FUZZ "Build the fuzz targets (needs clang)" OFF)
option(XRT_WERROR "Treat warnings as errors" OFF)
set(XRT_CUDA AUTO CACHE STRING "CUDA backend: ON, OFF, or AUTO (if a toolkit is found)")
set(XRT_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "What CUDA kernels are compiled for, as CMake writes it")
option(XRT_CUTLASS "Compile the CUDA kernel cutlass if CUTLASS is found: minutes of the compiler's time" OFF)
set(XRT_OPENCL AUTO CACHE STRING "OpenCL backend: ON, OFF, or AUTO (if its headers are found)")
set(XRT_ONEDNN AUTO CACHE STRING "oneDNN in the CPU backend: ON, OFF, or AUTO (if it is found)")
set(XRT_PYTHON AUTO CACHE STRING "Python package: ON, OFF, or AUTO (if Python's headers and nanobind are found)")
option(XRT_NATIVE_SIMD "Build the CPU's kernels for this machine's instructions alone, not for several and choose" OFF)
option(XRT_UNITY "Compile files of the library several at once: quicker for all, slower after a small change" ON)
set(XRT_SANITIZE "" CACHE STRING "Sanitizers: 'address,undefined' or 'thread'")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
find_program(XRT_CCACHE ccache)
if(XRT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${XRT_CCACHE})
endif()

# Flags of our own code; never exported to users.
add_library(xrt_flags INTERFACE)
target_compile_features(xrt_flags INTERFACE cxx_std_20)
target_compile_options(xrt_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wno-sign-conversion>
  $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>  # our functions may be inlined into each other
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>  # g++ 12 sees ghosts in std::string::operator+
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>  # takes a file that is compiled with others for a header
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${XRT_WERROR}>>:-Werror>)
# Where a compiler links its C++ library statically, a process may have several: each must use its own alone. Runtimes of
# sanitizers and fuzzers must be found by all.
if(NOT XRT_SANITIZE)
  target_link_options(xrt_flags INTERFACE -Wl,--exclude-libs,ALL)
else()
  target_compile_options(xrt_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${XRT_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>)
  if(XRT_SANITIZE MATCHES undefined)  # a fifth of the compiler's time; a bad pointer shows in AddressSanitizer too
    target_compile_options(xrt_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,vptr,object-size>)
  endif()
  target_link_options(xrt_flags INTERFACE -fsanitize=${XRT_SANITIZE})
endif()

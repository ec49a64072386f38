# Every dependency, in one place. docs/dependencies.md says why each is here.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)  # profiles, policies, decisions; not in public headers
find_package(PkgConfig REQUIRED)
# As an archive: `libopenblas.so.0` in a process may be that of PyTorch, in another version. Not the one for OpenMP.
pkg_check_modules(OPENBLAS REQUIRED openblas>=0.3)
find_library(OPENBLAS_ARCHIVE libopenblas.a PATH_SUFFIXES openblas-pthread PATHS ${OPENBLAS_LIBRARY_DIRS})
if(NOT OPENBLAS_ARCHIVE)
  message(FATAL_ERROR "OpenBLAS's static library was not found: install libopenblas-pthread-dev, or set OPENBLAS_ARCHIVE")
endif()
find_package(hwy REQUIRED CONFIG)  # Highway: SIMD with run-time dispatch in the CPU's kernels
find_package(CLI11 REQUIRED)
find_package(SQLite3 3.35 REQUIRED)  # the measurement store; not in public headers

# Not through its CMake package, which asks for the OpenCL it was built with.
set(XRT_HAVE_ONEDNN OFF)
if(NOT XRT_ONEDNN STREQUAL "OFF")
  find_path(ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
  find_library(ONEDNN_LIBRARY dnnl)
  if(ONEDNN_INCLUDE AND ONEDNN_LIBRARY)  # version 2, and with GCC's OpenMP: src/backends takes its place
    file(STRINGS ${ONEDNN_LIBRARY} names REGEX "^lib(dnnl.so.2|gomp.so.1)$" LENGTH_MAXIMUM 12 LIMIT_COUNT 2)
    list(LENGTH names XRT_HAVE_ONEDNN)
  endif()
  if(XRT_HAVE_ONEDNN EQUAL 2)
    set(XRT_HAVE_ONEDNN ON)
  elseif(XRT_ONEDNN STREQUAL "ON")
    message(FATAL_ERROR "XRT_ONEDNN=ON, but oneDNN 2 with OpenMP was not found: install libdnnl-dev")
  else()
    set(XRT_HAVE_ONEDNN OFF)
  endif()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)  # writes the list of names that the library shows
if(XRT_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

set(XRT_HAVE_CUDA OFF)
if(NOT XRT_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(XRT_HAVE_CUDA ON)
  elseif(XRT_CUDA STREQUAL "ON")
    message(FATAL_ERROR "XRT_CUDA=ON, but no CUDA compiler was found: install a toolkit or put nvcc on PATH")
  endif()
endif()

set(XRT_HAVE_OPENCL OFF)
if(NOT XRT_OPENCL STREQUAL "OFF")
  find_path(XRT_OPENCL_INCLUDE CL/cl.h)  # headers alone: the loader is opened at run time
  if(XRT_OPENCL_INCLUDE)
    set(XRT_HAVE_OPENCL ON)
  elseif(XRT_OPENCL STREQUAL "ON")
    message(FATAL_ERROR "XRT_OPENCL=ON, but the headers of OpenCL were not found: install opencl-headers")
  endif()
endif()
# nanobind comes with pip: the interpreter that has it knows where its CMake files are.
set(XRT_HAVE_PYTHON OFF)
if(NOT XRT_PYTHON STREQUAL "OFF")
  find_package(Python 3.10 COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
  if(Python_Development.Module_FOUND)
    execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                    OUTPUT_VARIABLE nanobind_ROOT ERROR_QUIET)
    find_package(nanobind CONFIG QUIET)
  endif()
  if(nanobind_FOUND)
    set(XRT_HAVE_PYTHON ON)
  elseif(XRT_PYTHON STREQUAL "ON")
    message(FATAL_ERROR "XRT_PYTHON=ON, but Python's headers or nanobind were not found: install python3-dev, and "
                        "nanobind with pip for the interpreter that Python_EXECUTABLE names")
  endif()
endif()
# CUTLASS 4 is headers: those of pip's nvidia-cutlass, or where XRT_CUTLASS_DIR says. Systems have older ones.
if(XRT_CUTLASS)
  set(header cutlass/gemm/collective/collective_builder.hpp)
  find_path(XRT_CUTLASS_DIR ${header} NO_DEFAULT_PATH HINTS ${Python_SITELIB}/cutlass_library/source/include)
  if(XRT_CUTLASS_DIR AND NOT EXISTS ${XRT_CUTLASS_DIR}/${header})
    message(FATAL_ERROR "XRT_CUTLASS_DIR has no ${header}: set it to the folder `include` of CUTLASS 4")
  endif()
  message(STATUS "CUTLASS: ${XRT_CUTLASS_DIR}")
endif()
message(STATUS "Python package: ${XRT_HAVE_PYTHON}")
message(STATUS "Backends: cpu (oneDNN ${XRT_HAVE_ONEDNN}), cuda ${XRT_HAVE_CUDA}, opencl ${XRT_HAVE_OPENCL}")

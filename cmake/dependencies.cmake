# Every dependency, in one place. docs/dependencies.md says why each is here.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)  # profiles, policies, decisions; not in public headers
find_package(PkgConfig REQUIRED)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas>=0.3)
find_package(hwy REQUIRED CONFIG)  # Highway: SIMD with run-time dispatch in the CPU's kernels
find_package(CLI11 REQUIRED)
find_package(SQLite3 3.35 REQUIRED)  # the measurement store; not in public headers

# Not through its CMake package, which asks for the OpenCL it was built with.
set(XRT_HAVE_ONEDNN OFF)
if(NOT XRT_ONEDNN STREQUAL "OFF")
  find_path(ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
  find_library(ONEDNN_LIBRARY dnnl)
  find_library(GOMP_LIBRARY NAMES gomp libgomp.so.1)  # what Debian's oneDNN takes its threads from
  if(ONEDNN_INCLUDE AND ONEDNN_LIBRARY AND GOMP_LIBRARY)
    set(XRT_HAVE_ONEDNN ON)
  elseif(XRT_ONEDNN STREQUAL "ON")
    message(FATAL_ERROR "XRT_ONEDNN=ON, but oneDNN with OpenMP was not found: install libdnnl-dev")
  endif()
endif()
if(XRT_BUILD_TESTS)
  find_package(GTest REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
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
  find_package(OpenCL)
  if(OpenCL_FOUND)
    set(XRT_HAVE_OPENCL ON)
  elseif(XRT_OPENCL STREQUAL "ON")
    message(FATAL_ERROR "XRT_OPENCL=ON, but OpenCL was not found: install ocl-icd-opencl-dev and opencl-headers")
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
message(STATUS "Python package: ${XRT_HAVE_PYTHON}")
message(STATUS "Backends: cpu (oneDNN ${XRT_HAVE_ONEDNN}), cuda ${XRT_HAVE_CUDA}, opencl ${XRT_HAVE_OPENCL}")

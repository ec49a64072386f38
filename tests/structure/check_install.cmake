# cmake -D build=... -D work=... -D checks=... -D python=... -D compiler=... -P check_install.cmake
file(REMOVE_RECURSE ${work})

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nfailed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

step(${CMAKE_COMMAND} --install ${build} --prefix ${work}/first)
# What C++ programs need, and nothing of the Python package: that is in the wheel.
file(GLOB_RECURSE left LIST_DIRECTORIES false RELATIVE ${work}/first ${work}/first/*)
foreach(file ${left})
  if(NOT file MATCHES "^(bin/xrt|include/xpuruntime/.+\\.h|share/xpuruntime/schemas/.+\\.json)$" AND NOT file MATCHES
     "^lib[^/]*/(libxpuruntime\\.so[.0-9]*|xpuruntime/(libxpuruntime_[a-z]+\\.so|xpuruntime_(opencl|openvino)_worker)|(cmake|pkgconfig)/xpuruntime.+)$")
    message(FATAL_ERROR "cmake --install leaves ${file}, which no C++ program needs")
  endif()
endforeach()
# Moved after the install: a package that remembers where it was put is of no use in a container or a wheel.
file(RENAME ${work}/first ${work}/prefix)

function(build_project source folder)
  step(${CMAKE_COMMAND} -S ${source} -B ${folder} -G Ninja -DCMAKE_CXX_COMPILER=${compiler}
       -DCMAKE_PREFIX_PATH=${work}/prefix)
  step(${CMAKE_COMMAND} --build ${folder})
endfunction()

# What CONTRIBUTING.md and backend.h tell their readers to write.
step(${python} -B ${checks}/recipes/write_recipes.py ${checks}/../.. ${work}/recipes)
build_project(${work}/recipes ${work}/recipes/build)
step(${work}/recipes/build/recipes ${work}/recipes/build/libmine.so ${work}/recipes/build/libshortest.so)
step(${work}/prefix/bin/xrt --plugin ${work}/recipes/build/libmine.so kernels relu)
if(NOT output MATCHES "my_relu")
  message(FATAL_ERROR "the plugin's kernel is not listed:\n${output}")
endif()

build_project(${checks}/stranger ${work}/build)
step(${work}/build/stranger)

# Without CMake: with what pkg-config says, and without the link that a wheel leaves out.
file(GLOB described ${work}/prefix/lib*/pkgconfig/xpuruntime.pc)
get_filename_component(folder "${described}" DIRECTORY)
find_program(pkg_config NAMES pkg-config pkgconf REQUIRED)
step(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${pkg_config} --cflags --libs xpuruntime)
separate_arguments(flags UNIX_COMMAND "${output}")
file(REMOVE ${folder}/../libxpuruntime.so)
step(${compiler} -std=c++20 ${checks}/stranger/main.cpp -o ${work}/by_name ${flags})
step(${work}/by_name)

if(NOT EXISTS ${work}/prefix/share/xpuruntime/schemas/kernel_policy.schema.json)
  message(FATAL_ERROR "the schema of policy files was not installed")
endif()

# The program itself checks the numbers; this is the decision it prints.
set(wanted "matmul(f32[2,3], f32[3,2]) @cpu:0\n  -> small [strategy] built-in rule: ")
string(FIND "${output}" "${wanted}" place)
if(place EQUAL -1)
  message(FATAL_ERROR "the stranger's program did not print '${wanted}' but:\n${output}")
endif()
message(STATUS "a stranger's project builds and runs: ${output}")

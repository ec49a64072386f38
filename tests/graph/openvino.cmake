# Libraries that behave as OpenVINO's does, or badly; the real one is tried by the tests of the Python package.
foreach(name fake_openvino old_openvino)
  add_library(${name} MODULE graph/openvino/fake_openvino.cpp)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE xrt_flags)
  if(TARGET graph_tests)
    add_dependencies(graph_tests ${name})
  endif()
endforeach()
target_compile_definitions(old_openvino PRIVATE FAKE_VERSION="2024.6.0-1-fake")
# Sanitizers end a process in which OpenVINO opens libraries of its own.
set(real ${Python_EXECUTABLE})
if(XRT_SANITIZE)
  set(real "")
endif()
set_property(SOURCE graph/openvino_test.cpp APPEND PROPERTY COMPILE_DEFINITIONS
  XRT_TEST_PYTHON="${real}" XRT_FAKE_OPENVINO="$<TARGET_FILE:fake_openvino>" XRT_OLD_OPENVINO="$<TARGET_FILE:old_openvino>")

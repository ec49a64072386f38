# The kernel `cutlass`. Its templates take long to compile, so only the preset `cuda` asks for them.
if(XRT_CUTLASS AND XRT_CUTLASS_DIR)
  target_sources(xpuruntime_cuda PRIVATE cutlass/configurations.cpp)
  file(GLOB tiles CONFIGURE_DEPENDS cutlass/*.cu)
  foreach(element half_t bfloat16_t)
    add_library(xrt_cutlass_${element} OBJECT ${tiles})
    target_compile_definitions(xrt_cutlass_${element} PRIVATE XRT_CUTLASS_ELEMENT=${element} NDEBUG)
    target_compile_options(xrt_cutlass_${element} PRIVATE --expt-relaxed-constexpr)
    target_include_directories(xrt_cutlass_${element} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_include_directories(xrt_cutlass_${element} SYSTEM PRIVATE ${XRT_CUTLASS_DIR} ${CUDAToolkit_INCLUDE_DIRS})
    # Hopper's own instructions, which no other device has.
    set_target_properties(xrt_cutlass_${element} PROPERTIES CUDA_ARCHITECTURES 90a-real CUDA_STANDARD 17
                          CUDA_STANDARD_REQUIRED ON CUDA_VISIBILITY_PRESET hidden CUDA_RUNTIME_LIBRARY Static
                          POSITION_INDEPENDENT_CODE ON)
    target_sources(xpuruntime_cuda PRIVATE $<TARGET_OBJECTS:xrt_cutlass_${element}>)
  endforeach()
else()
  target_sources(xpuruntime_cuda PRIVATE cutlass/absent.cpp)
endif()

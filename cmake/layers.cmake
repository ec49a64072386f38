include(GNUInstallDirs)

set(XRT_LAYERS "")

# One folder, one target. Sources are globbed: a new file belongs to the layer whose folder it lies in.
function(xrt_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp ${PROJECT_SOURCE_DIR}/src/${name}/*.h
       ${PROJECT_SOURCE_DIR}/src/${name}/*/*.cpp ${PROJECT_SOURCE_DIR}/src/${name}/*/*.h
       ${PROJECT_SOURCE_DIR}/include/xpuruntime/${name}/*.h)
  add_library(xrt_${name} OBJECT ${sources})
  set_target_properties(xrt_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX)
  target_include_directories(xrt_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(xrt_${name} PRIVATE xrt_flags nlohmann_json::nlohmann_json)
  target_compile_definitions(xrt_${name} PRIVATE XRT_VERSION="${PROJECT_VERSION}")
  set(XRT_LAYERS ${XRT_LAYERS} xrt_${name} PARENT_SCOPE)
endfunction()

# All layers and the CPU backend in one shared library, installed as xpuruntime::xpuruntime.
macro(xrt_library)
  add_library(xpuruntime SHARED)
  add_library(xpuruntime::xpuruntime ALIAS xpuruntime)
  foreach(layer IN LISTS XRT_LAYERS)
    target_sources(xpuruntime PRIVATE $<TARGET_OBJECTS:${layer}>)
  endforeach()
  target_sources(xpuruntime PRIVATE $<TARGET_OBJECTS:xrt_backend_cpu>)
  set_target_properties(xpuruntime PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(NOT XRT_SANITIZE)  # a missing symbol is our error, not that of whoever links us
    target_link_options(xpuruntime PRIVATE -Wl,--no-undefined)
  endif()
  # The pool's threads run the library's code until the process ends: it must not be unloaded under them.
  target_link_options(xpuruntime PRIVATE -Wl,-z,nodelete)
  if(XRT_HAVE_ONEDNN)
    add_dependencies(xpuruntime xrt_onednn)  # opened from beside it
  endif()
  target_compile_features(xpuruntime PUBLIC cxx_std_20)
  target_include_directories(xpuruntime PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(xpuruntime PRIVATE $<BUILD_INTERFACE:xrt_flags> $<BUILD_INTERFACE:xrt_cpu_libraries>
                        $<BUILD_INTERFACE:SQLite::SQLite3> Threads::Threads ${CMAKE_DL_LIBS})
  include(packaging)
endmacro()

# Small plugins, good and broken, that the registry's tests open.
set(plugin_folder ${CMAKE_CURRENT_BINARY_DIR}/plugins)
file(GLOB plugin_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/plugins/*.cpp)
foreach(source IN LISTS plugin_sources)
  get_filename_component(name ${source} NAME_WE)
  add_library(test_plugin_${name} MODULE ${source})
  set_target_properties(test_plugin_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
                        LIBRARY_OUTPUT_DIRECTORY ${plugin_folder})
  target_link_libraries(test_plugin_${name} PRIVATE xrt_flags xpuruntime)
  add_dependencies(registry_tests test_plugin_${name})
endforeach()
target_compile_definitions(registry_tests PRIVATE XRT_TEST_PLUGINS="${plugin_folder}")
target_link_libraries(registry_tests PRIVATE ${CMAKE_DL_LIBS})

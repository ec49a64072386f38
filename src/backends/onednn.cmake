# oneDNN comes as a shared library alone. Ours is a copy under a name that nothing else asks for, and with
# openmp/one_thread.cpp in the place of libgomp: other packages bring an OpenMP of their own, and settings for it. The same
# file keeps its statics from being destroyed while other threads still call it. Each new name is as long as the old one,
# so that nothing in the file moves.
set(copy ${XRT_PARTS}/libxpuruntime_onednn.so)
file(MAKE_DIRECTORY ${XRT_PARTS})
add_custom_command(OUTPUT ${copy} DEPENDS ${ONEDNN_LIBRARY} VERBATIM
  COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C
          sed "s/libdnnl[.]so[.]2/libxrtdnn.so/g; s/libgomp[.]so[.]1/libxrtomp.so/g; s/__cxa_atexit/__xrt_atexit/g"
              ${ONEDNN_LIBRARY} > ${copy})
set(folder ${CMAKE_CURRENT_SOURCE_DIR}/cpu/onednn/openmp)
add_library(xpuruntime_openmp MODULE ${folder}/one_thread.cpp)
set_target_properties(xpuruntime_openmp PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${XRT_PARTS} CXX_EXTENSIONS OFF
                      LINK_DEPENDS ${folder}/versions.map)
target_link_options(xpuruntime_openmp PRIVATE -nostdlib -Wl,-soname,libxrtomp.so -Wl,--version-script,${folder}/versions.map)
add_custom_target(xrt_onednn DEPENDS ${copy} xpuruntime_openmp)
install(TARGETS xpuruntime_openmp LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/xpuruntime)
install(FILES ${copy} DESTINATION ${CMAKE_INSTALL_LIBDIR}/xpuruntime)
# What dnnl.hpp defines inline calls our copy: another library's must not be taken instead, nor ours by it.
file(GLOB sources cpu/onednn/*.cpp)
set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -fvisibility=hidden)

# What `cmake --install` leaves and how a stranger's find_package(xpuruntime) finds it.
include(CMakePackageConfigHelpers)
# The link for -lxpuruntime is a component of its own, which a wheel leaves out: it would store a copy of the library.
install(TARGETS xpuruntime EXPORT xpuruntime LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT development)
# For programs that are built without CMake. It finds the library from where it lies itself, so that a prefix can be moved,
# and names the file, for which no link is needed.
file(RELATIVE_PATH XRT_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/xpuruntime.pc.in ${PROJECT_BINARY_DIR}/xpuruntime.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/xpuruntime.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/xpuruntime)
install(EXPORT xpuruntime NAMESPACE xpuruntime:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/xpuruntime
        FILE xpuruntimeConfig.cmake)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/xpuruntimeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/xpuruntimeConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/xpuruntime)

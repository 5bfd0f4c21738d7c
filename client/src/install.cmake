# libub as other programs use it: one archive, the public headers, a CMake package and a pkg-config file. Component "libub": installed alone with
#   cmake --install build --component libub --prefix DIR
include(CMakePackageConfigHelpers)
set(ub_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ub)

install(TARGETS ub EXPORT ub-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libub)
install(FILES ${CMAKE_SOURCE_DIR}/client/include/ub/client.h ${CMAKE_SOURCE_DIR}/client/include/ub/lease.h
              ${CMAKE_SOURCE_DIR}/client/include/ub/slot_pool.h ${CMAKE_SOURCE_DIR}/client/include/ub/batcher.h
              ${CMAKE_SOURCE_DIR}/client/include/ub/file.h ${CMAKE_SOURCE_DIR}/client/include/ub/queue.h
              ${CMAKE_SOURCE_DIR}/client/include/ub/transfer.h ${CMAKE_SOURCE_DIR}/proto/wire/units.h
              ${CMAKE_SOURCE_DIR}/proto/wire/error.h
              ${CMAKE_SOURCE_DIR}/proto/wire/queue_layout.h ${CMAKE_SOURCE_DIR}/proto/wire/queue_names.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ub COMPONENT libub)

install(EXPORT ub-targets NAMESPACE ub:: DESTINATION ${ub_package_dir} COMPONENT libub)
configure_package_config_file(ub-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/ub-config.cmake INSTALL_DESTINATION ${ub_package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/ub-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ub-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/ub-config-version.cmake
        DESTINATION ${ub_package_dir} COMPONENT libub)

# Relative to the file itself, so that a staged or relocated prefix works.
file(RELATIVE_PATH ub_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" ub_pc_prefix "${ub_pc_prefix}")
configure_file(ub.pc.in ${CMAKE_CURRENT_BINARY_DIR}/ub.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ub.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libub)

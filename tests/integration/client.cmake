# libub against the real daemon, and as other programs use it.
add_executable(client_actor client_actor.cc)
target_link_libraries(client_actor PRIVATE ub)

ubd_test(client_lease_test integration SOURCES client_lease_test.cc client_process_test.cc LINK ub ubd_raw_client)
target_compile_definitions(client_lease_test PRIVATE CLIENT_ACTOR="$<TARGET_FILE:client_actor>"
  EXAMPLES_DIR="$<TARGET_FILE_DIR:hello_lease>")
add_dependencies(client_lease_test client_actor ubd hello_lease share_between_processes)
set_tests_properties(client_lease_test PROPERTIES TIMEOUT 300)
ubd_use_grpc_pch(client_actor client_lease_test)

# Transfers on real files.
ubd_test(transfer_paths_test integration SOURCES transfer_paths_test.cc LINK ub ubd_raw_client)
ubd_test(transfer_life_test integration SOURCES transfer_life_test.cc transfer_own_memory_test.cc transfer_process_test.cc
         LINK ub ubd_raw_client)
target_compile_definitions(transfer_life_test PRIVATE TRANSFER_ACTOR="$<TARGET_FILE:transfer_actor>"
  EXAMPLES_DIR="$<TARGET_FILE_DIR:read_file>")
add_executable(transfer_actor transfer_actor.cc)
target_link_libraries(transfer_actor PRIVATE ub)
add_dependencies(transfer_life_test transfer_actor ubd read_file)
add_dependencies(transfer_paths_test ubd)
set_tests_properties(transfer_paths_test transfer_life_test PROPERTIES TIMEOUT 300)
ubd_use_grpc_pch(transfer_actor transfer_paths_test transfer_life_test)

# A program outside the tree, with find_package and with pkg-config.
set(sanitize)
if(UBD_SANITIZE)
  set(sanitize -fsanitize=${UBD_SANITIZE})
endif()
add_test(NAME client_install_test COMMAND ${CMAKE_COMMAND} -DBUILD_DIR=${CMAKE_BINARY_DIR} -DSOURCE_DIR=${CMAKE_SOURCE_DIR}
  -DCXX=${CMAKE_CXX_COMPILER} "-DFLAGS=${sanitize}"
  -P ${CMAKE_CURRENT_SOURCE_DIR}/client_install_test.cmake)
set_tests_properties(client_install_test PROPERTIES LABELS integration TIMEOUT 300)

# A client process that others start, stop and kill: the guest's cases use it too.
add_executable(transfer_once transfer_once.cc)
target_link_libraries(transfer_once PRIVATE ub)
ubd_use_grpc_pch(transfer_once)

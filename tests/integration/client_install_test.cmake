# Installs libub into an empty directory and builds the examples against it, out of the tree: once with find_package, once with pkg-config.
# Each must run as far as a missing daemon lets it. Needs: BUILD_DIR SOURCE_DIR CXX.
execute_process(COMMAND mktemp -d /tmp/ub-install-test.XXXXXX OUTPUT_VARIABLE stage OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

# A failed step ends the test, but the directory goes first.
function(step what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    file(REMOVE_RECURSE ${stage})
    message(FATAL_ERROR "${what} failed (${code}):\n${output}")
  endif()
endfunction()

function(expect_no_daemon program)
  execute_process(COMMAND ${program} ${stage}/nowhere RESULT_VARIABLE code ERROR_VARIABLE text OUTPUT_QUIET)
  if(NOT code EQUAL 1 OR NOT text MATCHES "no ubd is listening")
    file(REMOVE_RECURSE ${stage})
    message(FATAL_ERROR "${program} ended with ${code}: ${text}")
  endif()
endfunction()

step("install" ${CMAKE_COMMAND} --install ${BUILD_DIR} --component libub --prefix ${stage}/prefix)
set(source ${SOURCE_DIR}/client/examples)

file(WRITE ${stage}/outside/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.25)\nproject(outside CXX)\nfind_package(ub 0.1 REQUIRED)\n"
  "foreach(name hello_lease read_file share_between_processes)\n  add_executable(\${name} ${source}/\${name}.cc)\n"
  "  target_link_libraries(\${name} PRIVATE ub::ub)\nendforeach()\n")
step("find_package(ub)" ${CMAKE_COMMAND} -S ${stage}/outside -B ${stage}/outside/build -DCMAKE_PREFIX_PATH=${stage}/prefix
     -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS})
step("building with find_package" ${CMAKE_COMMAND} --build ${stage}/outside/build)
expect_no_daemon(${stage}/outside/build/hello_lease)
expect_no_daemon(${stage}/outside/build/read_file)
expect_no_daemon(${stage}/outside/build/share_between_processes)

file(GLOB_RECURSE pc ${stage}/prefix/ub.pc)
get_filename_component(pc_dir "${pc}" DIRECTORY)
foreach(name hello_lease read_file share_between_processes)
  step("building with pkg-config" sh -c
       "${CXX} ${FLAGS} -std=c++20 ${source}/${name}.cc -o ${stage}/${name} $(PKG_CONFIG_PATH=${pc_dir} pkg-config --cflags --libs ub)")
  expect_no_daemon(${stage}/${name})
endforeach()
file(REMOVE_RECURSE ${stage})

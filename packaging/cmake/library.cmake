# ubd_library(NAME SOURCES ... LINK ...): one folder, one static library. The include root is the project's own.
function(ubd_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()

# ubd_test(NAME LABEL SOURCES ... LINK ...): a GoogleTest program that ctest runs under one label (unit, integration, crash, bench, fuzz).
# Exit code 77 is a skip. Each program leaves a report with its single tests, from which the closing summary lists what was skipped and why.
function(ubd_test name label)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77 TIMEOUT 120
                       ENVIRONMENT "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/reports/${label}/${name}.xml")
endfunction()

# ubd_fuzzer(NAME SOURCES ... LINK ...): a libFuzzer program; ctest gives it a short run that starts from corpus/NAME. New inputs go to the
# build folder, never to the corpus that is kept.
set(UBD_FUZZ_SECONDS 10 CACHE STRING "How long ctest runs each fuzzer")
function(ubd_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
  set(found ${CMAKE_CURRENT_BINARY_DIR}/found/${name})
  file(MAKE_DIRECTORY ${found})
  add_executable(fuzz_${name} ${ARG_SOURCES})
  target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(fuzz_${name} PRIVATE ${ARG_LINK})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  add_test(NAME fuzz_${name}
           COMMAND fuzz_${name} -max_total_time=${UBD_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=1024 -print_final_stats=1
                   -artifact_prefix=${found}/ ${found} ${corpus})
  math(EXPR limit "${UBD_FUZZ_SECONDS} + 60")
  set_tests_properties(fuzz_${name} PROPERTIES LABELS fuzz TIMEOUT ${limit})
endfunction()

# Warnings, sanitizers and ccache for every target of the project.
find_program(UBD_CCACHE ccache)
if(UBD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The base directory makes a fresh clone elsewhere hit the same cache; PCH needs the sloppiness.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${UBD_CCACHE})
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wcast-align -Wunused -Woverloaded-virtual
                    -Wno-missing-field-initializers "-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wthread-safety -Werror=thread-safety)
endif()
option(UBD_WERROR "Warnings are errors" ON)
if(UBD_WERROR)
  add_compile_options(-Werror)
endif()
if(UBD_SANITIZE)
  add_compile_options(-fsanitize=${UBD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${UBD_SANITIZE})
  if(UBD_SANITIZE MATCHES "undefined")
    # This check makes a pipe to see whether memory is readable, and so reports every object of a process that has no descriptors left.
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()
if(UBD_FUZZERS)
  # Coverage for every library that a fuzzer drives; programs other than fuzzers only carry it along.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
option(UBD_COVERAGE "Count which lines of the parts that must be covered are run (clang only; see ubd_count_lines)" OFF)
if(UBD_COVERAGE)
  add_link_options(-fprofile-instr-generate)
endif()

# ubd_count_lines(TARGET...): with UBD_COVERAGE, programs that use these libraries write their counts at exit, to $LLVM_PROFILE_FILE or nowhere.
# Only these: counting in everything would slow down every other test. Targets that do not exist in this build are passed over.
function(ubd_count_lines)
  foreach(target ${ARGN})
    if(UBD_COVERAGE AND TARGET ${target})
      target_compile_options(${target} PRIVATE -fprofile-instr-generate=/dev/null -fcoverage-mapping)
    endif()
  endforeach()
endfunction()

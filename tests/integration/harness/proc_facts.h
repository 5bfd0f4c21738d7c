// What /proc says of a process: for checks that nothing leaks. Thread-safe.
#ifndef UBD_TESTS_HARNESS_PROC_FACTS_H_
#define UBD_TESTS_HARNESS_PROC_FACTS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace ubd::testing {

// All 0 where the process is gone or belongs to somebody else.
struct ProcFacts {
  uint64_t fds = 0;
  uint64_t threads = 0;
  uint64_t maps = 0;
  uint64_t rss_anon_bytes = 0;      // its own memory
  uint64_t rss_shmem_bytes = 0;     // of the pool, as far as it is mapped and touched
  uint64_t voluntary_switches = 0;  // of all threads: wake-ups
};
ProcFacts ReadProcFacts(pid_t pid);

// A number from /proc/PID/status ("Threads", "RssAnon" in kB, …); 0 where absent.
uint64_t ProcStatusField(pid_t pid, const std::string& field);

}  // namespace ubd::testing

#endif  // UBD_TESTS_HARNESS_PROC_FACTS_H_

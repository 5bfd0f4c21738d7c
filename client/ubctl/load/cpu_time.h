// Processor time that transfers cost: this process's, and the daemon's, which works for all its clients. From the
// kernel's per-process clocks, in nanoseconds; all threads and the kernel's work on their behalf are in it.
#ifndef UB_UBCTL_LOAD_CPU_TIME_H_
#define UB_UBCTL_LOAD_CPU_TIME_H_

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>

namespace ub::ctl {

struct CpuTime {
  uint64_t client_ns = 0;
  std::optional<uint64_t> daemon_ns;  // nothing: not known, CpuMeter::why_not says why

  CpuTime& operator+=(const CpuTime& other);
  std::optional<uint64_t> total_ns() const;
};
// What was spent from `before` to `after`.
CpuTime operator-(const CpuTime& after, const CpuTime& before);

// Thread-safe.
class CpuMeter {
 public:
  // `daemon` as the daemon tells it (Status.pid). In another PID namespace that number is somebody else: checked by the
  // process's name.
  explicit CpuMeter(pid_t daemon);
  CpuTime Now() const;
  const std::string& why_not() const { return why_not_; }

 private:
  std::optional<clockid_t> daemon_;
  std::string why_not_;
};

// The processor on which the thread of `pid` that was busiest since the last call ran last; nothing when that cannot be
// told. Not thread-safe.
class BusiestThread {
 public:
  explicit BusiestThread(pid_t pid);
  std::optional<int> Processor();

 private:
  pid_t pid_;
  std::map<std::string, uint64_t> before_;  // ticks by thread
};

// What a stat file of /proc/PID or /proc/PID/task/TID holds: ticks in user and kernel mode, the processor, the state.
// Nothing for any other text.
struct ThreadStat {
  uint64_t ticks = 0;
  int processor = 0;
  char state = '?';
};
std::optional<ThreadStat> ParseThreadStat(const std::string& line);
// Of the file at `path`.
std::optional<ThreadStat> ReadThreadStat(const std::string& path);

}  // namespace ub::ctl

#endif  // UB_UBCTL_LOAD_CPU_TIME_H_

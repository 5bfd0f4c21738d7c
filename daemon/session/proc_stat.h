// What /proc says about a process. Pure but for the reading; thread-safe.
#ifndef UBD_SESSION_PROC_STAT_H_
#define UBD_SESSION_PROC_STAT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ubd {

struct ProcStat {
  std::string name;         // comm; may hold anything, parentheses and spaces too
  uint64_t start_time = 0;  // field 22, in clock ticks since boot
};

// None when the text is not what the kernel writes. A process may call itself "a) R 1 (b": only the last ')' ends the
// name.
std::optional<ProcStat> ParseProcStat(std::string_view text);

// Of a process that this PID namespace sees; `pid` > 0.
std::optional<ProcStat> ReadProcStat(int32_t pid);

// The Pid: line of a descriptor's fdinfo, which only pidfds have: 0 for a process out of sight, -1 for one that has
// ended.
std::optional<int32_t> PidOfPidfd(int fd);

// Text from outside as a listing may show it: valid UTF-8 without control characters, anything else replaced by '?'.
std::string PrintableName(std::string_view name);

}  // namespace ubd

#endif  // UBD_SESSION_PROC_STAT_H_

#include "client/ubctl/load/cpu_time.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ub::ctl {
namespace {

constexpr char kDaemonName[] = "ubd";

std::optional<uint64_t> Read(clockid_t clock) {
  timespec time = {};
  if (clock_gettime(clock, &time) != 0) return std::nullopt;
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

CpuTime& CpuTime::operator+=(const CpuTime& other) {
  client_ns += other.client_ns;
  if (daemon_ns.has_value() && other.daemon_ns.has_value()) {
    *daemon_ns += *other.daemon_ns;
  } else {
    daemon_ns.reset();
  }
  return *this;
}

std::optional<uint64_t> CpuTime::total_ns() const {
  if (!daemon_ns.has_value()) return std::nullopt;
  return client_ns + *daemon_ns;
}

CpuTime operator-(const CpuTime& after, const CpuTime& before) {
  CpuTime spent = {.client_ns = after.client_ns - before.client_ns, .daemon_ns = std::nullopt};
  if (after.daemon_ns.has_value() && before.daemon_ns.has_value())
    spent.daemon_ns = *after.daemon_ns - *before.daemon_ns;
  return spent;
}

CpuMeter::CpuMeter(pid_t daemon) {
  std::string name = FirstLine(absl::StrCat("/proc/", daemon, "/comm"));
  clockid_t clock = 0;
  if (name != kDaemonName) {
    why_not_ = absl::StrCat("process ", daemon, " is not ubd here: the daemon is in another PID namespace");
  } else if (clock_getcpuclockid(daemon, &clock) != 0 || !Read(clock).has_value()) {
    why_not_ = absl::StrCat("the kernel does not tell the CPU time of process ", daemon);
  } else {
    daemon_ = clock;
  }
}

CpuTime CpuMeter::Now() const {
  return {.client_ns = Read(CLOCK_PROCESS_CPUTIME_ID).value_or(0),
          .daemon_ns = daemon_.has_value() ? Read(*daemon_) : std::nullopt};
}

std::optional<ThreadStat> ParseThreadStat(const std::string& line) {
  size_t name_end = line.rfind(')');  // the name may hold anything, blanks and brackets too
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(name_end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  constexpr size_t kState = 0;  // proc(5) counts from 1, and the state is its number 3
  constexpr size_t kUser = 11;
  constexpr size_t kKernel = 12;
  constexpr size_t kProcessor = 36;
  if (fields.size() <= kProcessor) return std::nullopt;
  ThreadStat stat;
  stat.state = fields[kState][0];
  std::istringstream numbers(fields[kUser] + " " + fields[kKernel] + " " + fields[kProcessor]);
  uint64_t user = 0;
  uint64_t kernel = 0;
  if (!(numbers >> user >> kernel >> stat.processor)) return std::nullopt;
  stat.ticks = user + kernel;
  return stat;
}

std::optional<ThreadStat> ReadThreadStat(const std::string& path) { return ParseThreadStat(FirstLine(path)); }

BusiestThread::BusiestThread(pid_t pid) : pid_(pid) { (void)Processor(); }

std::optional<int> BusiestThread::Processor() {
  std::string tasks = absl::StrCat("/proc/", pid_, "/task");
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(tasks.c_str()), closedir);
  std::optional<int> processor;
  uint64_t most = 0;
  while (const dirent* entry = directory == nullptr ? nullptr : readdir(directory.get())) {
    if (entry->d_name[0] == '.') continue;
    auto stat = ReadThreadStat(absl::StrCat(tasks, "/", entry->d_name, "/stat"));
    if (!stat.has_value()) continue;  // it has ended meanwhile
    uint64_t& before = before_[entry->d_name];
    uint64_t spent = stat->ticks - std::min(before, stat->ticks);
    before = stat->ticks;
    if (spent > most) {
      most = spent;
      processor = stat->processor;
    }
  }
  return processor;
}

}  // namespace ub::ctl

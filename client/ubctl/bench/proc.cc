#include "client/ubctl/bench/proc.h"

#include <dirent.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ub/error.h"

namespace ub::ctl {
namespace {

// The number behind "key:" in a status file.
absl::StatusOr<uint64_t> Number(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    std::string text = line.substr(key.size());
    size_t begin = text.find_first_of("0123456789");
    if (begin == std::string::npos) break;
    uint64_t number = 0;
    size_t end = text.find_first_not_of("0123456789", begin);
    if (absl::SimpleAtoi(text.substr(begin, end == std::string::npos ? end : end - begin), &number)) return number;
  }
  return absl::NotFoundError(absl::StrCat("no ", key, " in ", path, "; is the daemon in this PID namespace?"));
}

}  // namespace

absl::StatusOr<uint64_t> OwnMemory(pid_t pid) {
  std::string path = absl::StrCat("/proc/", pid, "/status");
  auto anonymous = Number(path, "RssAnon:");
  if (!anonymous.ok()) return anonymous;
  auto files = Number(path, "RssFile:");
  if (!files.ok()) return files;
  return (*anonymous + *files) * 1024;
}

absl::StatusOr<uint64_t> VoluntarySwitches(pid_t pid) {
  std::string tasks = absl::StrCat("/proc/", pid, "/task");
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(tasks.c_str()), closedir);
  if (directory == nullptr) return ErrnoError(errno, absl::StrCat("read ", tasks));
  uint64_t sum = 0;
  while (const dirent* entry = readdir(directory.get())) {
    if (entry->d_name[0] == '.') continue;
    auto switches = Number(absl::StrCat(tasks, "/", entry->d_name, "/status"), "voluntary_ctxt_switches:");
    if (switches.ok()) sum += *switches;  // a thread may end meanwhile
  }
  return sum;
}

}  // namespace ub::ctl

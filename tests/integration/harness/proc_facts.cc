#include "tests/integration/harness/proc_facts.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace ubd::testing {
namespace {

uint64_t FieldOf(const std::string& status_path, const std::string& field) {
  std::ifstream in(status_path);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(field + ":")) return std::strtoull(line.c_str() + field.size() + 1, nullptr, 10);
  }
  return 0;
}

}  // namespace

uint64_t ProcStatusField(pid_t pid, const std::string& field) {
  return FieldOf("/proc/" + std::to_string(pid) + "/status", field);
}

ProcFacts ReadProcFacts(pid_t pid) {
  ProcFacts facts;
  std::string base = "/proc/" + std::to_string(pid);
  std::error_code error;
  auto fds = std::filesystem::directory_iterator(base + "/fd", error);
  if (!error) facts.fds = static_cast<uint64_t>(std::distance(begin(fds), end(fds)));
  std::ifstream maps(base + "/maps");
  for (std::string line; std::getline(maps, line);) ++facts.maps;
  facts.threads = ProcStatusField(pid, "Threads");
  facts.rss_anon_bytes = ProcStatusField(pid, "RssAnon") * 1024;
  facts.rss_shmem_bytes = ProcStatusField(pid, "RssShmem") * 1024;
  auto tasks = std::filesystem::directory_iterator(base + "/task", error);
  if (error) return facts;
  for (const auto& task : tasks) {
    facts.voluntary_switches += FieldOf(task.path() / "status", "voluntary_ctxt_switches");
  }
  return facts;
}

}  // namespace ubd::testing

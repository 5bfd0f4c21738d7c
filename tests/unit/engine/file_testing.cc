#include "tests/unit/engine/file_testing.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace ubd::testing {

Folder::Folder() {
  const char* base = std::getenv("TMPDIR");
  path_ = absl::StrCat(base == nullptr ? "/tmp" : base, "/ubd-file-XXXXXX");
  if (::mkdtemp(path_.data()) == nullptr || ::chmod(path_.c_str(), 0755) != 0) {
    std::perror(path_.c_str());
    std::abort();
  }
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::Write(const std::string& name, const std::string& text, mode_t mode) const {
  std::filesystem::path path(*this / name);
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  ::chmod(path.c_str(), mode);
  return path.string();
}

std::string Folder::WhyNotDirect() const {
  std::string probe = Write("probe", Pattern(4096));
  auto target = FileTarget::Open(OpenFile(probe, O_RDONLY), 0, FileRules());
  if (!target.ok()) return std::string(target.status().message());
  if ((*target)->facts().direct) return "";
  return absl::StrCat(path_, " lies on ", (*target)->facts().file_system,
                      ", where direct I/O cannot be shown: set TMPDIR to a folder on ext4 or xfs");
}

std::string Pattern(size_t bytes, uint64_t seed) {
  std::string text(bytes, '\0');
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
    uint64_t word = (at + 1) * 0x9e3779b97f4a7c15U ^ seed;
    std::memcpy(text.data() + at, &word, sizeof word);
  }
  return text;
}

ub::UniqueFd OpenFile(const std::string& path, int flags) {
  return ub::UniqueFd(::open(path.c_str(), flags | O_CLOEXEC, 0644));
}

Memory4K::Memory4K(size_t bytes)
    : data_(static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
      bytes_(bytes) {
  if (data_ == MAP_FAILED) std::abort();
}

Memory4K::~Memory4K() { ::munmap(data_, bytes_); }

std::string InChild(bool as_nobody, const std::function<std::string()>& check) {
  constexpr uid_t kNobody = 65534;
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return "pipe2";
  const pid_t child = ::fork();
  if (child == 0) {
    // Dumpable: else /proc/self belongs to root after the change.
    const bool changed =
        !as_nobody || (::setgroups(0, nullptr) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
                       ::setresuid(kNobody, kNobody, kNobody) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0);
    std::string text = changed ? check() : "cannot become another user";
    const bool told = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(told ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::StrCat(text, " (the child ended with status ", status, ")");
  }
  return text;
}

}  // namespace ubd::testing

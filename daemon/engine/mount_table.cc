#include "daemon/engine/mount_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "proto/wire/unique_fd.h"

namespace ubd {
namespace {

std::optional<uint64_t> NumberAt(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// Two paths and some options, with each byte escaped.
constexpr size_t kLongestLine = size_t{64} << 10;

// Takes the next word off the front of `text`.
std::string_view NextWord(std::string_view& text) {
  size_t end = text.find(' ');
  std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

// Bytes read; -1 on failure.
ssize_t ReadSome(int fd, char* to, size_t room) {
  for (;;) {
    ssize_t got = ::read(fd, to, room);
    if (got >= 0 || errno != EINTR) return got;
  }
}

}  // namespace

// ID PARENT MAJOR:MINOR ROOT MOUNT_POINT OPTIONS [TAG...] - TYPE SOURCE SUPER_OPTIONS. Blanks in names are escaped, so
// a word is a word whatever a client calls its folders.
std::optional<std::string> TypeInMountLine(std::string_view line, uint64_t mount) {
  constexpr int kFieldsBeforeTags = 6;
  std::string_view id = NextWord(line);
  if (NumberAt(id) != mount || id != std::to_string(mount)) return std::nullopt;
  for (int i = 1; i < kFieldsBeforeTags; ++i) NextWord(line);
  while (!line.empty()) {
    if (NextWord(line) != "-") continue;
    std::string_view type = NextWord(line);
    if (type.empty()) return std::nullopt;
    return std::string(type);
  }
  return std::nullopt;
}

std::optional<uint64_t> MountTable::MountIdOf(int fd) const {
  ub::UniqueFd info(::open(absl::StrCat(root_, "/proc/self/fdinfo/", fd).c_str(), O_RDONLY | O_CLOEXEC));
  if (!info.valid()) return std::nullopt;
  // What the file's own driver adds comes after the kernel's lines.
  std::array<char, 512> buffer;
  ssize_t got = ReadSome(info.get(), buffer.data(), buffer.size());
  if (got <= 0) return std::nullopt;
  std::string_view text(buffer.data(), static_cast<size_t>(got));
  constexpr std::string_view kKey = "\nmnt_id:\t";
  size_t at = text.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  return NumberAt(text.substr(at + kKey.size()));
}

std::optional<std::string> MountTable::TypeIn(const std::string& table, uint64_t mount) const {
  ub::UniqueFd fd(::open((root_ + table).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::array<char, 16384> buffer;
  std::string pending;  // the start of a line whose end has not come yet
  for (size_t total = 0; total < kMostBytes && pending.size() < kLongestLine;) {
    ssize_t got = ReadSome(fd.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    total += static_cast<size_t>(got);
    pending.append(buffer.data(), static_cast<size_t>(got));
    std::string_view rest = pending;
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      if (auto type = TypeInMountLine(rest.substr(0, end), mount)) return type;
      rest.remove_prefix(end + 1);
    }
    pending = std::string(rest);
  }
  return std::nullopt;
}

std::optional<std::string> MountTable::FileSystemOf(int fd, int32_t pid) const {
  std::optional<uint64_t> mount = MountIdOf(fd);
  if (!mount) return std::nullopt;
  // Mount ids are the kernel's and the same in all namespaces: another process's table cannot lie about them.
  if (auto type = TypeIn("/proc/self/mountinfo", *mount)) return type;
  if (pid <= 0) return std::nullopt;
  return TypeIn(absl::StrCat("/proc/", pid, "/mountinfo"), *mount);
}

}  // namespace ubd

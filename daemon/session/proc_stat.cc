#include "daemon/session/proc_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "proto/wire/unique_fd.h"

namespace ubd {
namespace {

std::optional<std::string> ReadSmallFile(const std::string& path) {
  ub::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::array<char, 4096> buffer;
  ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
  if (count < 0) return std::nullopt;
  return std::string(buffer.data(), static_cast<size_t>(count));
}

// The n-th (from 1) field of a space-separated text.
std::string_view Field(std::string_view text, int n) {
  for (int i = 1; i < n; ++i) {
    size_t space = text.find(' ');
    if (space == std::string_view::npos) return {};
    text.remove_prefix(space + 1);
  }
  return text.substr(0, text.find_first_of(" \n"));
}

// Length of the valid UTF-8 sequence at the start of `text`; 0 if there is none.
size_t Utf8Length(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  unsigned first = byte(0);
  if (first >= 0x20 && first < 0x7f) return 1;
  if (first >= 0xc2 && first <= 0xdf && byte(1) >= 0xa0 && follows(1)) return 2;
  if (first >= 0xc3 && first <= 0xdf && follows(1)) return 2;
  if (first >= 0xe0 && first <= 0xef && follows(1) && follows(2)) {
    unsigned code = (first & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    return code >= 0x800 && (code < 0xd800 || code > 0xdfff) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4 && follows(1) && follows(2) && follows(3)) {
    unsigned code = (first & 0x7) << 18 | (byte(1) & 0x3f) << 12;
    return code >= 0x10000 && code <= 0x10ffff ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::optional<ProcStat> ParseProcStat(std::string_view text) {
  constexpr int kStartTime = 22;
  constexpr int kFirstAfterName = 3;
  size_t open = text.find('(');
  size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  if (text.size() < close + 3) return std::nullopt;
  ProcStat stat;
  stat.name = std::string(text.substr(open + 1, close - open - 1));
  std::string_view start = Field(text.substr(close + 2), kStartTime - kFirstAfterName + 1);
  auto [end, error] = std::from_chars(start.data(), start.data() + start.size(), stat.start_time);
  if (start.empty() || error != std::errc() || end != start.data() + start.size()) return std::nullopt;
  return stat;
}

std::optional<ProcStat> ReadProcStat(int32_t pid) {
  if (pid <= 0) return std::nullopt;
  auto text = ReadSmallFile(absl::StrCat("/proc/", pid, "/stat"));
  return text ? ParseProcStat(*text) : std::nullopt;
}

std::optional<int32_t> PidOfPidfd(int fd) {
  auto text = ReadSmallFile(absl::StrCat("/proc/self/fdinfo/", fd));
  if (!text) return std::nullopt;
  constexpr std::string_view kKey = "\nPid:\t";
  size_t at = text->find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const char* begin = text->data() + at + kKey.size();
  int32_t pid = 0;
  auto [end, error] = std::from_chars(begin, text->data() + text->size(), pid);
  return error == std::errc() ? std::optional<int32_t>(pid) : std::nullopt;
}

std::string PrintableName(std::string_view name) {
  std::string shown;
  while (!name.empty()) {
    size_t length = Utf8Length(name);
    shown.append(length == 0 ? "?" : name.substr(0, length));
    name.remove_prefix(length == 0 ? 1 : length);
  }
  return shown;
}

}  // namespace ubd

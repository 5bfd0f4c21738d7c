#include "daemon/memory/system_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "proto/wire/unique_fd.h"

namespace ubd {
namespace {

std::optional<uint64_t> LeadingNumber(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (unit.substr(0, 3) != " kB") return value;
  if (value > UINT64_MAX / 1024) return std::nullopt;
  return value * 1024;
}

}  // namespace

std::optional<std::string> SystemFiles::Read(const std::string& path) const {
  ub::UniqueFd fd(::open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
}

std::optional<uint64_t> SystemFiles::ReadNumber(const std::string& path) const {
  std::optional<std::string> text = Read(path);
  if (!text) return std::nullopt;
  return LeadingNumber(*text);
}

bool SystemFiles::IsDirectory(const std::string& path) const {
  struct stat facts;
  return ::stat((root_ + path).c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

std::vector<std::string> SystemFiles::List(const std::string& path) const {
  std::vector<std::string> names;
  DIR* dir = ::opendir((root_ + path).c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<uint64_t> FindNumber(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    bool starts = at == 0 || text[at - 1] == '\n' || text[at - 1] == ' ';
    std::string_view rest = text.substr(at + key.size());
    bool ends = !rest.empty() && (rest.front() == ' ' || rest.front() == '\t' || rest.front() == ':');
    if (!starts || !ends) continue;
    if (rest.front() == ':') rest.remove_prefix(1);
    return LeadingNumber(rest.substr(0, rest.find('\n')));
  }
  return std::nullopt;
}

}  // namespace ubd

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "daemon/config/config.h"
#include "proto/wire/error.h"
#include "proto/wire/unique_fd.h"

namespace ubd {
namespace {

// The largest real one has some kilobytes.
constexpr size_t kLargestFile = 1 << 20;

absl::Status BadFile(const std::string& path, const std::string& why) {
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadConfig, absl::StrCat(path, ": ", why),
                       {{"file", path}});
}

// O_NONBLOCK: a FIFO at the path must not hold up the start; it is refused below.
absl::StatusOr<ub::UniqueFd> Open(const std::string& path) {
  if (path.empty()) return BadFile("(no file)", "the path of the config file is empty; give --config FILE");
  ub::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return ub::ErrnoError(errno, absl::StrCat("opening the config file ", path));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ub::ErrnoError(errno, absl::StrCat("fstat of the config file ", path));
  if (S_ISDIR(info.st_mode)) return BadFile(path, "is a directory; name the file in it");
  if (!S_ISREG(info.st_mode)) return BadFile(path, "is not a regular file");
  return fd;
}

}  // namespace

absl::StatusOr<Config> LoadConfig(const std::string& path) {
  absl::StatusOr<ub::UniqueFd> fd = Open(path);
  if (!fd.ok()) return fd.status();
  // Read up to the limit whatever fstat said: the size of a file may be wrong (/proc) or change.
  std::string text(kLargestFile + 1, '\0');
  size_t used = 0;
  while (used < text.size()) {
    ssize_t got = read(fd->get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ub::ErrnoError(errno, absl::StrCat("reading the config file ", path));
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  if (used > kLargestFile) return BadFile(path, "is larger than 1MiB; this is not a config file of ubd");
  text.resize(used);
  return ParseConfig(text, path);
}

}  // namespace ubd

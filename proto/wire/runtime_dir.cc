#include "proto/wire/runtime_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"

namespace ub {
namespace {

std::optional<std::string> Named(std::string_view given) {
  if (!given.empty()) return std::string(given);
  const char* set = std::getenv("UB_RUNTIME_DIR");
  if (set != nullptr && set[0] == '/') return set;
  return std::nullopt;
}

// A daemon's socket is there, or cannot be seen for lack of rights, which the caller should be told then.
bool MayHaveDaemon(const std::string& dir) {
  struct stat info = {};
  const std::string path = absl::StrCat(dir, "/", std::string(kRpcSocketName));
  return ::stat(path.c_str(), &info) == 0 ? S_ISSOCK(info.st_mode) : errno == EACCES;
}

}  // namespace

std::string RuntimeDir(std::string_view given) {
  if (auto named = Named(given)) return *named;
  if (::geteuid() == 0) return std::string(kSystemRuntimeDir);
  const char* xdg = std::getenv("XDG_RUNTIME_DIR");
  if (xdg != nullptr && xdg[0] == '/') return absl::StrCat(xdg, "/ubd");
  return absl::StrCat("/tmp/ubd-", ::geteuid());
}

std::string ClientRuntimeDir(std::string_view given, std::string_view system_dir) {
  std::string own = RuntimeDir(given);
  if (Named(given) || MayHaveDaemon(own)) return own;
  std::string shared(system_dir);
  return MayHaveDaemon(shared) ? shared : own;
}

}  // namespace ub

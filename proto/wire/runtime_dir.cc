#include "proto/wire/runtime_dir.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace ub {

std::string RuntimeDir(std::string_view given) {
  if (!given.empty()) return std::string(given);
  const char* set = std::getenv("UB_RUNTIME_DIR");
  if (set != nullptr && set[0] == '/') return set;
  if (::geteuid() == 0) return "/run/ubd";
  const char* xdg = std::getenv("XDG_RUNTIME_DIR");
  if (xdg != nullptr && xdg[0] == '/') return absl::StrCat(xdg, "/ubd");
  return absl::StrCat("/tmp/ubd-", ::geteuid());
}

}  // namespace ub

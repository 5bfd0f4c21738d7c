#include "daemon/rpc/admin_rule.h"

#include <grp.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

// The words after "Name:" on the line that starts with it.
std::vector<std::string> WordsOf(std::string_view status, std::string_view name) {
  for (absl::string_view line : absl::StrSplit(absl::string_view(status.data(), status.size()), '\n')) {
    if (!std::string_view(line.data(), line.size()).starts_with(name)) continue;
    line.remove_prefix(name.size());
    return absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  }
  return {};
}

bool Is(const std::string& word, uint32_t number) {
  uint32_t value = 0;
  return absl::SimpleAtoi(word, &value) && value == number;
}

}  // namespace

absl::StatusOr<std::optional<Gid>> FindGroup(const std::string& group) {
  if (group.empty()) return std::optional<Gid>();
  uint32_t number = 0;
  if (absl::SimpleAtoi(group, &number)) return std::optional<Gid>(Gid(number));
  std::vector<char> buffer(1 << 16);
  struct group entry {};
  struct group* found = nullptr;
  int error = getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return std::optional<Gid>(Gid(found->gr_gid));
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadConfig,
                       absl::StrCat("admin group \"", group, "\" is unknown on this machine",
                                    error != 0 ? absl::StrCat(" (error ", error, ")") : std::string(),
                                    ": create it (groupadd) or correct admin { group }"),
                       {{"group", group}});
}

bool StatusHasGroup(std::string_view status, Uid uid, Gid group) {
  // Real, effective, saved, file system: the second is what the kernel attested.
  std::vector<std::string> uids = WordsOf(status, "Uid:");
  if (uids.size() < 2 || !Is(uids[1], uid.value())) return false;
  for (const std::string& word : WordsOf(status, "Groups:")) {
    if (Is(word, group.value())) return true;
  }
  return false;
}

bool AdminRule::operator()(Uid uid, Gid gid, int32_t pid) const {
  if (uid.value() == 0 || uid.value() == geteuid()) return true;
  if (!group_) return false;
  if (gid == *group_) return true;
  if (pid <= 0) return false;
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  std::ostringstream text;
  text << file.rdbuf();
  return StatusHasGroup(text.str(), uid, *group_);
}

}  // namespace ubd

// Who is an administrator: root, the daemon's own user, and the members of one configured group, by the kernel's word
// on the process: its primary group as attested on the connection, or its supplementary groups in /proc/PID/status.
// Thread-safe.
#ifndef UBD_RPC_ADMIN_RULE_H_
#define UBD_RPC_ADMIN_RULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "daemon/core/block.h"

namespace ubd {

// The gid of a group given by name or number. Empty: none. Unknown: INVALID_ARGUMENT/BAD_CONFIG.
absl::StatusOr<std::optional<Gid>> FindGroup(const std::string& group);

class AdminRule {
 public:
  explicit AdminRule(std::optional<Gid> group) : group_(group) {}
  bool operator()(Uid uid, Gid gid, int32_t pid) const;

 private:
  std::optional<Gid> group_;
};

// Whether `status`, the text of /proc/PID/status, is of a process of `uid` with `group` among its groups. The uid is
// compared since the pid may have passed to another process.
bool StatusHasGroup(std::string_view status, Uid uid, Gid group);

}  // namespace ubd

#endif  // UBD_RPC_ADMIN_RULE_H_

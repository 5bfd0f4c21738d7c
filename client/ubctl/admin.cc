#include "client/ubctl/admin.h"

namespace ub::ctl {

absl::StatusOr<std::unique_ptr<Admin>> Admin::Connect(const std::string& runtime_dir, absl::Time deadline) {
  auto channel = OpenChannel(runtime_dir, deadline);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<Admin>(new Admin(*channel));
}

}  // namespace ub::ctl

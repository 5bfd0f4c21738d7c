#include "client/ubctl/admin.h"

#include "absl/time/clock.h"

namespace ub::ctl {

absl::StatusOr<std::unique_ptr<Admin>> Admin::Connect(const std::string& runtime_dir, Deadline deadline) {
  auto channel = OpenChannel(runtime_dir, absl::Now() + deadline.left());
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<Admin>(new Admin(*channel));
}

}  // namespace ub::ctl

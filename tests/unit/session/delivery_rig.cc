#include "tests/unit/session/delivery_rig.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <vector>

#include "proto/wire/lifeline.h"
#include "proto/wire/unique_fd.h"

namespace ubd::testing {

using ub::UniqueFd;

absl::StatusOr<RawClient> JoinSettled(TestDaemon& daemon) {
  auto client = Join(daemon.lifeline());
  if (client.ok() && !Eventually([&] { return daemon.Find(*client)->fds_in_flight() == 0; }))
    return absl::InternalError("fds in flight");
  return client;
}

size_t ReadGrant(TestDaemon& daemon, const RawClient& client, const Grant& grant) {
  size_t frames = 0, next = 0;
  while (next < grant.blocks.size()) {
    std::vector<UniqueFd> fds;
    auto frame = ReceiveFrame<ub::wire::Grant>(client.lifeline.get(), &fds);
    if (!frame.ok()) {
      ADD_FAILURE() << frame.status() << " after " << next;
      return frames;
    }
    ++frames;
    EXPECT_EQ(frame->lease, grant.lease.value());
    EXPECT_EQ(frame->generation, grant.generation.value());
    EXPECT_EQ(frame->total, grant.blocks.size());
    EXPECT_EQ(frame->first, next);
    EXPECT_EQ(frame->count, fds.size());
    for (const UniqueFd& fd : fds) {
      struct stat info = {};
      EXPECT_EQ(::fstat(fd.get(), &info), 0);
      EXPECT_EQ(info.st_ino, daemon.memory().InodeOf(grant.blocks.at(next++).block));
    }
  }
  return frames;
}

void Flood::Ask(TestDaemon& daemon, SessionId session, int times, uint32_t blocks) {
  for (int i = 0; i < times; ++i) {
    daemon.Acquire(session, blocks,
                   [ok = ok, failed = failed](absl::StatusOr<Grant> grant) { ++*(grant.ok() ? ok : failed); });
  }
}

}  // namespace ubd::testing

// What the session server tells others of a session's beginning and end.
#include <gtest/gtest.h>

#include "tests/unit/session/harness.h"

namespace ubd::testing {
namespace {

TEST(SessionHooks, OpenAfterTheBrokerAndCloseBeforeIt) {
  TestDaemon* running = nullptr;
  std::atomic<int> opened{0}, closed{0};
  auto known = [&running](SessionId id) {
    for (const SessionListing& listed : running->broker().Sessions(Viewer{.admin = true})) {
      if (listed.facts.id == id) return true;
    }
    return false;
  };
  DaemonOptions options;
  options.hooks.opened = [&](const SessionFacts& facts) { opened += known(facts.id) ? 1 : 100; };
  options.hooks.closing = [&](SessionId id) { closed += known(id) ? 1 : 100; };
  TestDaemon daemon(options);
  running = &daemon;
  {
    auto client = Join(daemon.lifeline());
    ASSERT_TRUE(client.ok());
    EXPECT_EQ(opened.load(), 1);
  }
  EXPECT_TRUE(Eventually([&] { return closed.load() == 1; }));
}

}  // namespace
}  // namespace ubd::testing

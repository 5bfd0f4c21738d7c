#include "daemon/rpc/problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ubd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ProblemSources Healthy() {
  ProblemSources sources;
  PoolSpec spec{"host", "host", ub::MiB(2), 32, Isolation::kPerUid};
  PoolListing pool;
  pool.spec = spec;
  pool.free = 32;
  sources.pools = {pool};
  PoolFacts facts;
  facts.spec = spec;
  facts.locked = "yes";
  facts.reserve = 4;
  sources.facts = {facts};
  sources.reuse_test = "sole-holder";
  sources.paths.file_engine = "io_uring";
  sources.paths.registered = true;
  sources.fds_open = 100;
  sources.fds_limit = 1024;
  return sources;
}

TEST(FindProblems, NoneWhereNothingIsWrong) { EXPECT_THAT(FindProblems(Healthy()), IsEmpty()); }

TEST(FindProblems, ShrunkPoolSaysWhyAndWhatToDo) {
  ProblemSources sources = Healthy();
  sources.facts[0].shrunk = "only 10 huge pages are free";
  EXPECT_THAT(FindProblems(sources), ElementsAre(testing::AllOf(HasSubstr("pool host"), HasSubstr("only 10 huge pages"),
                                                                HasSubstr("restart ubd"))));
}

TEST(FindProblems, UntrustedReuseTestIsNeverSilent) {
  ProblemSources sources = Healthy();
  sources.reuse_test = "F_SETLEASE gave EINVAL";
  EXPECT_THAT(FindProblems(sources), ElementsAre(HasSubstr("F_SETLEASE gave EINVAL")));
}

TEST(FindProblems, RetiredAndEmptyReserveAndUnlocked) {
  ProblemSources sources = Healthy();
  sources.pools[0].retired = 3;
  sources.facts[0].reserve = 0;
  sources.facts[0].locked = "no: memlock limit 8MiB";
  EXPECT_THAT(FindProblems(sources),
              ElementsAre(HasSubstr("3 old backings"), HasSubstr("reserve is empty"), HasSubstr("memlock limit 8MiB")));
}

TEST(FindProblems, WhatTheConfigurationAsksForIsNoProblem) {
  ProblemSources sources = Healthy();
  sources.facts[0].locked = "no: lock_pages is OFF";
  EXPECT_THAT(FindProblems(sources), IsEmpty());
}

TEST(FindProblems, DrainingAndStoppingAreToldApart) {
  ProblemSources sources = Healthy();
  sources.totals.draining = true;
  EXPECT_THAT(FindProblems(sources), ElementsAre(HasSubstr("draining")));
  sources.totals.stopping = true;
  EXPECT_THAT(FindProblems(sources), ElementsAre(HasSubstr("stopping")));
}

TEST(FindProblems, EngineThatCannotDoWhatWasWished) {
  ProblemSources sources = Healthy();
  sources.paths.registered = false;
  sources.paths.registration = "0 of 36 backings: memlock limit 8MiB";
  EXPECT_THAT(FindProblems(sources),
              ElementsAre(testing::AllOf(HasSubstr("memlock limit 8MiB"), HasSubstr("LimitMEMLOCK"))));
  sources.register_blocks = Demand::kOff;
  EXPECT_THAT(FindProblems(sources), IsEmpty());
  sources.paths.file_engine = "io_uring_setup: Operation not permitted";
  EXPECT_THAT(FindProblems(sources),
              ElementsAre(testing::AllOf(HasSubstr("Operation not permitted"), HasSubstr("io_uring_disabled"))));
}

TEST(FindProblems, BrokenQueuesAreCounted) {
  ProblemSources sources = Healthy();
  sources.queues.resize(3);
  sources.queues[0].state = "open";
  sources.queues[1].state = "broken: more submitted than there are slots";
  sources.queues[2].state = "broken: more read than was completed";
  EXPECT_THAT(FindProblems(sources), ElementsAre(HasSubstr("2 queues are broken")));
}

TEST(FindProblems, FdLimitIsToldBeforeItIsReached) {
  ProblemSources sources = Healthy();
  sources.fds_open = 900;
  EXPECT_THAT(FindProblems(sources), ElementsAre(HasSubstr("LimitNOFILE")));
}

}  // namespace
}  // namespace ubd

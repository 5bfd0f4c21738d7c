#include <gtest/gtest.h>

#include "client/ubctl/json.h"
#include "client/ubctl/listing_text.h"
#include "client/ubctl/queue_text.h"
#include "client/ubctl/report.pb.h"
#include "client/ubctl/side_text.h"

namespace ub::ctl {
namespace {

TEST(QueueText, EmptyPollsAreAShareAndNothingIsNotZero) {
  v1::QueueList list;
  v1::Queue& busy = *list.add_queues();
  busy.set_id(3);
  busy.set_policy("direct-only");
  busy.set_polls(1000);
  busy.set_empty_polls(250);
  busy.set_oldest_ns(3200000);
  list.add_queues()->set_id(4);
  std::string text = QueuesText(list);
  EXPECT_NE(text.find("25.0%"), std::string::npos) << text;
  EXPECT_NE(text.find("3.2 ms"), std::string::npos) << text;
  EXPECT_EQ(text.find("nan"), std::string::npos) << "a queue that was never looked at has no share: " << text;
  EXPECT_NE(MessageToJson(list).find("\"oldest_ns\": null"), std::string::npos);
}

TEST(PathText, SaysPolicyRegistrationAndEveryWay) {
  v1::PathStatus path;
  path.set_policy("prefer-direct");
  path.set_min_direct_bytes(262144);
  path.set_registration("0 of 9: memlock limit");
  v1::PathCount& count = *path.add_counts();
  count.set_path("staged");
  count.set_reason("unaligned");
  count.set_from("file");
  count.set_to("host");
  count.set_transfers(7);
  std::string text = PathText(path);
  EXPECT_NE(text.find("no: 0 of 9: memlock limit"), std::string::npos) << text;
  EXPECT_NE(text.find("256 KiB on"), std::string::npos) << text;
  EXPECT_NE(text.find("staged  unaligned  file  host          7"), std::string::npos) << text;
}

TEST(LeaseText, DrainingIsShownWithItsAge) {
  v1::LeaseList list;
  v1::LeaseInfo& lease = *list.add_leases();
  lease.set_state("draining");
  lease.set_draining_ns(3200000000);
  lease.set_in_flight(2);
  EXPECT_NE(LeasesText(list).find("draining for 3.2 s"), std::string::npos) << LeasesText(list);
  list.add_leases()->set_state("held");
  EXPECT_NE(MessageToJson(list).find("\"draining_ns\": null"), std::string::npos);
}

TEST(SideText, WhatWasNotMeasuredIsADashWithItsReason) {
  TransferSide direct;
  direct.set_note("not possible: unaligned");
  TransferSide staged;
  staged.set_bytes_per_s(1 << 30);
  staged.set_p50_ns(1500000);
  staged.set_path("staged");
  staged.set_reason("forced");
  std::string text = SidesText({{"direct", &direct}, {"staged", &staged}});
  EXPECT_NE(text.find("-  not possible: unaligned"), std::string::npos) << text;
  EXPECT_NE(text.find("1 GiB/s"), std::string::npos) << text;
  EXPECT_NE(text.find("staged: forced"), std::string::npos) << text;
}

TEST(AbReport, DocumentHasTheKeysThatScriptsRead) {
  std::string json = MessageToJson(AbReport());
  size_t at = 0;
  for (const char* key :
       {"\"direct\": null", "\"staged\": null", "\"traditional\": null", "\"gain\": null", "\"verdict\""}) {
    at = json.find(key, at);
    EXPECT_NE(at, std::string::npos) << key;
  }
}

}  // namespace
}  // namespace ub::ctl

#include "client/ubctl/json.h"

#include <gtest/gtest.h>

#include <limits>

#include "client/ubctl/report.pb.h"
#include "proto/wire/error.h"
#include "ub/v1/admin.pb.h"
#include "ub/v1/error.pb.h"
#include "ub/v1/types.pb.h"

namespace ub::ctl {
namespace {

TEST(Json, StringEscapesWhatWouldBreakTheDocument) {
  EXPECT_EQ(JsonString("a\"b\\c\n\t\x01\x1b[2J\x7f"), R"("a\"b\\c\n\t\u0001\u001b[2J\u007f")");
  EXPECT_EQ(JsonString(std::string_view("nul\0here", 8)), R"("nul\u0000here")");
}

TEST(Json, InvalidUtf8IsReplacedNotPassedOn) {
  EXPECT_EQ(JsonString("a\xff\x62"), "\"a\xef\xbf\xbd\x62\"");
  EXPECT_EQ(JsonString("\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\"") << "overlong";
  EXPECT_EQ(JsonString("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"") << "surrogate";
  EXPECT_EQ(JsonString("cut \xe2\x82"), "\"cut \xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(JsonString("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"), "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"");
}

TEST(Json, SixtyFourBitIntegersAreNumbersAndExact) {
  v1::Pool pool;
  pool.set_block_bytes(std::numeric_limits<uint64_t>::max());
  EXPECT_NE(MessageToJson(pool).find("\"block_bytes\": 18446744073709551615,"), std::string::npos);
  v1::Event event;
  event.set_unix_time_ns(std::numeric_limits<int64_t>::min());
  EXPECT_NE(MessageToJson(event).find("\"unix_time_ns\": -9223372036854775808,"), std::string::npos);
}

TEST(Json, UnsetOptionalIsNullAndUnsetPlainFieldIsThere) {
  std::string json = MessageToJson(v1::Pool());
  EXPECT_NE(json.find("\"numa_node\": null"), std::string::npos);
  EXPECT_NE(json.find("\"blocks_free\": 0"), std::string::npos);
  EXPECT_NE(json.find("\"shrunk\": \"\""), std::string::npos);
  v1::Pool on_node_zero;
  on_node_zero.set_numa_node(0);
  EXPECT_NE(MessageToJson(on_node_zero).find("\"numa_node\": 0"), std::string::npos) << "0 is not unset";
}

TEST(Json, PoolKeysThatMonitoringReliesOn) {
  v1::PoolList list;
  list.add_pools()->set_name("p");
  std::string json = MessageToJson(list);
  for (const char* key : {"name", "kind", "block_bytes", "page_bytes", "numa_node", "blocks_total", "blocks_free",
                          "blocks_leased", "blocks_cached", "blocks_draining", "blocks_recycling", "blocks_retired"}) {
    EXPECT_NE(json.find("\"" + std::string(key) + "\": "), std::string::npos) << key;
  }
}

TEST(Json, EmptyListIsAnEmptyArray) { EXPECT_EQ(MessageToJson(v1::LeaseList()), "{\n  \"leases\": []\n}\n"); }

TEST(Json, AgeIsAlsoSaidInSeconds) {
  v1::LeaseList list;
  v1::LeaseInfo& lease = *list.add_leases();
  lease.set_age_ns(1500000000);
  lease.add_holders()->set_access("rw");
  std::string json = MessageToJson(list);
  EXPECT_NE(json.find("\"age_ns\": 1500000000,\n      \"age\": 1.5,"), std::string::npos) << json;
  EXPECT_NE(json.find("\"access\": \"rw\""), std::string::npos);
}

TEST(Json, EnumsAreNames) {
  v1::Event event;
  event.set_kind(v1::Event::RECLAIMED);
  EXPECT_NE(MessageToJson(event).find("\"kind\": \"RECLAIMED\""), std::string::npos);
}

TEST(Json, UnsetMessageIsNull) {
  EXPECT_NE(MessageToJson(VersionReport()).find("\"daemon\": null"), std::string::npos);
}

TEST(Json, MapsAreObjects) {
  v1::ErrorInfo info;
  (*info.mutable_metadata())["free"] = "3";
  EXPECT_NE(MessageToJson(info).find("\"metadata\": {\n    \"free\": \"3\"\n  }"), std::string::npos)
      << MessageToJson(info);
}

TEST(Json, NotANumberIsNull) {
  DemoReport report;
  report.set_seconds(std::numeric_limits<double>::quiet_NaN());
  report.set_copies_per_byte(std::numeric_limits<double>::infinity());
  std::string json = MessageToJson(report);
  EXPECT_NE(json.find("\"seconds\": null"), std::string::npos);
  EXPECT_NE(json.find("\"copies_per_byte\": null"), std::string::npos);
}

TEST(Json, FailureDocumentCarriesReasonAndDetails) {
  absl::Status status =
      MakeError(absl::StatusCode::kResourceExhausted, Reason::kPoolEmpty, "no \"free\" block", {{"free", "0"}});
  EXPECT_EQ(ErrorToJson(status),
            "{\n  \"error\": {\n    \"code\": \"RESOURCE_EXHAUSTED\",\n    \"reason\": \"POOL_EMPTY\",\n"
            "    \"message\": \"no \\\"free\\\" block\",\n    \"details\": {\n      \"free\": \"0\"\n    }\n  }\n}\n");
  EXPECT_NE(ErrorToJson(absl::UnknownError("x")).find("\"reason\": null"), std::string::npos);
  EXPECT_NE(ErrorToJson(absl::UnknownError("x")).find("\"details\": {}"), std::string::npos);
}

}  // namespace
}  // namespace ub::ctl

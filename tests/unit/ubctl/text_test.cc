#include <gtest/gtest.h>

#include "client/ubctl/exit_code.h"
#include "client/ubctl/human.h"
#include "client/ubctl/listing_text.h"
#include "client/ubctl/status_text.h"
#include "client/ubctl/table.h"
#include "client/ubctl/utf8.h"
#include "proto/wire/error.h"
#include "proto/wire/version.h"

namespace ub::ctl {
namespace {

TEST(Table, NumbersLineUpRightAndNoLineEndsInASpace) {
  Table table({{"NAME"}, {"SIZE", Align::kRight}, {"NOTE"}});
  table.Add({"a", "1", ""});
  table.Add({"longer", "100", "x"});
  EXPECT_EQ(table.Text(), "NAME    SIZE  NOTE\na          1\nlonger   100  x\n");
}

TEST(Table, EmptyOneStillHasItsHeaderAndSaysNone) { EXPECT_EQ(Table({{"A"}, {"B"}}).Text(), "A  B\nnone\n"); }

TEST(Table, NamesOfOtherProcessesCannotMoveTheCursor) {
  Table table({{"NAME"}});
  table.Add(
      {"\x1b[2Jevil\r\nroot\x9b"
       "31m\xc2\x9b"
       "1m\xe2\x80\xae"});
  std::string text = table.Text();
  for (const char* bad : {"\x1b", "\r", "\x9b", "\xc2\x9b", "\xe2\x80\xae"})
    EXPECT_EQ(text.find(bad), std::string::npos) << bad;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(Table, WidthCountsCharactersNotBytes) {
  Table table({{"N"}, {"M"}});
  table.Add({"\xc3\xbc\xc3\xbc", "x"});
  table.Add({"ab", "x"});
  EXPECT_EQ(table.Text(), "N   M\n\xc3\xbc\xc3\xbc  x\nab  x\n");
}

TEST(Table, RowsOfAnyLengthFit) {
  Table table({{"A"}, {"B"}});
  table.Add({"1"});
  table.Add({"1", "2", "3"});
  EXPECT_EQ(table.Text(), "A  B\n1\n1  2\n");
}

TEST(Human, SizesAreBinaryAndShort) {
  EXPECT_EQ(HumanSize(0), "0 B");
  EXPECT_EQ(HumanSize(4097), "4097 B");
  EXPECT_EQ(HumanSize(4096), "4 KiB");
  EXPECT_EQ(HumanSize(uint64_t{64} << 20), "64 MiB");
  EXPECT_EQ(HumanSize((uint64_t{1} << 20) - 1), "1 MiB") << "never 1024 KiB";
  EXPECT_EQ(HumanSize((uint64_t{3} << 30) / 2), "1.5 GiB");
  EXPECT_EQ(HumanSize(UINT64_MAX), "16 EiB");
}

TEST(Human, DurationsKeepTwoUnits) {
  EXPECT_EQ(HumanDuration(999), "999 ns");
  EXPECT_EQ(HumanDuration(12500), "12.5 us");
  EXPECT_EQ(HumanDuration(3200000), "3.2 ms");
  EXPECT_EQ(HumanDuration(41000000000), "41 s");
  EXPECT_EQ(HumanDuration(59990000000), "59.9 s");
  EXPECT_EQ(HumanDuration(uint64_t{312} * 1000000000), "5 m 12 s");
  EXPECT_EQ(HumanDuration(uint64_t{12000} * 1000000000), "3 h 20 m");
  EXPECT_EQ(HumanDuration(uint64_t{86400} * 9 * 1000000000), "9 d");
}

TEST(ExitCode, NotRunningAndNotAnsweringAreToldApart) {
  auto unavailable = [](Reason reason) { return MakeError(absl::StatusCode::kUnavailable, reason, "x"); };
  EXPECT_EQ(ExitCodeFor(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeFor(unavailable(Reason::kNotRunning)), ExitCode::kNotRunning);
  EXPECT_EQ(ExitCodeFor(unavailable(Reason::kSessionEnded)), ExitCode::kNotRunning);
  EXPECT_EQ(ExitCodeFor(absl::UnavailableError("connection reset")), ExitCode::kNotRunning);
  EXPECT_EQ(ExitCodeFor(unavailable(Reason::kStopping)), ExitCode::kNotRunning);
  EXPECT_EQ(ExitCodeFor(unavailable(Reason::kNotAnswering)), ExitCode::kNotAnswering);
  EXPECT_EQ(ExitCodeFor(unavailable(Reason::kDraining)), ExitCode::kFailed) << "a draining daemon runs and answers";
  EXPECT_EQ(ExitCodeFor(MakeError(absl::StatusCode::kAborted, Reason::kRevoked, "x")), ExitCode::kFailed);
}

TEST(StatusText, ProblemsComeFirst) {
  v1::Status status;
  status.set_version("0.1.0");
  status.set_state("serving");
  EXPECT_EQ(StatusText(status).rfind("ubd 0.1.0 is serving, no problems\n", 0), 0U);
  status.add_problem("pool p is smaller than configured");
  EXPECT_EQ(StatusText(status).rfind("ubd 0.1.0 is serving; problems:\n  ! pool p is smaller than configured\n", 0),
            0U);
}

TEST(StatusText, AdvisoryIsolationIsSaid) {
  v1::Status status;
  EXPECT_EQ(StatusText(status).find("advisory"), std::string::npos);
  status.set_isolation_advisory(true);
  EXPECT_NE(StatusText(status).find("advisory for you"), std::string::npos);
}

TEST(StatusText, ProtocolRemedyNamesBothVersionsAndWhoMustRestart) {
  EXPECT_EQ(ProtocolRemedy(ProtocolVersion()), "");
  std::string older = ProtocolRemedy(ProtocolVersion() - 1);
  EXPECT_NE(older.find("protocol " + std::to_string(ProtocolVersion())), std::string::npos);
  EXPECT_NE(older.find("the daemon " + std::to_string(ProtocolVersion() - 1)), std::string::npos);
  EXPECT_NE(older.find("restart it"), std::string::npos);
  EXPECT_NE(ProtocolRemedy(ProtocolVersion() + 1).find("this ubctl is the older one"), std::string::npos);
}

TEST(ListingText, PoolSaysWhyItsPagesAreWhatTheyAre) {
  v1::PoolList list;
  v1::Pool& pool = *list.add_pools();
  pool.set_name("host");
  pool.set_page_bytes(4096);
  pool.set_page_reason("no 2 MiB pages are free");
  EXPECT_NE(PoolsText(list).find("host: 4 KiB pages: no 2 MiB pages are free\n"), std::string::npos);
}

TEST(ListingText, HoldersAreListedWithTheOwnerFirst) {
  v1::LeaseList list;
  v1::LeaseInfo& lease = *list.add_leases();
  lease.set_id(7);
  for (const char* access : {"rw", "ro (advisory)"}) {
    v1::Holder& holder = *lease.add_holders();
    holder.set_name("train");
    holder.set_pid(12);
    holder.set_uid(1001);
    holder.set_access(access);
  }
  EXPECT_NE(LeasesText(list).find("train pid 12 uid 1001 rw; train pid 12 uid 1001 ro (advisory)"), std::string::npos);
}

}  // namespace
}  // namespace ub::ctl

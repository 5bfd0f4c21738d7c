// Every fault of a config text is told with its place, its token and its cure.

#include "tests/unit/config/faults.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/config/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ubd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// A good pool on line 1, then `text` from line 2 on.
std::vector<std::string> FaultsAfterPool(const std::string& text) {
  return Faults("pool { name: \"a\" blocks: 8 }\n" + text);
}
// `keys` on line 2 within a good pool.
std::vector<std::string> FaultsInPool(const std::string& keys) {
  return Faults("pool { name: \"a\" blocks: 8\n" + keys + "\n}\n");
}

TEST(ConfigFaults, ATypoInAKeyDoesNothingSilently) {
  EXPECT_THAT(Faults("\n\npool {\n  name: \"a\"\n  blocks: 8\n\n  sise: \"64MiB\"\n}\n"),
              ElementsAre("f:7:3: unknown key \"sise\" in pool; did you mean \"block_size\"?"));
  EXPECT_THAT(FaultsInPool("blokcs: 9"),
              ElementsAre("f:2:1: unknown key \"blokcs\" in pool; did you mean \"blocks\"?"));
  EXPECT_THAT(FaultsAfterPool("sesion { }"),
              ElementsAre("f:2:1: unknown key \"sesion\" at the top level; did you mean \"session\"?"));
  EXPECT_THAT(FaultsAfterPool("zzzzzzzz: 1"),
              ElementsAre(AllOf(StartsWith("f:2:1: unknown key \"zzzzzzzz\" at the top level; "
                                           "valid keys are pool, socket, quota"))));
}

TEST(ConfigFaults, AWordTooLongOrTooShortIsRecognised) {
  EXPECT_THAT(FaultsAfterPool("log { level: WARNING }"), ElementsAre(HasSubstr("did you mean WARN?")));
  EXPECT_THAT(FaultsAfterPool("sess { }"), ElementsAre(HasSubstr("did you mean \"session\"?")));
}

TEST(ConfigFaults, AKeyInTheWrongSectionIsSentHome) {
  EXPECT_THAT(FaultsAfterPool("handshake_timeout: \"1s\""),
              ElementsAre("f:2:1: unknown key \"handshake_timeout\" at the top level; it belongs in session"));
  EXPECT_THAT(FaultsInPool("metrics { listen: \"127.0.0.1:1\" }"),
              ElementsAre("f:2:1: unknown key \"metrics\" in pool; it belongs at the top level"));
  EXPECT_THAT(FaultsAfterPool("quota { limit: \"1GiB\" }"),
              ElementsAre("f:2:9: unknown key \"limit\" in quota; it belongs in quota.uid"));
}

TEST(ConfigFaults, AKeyGivenTwiceDoesNotOverwriteSilently) {
  EXPECT_THAT(FaultsInPool("  page_size: \"auto\"\n  page_size: \"4KiB\""),
              ElementsAre("f:3:3: \"page_size\" given twice in pool; first at 2:3, keep one"));
  EXPECT_THAT(FaultsAfterPool("log { }\nlog { }"),
              ElementsAre("f:3:1: \"log\" given twice at the top level; first at 2:1, keep one"));
}

TEST(ConfigFaults, AllFaultsOfAFileAreToldAtOnce) {
  EXPECT_THAT(
      Faults("pool {\n  name: \"a\"\n  blocks: 8\n  block_size: \"64MB\"\n  sise: 3\n  lock_pages: REQUIRE\n}\n"
             "socket { mode: \"0666\" }\nlog { level: 3 }\nadmin { group: \"x\" group: \"y\" }\n"),
      ElementsAre(AllOf(StartsWith("f:4:15: block_size: bad size \"64MB\""), HasSubstr("MiB")),
                  StartsWith("f:5:3: unknown key \"sise\" in pool"),
                  AllOf(StartsWith("f:6:15: unknown word \"REQUIRE\" for \"lock_pages\"; did you mean REQUIRED?"),
                        HasSubstr("IF_POSSIBLE, REQUIRED, OFF")),
                  StartsWith("f:9:14: \"level\" wants one of INFO, DEBUG, WARN, ERROR, not \"3\""),
                  StartsWith("f:10:20: \"group\" given twice")));
  // What parses is checked for its values together with mistyped keys.
  EXPECT_THAT(
      Faults("pool { name: \"a\" blocks: 8 }\nsise: 3\nsocket { mode: \"0666\" }\n"),
      ElementsAre(StartsWith("f:2:1: unknown key"), StartsWith("f:3:10: mode \"0666\" lets every user connect")));
}

TEST(ConfigFaults, AFileCutMidLineIsNotHalfUsed) {
  EXPECT_THAT(
      Faults("pool {\n  name: \"a\"\n  blocks: 8\n  block_si"),
      ElementsAre(StartsWith("f:4:3: unknown key \"block_si\" in pool; did you mean \"block_size\"?"),
                  AllOf(StartsWith("f:4:11: the file ends inside pool { … } opened at 1:6"), HasSubstr("cut short"))));
  EXPECT_THAT(
      Faults("pool {\n  name: \"a\"\n  blocks: 8\n  block_size: \"64M"),
      ElementsAre(StartsWith("f:4:15: block_size: bad size \"64M\""), StartsWith("f:4:19: the file ends inside pool")));
  EXPECT_THAT(Faults("pool {\n  name: \"a\"\n  blocks:"), SizeIs(2));
  EXPECT_THAT(Faults("pool {\n  name: \"a\"\n  blocks: 8\n"),
              ElementsAre(StartsWith("f:4:1: the file ends inside pool")));
  EXPECT_THAT(Faults("pool"),
              ElementsAre(AllOf(StartsWith("f:1:5: \"pool\" is a section"), HasSubstr("the end of the file"))));
  EXPECT_THAT(FaultsAfterPool("}"), ElementsAre("f:2:1: \"}\" closes nothing"));
}

TEST(ConfigFaults, EveryPrefixOfAGoodFileEitherParsesOrNamesAPlace) {
  const std::string text =
      "pool { name: \"a\" blocks: 8 block_size: \"2MiB\" }\nquota { uid { user: \"7\" limit: \"1GiB\" } }\n";
  ASSERT_TRUE(ParseConfig(text, "f").ok());
  for (size_t n = 0; n < text.size(); ++n) {
    for (const std::string& line : Faults(text.substr(0, n))) EXPECT_THAT(line, StartsWith("f:")) << n;
  }
  EXPECT_THAT(Faults(text.substr(0, 30)), ::testing::Not(SizeIs(0)));
}

TEST(ConfigFaults, SizesAreNotGuessed) {
  for (const char* bad :
       {"1G", "1GB", "1Gi", "1g", "1 GiB", "1.5G", "1e9", "0x10", "-1", "", "1GiBB", "18446744073709551616"}) {
    EXPECT_THAT(
        FaultsInPool(absl::StrCat("block_size: \"", bad, "\"")),
        ElementsAre(AllOf(StartsWith("f:2:13: block_size: bad size"), HasSubstr(absl::StrCat("\"", bad, "\"")))))
        << bad;
  }
  EXPECT_THAT(FaultsInPool("block_size: 64MiB"), ElementsAre("f:2:13: \"block_size\" wants a size in quotes, such as "
                                                             "\"64MiB\", not \"64\""));
  EXPECT_THAT(FaultsInPool("block_size: \"64MiB\nreserve_blocks: 1"), ElementsAre(HasSubstr("missing closing quote")));
}

TEST(ConfigFaults, DurationsAreNotGuessed) {
  for (const char* bad : {"5", "5 s", "-1s", "inf", "1y", "", "1e300h"}) {
    EXPECT_THAT(FaultsAfterPool(absl::StrCat("shutdown { grace: \"", bad, "\" }")),
                ElementsAre(StartsWith("f:2:19: grace: ")))
        << bad;
  }
}

TEST(ConfigFaults, NumbersAreNotReadAsOctalOrWrappedAround) {
  for (const char* bad :
       {"010", "0x10", "-1", "4294967296", "99999999999999999999", "1.5", "\"8\"", "eight", "8f", "-"}) {
    EXPECT_THAT(Faults(absl::StrCat("pool { name: \"a\"\nblocks: ", bad, "\n}")),
                ElementsAre(StartsWith("f:2:9: \"blocks\" wants")))
        << bad;
  }
  EXPECT_THAT(FaultsInPool("allow_smaller: yes"), ElementsAre(AllOf(StartsWith("f:2:16:"), EndsWith("true or false"))));
  EXPECT_THAT(FaultsInPool("allow_smaller: 1"), ElementsAre(StartsWith("f:2:16:")));
  EXPECT_THAT(FaultsInPool("numa_node: -2147483649"), ElementsAre(StartsWith("f:2:12:")));
}

TEST(ConfigFaults, OtherSpellings) {
  EXPECT_THAT(FaultsInPool("reserve_blocks 3"),
              ElementsAre("f:2:16: expected \":\" after \"reserve_blocks\", not \"3\""));
  EXPECT_THAT(FaultsInPool("reserve_blocks: [1, 2]"), ElementsAre(StartsWith("f:2:17: \"reserve_blocks\" wants")));
  EXPECT_THAT(FaultsAfterPool("socket: \"x\""),
              ElementsAre(StartsWith("f:2:9: \"socket\" is a section; write socket { … }")));
  EXPECT_THAT(FaultsAfterPool("[ub.v1.thing]: 3"),
              ElementsAre(StartsWith("f:2:1: expected a key at the top level, not \"[\"")));
  EXPECT_THAT(FaultsAfterPool("1: 3"), ElementsAre(StartsWith("f:2:1: expected a key")));
  EXPECT_THAT(FaultsAfterPool("log { level: INFO };;"), SizeIs(1));
  EXPECT_THAT(FaultsAfterPool(std::string("log { }\0 }", 10)), SizeIs(::testing::Ge(1)));
  EXPECT_THAT(FaultsAfterPool("socket { group: \"a\\000b\" }"), ElementsAre(HasSubstr("control character")));
  // Legal: separators, single quotes, joined strings, comments, a colon before a section.
  EXPECT_THAT(FaultsAfterPool("log: { level: INFO, target: AUTO; };\nsocket { mode: '06' \"60\" } # so\n"), SizeIs(0));
}

TEST(ConfigFaults, GarbageIsRefusedQuicklyAndBriefly) {
  std::string garbage(10 << 20, '\0');
  uint32_t seed = 1;
  for (char& c : garbage) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  std::vector<std::string> faults = Faults(garbage);
  EXPECT_GT(faults.size(), 1u);
  EXPECT_LE(faults.size(), 21u);
  size_t bytes = 0;
  for (const std::string& fault : faults) bytes += fault.size();
  EXPECT_LT(bytes, 10000u);
}

TEST(ConfigFaults, DeepNestingDoesNotEatTheStack) {
  for (const char* open : {"pool {", "x {", "x <", "x: [", "quota { uid {"}) {
    std::string text;
    for (int i = 0; i < 200000; ++i) text += open;
    EXPECT_THAT(Faults(text), ::testing::Not(SizeIs(0))) << open;
    EXPECT_THAT(FaultsAfterPool(text), ::testing::Not(SizeIs(0))) << open;
  }
}

TEST(ConfigFaults, TheParserLibraryPrintsNothing) {
  testing::internal::CaptureStderr();
  (void)ParseConfig("pool { \"unclosed", "f");
  (void)ParseConfig("a { b { c: 1 } } blocks: 3 blocks: 4", "f");
  (void)ParseConfig(std::string(100000, '{'), "f");
  (void)ParseConfig("", "f");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace ubd

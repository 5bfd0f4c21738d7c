#include "daemon/engine/path_choice.h"

#include <gtest/gtest.h>

namespace ubd {
namespace {

using ub::wire::Path;
using ub::wire::PathPolicy;
using ub::wire::PathReason;

constexpr auto kDefault = PathPolicy::kDefault;
constexpr auto kOnly = PathPolicy::kDirectOnly;
constexpr auto kPrefer = PathPolicy::kPreferDirect;
constexpr auto kStagedOnly = PathPolicy::kStagedOnly;

TEST(PathPolicy, TheNearestWordCounts) {
  EXPECT_EQ(EffectivePolicy(kDefault, kDefault, kPrefer), kPrefer);
  EXPECT_EQ(EffectivePolicy(kDefault, kOnly, kPrefer), kOnly);
  EXPECT_EQ(EffectivePolicy(kStagedOnly, kOnly, kPrefer), kStagedOnly);
}

FileFacts Disk() {
  FileFacts facts;
  facts.trusted = facts.readable = facts.writable = facts.direct = true;
  facts.memory_align = 512;
  facts.offset_align = 4096;
  return facts;
}

struct Case {
  const char* what;
  PathPolicy policy;
  uint64_t file_offset, memory_offset, length;
  bool flags_changed;
  PathReason file_says;  // kNone: direct is possible
  Path path;
  PathReason reason;
};

constexpr uint64_t kBig = 1 << 20;
const Case kCases[] = {
    {"all is well", kPrefer, 4096, 512, kBig, false, PathReason::kNone, Path::kDirect, PathReason::kNone},
    {"direct-only, small", kOnly, 0, 0, 4096, false, PathReason::kNone, Path::kDirect, PathReason::kNone},
    {"exactly the minimum", kPrefer, 0, 0, 262144, false, PathReason::kNone, Path::kDirect, PathReason::kNone},
    {"small", kPrefer, 0, 0, 4096, false, PathReason::kNone, Path::kStaged, PathReason::kBelowMinDirect},
    {"small and unaligned", kPrefer, 1, 0, 100, false, PathReason::kNone, Path::kStaged, PathReason::kBelowMinDirect},
    {"offset", kPrefer, 512, 0, kBig, false, PathReason::kNone, Path::kStaged, PathReason::kUnaligned},
    {"length", kPrefer, 0, 0, kBig + 512, false, PathReason::kNone, Path::kStaged, PathReason::kUnaligned},
    {"memory", kPrefer, 0, 8, kBig, false, PathReason::kNone, Path::kStaged, PathReason::kUnaligned},
    {"offset, direct-only", kOnly, 512, 0, kBig, false, PathReason::kNone, Path::kNone, PathReason::kUnaligned},
    {"small, unaligned, direct-only", kOnly, 1, 0, 1, false, PathReason::kNone, Path::kNone, PathReason::kUnaligned},
    {"forced", kStagedOnly, 0, 0, kBig, false, PathReason::kNone, Path::kStaged, PathReason::kForced},
    {"forced wins", kStagedOnly, 1, 1, 1, true, PathReason::kFsNotProvable, Path::kStaged, PathReason::kForced},
    {"flags", kPrefer, 0, 0, kBig, true, PathReason::kNone, Path::kStaged, PathReason::kFlagsChanged},
    {"flags, direct-only", kOnly, 0, 0, kBig, true, PathReason::kNone, Path::kNone, PathReason::kFlagsChanged},
    {"tmpfs", kPrefer, 0, 0, kBig, false, PathReason::kFsNotProvable, Path::kStaged, PathReason::kFsNotProvable},
    {"tmpfs, direct-only", kOnly, 0, 0, kBig, false, PathReason::kFsNotProvable, Path::kNone,
     PathReason::kFsNotProvable},
};

TEST(PathChoice, Table) {
  for (const Case& c : kCases) {
    FileFacts file = Disk();
    file.direct = c.file_says == PathReason::kNone;
    file.why_not = c.file_says;
    const PathChoice choice = ChoosePath({.policy = c.policy,
                                          .file_offset = c.file_offset,
                                          .memory_offset = c.memory_offset,
                                          .length = c.length,
                                          .min_direct_bytes = 262144,
                                          .flags_changed = c.flags_changed},
                                         file);
    EXPECT_EQ(choice.path, c.path) << c.what;
    EXPECT_EQ(choice.reason, c.reason) << c.what;
  }
}

TEST(PathChoice, WhatIsNotTrustedIsNotTouchedEitherWay) {
  FileFacts file;
  file.why_not = PathReason::kFsNotTrusted;
  for (PathPolicy policy : {kOnly, kPrefer, kStagedOnly}) {
    const PathChoice choice = ChoosePath({.policy = policy, .length = kBig}, file);
    EXPECT_EQ(choice.path, Path::kNone);
    EXPECT_EQ(choice.reason, PathReason::kFsNotTrusted);
  }
}

}  // namespace
}  // namespace ubd

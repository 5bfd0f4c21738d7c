#include "proto/wire/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "proto/wire/error.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/version.h"

namespace ub::wire {
namespace {

template <class T>
class FrameTest : public testing::Test {};
using AllFrames = testing::Types<Hello, Welcome, Refuse, Grant, GrantFailed>;
TYPED_TEST_SUITE(FrameTest, AllFrames);

Reason ReasonFor(absl::Span<const std::byte> packet) { return ReasonOf(ParseFrame(packet).status()); }

TYPED_TEST(FrameTest, ComesBackByteForByte) {
  TypeParam frame = NewFrame<TypeParam>();
  auto* raw = reinterpret_cast<unsigned char*>(&frame);
  for (size_t i = sizeof(FrameHeader); i < sizeof(frame); ++i) raw[i] = static_cast<unsigned char>(i * 7 + 1);
  absl::StatusOr<Frame> parsed = ParseFrame(AsBytes(frame));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto* back = std::get_if<TypeParam>(&*parsed);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(std::memcmp(back, &frame, sizeof(frame)), 0);
}

TYPED_TEST(FrameTest, NewFrameIsZeroBesidesItsHeader) {
  TypeParam frame = NewFrame<TypeParam>();
  EXPECT_EQ(frame.header.magic, kFrameMagic);
  EXPECT_EQ(frame.header.size, sizeof(TypeParam));
  EXPECT_EQ(frame.header.protocol, ProtocolVersion());
  EXPECT_EQ(frame.header.reserved, 0);
  auto* raw = reinterpret_cast<const unsigned char*>(&frame);
  for (size_t i = sizeof(FrameHeader); i < sizeof(frame); ++i) EXPECT_EQ(raw[i], 0) << i;
}

TYPED_TEST(FrameTest, EveryOtherLengthIsRefused) {
  TypeParam frame = NewFrame<TypeParam>();
  std::vector<std::byte> longer(kMaxFrameBytes, std::byte{0});
  std::memcpy(longer.data(), &frame, sizeof(frame));
  for (size_t size = 0; size <= kMaxFrameBytes; ++size) {
    if (size == sizeof(frame)) continue;
    EXPECT_EQ(ReasonFor({longer.data(), size}), Reason::kMalformedFrame) << size;
    // Also when the size field agrees with the packet.
    auto claimed = static_cast<uint32_t>(size);
    std::vector<std::byte> lying = longer;
    std::memcpy(lying.data() + offsetof(FrameHeader, size), &claimed, sizeof(claimed));
    EXPECT_EQ(ReasonFor({lying.data(), size}), Reason::kMalformedFrame) << size;
  }
}

TYPED_TEST(FrameTest, EveryHeaderFieldIsChecked) {
  TypeParam frame = NewFrame<TypeParam>();
  frame.header.magic ^= 1;
  EXPECT_EQ(ReasonFor(AsBytes(frame)), Reason::kMalformedFrame);
  frame = NewFrame<TypeParam>();
  frame.header.reserved = 1;
  EXPECT_EQ(ReasonFor(AsBytes(frame)), Reason::kMalformedFrame);
  for (uint16_t type : {0, 6, 255, 65535}) {
    frame = NewFrame<TypeParam>();
    frame.header.type = type;
    EXPECT_EQ(ReasonFor(AsBytes(frame)), Reason::kMalformedFrame) << type;
  }
}

TYPED_TEST(FrameTest, TypeThatDoesNotFitTheSizeIsRefused) {
  constexpr size_t kSizes[] = {sizeof(Hello), sizeof(Welcome), sizeof(Refuse), sizeof(Grant), sizeof(GrantFailed)};
  TypeParam frame = NewFrame<TypeParam>();
  for (uint16_t type = 1; type <= 5; ++type) {
    frame.header.type = type;
    absl::StatusOr<Frame> parsed = ParseFrame(AsBytes(frame));
    if (kSizes[type - 1] == sizeof(TypeParam)) {  // then the type alone decides
      ASSERT_TRUE(parsed.ok()) << type;
      EXPECT_EQ(parsed->index(), type - 1u);
    } else {
      EXPECT_EQ(ReasonOf(parsed.status()), Reason::kMalformedFrame) << type;
    }
  }
}

TEST(Frame, OtherVersionIsNamedByBothSides) {
  for (uint32_t other : {ProtocolVersion() - 1, ProtocolVersion() + 1}) {
    Hello hello = NewFrame<Hello>();
    hello.header.protocol = other;
    absl::Status refused = ParseFrame(AsBytes(hello)).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ReasonOf(refused), Reason::kVersionMismatch);
    EXPECT_EQ(DetailOf(refused, "theirs"), std::to_string(other));
    EXPECT_EQ(DetailOf(refused, "ours"), std::to_string(ProtocolVersion()));
  }
}

TEST(Frame, OtherVersionIsToldFromGarbageEvenWhenItsFramesHaveOtherSizes) {
  std::vector<std::byte> packet(200, std::byte{1});
  FrameHeader header = NewFrame<Hello>().header;
  header.protocol = ProtocolVersion() + 1;
  header.size = 200;
  header.type = 77;
  std::memcpy(packet.data(), &header, sizeof(header));
  EXPECT_EQ(ReasonFor(packet), Reason::kVersionMismatch);
}

TEST(Frame, RefuseIsReadWhateverItsVersion) {
  Refuse refuse = NewFrame<Refuse>();
  refuse.header.protocol = ProtocolVersion() + 5;
  SetText(refuse.text, "too old");
  absl::StatusOr<Frame> parsed = ParseFrame(AsBytes(refuse));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(GetText(std::get<Refuse>(*parsed).text), "too old");
}

TEST(Frame, UnalignedPacketIsRead) {
  std::vector<std::byte> buffer(sizeof(Grant) + 1);
  Grant grant = NewFrame<Grant>();
  grant.lease = 77;
  std::memcpy(buffer.data() + 1, &grant, sizeof(grant));
  absl::StatusOr<Frame> parsed = ParseFrame({buffer.data() + 1, sizeof(grant)});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(std::get<Grant>(*parsed).lease, 77u);
}

TEST(FrameText, IsCutToFitAndAlwaysEnds) {
  std::array<char, 8> field;
  SetText(field, "a longer text");
  EXPECT_EQ(GetText(field), "a longe");
  EXPECT_EQ(field[7], '\0');
  SetText(field, "ab");
  EXPECT_EQ(GetText(field), "ab");
  EXPECT_EQ(field[3], '\0') << "nothing of the former text stays";
  SetText(field, "");
  EXPECT_EQ(GetText(field), "");
}

TEST(FrameText, WithoutAnEndIsReadToTheFieldsEnd) {
  std::array<char, 4> field = {'a', 'b', 'c', 'd'};
  EXPECT_EQ(GetText(field), "abcd");
}

TEST(FrameText, ControlCharactersCannotReachATerminal) {
  std::array<char, 16> field;
  SetText(field, "a\x1b[2Jb\n\x7f");
  EXPECT_EQ(GetText(field), "a?[2Jb??");
}

}  // namespace
}  // namespace ub::wire

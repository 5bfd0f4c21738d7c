#include "proto/wire/frame.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/version.h"

namespace ub::wire {
namespace {

template <class T>
struct TypeOf;
template <>
struct TypeOf<Hello> {
  static constexpr FrameType value = FrameType::kHello;
};
template <>
struct TypeOf<Welcome> {
  static constexpr FrameType value = FrameType::kWelcome;
};
template <>
struct TypeOf<Refuse> {
  static constexpr FrameType value = FrameType::kRefuse;
};
template <>
struct TypeOf<Grant> {
  static constexpr FrameType value = FrameType::kGrant;
};
template <>
struct TypeOf<GrantFailed> {
  static constexpr FrameType value = FrameType::kGrantFailed;
};
template <>
struct TypeOf<QueueGrant> {
  static constexpr FrameType value = FrameType::kQueueGrant;
};
template <>
struct TypeOf<Offer> {
  static constexpr FrameType value = FrameType::kOffer;
};

absl::Status Malformed(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kMalformedFrame,
                   absl::StrCat("malformed lifeline frame: ", std::string(why)));
}

template <class T>
absl::StatusOr<Frame> Copy(absl::Span<const std::byte> packet) {
  if (packet.size() != sizeof(T)) return Malformed("wrong size for its type");
  T frame;
  std::memcpy(&frame, packet.data(), sizeof(T));
  return Frame(frame);
}

absl::Status CheckHeader(const FrameHeader& header, size_t packet_size) {
  if (header.magic != kFrameMagic) return Malformed("bad magic");
  if (header.protocol != ProtocolVersion() && header.type != static_cast<uint16_t>(FrameType::kRefuse)) {
    return MakeError(absl::StatusCode::kFailedPrecondition, Reason::kVersionMismatch,
                     absl::StrCat("peer speaks protocol ", header.protocol, ", this side ", ProtocolVersion()),
                     {{"theirs", absl::StrCat(header.protocol)}, {"ours", absl::StrCat(ProtocolVersion())}});
  }
  if (header.size != packet_size) return Malformed("size field differs from the packet's size");
  if (header.reserved != 0) return Malformed("reserved field is set");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Frame> ParseFrame(absl::Span<const std::byte> packet) {
  FrameHeader header;
  if (packet.size() < sizeof(header)) return Malformed("shorter than a header");
  std::memcpy(&header, packet.data(), sizeof(header));
  if (absl::Status bad = CheckHeader(header, packet.size()); !bad.ok()) return bad;
  switch (static_cast<FrameType>(header.type)) {
    case FrameType::kHello:
      return Copy<Hello>(packet);
    case FrameType::kWelcome:
      return Copy<Welcome>(packet);
    case FrameType::kRefuse:
      return Copy<Refuse>(packet);
    case FrameType::kGrant:
      return Copy<Grant>(packet);
    case FrameType::kGrantFailed:
      return Copy<GrantFailed>(packet);
    case FrameType::kQueueGrant:
      return Copy<QueueGrant>(packet);
    case FrameType::kOffer:
      return Copy<Offer>(packet);
  }
  return Malformed("unknown type");
}

template <class T>
T NewFrame() {
  T frame;
  std::memset(&frame, 0, sizeof(frame));
  frame.header.magic = kFrameMagic;
  frame.header.type = static_cast<uint16_t>(TypeOf<T>::value);
  frame.header.size = sizeof(T);
  frame.header.protocol = ProtocolVersion();
  return frame;
}

template Hello NewFrame<Hello>();
template Welcome NewFrame<Welcome>();
template Refuse NewFrame<Refuse>();
template Grant NewFrame<Grant>();
template GrantFailed NewFrame<GrantFailed>();
template QueueGrant NewFrame<QueueGrant>();
template Offer NewFrame<Offer>();

}  // namespace ub::wire

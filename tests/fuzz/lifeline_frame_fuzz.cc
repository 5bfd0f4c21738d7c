// Whatever a peer sends on the lifeline: a frame is taken only at its exact size, its texts end and hold no control
// characters, and parsing the parsed again gives the same.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "proto/wire/fd_message.h"
#include "proto/wire/frame.h"
#include "proto/wire/version.h"
#include "tests/fuzz/demand.h"

namespace {

void CheckText(const std::string& text) {
  for (char c : text) Demand(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

void CheckFrame(const ub::wire::Hello& frame) { CheckText(ub::wire::GetText(frame.name)); }
void CheckFrame(const ub::wire::Welcome&) {}
void CheckFrame(const ub::wire::Grant&) {}
void CheckFrame(const ub::wire::QueueGrant&) {}
void CheckFrame(const ub::wire::Offer&) {}
void CheckFrame(const ub::wire::Refuse& frame) {
  CheckText(ub::wire::GetText(frame.reason));
  CheckText(ub::wire::GetText(frame.text));
}
void CheckFrame(const ub::wire::GrantFailed& frame) {
  CheckText(ub::wire::GetText(frame.reason));
  CheckText(ub::wire::GetText(frame.text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that the sanitizer sees a read beyond it.
  std::vector<std::byte> packet(size);
  if (size > 0) std::memcpy(packet.data(), data, size);
  auto frame = ub::wire::ParseFrame(packet);
  if (!frame.ok()) {
    Demand(!frame.status().message().empty());
    return 0;
  }
  std::visit(
      [&](const auto& taken) {
        Demand(sizeof taken == size);
        Demand(taken.header.magic == ub::wire::kFrameMagic);
        CheckFrame(taken);
        auto again = ub::wire::ParseFrame(ub::wire::AsBytes(taken));
        Demand(again.ok() && again->index() == frame->index());
      },
      *frame);
  return 0;
}

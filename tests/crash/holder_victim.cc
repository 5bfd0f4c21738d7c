// The next tenant: takes the whole pool, one block a lease, and says whether it finds a byte that is not zero. Then it
// fills the pool with its own mark and, told to, looks whether anybody has changed it.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/crash/holder.h"

namespace ubd::testing {
namespace {

constexpr int kMark = 0x5c;

// Offset of the first byte that differs, or -1.
int64_t FirstOther(const std::byte* at, size_t size, int expected) {
  std::vector<std::byte> wanted(1 << 20, static_cast<std::byte>(expected));
  for (size_t offset = 0; offset < size; offset += wanted.size()) {
    size_t n = std::min(wanted.size(), size - offset);
    if (std::memcmp(at + offset, wanted.data(), n) == 0) continue;
    for (size_t i = 0; i < n; ++i) {
      if (at[offset + i] != wanted[i]) return static_cast<int64_t>(offset + i);
    }
  }
  return -1;
}

std::string Look(const HeldLease& held, const HolderOptions& options, int expected) {
  for (size_t block = 0; block < held.maps.size(); ++block) {
    int64_t other = FirstOther(held.maps[block], options.block_bytes, expected);
    if (other < 0) continue;
    return "dirty block " + std::to_string(block) + " offset " + std::to_string(other) + " byte " +
           std::to_string(std::to_integer<int>(held.maps[block][other]));
  }
  return "clean " + std::to_string(held.maps.size());
}

}  // namespace

int RunVictim(const HolderOptions& options) {
  auto client = RawClient::Connect(options.runtime_dir, "victim");
  if (!client.ok()) Fail("connect: " + client.status().ToString());
  HeldLease held = TakeLease(**client, options, 1, absl::Seconds(30));
  Say(Look(held, options, 0));
  Fill(held, options, kMark);
  while (Hear() == "look") Say(Look(held, options, kMark));
  Unmap(held, options);
  if (grpc::Status released = (*client)->Release(held.lease.id()); !released.ok()) Fail(released.error_message());
  Say("released");
  return 0;
}

}  // namespace ubd::testing

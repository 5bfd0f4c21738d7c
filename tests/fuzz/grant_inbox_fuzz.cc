// A daemon that lies to its client: any sequence of packets on the lifeline, with fewer, more or no descriptors. The
// client takes blocks in order and each once, never more than were promised, and keeps no descriptor.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/src/grant_inbox.h"
#include "proto/wire/frame.h"
#include "tests/fuzz/demand.h"

namespace {

constexpr uint64_t kLease = 7, kGeneration = 9, kBlocks = 5;

// Reads the input piece by piece; zeros once it is used up.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  uint8_t Byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

// Mostly what an honest daemon sends, with small numbers in place of some fields, so that whole deliveries occur.
ub::wire::Grant GrantFrom(Input& input) {
  auto frame = ub::wire::NewFrame<ub::wire::Grant>();
  frame.lease = kLease;
  frame.generation = kGeneration;
  frame.total = kBlocks;
  frame.access = static_cast<uint32_t>(ub::Access::kReadWrite);
  const uint8_t changed = input.Byte();
  if (changed & 1) frame.lease = input.Byte();
  if (changed & 2) frame.generation = input.Byte();
  if (changed & 4) frame.total = input.Byte() * 0x1010101u;
  if (changed & 8) frame.access = input.Byte();
  if (changed & 16) frame.delivery = input.Byte();
  frame.first = changed & 32 ? input.Byte() * 0x1010101u : input.Byte() % kBlocks;
  frame.count = changed & 64 ? input.Byte() * 0x1010101u : 1 + input.Byte() % kBlocks;
  return frame;
}

void SendOne(int socket, Input& input) {
  const uint8_t kind = input.Byte();
  const std::vector<int> fds(kind >> 3 & 7, STDIN_FILENO);
  if ((kind & 7) < 5) {
    auto frame = GrantFrom(input);
    ub::wire::SendPacket(socket, ub::wire::AsBytes(frame), fds).IgnoreError();
  } else if ((kind & 7) == 5) {
    auto frame = ub::wire::NewFrame<ub::wire::GrantFailed>();
    frame.lease = input.Byte() % 16;
    frame.code = input.Byte();
    ub::wire::SendPacket(socket, ub::wire::AsBytes(frame), fds).IgnoreError();
  } else {
    std::vector<std::byte> raw(1 + input.Byte() % 128);
    for (std::byte& byte : raw) byte = std::byte{input.Byte()};
    ub::wire::SendPacket(socket, raw, fds).IgnoreError();
  }
}

int LowestFreeFd() {
  int fd = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  ::close(fd);
  return fd;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  ub::UniqueFd ours(ends[0]), theirs(ends[1]);
  Input input(data, size);
  for (int packets = 0; packets < 32 && !input.empty(); ++packets) SendOne(theirs.get(), input);
  theirs.reset();  // nothing is left to wait for
  const int lowest = LowestFreeFd();
  uint64_t next = 0;
  {
    ub::GrantInbox inbox(ours.get());
    ub::GrantInbox::Expectation expectation(inbox);
    ub::GrantWanted wanted{ub::LeaseId(kLease), ub::Generation(kGeneration), kBlocks, ub::Access::kReadWrite};
    absl::Status status = inbox.Receive(wanted, ub::Deadline::After(absl::Seconds(5)),
                                        [&next](uint32_t first, absl::Span<const ub::UniqueFd> fds) {
                                          if (first == 0) next = 0;  // delivered anew
                                          Demand(first == next && !fds.empty());
                                          next += fds.size();
                                          Demand(next <= kBlocks);
                                          for (const ub::UniqueFd& fd : fds) Demand(fd.valid());
                                          return absl::OkStatus();
                                        });
    Demand(status.ok() == (next == kBlocks));
  }
  Demand(LowestFreeFd() == lowest);
  return 0;
}

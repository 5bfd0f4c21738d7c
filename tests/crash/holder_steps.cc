// The five points of a grant at which a client may die, and the loop that takes and drops.
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/crash/holder.h"
#include "tests/integration/harness/process.h"

namespace ubd::testing {
namespace {

constexpr uint64_t kLingerEach = 8;
constexpr absl::Duration kLinger = absl::Milliseconds(50);

std::unique_ptr<RawClient> MustConnect(const HolderOptions& options) {
  auto client = RawClient::Connect(options.runtime_dir, "holder");
  if (!client.ok()) Fail("connect: " + client.status().ToString());
  return *std::move(client);
}

[[noreturn]] void StayUntilKilled(const std::string& step) {
  Say("at " + step);
  for (;;) pause();
}

}  // namespace

int RunStep(const HolderOptions& options) {
  std::unique_ptr<RawClient> client = MustConnect(options);
  Say("session " + std::to_string(client->welcome().session));
  ub::v1::AcquireRequest request;
  request.set_bytes(options.bytes);
  request.set_request_id(1);
  grpc::CompletionQueue queue;
  auto context = client->Context();
  auto call = client->broker().PrepareAsyncAcquire(context.get(), request, &queue);
  ub::v1::AcquireResponse response;
  grpc::Status status;
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  if (options.what == "request-sent") StayUntilKilled(options.what);

  // From here on the daemon has granted: the frame is in the socket.
  if (!WaitReadable(client->lifeline(), absl::Seconds(30))) Fail("no grant");
  if (options.what == "grant-written") StayUntilKilled(options.what);
  auto grant = client->ReadGrant();
  if (!grant.ok()) Fail("grant: " + grant.status().ToString());
  if (options.what == "fds-sent") StayUntilKilled(options.what);
  HeldLease held{{}, std::move(grant->fds), {}};
  for (const ub::UniqueFd& fd : held.fds) held.maps.push_back(MapBlock(fd.get(), options));
  Fill(held, options, 0xaa);
  if (options.what == "mapped") StayUntilKilled(options.what);
  void* tag = nullptr;
  bool ok = false;
  if (!queue.Next(&tag, &ok) || !status.ok()) Fail("Acquire: " + status.error_message());
  if (options.what == "committed") StayUntilKilled(options.what);
  Fail("no such step: " + options.what);
}

int RunLoop(const HolderOptions& options) {
  std::unique_ptr<RawClient> client = MustConnect(options);
  Say("looping");
  for (uint64_t request = 1;; ++request) {
    auto lease = client->Acquire(options.bytes, request, absl::Seconds(20));
    if (!lease.ok()) {
      // Revoked between grant and delivery, or nothing free in time: both are this test's doing.
      if (absl::IsUnavailable(lease.status())) Fail("daemon gone: " + lease.status().ToString());
      continue;
    }
    auto grant = client->ReadGrant();
    if (!grant.ok()) continue;
    HeldLease held{*lease, std::move(grant->fds), {}};
    for (const ub::UniqueFd& fd : held.fds) held.maps.push_back(MapBlock(fd.get(), options));
    *held.maps.front() = std::byte{0x55};
    // Most leases are gone before an operator's list of them has arrived; this one is there to be found.
    if (request % kLingerEach == 0) (void)WaitReadable(client->lifeline(), kLinger);
    Unmap(held, options);
    grpc::Status first = client->Release(lease->id());
    grpc::Status second = client->Release(lease->id());
    // The first may find it revoked already; the second can only find nothing.
    if (!first.ok() && first.error_code() != grpc::StatusCode::NOT_FOUND) Fail("drop: " + first.error_message());
    if (second.error_code() != grpc::StatusCode::NOT_FOUND)
      Fail("double drop: code " + std::to_string(second.error_code()));
  }
}

}  // namespace ubd::testing

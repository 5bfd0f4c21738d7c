#include "client/ubctl/demo/producer.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/ubctl/output.h"
#include "proto/wire/error.h"
#include "proto/wire/size_text.h"

namespace ub::ctl {
namespace {

// Enough that reading, sharing and hashing overlap.
constexpr size_t kMostInFlight = 4;
// A block that was just handed back may need a moment until it is proven clean; longer means that others hold the pool.
constexpr absl::Duration kOwnBlocksReturn = absl::Milliseconds(200);

bool MemoryIsShort(const absl::Status& status) {
  switch (ReasonOf(status)) {
    case Reason::kPoolEmpty:
    case Reason::kQuotaExceeded:
    case Reason::kWaitTimeout:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status Producer::Run(DemoReport& report) {
  for (uint64_t left = file_.size(); left > 0;) {
    if (absl::Status status = CollectDone(); !status.ok()) return status;
    while (in_flight_.size() >= kMostInFlight) {
      if (absl::Status status = AwaitDone(); !status.ok()) return status;
    }
    uint64_t bytes_before = bytes_copied_;
    if (absl::Status status = SendChunk(left); !status.ok()) return status;
    left -= bytes_copied_ - bytes_before;
  }
  if (absl::Status status = file_.CheckEnd(); !status.ok()) return status;
  while (!in_flight_.empty()) {
    if (absl::Status status = AwaitDone(); !status.ok()) return status;
  }
  return Result(report);
}

absl::Status Producer::SendChunk(uint64_t left) {
  auto lease = TakeLease();
  if (!lease.ok()) return lease.status();
  if (options_.chunk.count() == 0) options_.chunk = Bytes(lease->size());
  uint64_t bytes = std::min(left, options_.chunk.count());
  if (absl::Status status = file_.Fill(lease->span().first(bytes)); !status.ok()) return status;
  bytes_copied_ += bytes;
  ShareOptions share;
  share.access = Access::kReadOnly;
  share.uid = Uid(getuid());
  auto ticket = lease->Share(share);
  if (!ticket.ok()) return ticket.status();
  DemoMessage message;
  message.kind = DemoKind::kChunk;
  message.sequence = sent_chunks_++;
  message.bytes = bytes;
  message.ticket = ticket->id();
  in_flight_.push_back({message.sequence, *std::move(lease)});
  most_in_flight_ = std::max(most_in_flight_, in_flight_.size());
  absl::Status sent = SendMessage(consumer_.socket(), message);
  return sent.ok() ? sent : ConsumerGone(sent);
}

absl::StatusOr<Lease> Producer::Acquire(absl::Duration wait) {
  AcquireOptions options;
  options.pool = options_.pool;
  options.bytes = options_.chunk.count() == 0 ? Bytes(1) : options_.chunk;
  options.wait = wait;
  options.cacheable = false;
  auto lease = client_.Acquire(options);
  if (lease.ok()) ++leases_;
  return lease;
}

absl::StatusOr<Lease> Producer::TakeLease() {
  while (!in_flight_.empty()) {
    auto lease = Acquire(absl::ZeroDuration());
    if (lease.ok() || !MemoryIsShort(lease.status())) return lease;
    if (absl::Status status = AwaitDone(); !status.ok()) return status;  // our own come back first
  }
  absl::Duration first_wait = std::min(kOwnBlocksReturn, options_.timeout);
  auto lease = Acquire(first_wait);
  if (lease.ok() || !MemoryIsShort(lease.status()) || options_.timeout <= first_wait) return lease;
  if (!said_busy_) {
    Note(absl::StrCat("the pool is busy; waiting up to ", absl::FormatDuration(options_.timeout),
                      " for memory ('ubctl leases' shows who holds it)"));
  }
  said_busy_ = true;
  return Acquire(options_.timeout - first_wait);
}

absl::Status Producer::AwaitDone() {
  auto message = ReceiveMessage(consumer_.socket());
  return message.ok() ? Retire(*message) : ConsumerGone(message.status());
}

absl::Status Producer::CollectDone() {
  while (!in_flight_.empty()) {
    auto message = TryReceiveMessage(consumer_.socket());
    if (!message.ok()) return ConsumerGone(message.status());
    if (!message->has_value()) return absl::OkStatus();
    if (absl::Status status = Retire(**message); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Producer::Retire(const DemoMessage& message) {
  if (message.kind == DemoKind::kFailed) return FailureStatus(message);
  if (message.kind != DemoKind::kDone || in_flight_.empty() || message.sequence != in_flight_.front().sequence) {
    return absl::InternalError("the consumer handed back what it was not given");
  }
  Lease lease = std::move(in_flight_.front().lease);
  in_flight_.pop_front();
  if (!lease.alive()) {
    return MakeError(absl::StatusCode::kAborted, Reason::kRevoked,
                     absl::StrCat("lease ", lease.id().value(), " was ended by the daemon while the consumer had it"));
  }
  return lease.Release();
}

absl::Status Producer::Result(DemoReport& report) {
  DemoMessage end;
  end.kind = DemoKind::kEnd;
  if (absl::Status sent = SendMessage(consumer_.socket(), end); !sent.ok()) return ConsumerGone(sent);
  auto result = ReceiveMessage(consumer_.socket());
  if (!result.ok()) return ConsumerGone(result.status());
  if (result->kind == DemoKind::kFailed) return FailureStatus(*result);
  if (result->kind != DemoKind::kResult) return absl::InternalError("the consumer ended without a result");
  uint64_t bytes = file_.size();
  report.set_bytes(bytes);
  report.set_chunk_bytes(options_.chunk.count());
  report.set_chunks(sent_chunks_);
  report.set_most_in_flight(most_in_flight_);
  report.set_leases(leases_);
  report.set_attaches(result->attaches);
  report.set_producer_rpcs(client_.stats().rpcs);
  report.set_consumer_rpcs(result->rpcs);
  report.set_rpcs(report.producer_rpcs() + report.consumer_rpcs());
  if (bytes > 0) {
    report.set_copies_per_byte(static_cast<double>(bytes_copied_ + result->bytes_copied) / static_cast<double>(bytes));
    report.set_consumer_copies_per_byte(static_cast<double>(result->bytes_copied) / static_cast<double>(bytes));
  }
  if (result->attaches > 0) report.set_read_only_advisory(result->advisory != 0);
  report.set_consumer_hash(HashText(result->hash));
  return absl::OkStatus();
}

absl::Status Producer::ConsumerGone(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return status;
  // Its last words may still lie in the socket.
  while (true) {
    auto message = TryReceiveMessage(consumer_.socket());
    if (!message.ok() || !message->has_value()) break;
    if ((*message)->kind == DemoKind::kFailed) return FailureStatus(**message);
  }
  pid_t pid = consumer_.pid();
  consumer_.Kill();  // if it only closed its socket, it is of no more use
  return absl::AbortedError(absl::StrCat("the consumer (pid ", pid, ") ", consumer_.Reap(),
                                         " before the file was through; all leases are given back"));
}

}  // namespace ub::ctl

#include "client/ubctl/demo/producer.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/ubctl/load/cpu_time.h"
#include "client/ubctl/output.h"
#include "proto/wire/error.h"
#include "proto/wire/size_text.h"

namespace ub::ctl {
namespace {

// Enough that reading, sharing and hashing overlap.
constexpr size_t kMostInFlight = 4;  // reading included
constexpr size_t kMostReading = 2;
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
  auto reader = Reader::Open(client_, file_, options_.timeout);
  if (!reader.ok()) return reader.status();
  reader_ = *std::move(reader);
  while (reader_->position() < file_.size() || reader_->reading() > 0) {
    if (absl::Status status = CollectDone(); !status.ok()) return status;
    if (absl::Status status = ReadAhead(); !status.ok()) return status;
    if (absl::Status status = ShareOldest(); !status.ok()) return status;
  }
  if (absl::Status status = file_.CheckEnd(); !status.ok()) return status;
  while (!in_flight_.empty()) {
    if (absl::Status status = AwaitDone(); !status.ok()) return status;
  }
  return Result(report);
}

absl::Status Producer::ReadAhead() {
  while (reader_->position() < file_.size() && reader_->reading() < kMostReading) {
    if (reader_->reading() + in_flight_.size() >= kMostInFlight) {
      if (reader_->reading() > 0) break;
      if (absl::Status status = AwaitDone(); !status.ok()) return status;
      continue;
    }
    auto lease = TakeLease();
    if (!lease.ok()) return lease.status();
    if (!lease->valid()) break;
    if (options_.chunk.count() == 0) options_.chunk = Bytes(lease->size());
    uint64_t bytes = std::min(file_.size() - reader_->position(), options_.chunk.count());
    if (absl::Status status = reader_->Begin(*std::move(lease), bytes); !status.ok()) return status;
    most_in_flight_ = std::max(most_in_flight_, reader_->reading() + in_flight_.size());
  }
  return absl::OkStatus();
}

absl::Status Producer::ShareOldest() {
  auto chunk = reader_->Take();
  if (!chunk.ok()) return chunk.status();
  ShareOptions share;
  share.access = Access::kReadOnly;
  share.uid = Uid(getuid());
  auto ticket = chunk->lease.Share(share);
  if (!ticket.ok()) return ticket.status();
  DemoMessage message;
  message.kind = DemoKind::kChunk;
  message.sequence = sent_chunks_++;
  message.bytes = chunk->bytes;
  message.ticket = ticket->id();
  in_flight_.push_back({message.sequence, std::move(chunk->lease)});
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
  while (!in_flight_.empty() || reader_->reading() > 0) {
    auto lease = Acquire(absl::ZeroDuration());
    if (lease.ok() || !MemoryIsShort(lease.status())) return lease;
    if (reader_->reading() > 0) return Lease();
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
  auto message = Hear();
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
  auto result = Hear();
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
    // Direct bytes were put into the lease by the device; staged ones were copied there once, out of the page cache.
    double copied = static_cast<double>(reader_->paths().bytes(Path::kStaged) + result->bytes_copied);
    report.set_copies_per_byte(copied / static_cast<double>(bytes));
    report.set_consumer_copies_per_byte(static_cast<double>(result->bytes_copied) / static_cast<double>(bytes));
  }
  ReportPaths(report);
  if (result->attaches > 0) report.set_read_only_advisory(result->advisory != 0);
  report.set_consumer_hash(HashText(result->hash));
  return absl::OkStatus();
}

void Producer::ReportPaths(DemoReport& report) const {
  report.set_path(reader_->paths().path());
  for (const PathShare& share : reader_->paths().shares()) *report.add_paths() = share;
  report.set_served_locally(reader_->served_locally());
}

absl::StatusOr<DemoMessage> Producer::Hear() {
  auto message = ReceiveMessage(consumer_.socket(), options_.timeout);
  if (!absl::IsDeadlineExceeded(message.status())) return message;
  std::string text = absl::StrCat("the consumer (pid ", consumer_.pid(), ") handed nothing back within ",
                                  absl::FormatDuration(options_.timeout));
  auto stat = ReadThreadStat(absl::StrCat("/proc/", consumer_.pid(), "/stat"));
  if (stat.has_value() && (stat->state == 'T' || stat->state == 't')) {
    absl::StrAppend(&text, ": it is stopped; continue it with 'kill -CONT ", consumer_.pid(), "' and run again");
  } else {
    text += ": is the machine overloaded? Give it longer with --timeout";
  }
  return MakeError(absl::StatusCode::kDeadlineExceeded, Reason::kWaitTimeout,
                   text + "; it is ended, and all leases are given back");
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

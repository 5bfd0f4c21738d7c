#include "client/ubctl/event_stream.h"

#include <grpc/support/time.h>

#include "proto/wire/error.h"

namespace ub::ctl {

absl::StatusOr<std::unique_ptr<EventStream>> EventStream::Open(Admin& admin, Deadline deadline) {
  std::unique_ptr<EventStream> stream(new EventStream());
  stream->reader_ = admin.stub().AsyncWatchAll(&stream->context_, v1::WatchAllRequest(), &stream->queue_, nullptr);
  std::optional<bool> started = stream->AwaitUntil(deadline);
  std::optional<bool> read;
  if (started.has_value() && *started) {
    stream->reader_->Read(&stream->event_, nullptr);
    read = stream->AwaitUntil(deadline);
  }
  if (!started.has_value() || (*started && !read.has_value())) {
    stream->context_.TryCancel();
    stream->Await();  // the cancelled operation comes back at once
    return MakeError(
        absl::StatusCode::kUnavailable, Reason::kNotAnswering,
        "the daemon accepted the connection but did not answer in time: it may be stopped or overloaded; look at "
        "'systemctl status ubd', or allow more with --timeout");
  }
  if (!*started || !*read) return stream->Finish();
  stream->first_pending_ = true;
  return stream;
}

EventStream::~EventStream() {
  if (!finished_) {
    context_.TryCancel();
    (void)Finish();
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool EventStream::Await() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

std::optional<bool> EventStream::AwaitUntil(Deadline deadline) {
  void* tag = nullptr;
  bool ok = false;
  gpr_timespec left = gpr_time_from_nanos(absl::ToInt64Nanoseconds(deadline.left()), GPR_TIMESPAN);
  gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), left);
  if (queue_.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) return std::nullopt;
  return ok;
}

absl::Status EventStream::Finish() {
  grpc::Status status;
  finished_ = true;
  reader_->Finish(&status, nullptr);
  Await();
  if (status.ok()) {
    return MakeError(absl::StatusCode::kUnavailable, Reason::kNotRunning,
                     "the daemon ended the stream: it is going down");
  }
  return FromGrpc(status, /*no_answer_means_stalled=*/true);
}

absl::StatusOr<std::optional<v1::Event>> EventStream::Next() {
  if (!first_pending_) {
    reader_->Read(&event_, nullptr);
    if (!Await()) {
      absl::Status status = Finish();
      if (absl::IsCancelled(status)) return std::nullopt;
      return status;
    }
  }
  first_pending_ = false;
  return event_;
}

}  // namespace ub::ctl

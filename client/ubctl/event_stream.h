// The daemon's event stream (Admin.WatchAll), read one event at a time. One thread reads; any thread may Stop.
#ifndef UB_UBCTL_EVENT_STREAM_H_
#define UB_UBCTL_EVENT_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ubctl/admin.h"

namespace ub::ctl {

class EventStream {
 public:
  // Opens the stream and waits until its first event (WATCHING: nothing later is missed) is there, or `deadline`: then
  // UNAVAILABLE/NOT_ANSWERING. Next returns that event first. Must not outlive `admin`.
  static absl::StatusOr<std::unique_ptr<EventStream>> Open(Admin& admin, Deadline deadline);
  // Ends the stream.
  ~EventStream();
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  // Blocks for the next event. Nothing: Stop was called. A status: the daemon ended the stream, and why.
  absl::StatusOr<std::optional<v1::Event>> Next();
  void Stop() { context_.TryCancel(); }

 private:
  EventStream() = default;
  // Waits for the operation in flight. False: it failed.
  bool Await();
  // The same, but nullopt when it is not done by the deadline.
  std::optional<bool> AwaitUntil(Deadline deadline);
  absl::Status Finish();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::Event>> reader_;
  v1::Event event_;
  bool first_pending_ = false;
  bool finished_ = false;
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_EVENT_STREAM_H_

// Reads Broker.Watch on a thread of its own and hands each event on. Destroying it cancels the stream and ends the
// thread at once.
#ifndef UB_SRC_EVENT_STREAM_H_
#define UB_SRC_EVENT_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <thread>

#include "client/src/broker_rpc.h"
#include "ub/v1/types.pb.h"

namespace ub {

// Called on the stream's thread.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void OnDaemonEvent(const v1::Event& event) = 0;
  // The daemon ended the stream, or the connection broke. The last call.
  virtual void OnStreamEnd(const absl::Status& why) = 0;
};

class EventStream {
 public:
  // `rpc` and `sink` must outlive it.
  EventStream(BrokerRpc& rpc, EventSink& sink);
  ~EventStream();
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

 private:
  void Run();

  EventSink& sink_;
  grpc::ClientContext context_;
  std::atomic<bool> stopping_{false};
  std::unique_ptr<grpc::ClientReader<v1::Event>> reader_;
  std::thread thread_;
};

}  // namespace ub

#endif  // UB_SRC_EVENT_STREAM_H_

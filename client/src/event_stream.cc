#include "client/src/event_stream.h"

#include "client/src/quiet_thread.h"
#include "client/src/rpc_channel.h"

namespace ub {

EventStream::EventStream(BrokerRpc& rpc, EventSink& sink)
    : sink_(sink), reader_(rpc.Watch(&context_)), thread_(StartQuietly("ub-events", [this] { Run(); })) {}

EventStream::~EventStream() {
  stopping_.store(true);
  context_.TryCancel();
  thread_.join();
}

void EventStream::Run() {
  v1::Event event;
  while (reader_->Read(&event)) {
    if (!stopping_.load()) sink_.OnDaemonEvent(event);
  }
  absl::Status why = FromGrpc(reader_->Finish());
  if (!stopping_.load()) sink_.OnStreamEnd(why);
}

}  // namespace ub

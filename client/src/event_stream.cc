#include "client/src/event_stream.h"

#include <pthread.h>
#include <signal.h>

#include "client/src/rpc_channel.h"

namespace ub {
namespace {

// Signals are the program's own: its handlers must not run on a library's thread.
std::thread StartQuietly(std::function<void()> run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(run));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_setname_np(thread.native_handle(), "ub-events");
  return thread;
}

}  // namespace

EventStream::EventStream(BrokerRpc& rpc, EventSink& sink)
    : sink_(sink), reader_(rpc.Watch(&context_)), thread_(StartQuietly([this] { Run(); })) {}

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

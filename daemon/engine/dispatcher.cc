#include "daemon/engine/dispatcher.h"

#include <algorithm>

namespace ubd {
namespace {

using ub::wire::CompletionEntry;
using ub::wire::Op;
using ub::wire::QueueState;
using ub::wire::SubmitEntry;
using ub::wire::TransferError;

constexpr uint32_t kMostPerTurn = 32;    // entries of one queue before the next may have its turn
constexpr uint32_t kMostPerRound = 256;  // entries before results and deadlines are looked at again
constexpr uint64_t kTakeQuantum = kMostPerTurn * FairShare<ServedQueue*>::kLeastCost;

// Small beside a piece: a tenant's small pieces wait for one large piece of each other tenant, not for a quantum's
// worth of them.
uint64_t PostQuantum(uint64_t chunk) { return std::max<uint64_t>(chunk / 4, ub::KiB(64).count()); }

uint64_t UsableChunk(Bytes chunk) {
  return std::clamp<uint64_t>(chunk.count() & ~uint64_t{4095}, ub::KiB(4).count(), ub::GiB(1).count());
}

}  // namespace

Dispatcher::Dispatcher(EngineShared& shared, const Workers& workers)
    : shared_(shared),
      workers_(workers),
      intake_(shared),
      chunk_(UsableChunk(shared.options.chunk)),
      slow_ahead_(std::max(1U, shared.options.depth / std::max(1U, shared.options.threads))),
      line_(kTakeQuantum),
      ports_{PortState(PostQuantum(chunk_)), PortState(PostQuantum(chunk_)), PortState(PostQuantum(chunk_))} {}

Dispatcher::~Dispatcher() = default;

void Dispatcher::Touch(ServedQueue& queue) {
  if (queue.touched) return;
  queue.touched = true;
  touched_.push_back(&queue);
}

void Dispatcher::Ready(ServedQueue& queue) {
  if (queue.place == ServedQueue::Place::kEnded || queue.place == ServedQueue::Place::kReady) return;
  queue.place = ServedQueue::Place::kReady;
  line_.Add(queue.session->uid, &queue);
}

void Dispatcher::ServeAlone(ServedQueue& queue, uint64_t now_ns) {
  if (queue.place == ServedQueue::Place::kEnded || queue.place == ServedQueue::Place::kReady) return;
  now_ns_ = now_ns;
  queue.place = ServedQueue::Place::kReady;
  TakeFrom(queue);
  if (queue.place == ServedQueue::Place::kReady) line_.Add(queue.session->uid, &queue);
}

bool Dispatcher::Round(uint64_t now_ns) {
  now_ns_ = now_ns;
  bool busy = TakeTurns();
  for (Port port : {Port::kRing, Port::kSlow, Port::kCopy}) PostWaiting(port);
  if (workers_.ring != nullptr) {
    workers_.ring->Submit();
    busy |= Reap();
  }
  busy |= Expire();
  return busy;
}

bool Dispatcher::TakeTurns() {
  uint32_t taken = 0;
  while (taken < kMostPerRound) {
    std::optional<ServedQueue*> next = line_.Next();
    if (!next) break;
    taken += TakeFrom(**next);
  }
  return taken != 0;
}

uint32_t Dispatcher::TakeFrom(ServedQueue& queue) {
  EngineSession& session = *queue.session;
  uint32_t taken = 0;
  ServedQueue::Place place = ServedQueue::Place::kReady;
  SubmitEntry entry;
  while (taken < kMostPerTurn) {
    if (!session.Enter(shared_.options.max_in_flight_per_session)) {
      place = ServedQueue::Place::kNoPlace;
      break;
    }
    if (!queue.ring.Take(entry)) {
      if (session.Leave()) shared_.session_has_room();
      place = queue.ring.NeedsRoom() ? ServedQueue::Place::kNoRoom : ServedQueue::Place::kPolled;
      break;
    }
    ++taken;
    Serve(queue, entry);
  }
  Touch(queue);
  queue.submitted.Add(taken);
  if (taken != 0) line_.Charge(session.uid, &queue, taken * FairShare<ServedQueue*>::kLeastCost);
  if (place == ServedQueue::Place::kReady && queue.ring.Waiting() != 0) return taken;
  if (place == ServedQueue::Place::kReady) place = ServedQueue::Place::kPolled;
  line_.Remove(session.uid, &queue);
  queue.place = place;
  if (queue.ring.broken()[0] != '\0') {
    End(queue, QueueState::kBroken, TransferError::kCancelled);
  } else {
    queue.poll_from_ns = now_ns_;
  }
  return taken;
}

void Dispatcher::Serve(ServedQueue& queue, const SubmitEntry& entry) {
  TransferError error = TransferError::kOk;
  const auto op = static_cast<Op>(entry.op);
  if (!Intake::WellFormed(entry)) {
    error = TransferError::kBadEntry;
  } else if (shared_.stopping.load(std::memory_order_relaxed)) {
    error = TransferError::kStopping;
  } else if (op == Op::kCancel) {
    error = CancelByUserData(queue, entry.offset);
  } else if (op != Op::kNop) {
    Launch(queue, entry);
    return;
  }
  CompletionEntry completion = {};
  completion.error = static_cast<uint8_t>(error);
  Answer(queue, entry, completion, false);
}

void Dispatcher::Launch(ServedQueue& queue, const SubmitEntry& entry) {
  if (spare_.empty()) spare_.push_back(std::make_unique<Transfer>());
  Transfer& transfer = *spare_.back();
  transfer.entry = entry;
  transfer.queue = &queue;
  transfer.taken_ns = now_ns_;
  const TransferError error = intake_.Check(transfer);
  if (error != TransferError::kOk || transfer.length == 0) {
    transfer.StopAt(0, error, 0);
    const CompletionEntry completion = Describe(transfer);
    transfer.Recycle();  // unpins before the client can know
    Answer(queue, entry, completion, false);
    return;
  }
  spare_.back().release();  // NOLINT(bugprone-unused-return-value): `transfer` has it, until Finish
  spare_.pop_back();
  ++in_flight_;
  queue.flying.PushBack(&transfer);
  queue.in_flight.Add();
  queue.oldest_ns.Set(queue.flying.first()->taken_ns);
  if (entry.deadline_ms != 0) {
    transfer.deadline_ns = now_ns_ + uint64_t{entry.deadline_ms} * 1'000'000;
    deadlines_.emplace(transfer.deadline_ns, &transfer);
  }
  Enqueue(transfer);
}

TransferError Dispatcher::CancelByUserData(ServedQueue& queue, uint64_t user_data) {
  Transfer* transfer = queue.flying.first();
  while (transfer != nullptr && transfer->entry.user_data != user_data) transfer = queue.flying.After(transfer);
  if (transfer == nullptr) return TransferError::kNoSuchTransfer;
  transfer->cancelled = true;
  CancelPosted(*transfer);
  StopAndMaybeFinish(*transfer, TransferError::kCancelled);
  return TransferError::kOk;
}

bool Dispatcher::Expire() {
  bool any = false;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_ns_) {
    Transfer& transfer = *deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    transfer.deadline_ns = kNeverNs;
    any = true;
    // Nothing is with the device: the memory is free, and one answer says it all.
    if (transfer.in_flight != 0) AnswerDeadline(transfer);
    StopAndMaybeFinish(transfer, TransferError::kDeadline);
  }
  return any;
}

void Dispatcher::End(ServedQueue& queue, QueueState state, TransferError why) {
  if (queue.place == ServedQueue::Place::kReady) line_.Remove(queue.session->uid, &queue);
  queue.place = ServedQueue::Place::kEnded;
  queue.state.Set(static_cast<uint64_t>(queue.ring.broken()[0] != '\0' ? QueueState::kBroken : state));
  DropUnposted(queue, why);
  if (queue.ring.broken()[0] == '\0') queue.ring.Close(state);
  Touch(queue);
}

void Dispatcher::DropUnposted(ServedQueue& queue, TransferError why) {
  for (size_t port = 0; port < kPorts; ++port) {
    while (Transfer* transfer = queue.waiting[port].first()) StopAndMaybeFinish(*transfer, why);
  }
}

}  // namespace ubd

// The dispatcher's second part: pieces to whoever does the work.
#include <algorithm>
#include <utility>

#include "daemon/engine/dispatcher.h"

namespace ubd {
namespace {

using ub::wire::Op;
using ub::wire::Path;

// What a ring has at most on its way: more than any device needs to be busy. A tenant that comes waits for what is
// ahead of it, so there is less of it while there are several.
constexpr uint64_t kMostBytesAhead = uint64_t{32} << 20;
constexpr uint64_t kMostBytesAheadShared = uint64_t{4} << 20;
constexpr uint64_t kSharedForNs = 200'000'000;
// Copies: one at work and one behind it.
constexpr uint32_t kCopiesAhead = 2;

size_t Index(Port port) { return static_cast<size_t>(port); }

}  // namespace

void Dispatcher::Enqueue(Transfer& transfer) {
  ServedQueue& queue = *transfer.queue;
  WaitingList& waiting = queue.waiting[Index(transfer.port)];
  if (waiting.empty()) ports_[Index(transfer.port)].line.Add(queue.session->uid, &queue);
  waiting.PushBack(&transfer);
}

void Dispatcher::Unqueue(Transfer& transfer) {
  if (!transfer.waiting.listed) return;
  ServedQueue& queue = *transfer.queue;
  WaitingList& waiting = queue.waiting[Index(transfer.port)];
  waiting.Remove(&transfer);
  if (waiting.empty()) ports_[Index(transfer.port)].line.Remove(queue.session->uid, &queue);
}

bool Dispatcher::HasRoom(Port port) const {
  const PortState& state = ports_[Index(port)];
  switch (port) {
    case Port::kRing:
      return workers_.ring != nullptr &&
             state.bytes < (now_ns_ < state.shared_until ? kMostBytesAheadShared : kMostBytesAhead) &&
             workers_.ring->Room() != 0;
    case Port::kSlow:
      return state.pieces < slow_ahead_;
    case Port::kCopy:
      return state.pieces < kCopiesAhead;
  }
  return false;
}

void Dispatcher::PostWaiting(Port port) {
  PortState& state = ports_[Index(port)];
  if (!state.again.empty()) PostAgain(state, port);
  while (!state.line.empty() && HasRoom(port)) {
    ServedQueue& queue = **state.line.Next();
    Transfer& transfer = *queue.waiting[Index(port)].first();
    if (state.last_uid != queue.session->uid) {
      if (state.last_uid) state.shared_until = now_ns_ + kSharedForNs;
      state.last_uid = queue.session->uid;
    }
    const uint32_t bytes = PostNext(transfer);
    state.line.Charge(queue.session->uid, &queue, bytes);
    if (transfer.posted == transfer.length) Unqueue(transfer);
  }
}

void Dispatcher::PostAgain(PortState& state, Port port) {
  std::vector<Flight*> flights = std::exchange(state.again, {});
  for (Flight* flight : flights) {
    Transfer& transfer = *flight->transfer;
    const uint64_t here = flight->at + flight->got;
    if (transfer.cancelled) transfer.StopAt(here, ub::wire::TransferError::kCancelled, 0);
    if (transfer.answered) transfer.StopAt(here, ub::wire::TransferError::kDeadline, 0);
    if (transfer.end <= here) {
      EndFlight(*flight);
    } else if (HasRoom(port)) {
      Post(*flight);
    } else {
      state.again.push_back(flight);
    }
  }
}

uint32_t Dispatcher::PostNext(Transfer& transfer) {
  Flight& flight = flights_.New(transfer);
  flight.at = transfer.posted;
  flight.length = 1;
  if (static_cast<Op>(transfer.entry.op) != Op::kFsync) {
    Cursor& memory = transfer.from;
    uint64_t length = std::min({chunk_, transfer.length - transfer.posted, memory.left()});
    flight.address = memory.address();
    flight.slot = memory.stretch().slot;
    SayTouched(transfer.port, memory.stretch());
    if (transfer.port == Port::kCopy) {
      length = std::min(length, transfer.to.left());
      flight.from = flight.address;
      flight.address = transfer.to.address();
      SayTouched(transfer.port, transfer.to.stretch());
      transfer.to.Advance(length);
    }
    memory.Advance(length);
    flight.length = static_cast<uint32_t>(length);
  }
  flight.direct = transfer.port != Port::kCopy && transfer.path == Path::kDirect;
  if (transfer.posted == 0) {
    transfer.first_post_ns = now_ns_;
    transfer.registered = transfer.file != nullptr;
  }
  transfer.posted += flight.length;
  ++transfer.in_flight;
  Post(flight);
  return flight.length;
}

// Whatever does not go by a fixed buffer goes through the mapping.
void Dispatcher::SayTouched(Port port, const Stretch& stretch) const {
  const bool registered = port == Port::kRing   ? workers_.ring->Registered(stretch.slot)
                          : port == Port::kSlow ? workers_.slow->Registered(stretch.slot)
                                                : false;
  if (!registered) shared_.memory.Touched(stretch.block);
}

// The rest of a flight, if it is posted again.
void Dispatcher::Post(Flight& flight) {
  Transfer& transfer = *flight.transfer;
  PieceOrder order;
  FilePiece& piece = order.piece;
  piece.tag = flight.tag;
  piece.slot = flight.slot;
  piece.length = flight.length - flight.got;
  piece.kind = FilePiece::Kind::kFsync;
  const auto op = static_cast<Op>(transfer.entry.op);
  if (op != Op::kFsync) {
    piece.kind = op == Op::kWrite ? FilePiece::Kind::kWrite : FilePiece::Kind::kRead;
    piece.address = static_cast<char*>(flight.address) + flight.got;
    piece.offset = transfer.entry.target_offset + flight.at + flight.got;
  }
  if (transfer.file != nullptr) {
    const FileTarget& file = *transfer.file;
    // An FSYNC takes whichever there is.
    piece.fd = flight.direct || file.staged_fd() < 0 ? file.direct_fd() : file.staged_fd();
  }
  PortState& state = ports_[Index(transfer.port)];
  ++state.pieces;
  state.bytes += piece.length;
  if (transfer.port == Port::kRing) {
    transfer.registered &= workers_.ring->Post(piece);
    return;
  }
  order.sink = workers_.sink;
  if (flight.from != nullptr) order.from = static_cast<const char*>(flight.from) + flight.got;
  (transfer.port == Port::kSlow ? workers_.slow : workers_.copy)->Hand(order);
}

void Dispatcher::CancelPosted(const Transfer& transfer) {
  if (transfer.in_flight == 0 || transfer.port == Port::kCopy) return;
  for (const Flight& flight : flights_.all()) {
    if (flight.transfer != &transfer) continue;
    if (transfer.port == Port::kRing) {
      workers_.ring->Cancel(flight.tag);
    } else {
      workers_.slow->Cancel(workers_.sink, flight.tag);
    }
  }
}

}  // namespace ubd

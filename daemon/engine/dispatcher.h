// What a lane does, without its thread: takes entries from queues that have some, has them checked, posts their pieces
// to whoever does the work, judges the results, and completes. Fair at both places where a choice is made: whose
// entries are taken, and whose piece a port gets next. Not thread-safe: one lane owns it.
#ifndef UBD_ENGINE_DISPATCHER_H_
#define UBD_ENGINE_DISPATCHER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/types/span.h"
#include "daemon/engine/engine_shared.h"
#include "daemon/engine/fair_share.h"
#include "daemon/engine/file_ring.h"
#include "daemon/engine/intake.h"
#include "daemon/engine/piece.h"
#include "daemon/engine/served_queue.h"

namespace ubd {

// Who works for a lane. `ring` and `slow` are null where the kernel has no io_uring; then no file can be a target.
struct Workers {
  FileRing* ring = nullptr;
  PieceWorker* slow = nullptr;
  PieceWorker* copy = nullptr;
  ResultSink* sink = nullptr;  // the lane, for the last two
};

class Dispatcher {
 public:
  Dispatcher(EngineShared& shared, const Workers& workers);
  // Transfers that are still in flight are leaked on purpose: a device may yet write to the memory that they pin.
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // The queue has entries to take, or may have room again.
  void Ready(ServedQueue& queue);
  // As Ready, without waiting in line: nobody else has entries.
  void ServeAlone(ServedQueue& queue, uint64_t now_ns);
  bool has_ready() const { return !line_.empty(); }
  // One round of everything. True: something was done, so there may be more to do.
  bool Round(uint64_t now_ns);
  // What other threads did.
  void TakeResults(absl::Span<const PieceResult> results, uint64_t now_ns);

  // Nothing more is taken, and no piece more posted; what waits unposted ends with `why`.
  void End(ServedQueue& queue, ub::wire::QueueState state, ub::wire::TransferError why);
  // The lane stops: what waits unposted ends so too, but entries are still taken, to be refused.
  void DropUnposted(ServedQueue& queue, ub::wire::TransferError why);

  // Queues with something to publish or with another `place` than before; the lane empties it.
  std::vector<ServedQueue*>& touched() { return touched_; }
  uint64_t next_deadline_ns() const { return deadlines_.empty() ? kNeverNs : deadlines_.begin()->first; }
  uint64_t in_flight() const { return in_flight_; }

 private:
  struct PortState {
    explicit PortState(uint64_t quantum) : line(quantum) {}
    FairShare<ServedQueue*> line;  // queues with pieces to post
    std::vector<Flight*> again;    // to be posted once more; counted as in flight
    uint32_t pieces = 0;           // with the device
    uint64_t bytes = 0;
    std::optional<Uid> last_uid;  // whose piece was posted last
    uint64_t shared_until = 0;    // several uids take turns, or did so lately
  };

  // --- dispatcher.cc: taking
  bool TakeTurns();
  uint32_t TakeFrom(ServedQueue& queue);
  void Serve(ServedQueue& queue, const ub::wire::SubmitEntry& entry);
  void Launch(ServedQueue& queue, const ub::wire::SubmitEntry& entry);
  ub::wire::TransferError CancelByUserData(ServedQueue& queue, uint64_t user_data);
  bool Expire();
  void Touch(ServedQueue& queue);

  // --- dispatcher_post.cc
  void Enqueue(Transfer& transfer);
  void Unqueue(Transfer& transfer);
  bool HasRoom(Port port) const;
  void PostWaiting(Port port);
  uint32_t PostNext(Transfer& transfer);
  void Post(Flight& flight);
  void SayTouched(Port port, const Stretch& stretch) const;
  void PostAgain(PortState& state, Port port);
  void CancelPosted(const Transfer& transfer);

  // --- dispatcher_finish.cc
  bool Reap();
  void Landed(const PieceResult& result);
  void Judge(Flight& flight, int32_t result);
  void JudgeBytes(Flight& flight, uint32_t bytes);
  void Again(Flight& flight);
  void EndFlight(Flight& flight);
  bool FallBack(Flight& flight);
  void StopAndMaybeFinish(Transfer& transfer, ub::wire::TransferError why);
  void Finish(Transfer& transfer);
  ub::wire::CompletionEntry Describe(const Transfer& transfer) const;
  void AnswerDeadline(Transfer& transfer);
  void Answer(ServedQueue& queue, const ub::wire::SubmitEntry& entry, const ub::wire::CompletionEntry& completion,
              bool answered_before);

  EngineShared& shared_;
  const Workers workers_;
  Intake intake_;
  const uint64_t chunk_;
  const uint32_t slow_ahead_;
  uint64_t now_ns_ = 0;
  FairShare<ServedQueue*> line_;  // queues with entries to take
  std::array<PortState, kPorts> ports_;
  Flights flights_;
  std::vector<std::unique_ptr<Transfer>> spare_;
  absl::btree_set<std::pair<uint64_t, Transfer*>> deadlines_;
  std::vector<ServedQueue*> touched_;
  uint64_t in_flight_ = 0;
};

}  // namespace ubd

#endif  // UBD_ENGINE_DISPATCHER_H_

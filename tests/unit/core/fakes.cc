#include "tests/unit/core/fakes.h"

#include <algorithm>

namespace ubd {

using ub::MutexLock;
using ub::wire::LeaseWord;
using ub::wire::PackWord;
using ub::wire::WordState;

void FakeMemory::Reclaim(BlockId block, ReclaimOrder order) {
  MutexLock lock(&mu_);
  pending_.push_back({block, std::move(order)});
}

void FakeMemory::DropOwn(BlockId block) {
  MutexLock lock(&mu_);
  dropped_.push_back(block);
}

std::vector<BlockId> FakeMemory::dropped() const {
  MutexLock lock(&mu_);
  return dropped_;
}

std::vector<Order> FakeMemory::pending() const {
  MutexLock lock(&mu_);
  return {pending_.begin(), pending_.end()};
}

std::optional<Order> FakeMemory::Take() {
  MutexLock lock(&mu_);
  if (pending_.empty()) return std::nullopt;
  Order next = std::move(pending_.front());
  pending_.pop_front();
  return next;
}

void FakeMemory::FinishOne(ReclaimSink& sink, const Order& order, bool held_still) {
  if (!order.order.must_be_fresh && !held_still) {
    sink.BlockFree(order.block, /*fresh=*/false);
    return;
  }
  if (held_still) {
    retired.emplace_back(order.block, order.order.charge);
    sink.BackingRetired(order.block, order.order.charge);
  }
  sink.BlockRecycling(order.block);
  sink.BlockFree(order.block, /*fresh=*/true);
}

int FakeMemory::Finish(ReclaimSink& sink) {
  int freed = 0;
  while (std::optional<Order> order = Take()) {
    FinishOne(sink, *order, held.contains(order->block));
    ++freed;
  }
  return freed;
}

void FakeMemory::LetGo(ReclaimSink& sink) {
  for (const auto& [block, charge] : std::exchange(retired, {})) sink.BackingFreed(block, charge);
}

LeaseWord& FakeWords::WordOf(SessionId session, uint32_t word) {
  MutexLock lock(&mu_);
  return words_[{session, word}];
}

std::optional<uint32_t> FakeWords::Assign(SessionId session, Generation generation) {
  for (uint32_t i = 0; i < words_per_session; ++i) {
    LeaseWord& word = WordOf(session, i);
    WordState state = ub::wire::StateOfWord(word.word.load());
    if (state == WordState::kBusy || state == WordState::kIdle) continue;
    word.word.store(PackWord(WordState::kBusy, generation.value()));
    return i;
  }
  return std::nullopt;
}

void FakeWords::Drop(SessionId session, uint32_t word, Generation generation) {
  WordOf(session, word).word.store(PackWord(WordState::kRecalled, generation.value()));
}

bool FakeWords::TryRecall(SessionId session, uint32_t word, Generation generation) {
  ++tries;
  if (!pressure) ++tries_without_pressure;
  return ub::wire::TryRecall(WordOf(session, word), generation.value());
}

bool FakeWords::IsIdle(SessionId session, uint32_t word, Generation generation) {
  return WordOf(session, word).word.load() == PackWord(WordState::kIdle, generation.value());
}

void FakeWords::SetPressure(bool now) {
  ++pressure_changes;
  pressure = now;
}

bool FakeWords::ClientIdle(SessionId session, uint32_t word, Generation generation) {
  LeaseWord& mine = WordOf(session, word);
  ub::wire::Idle(mine, generation.value());
  if (!pressure) return true;
  // Someone waits: take it back to release it. If that fails, the daemon was faster, and there is nothing to release.
  return !ub::wire::TryTakeBack(mine, generation.value());
}

bool FakeWords::ClientTakeBack(SessionId session, uint32_t word, Generation generation) {
  return ub::wire::TryTakeBack(WordOf(session, word), generation.value());
}

int Events::Count(EventKind kind, SessionId session) const {
  return static_cast<int>(std::count_if(
      all.begin(), all.end(), [&](const Event& event) { return event.kind == kind && event.session == session; }));
}

int Events::Count(EventKind kind) const {
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [&](const Event& event) { return event.kind == kind; }));
}

}  // namespace ubd

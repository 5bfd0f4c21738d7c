// A client that scribbles over the page that it shares with the daemon: what the daemon hands out, recalls and counts
// stays what its own books say.
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

#include "daemon/session/server.h"
#include "proto/wire/lease_word.h"
#include "tests/fuzz/demand.h"

namespace {

using ub::wire::LeasePage;
using ub::wire::PackWord;
using ub::wire::WordState;

constexpr ubd::SessionId kSession(3);

class Game {
 public:
  Game() : pages_(ubd::LeasePages::Create()) {
    auto fd = pages_->OpenPage(kSession);
    if (!fd.ok()) std::abort();
    void* memory = ::mmap(nullptr, sizeof(LeasePage), PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0);
    if (memory == MAP_FAILED) std::abort();
    client_ = static_cast<LeasePage*>(memory);
  }
  ~Game() {
    for (const auto& [word, generation] : held_) pages_->Drop(kSession, word, generation);
    pages_->ClosePage(kSession);
    ::munmap(client_, sizeof(LeasePage));
  }
  Game(const Game&) = delete;
  Game& operator=(const Game&) = delete;

  void Step(uint8_t what, uint8_t where, uint64_t value) {
    const uint32_t word = where % ub::wire::kWordsPerSession;
    switch (what % 8) {
      case 0:
        return Assign();
      case 1:
        return Drop(word);
      case 2:
        return Recall(word);
      case 3:  // as an honest client would
        if (held_.contains(word)) ub::wire::Idle(client_->words[word], held_.at(word).value());
        return;
      case 4:
        client_->words[word].word.store(value);
        return;
      case 5:
        client_->header.take_backs.store(value);
        return;
      case 6:
        return Count();
      default:
        std::memset(static_cast<void*>(client_), where, sizeof(LeasePage));
    }
  }

 private:
  void Assign() {
    const ubd::Generation generation(++last_generation_);
    auto word = pages_->Assign(kSession, generation);
    Demand(word.has_value() == (held_.size() < ub::wire::kWordsPerSession));
    if (!word) return;
    Demand(*word < ub::wire::kWordsPerSession && !held_.contains(*word));
    held_[*word] = generation;
    Demand(client_->words[*word].word.load() == PackWord(WordState::kBusy, generation.value()));
  }

  void Drop(uint32_t word) {
    auto it = held_.find(word);
    const ubd::Generation generation = it == held_.end() ? ubd::Generation(1) : it->second;
    const uint64_t before = client_->words[word].word.load();
    pages_->Drop(kSession, word, generation);
    const uint64_t after = client_->words[word].word.load();
    Demand(after == (it == held_.end() ? before : PackWord(WordState::kRecalled, generation.value())));
    if (it != held_.end()) held_.erase(it);
  }

  void Recall(uint32_t word) {
    auto it = held_.find(word);
    const ubd::Generation generation = it == held_.end() ? ubd::Generation(1) : it->second;
    const bool idle =
        it != held_.end() && client_->words[word].word.load() == PackWord(WordState::kIdle, generation.value());
    Demand(pages_->IsIdle(kSession, word, generation) == idle);
    Demand(pages_->TryRecall(kSession, word, generation) == idle);
    Demand(!pages_->TryRecall(kSession, word, ubd::Generation(last_generation_ + 1)));
  }

  void Count() {
    const uint64_t now = pages_->TakeBacks();
    Demand(now >= counted_);
    counted_ = now;
  }

  std::unique_ptr<ubd::LeasePages> pages_;
  LeasePage* client_ = nullptr;
  std::map<uint32_t, ubd::Generation> held_;
  uint64_t last_generation_ = 1;  // the first is nobody's
  uint64_t counted_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Game game;
  while (size >= 2) {
    const uint8_t what = data[0], where = data[1];
    data += 2;
    size -= 2;
    uint64_t value = 0;
    if (what % 8 == 4 || what % 8 == 5) {
      const size_t taken = std::min(size, sizeof value);
      std::memcpy(&value, data, taken);
      data += taken;
      size -= taken;
    }
    game.Step(what, where, value);
  }
  return 0;
}

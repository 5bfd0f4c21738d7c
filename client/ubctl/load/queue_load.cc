#include "client/ubctl/load/queue_load.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ubctl/human.h"
#include "client/ubctl/load/positions.h"
#include "proto/wire/error.h"

namespace ub::ctl {
namespace {

// One run: keeps `depth` reads in flight until all bytes are asked for or the time is over, then collects the rest.
class Runner {
 public:
  Runner(Queue& queue, const File& file, const Lease& memory, const LoadPlan& plan)
      : queue_(queue),
        file_(file),
        memory_(memory),
        plan_(plan),
        positions_(plan.chunk.count(), file.size() / plan.chunk, plan.random, plan.seed),
        buffers_(memory.size() / plan.chunk.count()),
        submitted_at_(plan.depth) {
    options_.path = plan.policy;
    for (uint64_t tag = 0; tag < plan.depth; ++tag) idle_.push_back(tag);
    completions_.resize(plan.depth);
    ops_.reserve(plan.depth);
  }

  absl::StatusOr<LoadResult> Run(absl::Duration patience) {
    start_ = NowNs();
    uint64_t end = plan_.at_most == absl::InfiniteDuration()
                       ? UINT64_MAX
                       : start_ + static_cast<uint64_t>(absl::ToInt64Nanoseconds(plan_.at_most));
    while (true) {
      bool more = first_fault_.ok() && (plan_.bytes.count() == 0 || asked_ < plan_.bytes.count()) && NowNs() < end;
      if (more) {
        if (absl::Status status = SubmitIdle(); !status.ok()) Fault(status);
      }
      if (idle_.size() == plan_.depth) break;
      auto got = queue_.Wait(absl::MakeSpan(completions_), 1, patience);
      if (!got.ok()) return got.status();
      uint64_t now = NowNs();
      for (size_t i = 0; i < *got; ++i) Take(completions_[i], now);
    }
    result_.ns = NowNs() - start_;
    if (!first_fault_.ok()) return first_fault_;
    return std::move(result_);
  }

 private:
  void Fault(const absl::Status& status) {
    if (first_fault_.ok()) first_fault_ = status;
  }

  absl::Status SubmitIdle() {
    ops_.clear();
    uint64_t now = NowNs();
    size_t taken = 0;
    for (; taken < idle_.size() && (plan_.bytes.count() == 0 || asked_ < plan_.bytes.count()); ++taken) {
      uint64_t tag = idle_[idle_.size() - 1 - taken];
      Bytes at(tag % buffers_ * plan_.chunk.count());
      ops_.push_back(ReadOp(tag, file_, Bytes(positions_.Next()), memory_, at, plan_.chunk, options_));
      submitted_at_[tag] = now;
      asked_ += plan_.chunk.count();
    }
    if (taken == 0) return absl::OkStatus();
    absl::Status status = queue_.Submit(ops_);
    if (status.ok()) idle_.resize(idle_.size() - taken);
    return status;
  }

  void Take(const Completion& completion, uint64_t now) {
    if (completion.more) return;
    idle_.push_back(completion.tag);
    if (!completion.status.ok()) return Fault(completion.status);
    if (completion.bytes != plan_.chunk) {
      return Fault(absl::AbortedError(absl::StrCat("a read of ", plan_.chunk.count(), " bytes brought ",
                                                   completion.bytes.count(), ": the file shrank while it was read")));
    }
    ++result_.transfers;
    result_.bytes += completion.bytes.count();
    result_.latency.Add(now - submitted_at_[completion.tag]);
    result_.paths.Add(completion);
  }

  Queue& queue_;
  const File& file_;
  const Lease& memory_;
  const LoadPlan& plan_;
  Positions positions_;
  uint64_t buffers_;
  TransferOptions options_;
  std::vector<uint64_t> submitted_at_;  // by tag
  std::vector<uint64_t> idle_;          // tags
  std::vector<Completion> completions_;
  std::vector<Op> ops_;
  uint64_t asked_ = 0;
  uint64_t start_ = 0;
  absl::Status first_fault_;
  LoadResult result_;
};

}  // namespace

uint32_t QueueEntries(uint32_t depth) {
  return std::bit_ceil(std::clamp(depth, wire::kMinQueueEntries, wire::kMaxQueueEntries));
}

absl::StatusOr<LoadResult> QueueLoad::Run(const LoadPlan& plan) {
  if (file_.size() < plan.chunk || memory_.size() < plan.chunk.count()) {
    return absl::FailedPreconditionError(absl::StrCat("the ", file_.size() < plan.chunk ? "file" : "memory",
                                                      " is smaller than one chunk of ", HumanSize(plan.chunk.count())));
  }
  auto queue = Queue::Open(client_, {.depth = QueueEntries(plan.depth), .path = plan.policy, .deadline = patience_});
  if (!queue.ok()) return queue.status();
  CpuTime before = meter_.Now();
  auto result = Runner(**queue, file_, memory_, plan).Run(patience_);
  if (!result.ok()) return result;
  result->cpu = meter_.Now() - before;
  result->queue = (*queue)->stats();
  return result;
}

}  // namespace ub::ctl

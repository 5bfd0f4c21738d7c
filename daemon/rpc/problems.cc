#include "daemon/rpc/problems.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ubd {
namespace {

constexpr char kSoleHolder[] = "sole-holder";
constexpr char kIoUring[] = "io_uring";
constexpr char kLockOff[] = "no: lock_pages is OFF";

void PoolProblems(const PoolListing& pool, const PoolFacts* facts, std::vector<std::string>& problems) {
  const std::string& name = pool.spec.name;
  if (pool.retired > 0) {
    problems.push_back(absl::StrCat("pool ", name, ": ", pool.retired,
                                    " old backings are still held by clients that no longer lease them: end the "
                                    "processes that keep them mapped (their memory counts against their quota)"));
  }
  if (facts == nullptr) return;
  if (!facts->shrunk.empty()) {
    problems.push_back(absl::StrCat("pool ", name, " is smaller than configured: ", facts->shrunk,
                                    "; free that memory or lower `blocks`, then restart ubd"));
  }
  if (facts->reserve == 0) {
    problems.push_back(absl::StrCat("pool ", name,
                                    ": the clean reserve is empty, so the next grant to another user may wait for "
                                    "fresh memory: end processes that hold old backings, or raise reserve_blocks"));
  }
  // What the configuration asks for is no problem.
  if (absl::StartsWith(facts->locked, "no: ") && facts->locked != kLockOff) {
    problems.push_back(absl::StrCat("pool ", name, " is not locked in memory (", facts->locked.substr(4),
                                    "): raise LimitMEMLOCK of the unit, or set lock_pages: OFF to accept it"));
  }
}

void EngineProblems(const ProblemSources& sources, std::vector<std::string>& problems) {
  if (sources.paths.file_engine != kIoUring) {
    problems.push_back(absl::StrCat(
        "the daemon moves no data to or from files, its clients do that by themselves: ", sources.paths.file_engine,
        "; allow io_uring (sysctl kernel.io_uring_disabled=0, the unit's call filter), "
        "then restart ubd"));
  } else if (!sources.paths.registered && sources.register_blocks != Demand::kOff) {
    problems.push_back(absl::StrCat("blocks are not all registered with the file engine (", sources.paths.registration,
                                    "), so the kernel pins them for each transfer: raise LimitMEMLOCK of the unit, "
                                    "or set engine { register_blocks: OFF } to accept it"));
  }
  const auto broken = std::count_if(sources.queues.begin(), sources.queues.end(),
                                    [](const QueueListing& queue) { return absl::StartsWith(queue.state, "broken"); });
  if (broken > 0) {
    problems.push_back(absl::StrCat(broken,
                                    " queues are broken, as their clients wrote what cannot be into them: "
                                    "`ubctl queues` names the processes; mend or restart them"));
  }
}

}  // namespace

std::vector<std::string> FindProblems(const ProblemSources& sources) {
  std::vector<std::string> problems;
  if (sources.totals.stopping) problems.push_back("the daemon is stopping: wait until it has been started again");
  if (sources.totals.draining && !sources.totals.stopping) {
    problems.push_back("the daemon is draining and grants nothing new: `ubctl drain --off` ends that");
  }
  if (sources.reuse_test != kSoleHolder) {
    problems.push_back(absl::StrCat("released memory is never reused as it is, each grant costs fresh backing: ",
                                    sources.reuse_test, "; run ubd on a kernel where the test works"));
  }
  for (const PoolListing& pool : sources.pools) {
    const PoolFacts* facts = nullptr;
    for (const PoolFacts& candidate : sources.facts) {
      if (candidate.spec.name == pool.spec.name) facts = &candidate;
    }
    PoolProblems(pool, facts, problems);
  }
  EngineProblems(sources, problems);
  // Beyond four fifths the next clients are soon refused.
  if (sources.fds_limit > 0 && sources.fds_open > sources.fds_limit / 5 * 4) {
    problems.push_back(absl::StrCat(sources.fds_open, " of ", sources.fds_limit,
                                    " file descriptors are in use: raise LimitNOFILE of the unit"));
  }
  return problems;
}

}  // namespace ubd

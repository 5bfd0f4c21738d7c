// What is wrong with the daemon, for Status.problem: each line names the trouble and what to do about it. Pure.
#ifndef UBD_RPC_PROBLEMS_H_
#define UBD_RPC_PROBLEMS_H_

#include <string>
#include <vector>

#include "daemon/core/listings.h"
#include "daemon/engine/engine.h"
#include "daemon/memory/memory.h"

namespace ubd {

struct ProblemSources {
  std::vector<PoolListing> pools;
  std::vector<PoolFacts> facts;
  BrokerTotals totals;
  std::string reuse_test;  // Memory::ReuseTest
  PathStatus paths;
  std::vector<QueueListing> queues;
  Demand register_blocks = Demand::kIfPossible;
  uint64_t fds_open = 0;
  uint64_t fds_limit = 0;
};

std::vector<std::string> FindProblems(const ProblemSources& sources);

}  // namespace ubd

#endif  // UBD_RPC_PROBLEMS_H_

// What all lanes of one engine share. Set up before the lanes' threads start.
#ifndef UBD_ENGINE_ENGINE_SHARED_H_
#define UBD_ENGINE_ENGINE_SHARED_H_

#include <atomic>
#include <functional>

#include "daemon/engine/engine.h"
#include "daemon/engine/path_counts.h"

namespace ubd {

class ServedQueue;

struct EngineShared {
  EngineShared(const EngineOptions& given, Memory& pools)
      : options(given),
        memory(pools),
        policy(given.policy),
        min_direct_storage(given.min_direct_storage.count()),
        min_direct_network(given.min_direct_network.count()) {}

  const EngineOptions options;
  Memory& memory;
  Broker* broker = nullptr;
  std::atomic<ub::wire::PathPolicy> policy;
  std::atomic<uint64_t> min_direct_storage;
  std::atomic<uint64_t> min_direct_network;
  std::atomic<bool> stopping = false;
  PathCounts counts;
  // A session that had too much in flight has room again: every lane looks at the queues that it holds back.
  std::function<void()> session_has_room = [] {};
  // A queue that was closed has drained.
  std::function<void(const ServedQueue&)> queue_gone = [](const ServedQueue&) {};
};

}  // namespace ubd

#endif  // UBD_ENGINE_ENGINE_SHARED_H_

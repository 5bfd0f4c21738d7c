// What the memory layer reports, turned into block states, charges and events. Not thread-safe: under the Broker's
// lock.
#ifndef UBD_CORE_MEMORY_NEWS_H_
#define UBD_CORE_MEMORY_NEWS_H_

#include <optional>
#include <string>

#include "daemon/core/broker_data.h"

namespace ubd {

class MemoryNews {
 public:
  explicit MemoryNews(BrokerData& data) : data_(data) {}
  void Free(BlockId block, bool fresh);
  void Recycling(BlockId block);
  void Retired(BlockId block, const Charge& charge);
  void RetiredFreed(BlockId block, const Charge& charge);
  void Tampering(BlockId block, const Charge& charge, const std::string& what);

 private:
  // Its block's test is over: what it may use is known again.
  void TestEnded(Uid uid, Bytes bytes);

  BrokerData& data_;
};

}  // namespace ubd

#endif  // UBD_CORE_MEMORY_NEWS_H_

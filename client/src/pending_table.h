// The transfers of one queue that have not completed for good, by the number that stands in their entries. The number
// is libub's own: what the caller chose as its tag need not be unique, and a completion that nobody waits for is found
// out. Holds the memory of each until the device is done with it. Not thread-safe.
#ifndef UB_SRC_PENDING_TABLE_H_
#define UB_SRC_PENDING_TABLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "client/src/file_impl.h"
#include "client/src/slot_pool_impl.h"
#include "client/src/transfer_impl.h"
#include "ub/queue.h"

namespace ub {

struct Pending {
  uint64_t tag = 0;
  uint64_t length = 0;
  uint64_t id = 0;
  LeaseImpl* lease = nullptr;
  LeaseImpl* target = nullptr;
  SlotPoolImpl* pool = nullptr;
  uint32_t slot = 0;
  bool used = false;
  bool answered = false;  // a completion with `more` has come
  bool silent = false;    // of libub's own: nobody wants its completion
  std::shared_ptr<FileImpl> file;
  std::shared_ptr<TransferImpl> handle;
};

class PendingTable {
 public:
  explicit PendingTable(uint32_t places);

  uint32_t room() const { return static_cast<uint32_t>(free_.size()); }
  bool empty() const { return free_.size() == entries_.size(); }
  // Needs room. Takes hold of the memory.
  Pending& Add(const Op& op, std::shared_ptr<TransferImpl> handle);
  // Null: nothing of that number is pending.
  Pending* Find(uint64_t id);
  Pending* FindTag(uint64_t tag);
  // Lets go of the memory. `known`: the device is done with it; else it is only given back to the daemon.
  void Remove(Pending& pending, bool known);
  std::vector<Pending>& entries() { return entries_; }

 private:
  std::vector<Pending> entries_;
  std::vector<uint32_t> free_;
};

}  // namespace ub

#endif  // UB_SRC_PENDING_TABLE_H_

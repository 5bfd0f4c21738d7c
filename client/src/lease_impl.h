// What a ub::Lease holds: the daemon's description of the lease, its mapping, and whether it still lives. Owned by a
// Lease, by the LeaseCache, or (released with transfers in flight) by the last of its transfers. One thread at a time,
// except for `ended` and what transfers do.
#ifndef UB_SRC_LEASE_IMPL_H_
#define UB_SRC_LEASE_IMPL_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/fork_guard.h"
#include "client/src/lease_registry.h"
#include "client/src/mapping.h"
#include "client/src/mono_time.h"
#include "client/src/use_count.h"
#include "proto/wire/lease_word.h"
#include "ub/lease.h"

namespace ub {

// The lease as granted.
struct LeaseInfo {
  LeaseId id;
  Generation generation;
  std::string pool;
  Bytes block_bytes;
  Bytes page_bytes;
  Access access = Access::kReadWrite;
  bool read_only_advisory = false;
  std::vector<UbAddr> ub_addr;  // of each block, in mapping order
  std::optional<Deadline> expires;
  wire::LeaseWord* word = nullptr;  // null: never cached
};

// What a lease needs of its Client.
class LeaseHost {
 public:
  virtual ~LeaseHost() = default;
  // Keeps it cached, or unmaps it and gives it back to the daemon.
  virtual absl::Status GiveBack(std::unique_ptr<LeaseImpl> lease) = 0;
  // The same for callers that must not wait for the daemon.
  virtual void GiveBackLater(std::unique_ptr<LeaseImpl> lease) { GiveBack(std::move(lease)).IgnoreError(); }
  virtual absl::StatusOr<Ticket> Share(LeaseImpl& lease, const ShareOptions& options) = 0;
};

class LeaseImpl {
 public:
  // `host` and `registry` must outlive it.
  LeaseImpl(LeaseHost* host, LeaseRegistry* registry, LeaseInfo info, Mapping mapping);
  ~LeaseImpl();
  LeaseImpl(const LeaseImpl&) = delete;
  LeaseImpl& operator=(const LeaseImpl&) = delete;

  const LeaseInfo& info() const { return info_; }
  const Mapping& mapping() const { return mapping_; }
  LeaseHost& host() const { return *host_; }
  // OK, or FORKED in a child of the process that acquired it.
  absl::Status CheckFork() const { return guard_.Check(); }
  void MarkShared() { shared_ = true; }

  // How the lease ended, as far as this process can know: by event, by its own TTL, or by its word.
  LeaseEnd ended() const;
  // May be kept when released.
  bool cacheable() const {
    return info_.word != nullptr && !shared_ && !info_.expires && !in_doubt_.load(std::memory_order_relaxed);
  }
  // --- transfers
  void BeginTransfer() { transfers_.Begin(); }
  // Gives the lease back when it was the last and the lease is released already.
  void EndTransfer() {
    if (transfers_.End()) host_->GiveBackLater(std::unique_ptr<LeaseImpl>(this));
  }
  // Whether a transfer on it has ended cannot be known any more: only the daemon may hand this memory out again.
  void MarkInDoubt() { in_doubt_.store(true, std::memory_order_relaxed); }
  uint32_t transfers() const { return transfers_.uses(); }
  // Ends its holder's part. With transfers in flight the last of them gives it back, and this is OK.
  static absl::Status Release(std::unique_ptr<LeaseImpl> lease);
  static void ReleaseLater(Lease lease);
  // Drops the mapping before the object: the daemon's test wants it gone before the lease is given back.
  void Unmap() { Mapping gone(std::move(mapping_)); }

  static LeaseImpl* Of(const Lease& lease) { return lease.impl_.get(); }

 private:
  LeaseHost* const host_;
  LeaseRegistry* const registry_;
  const LeaseInfo info_;
  Mapping mapping_;
  LeaseLife life_;
  bool shared_ = false;
  std::atomic<bool> in_doubt_{false};
  UseCount transfers_;
  ForkGuard guard_;
};

using LeaseList = std::vector<std::unique_ptr<LeaseImpl>>;

}  // namespace ub

#endif  // UB_SRC_LEASE_IMPL_H_

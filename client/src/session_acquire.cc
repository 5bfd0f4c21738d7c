// Session: how a lease comes in, from the cache or from the daemon.
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client/src/daemon_errors.h"
#include "client/src/session.h"
#include "proto/wire/error.h"

namespace ub {
namespace {

// How long the daemon may take to answer, beyond the wait that was asked for.
constexpr absl::Duration kMargin = absl::Seconds(5);
// For telling the daemon that a lease or request is not wanted after all.
constexpr absl::Duration kGiveUp = absl::Milliseconds(250);
// Blocks that were just given back need a moment until they may serve again.
constexpr absl::Duration kReclaimTime = absl::Milliseconds(50);

absl::Status BadOption(std::string_view field, std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadField,
                   absl::StrCat("AcquireOptions.", std::string(field), ": ", std::string(why)),
                   {{"field", std::string(field)}});
}

absl::Status CheckOptions(const AcquireOptions& options) {
  if (options.bytes == Bytes()) return BadOption("bytes", "must be at least 1");
  if (options.ttl && *options.ttl <= absl::ZeroDuration()) return BadOption("ttl", "must be more than zero");
  return absl::OkStatus();
}

// Rounded up, and never so large that a sum with it overflows.
uint64_t Milliseconds(absl::Duration duration) {
  absl::Duration capped = std::clamp(duration, absl::ZeroDuration(), absl::Hours(24 * 3650));
  return static_cast<uint64_t>(absl::ToInt64Milliseconds(absl::Ceil(capped, absl::Milliseconds(1))));
}

// The daemon's description, checked as far as mapping and arithmetic depend on it.
absl::StatusOr<LeaseInfo> InfoFrom(const v1::Lease& granted, const WordPage& words, bool cacheable) {
  bool access_known = granted.access() == v1::READ_WRITE || granted.access() == v1::READ_ONLY;
  bool word_known = !granted.has_word() || words.word(granted.word()) != nullptr;
  if (granted.id() == 0 || !access_known || granted.ub_addr().empty() || granted.block_bytes() == 0 || !word_known) {
    return MakeError(absl::StatusCode::kInternal, Reason::kBadField,
                     "the daemon described the lease in a way that libub does not understand");
  }
  LeaseInfo info = {.id = LeaseId(granted.id()),
                    .generation = Generation(granted.generation()),
                    .pool = granted.pool(),
                    .block_bytes = Bytes(granted.block_bytes()),
                    .page_bytes = Bytes(granted.page_bytes()),
                    .access = granted.access() == v1::READ_WRITE ? Access::kReadWrite : Access::kReadOnly,
                    .read_only_advisory = granted.read_only_advisory()};
  for (uint64_t addr : granted.ub_addr()) info.ub_addr.emplace_back(addr);
  if (granted.has_ttl_left_ms())
    info.expires = Deadline::After(absl::Milliseconds(std::min<uint64_t>(granted.ttl_left_ms(), INT64_MAX)));
  if (granted.has_word() && cacheable) info.word = words.word(granted.word());
  return info;
}

// The daemon does not say: it is the client that made the memory.
Bytes OwnPageSize(int fd) {
  struct statfs system = {};
  bool huge = ::fstatfs(fd, &system) == 0 && system.f_type == HUGETLBFS_MAGIC;
  return Bytes(static_cast<uint64_t>(huge ? system.f_bsize : ::sysconf(_SC_PAGESIZE)));
}

bool RoomWouldHelp(const absl::Status& status) {
  Reason reason = ReasonOf(status);
  return reason == Reason::kPoolEmpty || reason == Reason::kQuotaExceeded || reason == Reason::kTooManyLeases;
}

}  // namespace

absl::StatusOr<Lease> Session::Acquire(const AcquireOptions& options) {
  if (absl::Status bad = CheckOptions(options); !bad.ok()) return bad;
  transfers_.later().AwaitIdle(kMargin);  // leases that the end of a transfer gives back
  if (options.cacheable && !options.ttl) {
    LeaseList dead;
    std::unique_ptr<LeaseImpl> cached = cache_.Take(options.pool, options.bytes, &dead);
    CountRecalled(dead);
    if (cached != nullptr) {
      leases_.fetch_add(1, std::memory_order_relaxed);
      cache_hits_.fetch_add(1, std::memory_order_relaxed);
      return Lease(std::move(cached));
    }
  }
  absl::StatusOr<Lease> lease = AcquireFromDaemon(options, options.wait);
  // What is missing may lie in this process's own cache.
  if (lease.ok() || !RoomWouldHelp(lease.status()) || !MakeRoom()) return lease;
  absl::StatusOr<Lease> second = AcquireFromDaemon(options, std::max(options.wait, kReclaimTime));
  return ReasonOf(second.status()) == Reason::kWaitTimeout ? lease.status() : std::move(second);
}

bool Session::MakeRoom() {
  bool any = cache_.cached_bytes() > Bytes();
  DropCache(Deadline::After(kMargin)).IgnoreError();
  return any;
}

absl::StatusOr<Lease> Session::AcquireFromDaemon(const AcquireOptions& options, absl::Duration wait) {
  if (absl::Status gone = CheckConnected(); !gone.ok()) return gone;
  v1::AcquireRequest request;
  request.set_pool(options.pool);
  request.set_bytes(options.bytes.count());
  request.set_request_id(next_request_.fetch_add(1));
  request.set_wait_ms(Milliseconds(wait));
  if (options.ttl) request.set_ttl_ms(Milliseconds(*options.ttl));
  request.set_cacheable(options.cacheable && !options.ttl);
  GrantInbox::Expectation expectation(inbox_);
  absl::StatusOr<v1::Lease> granted =
      CallAcquire(request, Deadline::After(absl::Milliseconds(request.wait_ms()) + kMargin));
  if (!granted.ok()) return granted.status();
  absl::StatusOr<Lease> lease = TakeIn(*granted, request.cacheable(), Deadline::After(kMargin));
  if (lease.ok() && options.pool.empty()) cache_.SetDefaultPool(lease->pool());
  return lease;
}

absl::StatusOr<v1::Lease> Session::CallAcquire(const v1::AcquireRequest& request, Deadline deadline) {
  absl::StatusOr<v1::Lease> granted = rpc_.Acquire(request, deadline);
  // Lost, though the session stands: the request id makes asking again harmless. On a connection that is gone this
  // fails at once.
  if (ReasonOf(granted.status()) == Reason::kSessionEnded && CheckConnected().ok())
    granted = rpc_.Acquire(request, deadline);
  if (ReasonOf(granted.status()) == Reason::kNotAnswering) {
    rpc_.ReleaseRequest(RequestId(request.request_id()), Deadline::After(kGiveUp)).IgnoreError();
  }
  return granted;
}

absl::StatusOr<Lease> Session::TakeIn(const v1::Lease& granted, bool cacheable, Deadline deadline) {
  absl::StatusOr<LeaseInfo> info = InfoFrom(granted, lifeline_->words(), cacheable);
  absl::Status status = info.status();
  Mapping mapping;
  if (status.ok()) status = ReceiveMemory(*info, mapping, deadline);
  if (!status.ok()) {
    mapping = Mapping();
    rpc_.Release(LeaseId(granted.id()), Deadline::After(kGiveUp)).IgnoreError();
    return status;
  }
  leases_.fetch_add(1, std::memory_order_relaxed);
  return Lease(std::make_unique<LeaseImpl>(this, &registry_, *std::move(info), std::move(mapping)));
}

absl::Status Session::ReceiveMemory(const LeaseInfo& info, Mapping& mapping, Deadline deadline) {
  absl::StatusOr<Mapping> reserved =
      Mapping::Reserve(info.block_bytes, info.ub_addr.size(), info.page_bytes, info.access);
  if (!reserved.ok()) return reserved.status();
  mapping = *std::move(reserved);
  auto map_batch = [this, &mapping](uint32_t first, absl::Span<const UniqueFd> fds) {
    for (const UniqueFd& fd : fds) {
      if (absl::Status bad = mapping.MapBlock(first++, fd.get()); !bad.ok()) return bad;
      blocks_mapped_.fetch_add(1, std::memory_order_relaxed);
    }
    return absl::OkStatus();
  };
  GrantWanted wanted = {
      .lease = info.id, .generation = info.generation, .blocks = info.ub_addr.size(), .access = info.access};
  if (absl::Status bad = inbox_.Receive(wanted, deadline, map_batch); !bad.ok()) return bad;
  return mapping.Populate();
}

absl::StatusOr<Lease> Session::Attach(const Ticket& ticket, Deadline deadline) {
  if (absl::Status gone = CheckConnected(); !gone.ok()) return gone;
  {
    MutexLock lock(&attach_mu_);
    while (attaching_) {
      if (deadline.passed()) return NotAnswering();
      attach_turn_.WaitWithTimeout(&attach_mu_, deadline.left());
    }
    attaching_ = true;
  }
  absl::Cleanup end_turn = [this] {
    MutexLock lock(&attach_mu_);
    attaching_ = false;
    attach_turn_.Signal();
  };
  GrantInbox::Expectation expectation(inbox_);
  absl::StatusOr<v1::Lease> granted = rpc_.Attach(ticket, deadline);
  if (!granted.ok()) return granted.status();
  return TakeIn(*granted, false, deadline);
}

absl::StatusOr<Lease> Session::Register(int fd, const RegisterOptions& options) {
  if (absl::Status gone = CheckConnected(); !gone.ok()) return gone;
  Deadline deadline = Deadline::After(options.deadline);
  absl::StatusOr<uint64_t> offer = transfers_.Offer(fd, deadline);
  if (!offer.ok()) return offer.status();
  v1::RegisterMemoryRequest request;
  request.set_offer(*offer);
  request.set_offset(options.offset.count());
  request.set_bytes(options.size.count());
  request.set_access(options.access == Access::kReadWrite ? v1::READ_WRITE : v1::READ_ONLY);
  absl::StatusOr<v1::Lease> granted = rpc_.RegisterMemory(request, deadline);
  if (!granted.ok()) return granted.status();
  absl::StatusOr<LeaseInfo> info = InfoFrom(*granted, lifeline_->words(), false);
  if (info.ok()) info->page_bytes = OwnPageSize(fd);
  absl::StatusOr<Mapping> mapping = info.ok() ? MapOwn(fd, *info, options) : info.status();
  if (!mapping.ok()) {
    rpc_.Release(LeaseId(granted->id()), Deadline::After(kGiveUp)).IgnoreError();
    return mapping.status();
  }
  leases_.fetch_add(1, std::memory_order_relaxed);
  return Lease(std::make_unique<LeaseImpl>(this, &registry_, *std::move(info), *std::move(mapping)));
}

absl::StatusOr<Mapping> Session::MapOwn(int fd, const LeaseInfo& info, const RegisterOptions& options) {
  absl::StatusOr<Mapping> mapping =
      Mapping::Reserve(info.block_bytes, info.ub_addr.size(), info.page_bytes, info.access);
  if (!mapping.ok()) return mapping.status();
  if (mapping->size() != options.size.count() || info.access != options.access) {
    return MakeError(absl::StatusCode::kInternal, Reason::kBadField,
                     "the daemon registered something else than it was asked to");
  }
  if (absl::Status bad = mapping->MapRange(fd, options.offset); !bad.ok()) return bad;
  if (absl::Status bad = mapping->Populate(); !bad.ok()) return bad;
  return mapping;
}

}  // namespace ub

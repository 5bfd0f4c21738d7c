// A lease: memory of the pool, mapped into this process at contiguous addresses for as long as the Lease lives.
#ifndef UB_LEASE_H_
#define UB_LEASE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "ub/units.h"

namespace ub {

// Lets one session of one uid attach a lease, once, before it expires. A secret: whoever has it and that uid can
// attach.
class Ticket {
 public:
  Ticket() = default;
  explicit Ticket(const std::array<uint8_t, 16>& id) : id_(id) {}
  // 32 hex digits, for handing over; Parse reads them back (INVALID_ARGUMENT otherwise).
  std::string text() const;
  static absl::StatusOr<Ticket> Parse(std::string_view text);
  const std::array<uint8_t, 16>& id() const { return id_; }

 private:
  std::array<uint8_t, 16> id_ = {};
};

struct ShareOptions {
  Access access = Access::kReadOnly;
  Uid uid;  // who may attach
  absl::Duration ticket_ttl = absl::Seconds(60);
  absl::Duration deadline = absl::Seconds(5);
};

class LeaseImpl;

// Move-only. Different threads may use the memory at will; one Lease object is for one thread at a time. Must not
// outlive its Client.
class Lease {
 public:
  Lease();  // holds nothing
  explicit Lease(std::unique_ptr<LeaseImpl> impl);
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();  // as Release, the result ignored

  bool valid() const { return impl_ != nullptr; }
  LeaseId id() const;
  Generation generation() const;
  const std::string& pool() const;
  Access access() const;
  // A read-only lease that the kernel cannot enforce for this process (same uid as the daemon, or root).
  bool read_only_advisory() const;

  // The whole lease; its size is a multiple of the block size. Writing through a read-only lease is a SIGSEGV.
  std::byte* data() const;
  size_t size() const;
  absl::Span<std::byte> span() const { return {data(), size()}; }
  Bytes block_size() const;
  Bytes page_size() const;

  // The UB address of the byte at `offset`: OUT_OF_RANGE beyond the end. Neighbouring bytes have neighbouring addresses
  // within a block only.
  absl::StatusOr<UbAddr> ub_addr(Bytes offset) const;

  // Time left for a lease with a TTL.
  std::optional<absl::Duration> ttl_left() const;

  // Makes a ticket. A lease that was shared is not cached.
  absl::StatusOr<Ticket> Share(const ShareOptions& options);

  // Unmaps and gives back, or keeps it cached. The Lease holds nothing afterwards, whatever the result. With transfers
  // in flight (ub/queue.h) libub keeps it until the last of them has completed; this is OK then.
  absl::Status Release();

  // False once the daemon has ended the lease (revoke, TTL, owner's release, daemon gone): the bytes stay mapped, but
  // are nobody's any more.
  bool alive() const;

 private:
  friend class LeaseImpl;
  std::unique_ptr<LeaseImpl> impl_;
};

}  // namespace ub

#endif  // UB_LEASE_H_

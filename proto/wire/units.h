// Units as types: a size is not an id, a block is not a lease, and a UB address is not a pointer. All are plain values
// that cost nothing; conversion to and from the raw number is always written out.
#ifndef UB_WIRE_UNITS_H_
#define UB_WIRE_UNITS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <utility>

namespace ub {

// A number that names one thing of one kind. Ids of different kinds do not compare or convert.
template <class Tag, class Rep>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;
  template <typename H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << +id.value_; }

 private:
  Rep value_ = 0;
};

// Position of a pool in the config, from 0.
using PoolId = Id<struct PoolTag, uint32_t>;
// A block of any pool; numbered through all pools, from 0, for the life of the daemon.
using BlockId = Id<struct BlockTag, uint32_t>;
// A lease; never used twice by one daemon. 0 names none.
using LeaseId = Id<struct LeaseTag, uint64_t>;
// A session; never used twice by one daemon. 0 names none.
using SessionId = Id<struct SessionTag, uint64_t>;
// Chosen by a client to name one request of one session; makes retries harmless.
using RequestId = Id<struct RequestTag, uint64_t>;
// Counts grants: every grant gets a larger one, and its blocks carry it until the next grant. Stale ids never match.
using Generation = Id<struct GenerationTag, uint64_t>;
using Uid = Id<struct UidTag, uint32_t>;
using Gid = Id<struct GidTag, uint32_t>;

// A number of bytes.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(uint64_t count) : count_(count) {}
  constexpr uint64_t count() const { return count_; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.count_ + b.count_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr Bytes operator*(Bytes a, uint64_t n) { return Bytes(a.count_ * n); }
  friend constexpr uint64_t operator/(Bytes a, Bytes b) { return a.count_ / b.count_; }
  friend constexpr Bytes operator%(Bytes a, Bytes b) { return Bytes(a.count_ % b.count_); }
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
  constexpr Bytes& operator-=(Bytes b) { return *this = *this - b; }
  friend std::ostream& operator<<(std::ostream& out, Bytes b) { return out << b.count_; }

 private:
  uint64_t count_ = 0;
};

constexpr Bytes KiB(uint64_t n) { return Bytes(n << 10); }
constexpr Bytes MiB(uint64_t n) { return Bytes(n << 20); }
constexpr Bytes GiB(uint64_t n) { return Bytes(n << 30); }

// How many pieces of `unit` hold `size`; no overflow for any input with unit > 0.
constexpr uint64_t PiecesFor(Bytes size, Bytes unit) {
  return size.count() / unit.count() + (size.count() % unit.count() != 0 ? 1 : 0);
}

// Names one byte of the pool for everybody on and beyond this node: CPU client, NIC, peer. Never a pointer of any
// process: the range starts where no process address lies by default (2^48).
class UbAddr {
 public:
  static constexpr uint64_t kBase = uint64_t{1} << 48;
  constexpr UbAddr() = default;
  constexpr explicit UbAddr(uint64_t value) : value_(value) {}
  constexpr uint64_t value() const { return value_; }
  friend constexpr auto operator<=>(UbAddr, UbAddr) = default;
  friend constexpr UbAddr operator+(UbAddr a, Bytes b) { return UbAddr(a.value_ + b.count()); }
  friend std::ostream& operator<<(std::ostream& out, UbAddr a) { return out << a.value_; }

 private:
  uint64_t value_ = 0;
};

// What a holder may do with a lease.
enum class Access : uint8_t { kReadWrite = 1, kReadOnly = 2 };

}  // namespace ub

#endif  // UB_WIRE_UNITS_H_

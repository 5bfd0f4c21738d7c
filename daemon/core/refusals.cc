#include "daemon/core/refusals.h"

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/size_text.h"

namespace ubd::refusal {
namespace {

using absl::StatusCode;
using ub::FormatSize;
using ub::MakeError;
using ub::Reason;

std::string Number(uint64_t value) { return absl::StrCat(value); }

Bytes Of(const PoolState& pool, uint64_t blocks) { return pool.blocks.spec().block_bytes * blocks; }

// "pool p has 4MiB of 64MiB free; 56MiB are leased (3 leases), 4MiB are being drained or recycled, 2MiB retired"
std::string Situation(const PoolState& pool) {
  const Pool& blocks = pool.blocks;
  uint64_t reclaimable = uint64_t{blocks.count(BlockState::kDraining)} + blocks.count(BlockState::kRecycling);
  return absl::StrCat("pool ", blocks.spec().name, " has ", FormatSize(Of(pool, blocks.count(BlockState::kFree))),
                      " of ", FormatSize(blocks.size()), " free; ",
                      FormatSize(Of(pool, blocks.count(BlockState::kLeased))), " in ", pool.leases, " leases, ",
                      FormatSize(Of(pool, reclaimable)), " being drained or recycled, ",
                      FormatSize(Of(pool, pool.retired)), " of old memory still held by its former users, ",
                      pool.queue.size(), " requests waiting");
}

ub::ErrorDetails Figures(const PoolState& pool, Bytes asked) {
  const Pool& blocks = pool.blocks;
  uint64_t reclaimable = uint64_t{blocks.count(BlockState::kDraining)} + blocks.count(BlockState::kRecycling);
  return {{"pool", blocks.spec().name},
          {"free", Number(Of(pool, blocks.count(BlockState::kFree)).count())},
          {"asked", Number(asked.count())},
          {"leased", Number(Of(pool, blocks.count(BlockState::kLeased)).count())},
          {"leases", Number(pool.leases)},
          {"retired", Number(Of(pool, pool.retired).count())},
          {"reclaimable", Number(Of(pool, reclaimable).count())},
          {"waiters", Number(pool.queue.size())}};
}

const char* WhoseQuota(const OverQuota& over) { return over.of_session ? "this session" : "this user"; }

ub::ErrorDetails Figures(const OverQuota& over) {
  return {{"limit", Number(over.limit.count())},
          {"used", Number(over.used.count())},
          {"asked", Number(over.asked.count())},
          {"scope", over.of_session ? "session" : "uid"}};
}

}  // namespace

absl::Status NoSuchLease() {
  return MakeError(StatusCode::kNotFound, Reason::kNoSuchLease,
                   "no such lease: it has ended, or this session does not hold it");
}

absl::Status StaleGeneration() {
  return MakeError(StatusCode::kFailedPrecondition, Reason::kStaleGeneration,
                   "the generation is not that of this lease's grant; use the one that came with the lease");
}

absl::Status ReadOnly() {
  return MakeError(StatusCode::kFailedPrecondition, Reason::kReadOnly,
                   "this session holds the lease read-only; ask its owner for a read-write share, or register the "
                   "memory for writing");
}

absl::Status OutOfRange(Bytes offset, Bytes length, Bytes size) {
  return MakeError(
      StatusCode::kOutOfRange, Reason::kOutOfRange,
      absl::StrCat(length.count(), " bytes at offset ", offset.count(), " do not lie within the lease's ", size.count(),
                   "; stay within it, or lease more"),
      {{"offset", Number(offset.count())}, {"length", Number(length.count())}, {"size", Number(size.count())}});
}

absl::Status NotShareable() {
  return MakeError(StatusCode::kFailedPrecondition, Reason::kNotShareable,
                   "a client's own memory cannot be shared through the daemon; pass its memfd on, and let the other "
                   "session register it");
}

absl::Status TooManyOwn(uint32_t limit) {
  return MakeError(StatusCode::kResourceExhausted, Reason::kTooManyLeases,
                   absl::StrCat("this user already has ", limit,
                                " ranges of its own memory registered; release some "
                                "first, or register fewer and larger ones"),
                   {{"limit", Number(limit)}});
}

absl::Status NoSuchPool(const std::string& name) {
  return MakeError(StatusCode::kNotFound, Reason::kNoSuchPool,
                   absl::StrCat("no pool is named \"", name, "\"; `ubctl pools` lists them"), {{"pool", name}});
}

absl::Status NoSuchTicket() {
  return MakeError(StatusCode::kNotFound, Reason::kNoSuchTicket,
                   "no such ticket: used, expired, made for another user, or its lease has ended; ask for a new one");
}

absl::Status SessionEnded() {
  return MakeError(StatusCode::kAborted, Reason::kSessionEnded, "the session has ended; connect anew");
}

absl::Status Superseded() {
  return MakeError(StatusCode::kAborted, Reason::kSuperseded, "a retry with the same request id took over");
}

absl::Status Abandoned() { return absl::CancelledError("the caller gave the request up"); }

absl::Status Draining() {
  return MakeError(StatusCode::kUnavailable, Reason::kDraining,
                   "the daemon is being drained and grants nothing new; try again once an operator has resumed it");
}

absl::Status Stopping(const std::string& why) {
  return MakeError(
      StatusCode::kUnavailable, Reason::kStopping,
      absl::StrCat("the daemon is stopping", why.empty() ? "" : ": ", why, "; connect again once it is back"));
}

absl::Status BadField(const std::string& field, const std::string& text) {
  return MakeError(StatusCode::kInvalidArgument, Reason::kBadField, absl::StrCat(field, ": ", text),
                   {{"field", field}});
}

absl::Status LargerThanPool(const PoolState& pool, Bytes asked) {
  Bytes limit = pool.blocks.size();
  return MakeError(StatusCode::kInvalidArgument, Reason::kNeverSatisfiable,
                   absl::StrCat(asked.count(), " bytes can never be leased: pool ", pool.blocks.spec().name, " has ",
                                FormatSize(limit), " in all; ask for less, or configure a larger pool"),
                   {{"asked", Number(asked.count())}, {"limit", Number(limit.count())}, {"scope", "pool"}});
}

absl::Status LargerThanQuota(const OverQuota& over) {
  return MakeError(StatusCode::kInvalidArgument, Reason::kNeverSatisfiable,
                   absl::StrCat(FormatSize(over.asked), " can never be leased: the quota of ", WhoseQuota(over), " is ",
                                FormatSize(over.limit), "; ask for less, or have the quota raised"),
                   {{"asked", Number(over.asked.count())},
                    {"limit", Number(over.limit.count())},
                    {"scope", over.of_session ? "session" : "uid"}});
}

absl::Status QuotaExceeded(const OverQuota& over) {
  return MakeError(
      StatusCode::kResourceExhausted, Reason::kQuotaExceeded,
      absl::StrCat("the quota of ", WhoseQuota(over), " is ", FormatSize(over.limit), ": ", FormatSize(over.used),
                   " are leased, waited for or not yet let go of, so ", FormatSize(over.asked),
                   " more do not fit; release leases first, or have the quota raised"),
      Figures(over));
}

absl::Status TooManyWaiters(uint32_t limit) {
  return MakeError(StatusCode::kResourceExhausted, Reason::kTooManyWaiters,
                   absl::StrCat("this user already has ", limit, " requests waiting; let some end first"),
                   {{"limit", Number(limit)}});
}

absl::Status TooManyLeases(uint32_t limit) {
  return MakeError(StatusCode::kResourceExhausted, Reason::kTooManyLeases,
                   absl::StrCat("this session already has ", limit, " leases and requests; release some first"),
                   {{"limit", Number(limit)}});
}

absl::Status TooManyTickets() {
  return MakeError(StatusCode::kResourceExhausted, Reason::kTooManyLeases,
                   absl::StrCat("this lease already has ", TicketBook::kMaxPerLease,
                                " tickets out; let them be used or expire first"),
                   {{"limit", Number(TicketBook::kMaxPerLease)}});
}

absl::Status PoolEmpty(const PoolState& pool, Bytes asked) {
  return MakeError(StatusCode::kResourceExhausted, Reason::kPoolEmpty,
                   absl::StrCat(FormatSize(asked), " were asked for; ", Situation(pool),
                                "; wait for some to be released, or ask for less"),
                   Figures(pool, asked));
}

absl::Status WaitTimeout(const PoolState& pool, Bytes asked, absl::Duration waited) {
  return MakeError(StatusCode::kDeadlineExceeded, Reason::kWaitTimeout,
                   absl::StrCat("no ", FormatSize(asked), " within ", absl::FormatDuration(waited), ": ",
                                Situation(pool), "; wait longer, or ask for less"),
                   Figures(pool, asked));
}

}  // namespace ubd::refusal

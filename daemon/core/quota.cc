#include "daemon/core/quota.h"

#include <algorithm>

namespace ubd {
namespace {

template <class Key, class Change>
void Apply(absl::flat_hash_map<Key, Usage>& map, Key key, Change change) {
  auto it = map.try_emplace(key).first;
  change(it->second);
  if (it->second == Usage()) map.erase(it);
}

template <class Key>
Usage Look(const absl::flat_hash_map<Key, Usage>& map, Key key) {
  auto it = map.find(key);
  return it == map.end() ? Usage() : it->second;
}

// `used` may exceed `limit`: after a reload, or when shares of others were retired on this uid's account.
bool Exceeds(Bytes used, Bytes asked, Bytes limit) { return used > limit || asked > limit - used; }

}  // namespace

std::optional<Bytes> QuotaBook::LimitOf(Uid uid) const {
  auto it = limits_.per_uid.find(uid);
  return it == limits_.per_uid.end() ? limits_.default_per_uid : std::optional<Bytes>(it->second);
}

std::optional<Bytes> QuotaBook::TightestLimit(Uid uid) const {
  std::optional<Bytes> of_uid = LimitOf(uid);
  const std::optional<Bytes>& of_session = limits_.default_per_session;
  if (of_uid && of_session) return std::min(*of_uid, *of_session);
  return of_uid ? of_uid : of_session;
}

Usage QuotaBook::OfUid(Uid uid) const { return Look(uids_, uid); }
Usage QuotaBook::OfSession(SessionId session) const { return Look(sessions_, session); }

std::optional<OverQuota> QuotaBook::Check(SessionId session, Uid uid, Bytes asked) const {
  if (std::optional<Bytes> limit = LimitOf(uid)) {
    Bytes used = OfUid(uid).total();
    if (Exceeds(used, asked, *limit)) return OverQuota{false, *limit, used, asked};
  }
  if (const std::optional<Bytes>& limit = limits_.default_per_session) {
    Bytes used = OfSession(session).total();
    if (Exceeds(used, asked, *limit)) return OverQuota{true, *limit, used, asked};
  }
  return std::nullopt;
}

bool QuotaBook::TestsMayExceed(Uid uid, Bytes asked) const {
  std::optional<Bytes> limit = LimitOf(uid);
  if (!limit) return false;
  Usage usage = OfUid(uid);
  return usage.tested != Bytes() && Exceeds(usage.total() + usage.tested, asked, *limit);
}

void QuotaBook::AddLeased(SessionId session, Uid uid, Bytes bytes) {
  auto add = [bytes](Usage& usage) { usage.leased += bytes; };
  Apply(uids_, uid, add);
  Apply(sessions_, session, add);
}

void QuotaBook::SubLeased(SessionId session, Uid uid, Bytes bytes) {
  auto sub = [bytes](Usage& usage) { usage.leased -= bytes; };
  Apply(uids_, uid, sub);
  Apply(sessions_, session, sub);
}

void QuotaBook::AddWaiter(SessionId session, Uid uid, Bytes bytes) {
  auto add = [bytes](Usage& usage) {
    usage.waited += bytes;
    ++usage.waiters;
  };
  Apply(uids_, uid, add);
  Apply(sessions_, session, add);
}

void QuotaBook::SubWaiter(SessionId session, Uid uid, Bytes bytes) {
  auto sub = [bytes](Usage& usage) {
    usage.waited -= bytes;
    --usage.waiters;
  };
  Apply(uids_, uid, sub);
  Apply(sessions_, session, sub);
}

void QuotaBook::AddRetired(Uid uid, Bytes bytes) {
  Apply(uids_, uid, [bytes](Usage& usage) { usage.retired += bytes; });
}

void QuotaBook::SubRetired(Uid uid, Bytes bytes) {
  // Never below zero, whatever the memory layer reports.
  Apply(uids_, uid, [bytes](Usage& usage) { usage.retired -= std::min(bytes, usage.retired); });
}

void QuotaBook::AddTested(Uid uid, Bytes bytes) {
  Apply(uids_, uid, [bytes](Usage& usage) { usage.tested += bytes; });
}

void QuotaBook::SubTested(Uid uid, Bytes bytes) {
  Apply(uids_, uid, [bytes](Usage& usage) { usage.tested -= bytes; });
}

}  // namespace ubd

#include "daemon/core/ticket_book.h"

#include <algorithm>

namespace ubd {

bool TicketBook::Add(const TicketId& id, const TicketRecord& ticket, MonoTime now) {
  if (tickets_.contains(id)) return false;
  std::vector<TicketId>& siblings = by_lease_[ticket.lease];
  std::erase_if(siblings, [&](const TicketId& other) {
    auto it = tickets_.find(other);
    if (it->second.expires > now) return false;
    tickets_.erase(it);
    return true;
  });
  if (siblings.size() >= kMaxPerLease) return false;
  siblings.push_back(id);
  tickets_.emplace(id, ticket);
  return true;
}

std::optional<TicketRecord> TicketBook::Find(const TicketId& id, Uid uid, MonoTime now) const {
  auto it = tickets_.find(id);
  if (it == tickets_.end() || it->second.uid != uid || it->second.expires <= now) return std::nullopt;
  return it->second;
}

void TicketBook::Remove(const TicketId& id) {
  auto it = tickets_.find(id);
  if (it == tickets_.end()) return;
  auto siblings = by_lease_.find(it->second.lease);
  std::erase(siblings->second, id);
  if (siblings->second.empty()) by_lease_.erase(siblings);
  tickets_.erase(it);
}

void TicketBook::RemoveAllOf(LeaseId lease) {
  auto siblings = by_lease_.find(lease);
  if (siblings == by_lease_.end()) return;
  for (const TicketId& id : siblings->second) tickets_.erase(id);
  by_lease_.erase(siblings);
}

}  // namespace ubd

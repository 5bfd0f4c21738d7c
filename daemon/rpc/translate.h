// The Broker's answers and listings as protobuf. Pure; thread-safe. Nothing here decides who may see what: the Broker
// has done that.
#ifndef UBD_RPC_TRANSLATE_H_
#define UBD_RPC_TRANSLATE_H_

#include <string>

#include "daemon/core/listings.h"
#include "daemon/memory/memory.h"
#include "daemon/telemetry/event_hub.h"
#include "ub/v1/admin.pb.h"
#include "ub/v1/broker.pb.h"

namespace ubd {

// `now` turns the time of expiry into time left; `page_size` and `pool` are the pool's own.
ub::v1::Lease ToProto(const Grant& grant, const std::string& pool, Bytes page_size, MonoTime now);

ub::v1::Event ToProto(const WatchedEvent& event);

// `facts` may be null: the memory layer does not know the pool (then page and reserve figures stay 0).
ub::v1::Pool ToProto(const PoolListing& pool, const PoolFacts* facts);
ub::v1::Block ToProto(const BlockListing& block);
ub::v1::LeaseInfo ToProto(const LeaseListing& lease);
ub::v1::SessionInfo ToProto(const SessionListing& session, uint64_t fds_in_flight);

}  // namespace ubd

#endif  // UBD_RPC_TRANSLATE_H_

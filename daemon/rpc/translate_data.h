// The engine's listings as protobuf. Pure; thread-safe.
#ifndef UBD_RPC_TRANSLATE_DATA_H_
#define UBD_RPC_TRANSLATE_DATA_H_

#include <string>

#include "daemon/core/requests.h"
#include "daemon/engine/engine.h"
#include "ub/v1/admin.pb.h"
#include "ub/v1/broker.pb.h"

namespace ubd {

// `owner` may be null: its session has ended, and transfers are still in flight.
ub::v1::Queue ToProto(const QueueListing& queue, const SessionFacts* owner);
ub::v1::PathStatus ToProto(const PathStatus& status);
ub::v1::OpenQueueResponse ToProto(const OpenedQueue& queue, const EngineOptions& options, const PathStatus& paths);
ub::v1::OpenFileResponse ToProto(const Engine::OpenedFile& file, ub::wire::PathPolicy node_policy);

}  // namespace ubd

#endif  // UBD_RPC_TRANSLATE_DATA_H_

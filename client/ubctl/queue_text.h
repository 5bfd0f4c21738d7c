// Queues and paths as text. Pure.
#ifndef UB_UBCTL_QUEUE_TEXT_H_
#define UB_UBCTL_QUEUE_TEXT_H_

#include <string>

#include "ub/v1/admin.pb.h"

namespace ub::ctl {

std::string QueuesText(const v1::QueueList& list);
std::string PathText(const v1::PathStatus& path);

}  // namespace ub::ctl

#endif  // UB_UBCTL_QUEUE_TEXT_H_

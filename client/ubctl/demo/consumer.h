// The demo's second process: attaches what the producer shares, hashes it in place, hands it back.
#ifndef UB_UBCTL_DEMO_CONSUMER_H_
#define UB_UBCTL_DEMO_CONSUMER_H_

#include "client/ubctl/output.h"

namespace ub::ctl {

// Serves the producer on `socket` until it says End or hangs up. Failures go to the producer, not to stderr.
ExitCode ServeProducer(const Context& context, int socket);

}  // namespace ub::ctl

#endif  // UB_UBCTL_DEMO_CONSUMER_H_

// Which descriptors of clients may enter the daemon: those that can be closed without waiting for a stranger's server.
// Whether they are good for anything is decided later, by who uses them. Thread-safe: no state.
#ifndef UBD_OFFER_JUDGE_H_
#define UBD_OFFER_JUDGE_H_

#include <string>
#include <vector>

#include "daemon/session/doorman.h"

namespace ubd {

// Memory (memfd, tmpfs, hugetlbfs), files on `file_systems`, and block devices are harmless. Asks no file system.
OfferJudge MakeOfferJudge(std::vector<std::string> file_systems);

}  // namespace ubd

#endif  // UBD_OFFER_JUDGE_H_

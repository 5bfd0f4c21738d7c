// The tables of the daemon's listings. Pure.
#ifndef UB_UBCTL_LISTING_TEXT_H_
#define UB_UBCTL_LISTING_TEXT_H_

#include <string>

#include "ub/v1/admin.pb.h"

namespace ub::ctl {

std::string PoolsText(const v1::PoolList& list);
std::string BlocksText(const v1::BlockList& list);
std::string LeasesText(const v1::LeaseList& list);
std::string SessionsText(const v1::SessionList& list);

}  // namespace ub::ctl

#endif  // UB_UBCTL_LISTING_TEXT_H_

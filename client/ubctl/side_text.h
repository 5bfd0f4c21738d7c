// The three ways of reading a file as a table. Pure.
#ifndef UB_UBCTL_SIDE_TEXT_H_
#define UB_UBCTL_SIDE_TEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "client/ubctl/report.pb.h"

namespace ub::ctl {

std::string SidesText(const std::vector<std::pair<std::string, const TransferSide*>>& sides);

// "1.2 GiB/s", "-" when not measured.
std::string RateText(bool known, double bytes_per_s);

}  // namespace ub::ctl

#endif  // UB_UBCTL_SIDE_TEXT_H_

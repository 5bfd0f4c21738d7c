// One picture of `top` as text. Pure.
#ifndef UB_UBCTL_TOP_VIEW_H_
#define UB_UBCTL_TOP_VIEW_H_

#include <cstddef>
#include <string>
#include <vector>

#include "client/ubctl/report.pb.h"

namespace ub::ctl {

struct ViewSize {
  size_t columns = 0;  // 0: no limit
  size_t rows = 0;
  bool colour = false;
};

// Lines longer than `columns` are cut; of the sessions as many are shown as rows are left.
std::string TopText(const TopSnapshot& snapshot, const ViewSize& size);

}  // namespace ub::ctl

#endif  // UB_UBCTL_TOP_VIEW_H_

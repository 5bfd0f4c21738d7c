// The demo's file in each of the three ways: direct, staged, traditional. A look, no benchmark: `ubctl bench ab` is
// one.
#ifndef UB_UBCTL_DEMO_COMPARE_H_
#define UB_UBCTL_DEMO_COMPARE_H_

#include <string>

#include "client/ubctl/demo/source_file.h"
#include "client/ubctl/output.h"
#include "client/ubctl/report.pb.h"

namespace ub::ctl {

// Fills in direct, staged and traditional, or compare_note with why not.
void CompareWays(const Context& context, const std::string& pool, const SourceFile& file, DemoReport& report);

}  // namespace ub::ctl

#endif  // UB_UBCTL_DEMO_COMPARE_H_

#include "daemon/config/fault.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"

namespace ubd {

void FaultList::Add(TextPosition at, std::string text) {
  if (full()) return;
  lines_.insert(at.line);
  faults_.push_back({at, std::move(text)});
}

void FaultList::AddLexical(TextPosition at, std::string text) {
  if (!full()) lexical_.push_back({at, std::move(text)});
}

absl::Status FaultList::ToStatus(const std::string& name) const {
  std::vector<Fault> all = faults_;
  for (const Fault& fault : lexical_) {
    if (!lines_.contains(fault.at.line)) all.push_back(fault);
  }
  std::stable_sort(all.begin(), all.end(), [](const Fault& a, const Fault& b) {
    return std::tie(a.at.line, a.at.column) < std::tie(b.at.line, b.at.column);
  });
  std::string text;
  for (size_t i = 0; i < all.size() && i < kShown; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "\n", name, ":", all[i].at.line, ":", all[i].at.column, ": ", all[i].text);
  }
  if (all.size() > kShown) {
    absl::StrAppend(&text, "\n", name, ": and ", full() ? "at least " : "", all.size() - kShown, " more faults");
  }
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadConfig, text,
                       {{"file", name}, {"faults", absl::StrCat(all.size())}});
}

}  // namespace ubd

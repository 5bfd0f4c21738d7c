#include "daemon/config/nearest.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace ubd {
namespace {

// Longer words are not names of anything here, and the distance costs their product.
constexpr size_t kLongestWord = 64;

// In half edits; a whole-word match is preferred to one of a part.
size_t Score(std::string_view word, const std::string& candidate) {
  std::string lower = absl::AsciiStrToLower(candidate);
  size_t best = 2 * EditDistance(word, lower);
  // "WARNING" for "WARN", "sess" for "session".
  bool cut = std::min(word.size(), lower.size()) >= 3 &&
             (absl::StartsWith(lower, absl::string_view(word.data(), word.size())) ||
              absl::StartsWith(absl::string_view(word.data(), word.size()), lower));
  if (cut) best = std::min<size_t>(best, 4);
  std::vector<std::string> parts = absl::StrSplit(lower, '_');
  if (parts.size() > 1) {
    for (const std::string& part : parts) best = std::min(best, 2 * EditDistance(word, part) + 3);
  }
  return best;
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t change = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

std::optional<std::string> NearestWord(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kLongestWord) return std::nullopt;
  std::string lower = absl::AsciiStrToLower(std::string(word));
  size_t best = std::numeric_limits<size_t>::max();
  std::optional<std::string> nearest;
  for (const std::string& candidate : candidates) {
    size_t score = Score(lower, candidate);
    if (score >= best) continue;
    best = score;
    nearest = candidate;
  }
  if (best > 2 * std::max<size_t>(2, word.size() / 3) + 1) return std::nullopt;
  return nearest;
}

}  // namespace ubd

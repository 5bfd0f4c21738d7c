// "Did you mean": the valid word nearest to one that was mistyped. Pure functions.
#ifndef UBD_CONFIG_NEAREST_H_
#define UBD_CONFIG_NEAREST_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ubd {

// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other.
size_t EditDistance(std::string_view a, std::string_view b);

// The nearest candidate; none where all are too far to be meant. A candidate is also near when one of its parts between
// underscores is ("sise": "block_size"). Of equals the first wins.
std::optional<std::string> NearestWord(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ubd

#endif  // UBD_CONFIG_NEAREST_H_

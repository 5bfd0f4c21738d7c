// Faults of a config file, collected so that one run shows them all. Positions are 1-based; a tab counts up to the next
// multiple of eight, as in a compiler's messages. Not thread-safe.
#ifndef UBD_CONFIG_FAULT_H_
#define UBD_CONFIG_FAULT_H_

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace ubd {

struct TextPosition {
  int line = 1;
  int column = 1;
};

class FaultList {
 public:
  // A file of garbage has a fault in every line: after so many nobody reads on.
  static constexpr size_t kMost = 100;
  static constexpr size_t kShown = 20;

  // A fault of the schema or of a value.
  void Add(TextPosition at, std::string text);
  // A fault of spelling (quotes, stray characters); dropped where the same line has a fault that says more.
  void AddLexical(TextPosition at, std::string text);

  bool empty() const { return faults_.empty() && lexical_.empty(); }
  bool full() const { return faults_.size() + lexical_.size() >= kMost; }

  // INVALID_ARGUMENT/BAD_CONFIG: one line `name:line:column: text` per fault, in the order of the file.
  absl::Status ToStatus(const std::string& name) const;

 private:
  struct Fault {
    TextPosition at;
    std::string text;
  };
  std::vector<Fault> faults_;
  std::vector<Fault> lexical_;
  std::set<int> lines_;  // that have a fault in faults_
};

}  // namespace ubd

#endif  // UBD_CONFIG_FAULT_H_

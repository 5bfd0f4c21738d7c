// Aligned tables for people. The first row is always the header; a table without rows says "none" below it. Cells hold
// text from other processes, so control characters are replaced (utf8.h). No trailing spaces. Not thread-safe.
#ifndef UB_UBCTL_TABLE_H_
#define UB_UBCTL_TABLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ub::ctl {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // As many cells as columns; missing ones are empty, further ones dropped.
  void Add(std::vector<std::string> cells);
  size_t rows() const { return rows_.size(); }
  std::string Text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Name and value in two columns, without a header.
std::string KeyValueText(const std::vector<std::pair<std::string, std::string>>& rows);

}  // namespace ub::ctl

#endif  // UB_UBCTL_TABLE_H_

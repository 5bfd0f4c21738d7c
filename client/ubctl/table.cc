#include "client/ubctl/table.h"

#include <algorithm>

#include "client/ubctl/utf8.h"

namespace ub::ctl {
namespace {

constexpr std::string_view kGap = "  ";

void AppendPadded(std::string& line, const std::string& cell, size_t width, Align align) {
  size_t padding = width - std::min(width, Columns(cell));
  if (align == Align::kRight) line.append(padding, ' ');
  line += cell;
  if (align == Align::kLeft) line.append(padding, ' ');
}

void EndLine(std::string& text, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line;
  text += '\n';
}

}  // namespace

void Table::Add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::Text() const {
  std::vector<size_t> widths;
  std::vector<std::string> titles;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = Columns(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, Columns(row[i]));
    widths.push_back(width);
    titles.push_back(columns_[i].title);
  }
  std::string text;
  auto append_row = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += kGap;
      AppendPadded(line, cells[i], widths[i], columns_[i].align);
    }
    EndLine(text, std::move(line));
  };
  append_row(titles);
  for (const auto& row : rows_) append_row(row);
  if (rows_.empty()) text += "none\n";
  return text;
}

std::string KeyValueText(const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t width = 0;
  for (const auto& [name, value] : rows) width = std::max(width, Columns(name));
  std::string text;
  for (const auto& [name, value] : rows) {
    std::string line;
    AppendPadded(line, name, width, Align::kLeft);
    EndLine(text, line + std::string(kGap) + Printable(value));
  }
  return text;
}

}  // namespace ub::ctl

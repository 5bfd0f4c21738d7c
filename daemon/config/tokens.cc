#include "daemon/config/tokens.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ubd {
namespace {

constexpr size_t kLongestQuote = 40;

// protobuf's words for a spelling fault, in ours.
std::string Reworded(const std::string& message) {
  if (absl::StrContains(message, "end of string") || absl::StrContains(message, "cross line")) {
    return "missing closing quote: a string ends on the line where it began";
  }
  if (absl::StrContains(message, "Need space")) {
    return "a number runs into a word; values with a unit need quotes, such as \"64MiB\"";
  }
  if (absl::StrContains(message, "control characters")) return "a control character; the file must be plain text";
  if (absl::StrContains(message, "non-ascii")) return "a character that is not ASCII, outside of quotes and comments";
  return message;
}

}  // namespace

Tokens::Tokens(const std::string& text, FaultList* faults)
    : faults_(faults), input_(text.data(), static_cast<int>(text.size())), tokenizer_(&input_, this) {
  tokenizer_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
  tokenizer_.set_allow_f_after_float(true);
  Next();
}

void Tokens::AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) {
  faults_->AddLexical({line + 1, column + 1}, Reworded(message));
}

bool Tokens::IsSymbol(std::string_view symbols) {
  return current().type == Tokenizer::TYPE_SYMBOL && symbols.find(current().text[0]) != std::string_view::npos;
}

bool Tokens::Take(char symbol) {
  if (!IsSymbol(std::string_view(&symbol, 1))) return false;
  Next();
  return true;
}

std::string Tokens::Quoted() {
  if (AtEnd()) return "the end of the file";
  std::string text = current().text;
  if (current().type == Tokenizer::TYPE_STRING) Tokenizer::ParseString(current().text, &text);
  bool cut = text.size() > kLongestQuote;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kLongestQuote)), cut ? "…" : "", "\"");
}

void Tokens::SkipBracketed() {
  // Counted, not recursed into: the nesting is the file's choice.
  size_t depth = 0;
  while (!AtEnd()) {
    if (IsSymbol("{<[")) ++depth;
    if (IsSymbol("}>]")) --depth;
    Next();
    if (depth == 0) return;
  }
}

void Tokens::SkipValue(int line) {
  bool colon = Take(':');
  if (IsSymbol("{<[")) return SkipBracketed();
  if (!colon && current().line + 1 != line) return;  // the next key, not a value
  Take('-');
  if (current().type == Tokenizer::TYPE_STRING) {
    while (current().type == Tokenizer::TYPE_STRING) Next();
  } else if (current().type != Tokenizer::TYPE_SYMBOL && current().line + 1 == line) {
    Next();
  }
}

void Tokens::SkipLine(int line) {
  while (!AtEnd() && current().line + 1 == line && !IsSymbol("}>")) Next();
}

}  // namespace ubd

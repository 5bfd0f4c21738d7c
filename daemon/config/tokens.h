// The tokens of a config text, with what a checker needs to go on after a fault. Not thread-safe.
#ifndef UBD_CONFIG_TOKENS_H_
#define UBD_CONFIG_TOKENS_H_

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>
#include <string_view>

#include "daemon/config/fault.h"

namespace ubd {

class Tokens : private google::protobuf::io::ErrorCollector {
 public:
  using Tokenizer = google::protobuf::io::Tokenizer;

  // `text` and `faults` must outlive it. Spelling faults go to `faults`.
  Tokens(const std::string& text, FaultList* faults);

  const Tokenizer::Token& current() { return tokenizer_.current(); }
  void Next() { tokenizer_.Next(); }
  TextPosition at() { return {current().line + 1, current().column + 1}; }
  bool AtEnd() { return current().type == Tokenizer::TYPE_END; }
  bool IsSymbol(std::string_view symbols);  // any of them
  bool Take(char symbol);                   // steps over it if it is there
  // The token as a fault quotes it: short, in quotes.
  std::string Quoted();

  // Steps over one value after a key that stands on `line`, whatever it is: a scalar, or everything up to the matching
  // bracket.
  void SkipValue(int line);
  // Steps over the rest of a line, up to a closing bracket.
  void SkipLine(int line);

 private:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override;
  void SkipBracketed();

  FaultList* faults_;
  google::protobuf::io::ArrayInputStream input_;
  Tokenizer tokenizer_;
};

}  // namespace ubd

#endif  // UBD_CONFIG_TOKENS_H_

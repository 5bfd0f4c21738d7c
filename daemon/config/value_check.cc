#include "daemon/config/value_check.h"

#include <google/protobuf/descriptor.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/config/nearest.h"
#include "proto/wire/size_text.h"
#include "ub/v1/options.pb.h"

namespace ubd {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using Tokenizer = Tokens::Tokenizer;

std::vector<std::string> WordsOf(const EnumDescriptor* words) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(words->value_count()));
  for (int i = 0; i < words->value_count(); ++i) names.push_back(words->value(i)->name());
  return names;
}

// What the field wants, as a person would write it.
std::string Wanted(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      switch (field->options().GetExtension(ub::v1::value_kind)) {
        case ub::v1::SIZE:
          return "a size in quotes, such as \"64MiB\"";
        case ub::v1::DURATION:
          return "a duration in quotes, such as \"30s\"";
        default:
          return "text in quotes";
      }
    case FieldDescriptor::CPPTYPE_UINT32:
      return "a whole number from 0 to 4294967295";
    case FieldDescriptor::CPPTYPE_INT32:
      return "a whole number from -2147483648 to 2147483647";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    default:
      return absl::StrCat("one of ", absl::StrJoin(WordsOf(field->enum_type()), ", "));
  }
}

// Faults of a whole string value; empty: none.
std::string StringFault(const FieldDescriptor* field, const std::string& value) {
  for (unsigned char c : value) {
    if (absl::ascii_iscntrl(c)) return absl::StrCat("a control character in \"", field->name(), "\"; write plain text");
  }
  auto kind = field->options().GetExtension(ub::v1::value_kind);
  if (kind == ub::v1::SIZE) {
    auto size = ub::ParseSize(value);
    if (!size.ok()) return absl::StrCat(field->name(), ": ", std::string(size.status().message()));
  }
  if (kind == ub::v1::DURATION) {
    auto duration = ub::ParseDuration(value);
    if (!duration.ok()) return absl::StrCat(field->name(), ": ", std::string(duration.status().message()));
    // Beyond this the conversion to the kernel's and gRPC's types would overflow, and "inf" parses too.
    if (*duration > absl::Hours(24 * 365 * 100)) {
      return absl::StrCat(field->name(), ": duration \"", value, "\" is longer than a century; write a finite one");
    }
  }
  return "";
}

class ValueChecker {
 public:
  ValueChecker(const FieldDescriptor* field, Tokens* tokens, FaultList* faults)
      : field_(field), tokens_(tokens), faults_(faults), at_(tokens->at()) {}

  void Check() {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return CheckString();
      case FieldDescriptor::CPPTYPE_UINT32:
        return CheckNumber(0, std::numeric_limits<uint32_t>::max());
      case FieldDescriptor::CPPTYPE_INT32:
        return CheckNumber(uint64_t{1} << 31, std::numeric_limits<int32_t>::max());
      default:
        return CheckWord();
    }
  }

 private:
  Tokenizer::TokenType type() { return tokens_->current().type; }

  void Refuse() {
    faults_->Add(at_, absl::StrCat("\"", field_->name(), "\" wants ", Wanted(field_), ", not ", tokens_->Quoted()));
    tokens_->SkipLine(at_.line);
  }

  void CheckString() {
    if (type() != Tokenizer::TYPE_STRING) return Refuse();
    std::string value;
    // Adjacent strings are one value, as in C.
    for (; type() == Tokenizer::TYPE_STRING; tokens_->Next())
      Tokenizer::ParseStringAppend(tokens_->current().text, &value);
    if (std::string fault = StringFault(field_, value); !fault.empty()) faults_->Add(at_, fault);
  }

  void CheckNumber(uint64_t most_negative, uint64_t most) {
    bool negative = tokens_->Take('-');
    const std::string& text = tokens_->current().text;
    if (type() != Tokenizer::TYPE_INTEGER) return Refuse();
    if (text.size() > 1 && text[0] == '0') {
      faults_->Add(at_, absl::StrCat("\"", field_->name(), "\" wants a decimal number without leading zeros, not ",
                                     tokens_->Quoted()));
      return tokens_->SkipLine(at_.line);
    }
    uint64_t number = 0;
    if (!Tokenizer::ParseInteger(text, negative ? most_negative : most, &number) || (negative && most_negative == 0)) {
      return Refuse();
    }
    tokens_->Next();
  }

  // Booleans and enums. Numbers would be legal text format; here a word says what is meant.
  void CheckWord() {
    if (type() != Tokenizer::TYPE_IDENTIFIER) return Refuse();
    bool is_bool = field_->cpp_type() == FieldDescriptor::CPPTYPE_BOOL;
    std::vector<std::string> words = is_bool ? std::vector<std::string>{"true", "false"} : WordsOf(field_->enum_type());
    for (const std::string& word : words) {
      if (tokens_->current().text == word) return tokens_->Next();
    }
    std::string text = absl::StrCat("unknown word ", tokens_->Quoted(), " for \"", field_->name(), "\"; ");
    if (auto nearest = NearestWord(tokens_->current().text, words)) {
      absl::StrAppend(&text, "did you mean ", *nearest, "? ");
    }
    faults_->Add(at_, absl::StrCat(text, "It is ", Wanted(field_)));
    tokens_->Next();
  }

  const FieldDescriptor* field_;
  Tokens* tokens_;
  FaultList* faults_;
  TextPosition at_;
};

}  // namespace

void CheckValue(const FieldDescriptor* field, Tokens* tokens, FaultList* faults) {
  ValueChecker(field, tokens, faults).Check();
}

}  // namespace ubd

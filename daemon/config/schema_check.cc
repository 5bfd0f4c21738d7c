#include "daemon/config/schema_check.h"

#include <google/protobuf/descriptor.h>

#include <map>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/config/nearest.h"
#include "daemon/config/tokens.h"
#include "daemon/config/value_check.h"

namespace ubd {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::vector<std::string> KeysOf(const Descriptor* section) {
  std::vector<std::string> keys;
  keys.reserve(static_cast<size_t>(section->field_count()));
  for (int i = 0; i < section->field_count(); ++i) keys.push_back(section->field(i)->name());
  return keys;
}

// The section in which `key` would be right: "pool", "quota.uid", "" for the top level; none: nowhere. The schema has
// no cycles.
std::optional<std::string> HomeOf(const std::string& key, const Descriptor* section, const std::string& path) {
  if (section->FindFieldByName(key) != nullptr) return path;
  for (int i = 0; i < section->field_count(); ++i) {
    const FieldDescriptor* field = section->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    std::string inner = path.empty() ? field->name() : absl::StrCat(path, ".", field->name());
    if (auto home = HomeOf(key, field->message_type(), inner)) return home;
  }
  return std::nullopt;
}

class Checker {
 public:
  Checker(const std::string& text, const Descriptor* root, FaultList* faults)
      : root_(root), tokens_(text, faults), faults_(faults) {}

  bool Run() {
    while (!tokens_.AtEnd() && !faults_->full()) {
      if (tokens_.IsSymbol("}>")) {
        faults_->Add(tokens_.at(), absl::StrCat(tokens_.Quoted(), " closes nothing"));
        tokens_.Next();
        continue;
      }
      CheckField(root_, "", &top_seen_);
    }
    return unknown_;
  }

 private:
  using Seen = std::map<const FieldDescriptor*, TextPosition>;

  // After the opening bracket, up to and with the closing one.
  void CheckSection(const Descriptor* section, const std::string& path, TextPosition opened) {
    Seen seen;
    while (!faults_->full()) {
      if (tokens_.AtEnd()) {
        faults_->Add(tokens_.at(), absl::StrCat("the file ends inside ", path, " { … } opened at ", opened.line, ":",
                                                opened.column, "; is it cut short, or is a \"}\" missing?"));
        return;
      }
      if (tokens_.IsSymbol("}>")) return tokens_.Next();
      CheckField(section, path, &seen);
    }
  }

  void CheckField(const Descriptor* section, const std::string& path, Seen* seen) {
    TextPosition at = tokens_.at();
    if (tokens_.current().type != Tokens::Tokenizer::TYPE_IDENTIFIER) {
      faults_->Add(at, absl::StrCat("expected a key ", Where(path), ", not ", tokens_.Quoted()));
      tokens_.Next();
      return tokens_.SkipLine(at.line);
    }
    std::string key = tokens_.current().text;
    const FieldDescriptor* field = section->FindFieldByName(key);
    if (field == nullptr) {
      ReportUnknown(at, key, section, path);
      tokens_.Next();
      tokens_.SkipValue(at.line);
    } else {
      tokens_.Next();
      auto [first, fresh] = seen->emplace(field, at);
      if (!fresh && !field->is_repeated()) {
        faults_->Add(at, absl::StrCat("\"", key, "\" given twice ", Where(path), "; first at ", first->second.line, ":",
                                      first->second.column, ", keep one"));
      }
      CheckFieldValue(field, path.empty() ? key : absl::StrCat(path, ".", key), at);
    }
    if (tokens_.IsSymbol(",;")) tokens_.Next();
  }

  void CheckFieldValue(const FieldDescriptor* field, const std::string& path, TextPosition at) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!tokens_.Take(':')) {
        faults_->Add(tokens_.at(),
                     absl::StrCat("expected \":\" after \"", field->name(), "\", not ", tokens_.Quoted()));
        return tokens_.SkipLine(at.line);
      }
      return CheckValue(field, &tokens_, faults_);
    }
    tokens_.Take(':');
    TextPosition opened = tokens_.at();
    if (tokens_.Take('{') || tokens_.Take('<')) return CheckSection(field->message_type(), path, opened);
    faults_->Add(opened, absl::StrCat("\"", field->name(), "\" is a section; write ", field->name(), " { … }, not ",
                                      tokens_.Quoted()));
    if (tokens_.IsSymbol("[")) return tokens_.SkipValue(at.line);
    tokens_.SkipLine(at.line);
  }

  void ReportUnknown(TextPosition at, const std::string& key, const Descriptor* section, const std::string& path) {
    unknown_ = true;
    std::string text = absl::StrCat("unknown key ", tokens_.Quoted(), " ", Where(path), "; ");
    if (auto home = HomeOf(key, root_, "")) {
      absl::StrAppend(&text, "it belongs ", Where(*home));
    } else if (auto nearest = NearestWord(key, KeysOf(section))) {
      absl::StrAppend(&text, "did you mean \"", *nearest, "\"?");
    } else {
      absl::StrAppend(&text, "valid keys are ", absl::StrJoin(KeysOf(section), ", "));
    }
    faults_->Add(at, text);
  }

  static std::string Where(const std::string& path) {
    return path.empty() ? "at the top level" : absl::StrCat("in ", path);
  }

  const Descriptor* root_;
  Tokens tokens_;
  FaultList* faults_;
  Seen top_seen_;
  bool unknown_ = false;
};

}  // namespace

bool CheckSchema(const std::string& text, const Descriptor* root, FaultList* faults) {
  return Checker(text, root, faults).Run();
}

}  // namespace ubd

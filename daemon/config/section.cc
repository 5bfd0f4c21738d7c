#include "daemon/config/section.h"

#include <google/protobuf/descriptor.h>

#include "absl/strings/str_cat.h"
#include "proto/wire/size_text.h"

namespace ubd {

TextPosition Section::PositionOf(const std::string& key, int index) const {
  const auto* field = message_.GetDescriptor()->FindFieldByName(key);
  if (tree_ == nullptr || field == nullptr) return opened_;
  if (field->is_repeated() && index < 0) index = 0;
  auto location = tree_->GetLocation(field, index);
  if (location.line < 0) return opened_;
  return {location.line + 1, location.column + 1};
}

TextPosition Section::At(const std::string& key) const { return PositionOf(key, -1); }

Section Section::Inner(const std::string& key, const google::protobuf::Message& message, int index) const {
  const auto* field = message_.GetDescriptor()->FindFieldByName(key);
  const Tree* inner = tree_ == nullptr ? nullptr : tree_->GetTreeForNested(field, index);
  return Section(message, inner, PositionOf(key, index), faults_);
}

std::optional<std::string> Section::Text(const std::string& key) const {
  const auto* field = message_.GetDescriptor()->FindFieldByName(key);
  if (!message_.GetReflection()->HasField(message_, field)) return std::nullopt;
  return message_.GetReflection()->GetString(message_, field);
}

std::optional<ub::Bytes> Section::Size(const std::string& key) const {
  auto text = Text(key);
  if (!text) return std::nullopt;
  auto size = ub::ParseSize(*text);
  if (!size.ok()) return std::nullopt;
  return *size;
}

std::optional<absl::Duration> Section::Duration(const std::string& key) const {
  auto text = Text(key);
  if (!text) return std::nullopt;
  auto duration = ub::ParseDuration(*text);
  if (!duration.ok()) return std::nullopt;
  return *duration;
}

std::optional<absl::Duration> Section::PositiveDuration(const std::string& key) const {
  auto duration = Duration(key);
  if (duration && *duration <= absl::ZeroDuration()) {
    Fault(key, absl::StrCat("\"", key, "\" must be longer than 0; leave it out for its default"));
    return std::nullopt;
  }
  return duration;
}

uint32_t Section::Number(const std::string& key, uint32_t least, uint32_t most, uint32_t fallback) const {
  const auto* field = message_.GetDescriptor()->FindFieldByName(key);
  const auto* reflection = message_.GetReflection();
  if (!reflection->HasField(message_, field)) return fallback;
  uint32_t number = reflection->GetUInt32(message_, field);
  if (number >= least && number <= most) return number;
  Fault(key, absl::StrCat("\"", key, "\" must be from ", least, " to ", most, ", not ", number,
                          "; leave it out for its default, ", fallback));
  return fallback;
}

uint32_t Section::Count(const std::string& key, uint32_t fallback) const {
  const auto* field = message_.GetDescriptor()->FindFieldByName(key);
  const auto* reflection = message_.GetReflection();
  if (!reflection->HasField(message_, field)) return fallback;
  uint32_t count = reflection->GetUInt32(message_, field);
  if (count > 0) return count;
  Fault(key, absl::StrCat("\"", key, "\" must be at least 1; leave it out for its default, ", fallback));
  return fallback;
}

}  // namespace ubd

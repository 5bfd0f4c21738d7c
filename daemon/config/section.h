// One section of a parsed config with the positions of its keys, for checks of values. Pure; refers to the message, the
// tree and the list.
#ifndef UBD_CONFIG_SECTION_H_
#define UBD_CONFIG_SECTION_H_

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "daemon/config/fault.h"
#include "proto/wire/units.h"

namespace ubd {

class Section {
 public:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;

  Section(const google::protobuf::Message& message, const Tree* tree, TextPosition opened, FaultList* faults)
      : message_(message), tree_(tree), opened_(opened), faults_(faults) {}

  // The section under `key` (which is there), the `index`th one of a repeated key.
  Section Inner(const std::string& key, const google::protobuf::Message& message, int index = -1) const;

  // Where the key stands; where it does not, the section's own position.
  TextPosition At(const std::string& key) const;
  void Fault(const std::string& key, std::string text) const { faults_->Add(At(key), std::move(text)); }

  // The value of a key marked SIZE or DURATION; none where it is absent or did not parse (then the schema check has
  // told so).
  std::optional<ub::Bytes> Size(const std::string& key) const;
  std::optional<absl::Duration> Duration(const std::string& key) const;
  // As Duration, and zero is a fault.
  std::optional<absl::Duration> PositiveDuration(const std::string& key) const;
  // A number from `least` to `most`; `fallback` where it is absent or a fault.
  uint32_t Number(const std::string& key, uint32_t least, uint32_t most, uint32_t fallback) const;
  // Where the `index`th value of a repeated key stands.
  void FaultAt(const std::string& key, int index, std::string text) const {
    faults_->Add(PositionOf(key, index), std::move(text));
  }
  // A number of at least one; `fallback` where it is absent or a fault.
  uint32_t Count(const std::string& key, uint32_t fallback) const;

 private:
  std::optional<std::string> Text(const std::string& key) const;
  TextPosition PositionOf(const std::string& key, int index) const;

  const google::protobuf::Message& message_;
  const Tree* tree_;  // may be null: no positions
  TextPosition opened_;
  FaultList* faults_;
};

}  // namespace ubd

#endif  // UBD_CONFIG_SECTION_H_

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "absl/strings/str_cat.h"
#include "daemon/config/config.h"
#include "daemon/config/read.h"
#include "daemon/config/schema_check.h"

namespace ubd {
namespace {

using google::protobuf::TextFormat;

// The schema is two sections deep; what is nested deeper is unknown keys, which the parser would recurse into.
constexpr int kMostNested = 16;

// protobuf's faults count only where the schema check, which says them better, found none.
class ParserFaults : public google::protobuf::io::ErrorCollector {
 public:
  explicit ParserFaults(FaultList* faults) : faults_(faults), listen_(faults->empty()) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (listen_) faults_->Add({line + 1, column + 1}, message);
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}

 private:
  FaultList* faults_;
  bool listen_;
};

bool ParseMessage(const std::string& text, FaultList* faults, ub::v1::Config* message,
                  TextFormat::ParseInfoTree* tree) {
  ParserFaults collector(faults);
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(tree);
  parser.AllowUnknownField(true);  // reported already; the rest can still be checked
  parser.SetRecursionLimit(kMostNested);
  return parser.ParseFromString(text, message);
}

}  // namespace

absl::StatusOr<Config> ParseConfig(const std::string& text, const std::string& name) {
  FaultList faults;
  Config config;
  config.path = name;
  bool mistyped = CheckSchema(text, ub::v1::Config::descriptor(), &faults);
  ub::v1::Config message;
  TextFormat::ParseInfoTree tree;
  if (!faults.full() && ParseMessage(text, &faults, &message, &tree)) {
    Section root(message, &tree, TextPosition{1, 1}, &faults);
    ReadPools(message, root, mistyped, &config);
    ReadQuota(message, root, mistyped, &config);
    ReadLease(message, root, &config);
    ReadSocket(message, root, &config);
    ReadSession(message, root, &config);
    ReadService(message, root, &config);
    ReadEngine(message, root, &config);
  } else if (faults.empty()) {
    faults.Add({1, 1}, "not a config in protobuf text format");
  }
  if (!faults.empty()) return faults.ToStatus(name);
  return config;
}

}  // namespace ubd

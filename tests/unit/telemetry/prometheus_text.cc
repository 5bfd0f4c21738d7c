#include "tests/unit/telemetry/prometheus_text.h"

#include <regex>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ubd {
namespace {

class Checker {
 public:
  PrometheusText Run(const std::string& text) {
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
      if (line.empty()) continue;
      static const std::regex help("# HELP ([a-z_:0-9]+) (.+)"),
          type("# TYPE ([a-z_:0-9]+) (counter|gauge|histogram|summary)");
      static const std::regex sample("([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{[^}]*\\})? ([^ ]+)");
      std::smatch match;
      if (std::regex_match(line, match, help)) {
        if (!help_.insert(match[1]).second) Problem("HELP twice: ", line);
      } else if (std::regex_match(line, match, type)) {
        Type(match[1], match[2], line);
      } else if (std::regex_match(line, match, sample)) {
        Sample(match[1], match[2], match[3], line);
      } else {
        Problem("not a line of the format: ", line);
      }
    }
    CheckHistograms();
    return result_;
  }

 private:
  void Problem(const std::string& what, const std::string& line) {
    result_.problems.push_back(absl::StrCat(what, line));
  }

  void Type(const std::string& family, const std::string& type, const std::string& line) {
    if (!result_.types.emplace(family, type).second) Problem("TYPE twice: ", line);
    if (!help_.contains(family)) Problem("no HELP before: ", line);
    if ((type == "counter") != absl::EndsWith(family, "_total")) Problem("_total and counter do not agree: ", line);
    current_ = family;
  }

  void Sample(const std::string& name, const std::string& labels, const std::string& value, const std::string& line) {
    std::string family = name;
    const std::string& type = result_.types[current_];
    if (type == "histogram" || type == "summary") {
      for (const char* suffix : {"_bucket", "_sum", "_count"}) {
        if (absl::EndsWith(name, suffix)) family = name.substr(0, name.size() - strlen(suffix));
      }
    }
    if (family != current_) Problem("a sample outside of its family: ", line);
    double number = 0;
    if (!absl::SimpleAtod(value, &number)) Problem("no number: ", line);
    if (!result_.samples.emplace(name + labels, number).second) Problem("a series twice: ", line);
    if (absl::EndsWith(name, "_bucket") && type == "histogram") Bucket(name, labels, number, line);
  }

  void Bucket(const std::string& name, const std::string& labels, double number, const std::string& line) {
    static const std::regex le(",?le=\"([^\"]*)\"");
    std::string series = name.substr(0, name.size() - 7) + std::regex_replace(labels, le, "");
    double& last = last_bucket_[series];
    if (number < last) Problem("a bucket smaller than the one before: ", line);
    last = number;
    if (absl::StrContains(labels, "le=\"+Inf\"")) infinite_[series] = number;
  }

  void CheckHistograms() {
    for (const auto& [series, last] : last_bucket_) {
      std::string base = series.substr(0, series.find('{'));
      std::string labels = series.substr(base.size());
      if (labels == "{}") labels = "";
      if (!infinite_.contains(series)) Problem("no +Inf bucket: ", series);
      auto count = result_.samples.find(absl::StrCat(base, "_count", labels));
      if (count == result_.samples.end() || count->second != infinite_[series])
        Problem("_count is not the +Inf bucket: ", series);
    }
  }

  PrometheusText result_;
  std::set<std::string> help_;
  std::string current_;
  std::map<std::string, double> last_bucket_, infinite_;
};

}  // namespace

PrometheusText ParsePrometheus(const std::string& text) { return Checker().Run(text); }

}  // namespace ubd

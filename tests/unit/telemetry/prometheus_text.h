// A checker for the Prometheus text format, as strict as promtool: HELP and TYPE before the samples of a family,
// families in one piece, no series twice, counters named _total, histograms whole. Problems come back as text.
#ifndef UBD_TESTS_TELEMETRY_PROMETHEUS_TEXT_H_
#define UBD_TESTS_TELEMETRY_PROMETHEUS_TEXT_H_

#include <map>
#include <string>
#include <vector>

namespace ubd {

struct PrometheusText {
  std::map<std::string, std::string> types;  // family → type
  std::map<std::string, double> samples;     // `name{labels}` → value
  std::vector<std::string> problems;
};

PrometheusText ParsePrometheus(const std::string& text);

}  // namespace ubd

#endif  // UBD_TESTS_TELEMETRY_PROMETHEUS_TEXT_H_

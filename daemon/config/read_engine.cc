#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/config/read.h"
#include "proto/wire/size_text.h"

namespace ubd {
namespace {

using ub::wire::PathPolicy;

constexpr uint32_t kMostThreads = 64;
constexpr uint32_t kMostCpus = 8192;  // the kernel's own limit (CONFIG_NR_CPUS)
constexpr uint32_t kMostDepth = 1024;
constexpr uint32_t kMostPerSession = 1u << 20;
constexpr size_t kLongestWord = 63;
constexpr absl::Duration kLongestSpin = absl::Milliseconds(10);
constexpr Bytes kPage = ub::KiB(4);
constexpr Bytes kLargestChunk = ub::MiB(64);
constexpr Bytes kLargestMinDirect = ub::GiB(1);

void ReadNice(const ub::v1::EngineConfig& from, const Section& at, EngineOptions* engine) {
  if (from.nice() >= -20 && from.nice() <= 19) {
    engine->nice = from.nice();
  } else {
    at.Fault("nice", absl::StrCat("nice ", from.nice(), " does not exist; it goes from -20 (first) to 19 (last)"));
  }
}

absl::Duration ReadSpin(const std::string& key, const Section& at, absl::Duration fallback) {
  absl::Duration spin = at.Duration(key).value_or(fallback);
  if (spin <= kLongestSpin) return spin;
  at.Fault(key, absl::StrCat("\"", key, "\" is longer than 10ms; longer polling takes a processor from the jobs"));
  return fallback;
}

void ReadChunk(const ub::v1::EngineConfig& from, const Section& at, EngineOptions* engine) {
  engine->chunk = at.Size("chunk").value_or(engine->chunk);
  if (engine->chunk >= kPage && engine->chunk <= kLargestChunk && (engine->chunk % kPage).count() == 0) return;
  at.Fault("chunk", absl::StrCat("chunk \"", from.chunk(), "\" is not a multiple of 4KiB from 4KiB to 64MiB"));
}

void ReadCpus(const ub::v1::EngineConfig& from, const Section& at, EngineOptions* engine) {
  std::set<uint32_t> seen;
  for (int i = 0; i < from.cpu_size(); ++i) {
    if (from.cpu(i) >= kMostCpus) {
      at.FaultAt("cpu", i, absl::StrCat("cpu ", from.cpu(i), " does not exist; see `lscpu -e`"));
    } else if (!seen.insert(from.cpu(i)).second) {
      at.FaultAt("cpu", i, absl::StrCat("cpu ", from.cpu(i), " is listed twice; keep one"));
    }
    engine->cpus.push_back(from.cpu(i));
  }
}

// Names as the kernel writes them: a space or a slash would never match anything.
void ReadWords(const google::protobuf::RepeatedPtrField<std::string>& from, const std::string& key, const Section& at,
               std::vector<std::string>* words) {
  if (from.empty()) return;
  words->clear();
  for (int i = 0; i < from.size(); ++i) {
    const std::string& word = from.Get(i);
    const bool fine =
        !word.empty() && word.size() <= kLongestWord && std::all_of(word.begin(), word.end(), [](unsigned char c) {
          return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
        });
    if (!fine) at.FaultAt(key, i, absl::StrCat("\"", word, "\" is no name of the kernel's; write one such as \"xfs\""));
    if (std::find(words->begin(), words->end(), word) != words->end())
      at.FaultAt(key, i, absl::StrCat("\"", word, "\" is listed twice; keep one"));
    words->push_back(word);
  }
}

Demand DemandOf(ub::v1::Demand demand) {
  switch (demand) {
    case ub::v1::REQUIRED:
      return Demand::kRequired;
    case ub::v1::OFF:
      return Demand::kOff;
    default:
      return Demand::kIfPossible;
  }
}

PathPolicy PolicyOf(ub::v1::PathConfig::Policy policy) {
  switch (policy) {
    case ub::v1::PathConfig::DIRECT_ONLY:
      return PathPolicy::kDirectOnly;
    case ub::v1::PathConfig::STAGED_ONLY:
      return PathPolicy::kStagedOnly;
    default:
      return PathPolicy::kPreferDirect;
  }
}

Bytes ReadMinDirect(const std::string& key, const Section& at, Bytes fallback) {
  Bytes bytes = at.Size(key).value_or(fallback);
  if (bytes <= kLargestMinDirect) return bytes;
  at.Fault(key, absl::StrCat("\"", key,
                             "\" is larger than 1GiB, the largest block; to stage everything, write policy: "
                             "STAGED_ONLY"));
  return fallback;
}

}  // namespace

void ReadEngine(const ub::v1::Config& from, const Section& root, Config* config) {
  EngineOptions* engine = &config->engine;
  if (from.has_engine()) {
    Section at = root.Inner("engine", from.engine());
    engine->threads = at.Number("threads", 1, kMostThreads, engine->threads);
    ReadCpus(from.engine(), at, engine);
    ReadNice(from.engine(), at, engine);
    engine->spin = ReadSpin("spin", at, engine->spin);
    engine->client_spin = ReadSpin("client_spin", at, engine->client_spin);
    engine->register_blocks = DemandOf(from.engine().register_blocks());
    engine->depth = at.Number("depth", 1, kMostDepth, engine->depth);
    ReadChunk(from.engine(), at, engine);
    engine->max_queues_per_session =
        at.Number("max_queues_per_session", 1, kMostPerSession, engine->max_queues_per_session);
    engine->max_files_per_session =
        at.Number("max_files_per_session", 1, kMostPerSession, engine->max_files_per_session);
    engine->max_in_flight_per_session =
        at.Number("max_in_flight_per_session", 1, kMostPerSession, engine->max_in_flight_per_session);
    ReadWords(from.engine().file_system(), "file_system", at, &engine->files.file_systems);
    ReadWords(from.engine().slow_device(), "slow_device", at, &engine->files.slow_devices);
  }
  if (!from.has_path()) return;
  Section at = root.Inner("path", from.path());
  engine->policy = PolicyOf(from.path().policy());
  engine->min_direct_storage = ReadMinDirect("min_direct_storage", at, engine->min_direct_storage);
  engine->min_direct_network = ReadMinDirect("min_direct_network", at, engine->min_direct_network);
}

}  // namespace ubd

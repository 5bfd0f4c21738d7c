// verify: do bytes arrive, and where they should? Writes patterns through queues, reads them back, looks at every byte.
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ubctl/bench/sides.h"
#include "client/ubctl/commands.h"
#include "client/ubctl/human.h"
#include "client/ubctl/monotonic.h"
#include "client/ubctl/report.pb.h"
#include "client/ubctl/seed.h"
#include "client/ubctl/verify/stream.h"
#include "proto/wire/error.h"

namespace ub::ctl {
namespace {

struct VerifyOptions {
  std::string directory;
  std::string pool;
  uint64_t rounds = 3;
  uint64_t streams = 2;
  uint64_t seed = 0;
  bool seeded = false;
};

using Streams = std::vector<std::unique_ptr<VerifyStream>>;

absl::StatusOr<Streams> OpenStreams(Client& client, const Context& context, const VerifyOptions& options) {
  Streams streams;
  for (uint64_t i = 0; i < options.streams; ++i) {
    auto stream = VerifyStream::Open(
        client, {.directory = options.directory, .pool = options.pool, .number = i, .wait = context.timeout});
    if (!stream.ok()) return stream.status();
    streams.push_back(*std::move(stream));
  }
  return streams;
}

// All streams at once, each on its own thread.
std::vector<absl::StatusOr<StreamOutcome>> RunRound(Streams& streams, uint64_t seed) {
  std::vector<absl::StatusOr<StreamOutcome>> outcomes(streams.size(), absl::InternalError("not run"));
  std::vector<std::thread> threads;
  threads.reserve(streams.size());
  for (size_t i = 0; i < streams.size(); ++i) threads.emplace_back([&, i] { outcomes[i] = streams[i]->Round(seed); });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

absl::StatusOr<VerifyRound> OneRound(Streams& streams, uint64_t seed, std::string& cached) {
  VerifyRound round;
  round.set_seed(seed);
  round.set_ok(true);
  std::vector<absl::StatusOr<StreamOutcome>> outcomes = RunRound(streams, seed);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].ok()) return outcomes[i].status();
    const StreamOutcome& outcome = *outcomes[i];
    for (const PathTally* tally : {&outcome.written, &outcome.read}) {
      round.set_direct(round.direct() + tally->transfers(Path::kDirect));
      round.set_staged(round.staged() + tally->transfers(Path::kStaged));
    }
    for (const PathShare& share : outcome.written.shares()) round.set_bytes(round.bytes() + share.bytes());
    if (cached.empty()) cached = outcome.cached_read;
    if (outcome.fault.empty() || !round.ok()) continue;
    round.set_ok(false);
    round.set_fault(absl::StrCat("stream ", i, ": ", outcome.fault));
  }
  round.set_transfers(round.direct() + round.staged());
  return round;
}

void SayWhatIsProved(const std::string& cached, VerifyReport& report) {
  uint64_t direct = 0;
  uint64_t staged = 0;
  for (const VerifyRound& round : report.rounds()) {
    direct += round.direct();
    staged += round.staged();
  }
  if (report.ok()) {
    report.add_proved(absl::StrCat("every byte of ", HumanSize(report.bytes()),
                                   " written from a block came back into another: ", report.transfers(), " transfers, ",
                                   report.streams(), " streams at once, odd lengths and offsets"));
    report.add_proved("no byte beside them changed, in the blocks or in the file (guard bytes)");
    report.add_proved("the file holds the same bytes for a plain read(2)");
    if (direct > 0)
      report.add_proved(
          absl::StrCat(direct, " transfers were demanded and attested direct, on ", report.file_system()));
    if (staged > 0) report.add_proved(absl::StrCat(staged, " transfers were staged, and said so"));
  }
  if (direct == 0)
    report.add_not_proved(
        absl::StrCat("the direct path: this file system has none (", ExplainReason(report.why_not_direct()), ")"));
  if (!cached.empty()) report.add_not_proved("that staged reads came from the device: " + cached);
  report.add_not_proved(
      "durability: writes were flushed (FSYNC), but no power was cut, and a device has caches of its own");
  report.add_not_proved("other file systems, other devices, and writers that use the same file at the same time");
}

std::string Text(const VerifyReport& report) {
  std::string text = absl::StrCat(report.directory(), " (", report.file_system(), "), ",
                                  report.direct() ? "direct" : absl::StrCat("staged: ", report.why_not_direct()),
                                  report.served_locally() ? ", served by libub in this process" : "", "\n");
  for (const VerifyRound& round : report.rounds()) {
    absl::StrAppend(&text, "seed ", round.seed(), ": ", round.transfers(), " transfers (", round.direct(), " direct, ",
                    round.staged(), " staged), ", HumanSize(round.bytes()),
                    " written and read back: ", round.ok() ? "ok" : absl::StrCat("WRONG: ", round.fault()), "\n");
  }
  text += "\nproved:\n";
  for (const std::string& line : report.proved()) absl::StrAppend(&text, "  ", line, "\n");
  if (report.proved().empty()) text += "  nothing\n";
  text += "not proved:\n";
  for (const std::string& line : report.not_proved()) absl::StrAppend(&text, "  ", line, "\n");
  return text + (report.ok() ? "OK\n" : "FAILED: run again with --rounds 1 --seed of the round above\n");
}

absl::StatusOr<VerifyReport> Verify(const Context& context, const VerifyOptions& options) {
  uint64_t start = NowNs();
  struct stat info = {};
  if (stat(options.directory.c_str(), &info) != 0) return ErrnoError(errno, options.directory);
  if (!S_ISDIR(info.st_mode))
    return absl::InvalidArgumentError(
        absl::StrCat(options.directory, " is no directory; verify makes its own file in one"));
  ConnectOptions connect = {
      .runtime_dir = context.runtime_dir, .deadline = context.timeout, .name = "ubctl-verify", .cache_limit = Bytes(0)};
  auto client = Client::Connect(connect);
  if (!client.ok()) return client.status();
  auto streams = OpenStreams(**client, context, options);
  if (!streams.ok()) return streams.status();
  VerifyReport report;
  const File& file = streams->front()->file();
  report.set_directory(options.directory);
  report.set_file_system(file.file_system());
  report.set_direct(file.direct());
  report.set_why_not_direct(PathReasonName(file.why_not()));
  report.set_served_locally(file.served_locally());
  report.set_streams(options.streams);
  report.set_ok(true);
  std::string cached;
  for (uint64_t i = 0; i < options.rounds && report.ok(); ++i) {
    uint64_t seed = !options.seeded ? RandomSeed() : i == 0 ? options.seed : Mix(options.seed + i) >> 11;
    auto round = OneRound(*streams, seed, cached);
    if (!round.ok()) return round.status();
    report.set_bytes(report.bytes() + round->bytes());
    report.set_transfers(report.transfers() + round->transfers());
    report.set_ok(round->ok());
    *report.add_rounds() = *std::move(round);
  }
  SayWhatIsProved(cached, report);
  report.set_seconds(SecondsSince(start));
  return report;
}

ExitCode Run(const Context& context, const VerifyOptions& options) {
  auto report = Verify(context, options);
  if (!report.ok()) return Fail(context, report.status());
  ExitCode printed = Print(context, *report, Text(*report));
  return report->ok() ? printed : ExitCode::kFailed;
}

}  // namespace

void AddVerifyCommand(CommandLine& line) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App& verify = line.Command("verify", "Write patterns through queues, read them back, compare every byte",
                                  [options](const Context& c) { return Run(c, *options); });
  verify.add_option("--file", options->directory, "In a file of its own in this directory; it is removed")
      ->required()
      ->type_name("DIR");
  verify.add_option("--rounds", options->rounds, "Rounds, each with a seed of its own")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N")
      ->capture_default_str();
  verify.add_option("--streams", options->streams, "Streams at once, two blocks each")
      ->check(CLI::Range(1, 64))
      ->type_name("N")
      ->capture_default_str();
  verify.add_option("--seed", options->seed, "Do the first round with this seed again (default: random)")
      ->type_name("N")
      ->each([options](const std::string&) { options->seeded = true; });
  verify.add_option("--pool", options->pool, "With blocks of this pool (default: the first one)")->type_name("NAME");
}

}  // namespace ub::ctl

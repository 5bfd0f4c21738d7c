// Is the ring itself the limit? Reads of one file by the ring alone beside fio with the same settings (io_uring, fixed
// buffers, O_DIRECT), in turn: 1 MiB in order at depth 16, 4 KiB at random at depth 64. Prints each pair, and the
// medians of the ratios of throughput and of CPU time per byte. Judges nothing: figures are the machine's.
//   file_ring_bench [--file FILE] [--pairs N] [--seconds S] [--spin US]
// The ring's thread looks for results for US microseconds (0) before it sleeps. Without FILE it makes one of 512 MiB
// under $TMPDIR (else /tmp) and removes it.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/engine/file_ring.h"
#include "proto/wire/unique_fd.h"

namespace {

using ubd::FilePiece;

struct Load {
  const char* name;
  uint32_t piece;
  uint32_t depth;
  bool random;
};
constexpr std::array<Load, 2> kLoads = {Load{"1 MiB sequential, depth 16", 1 << 20, 16, false},
                                        Load{"4 KiB random, depth 64", 4 << 10, 64, true}};

struct Figure {
  double bytes_per_s = 0;
  double cpu_s_per_gb = 0;
};

double Now() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double CpuSeconds() {
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Where the next piece lies.
class Offsets {
 public:
  Offsets(const Load& load, uint64_t file_bytes) : load_(load), pieces_(file_bytes / load.piece) {}
  uint64_t Next() {
    if (!load_.random) return next_++ % pieces_ * load_.piece;
    next_ ^= next_ << 13;
    next_ ^= next_ >> 7;
    next_ ^= next_ << 17;
    return next_ % pieces_ * load_.piece;
  }

 private:
  const Load load_;
  const uint64_t pieces_;
  uint64_t next_ = 0x9e3779b97f4a7c15U;
};

[[noreturn]] void Die(const std::string& text) {
  std::fprintf(stderr, "file_ring_bench: %s\n", text.c_str());
  std::exit(1);
}

// What to run, and how.
struct Run {
  std::string path;
  uint64_t file_bytes = 0;
  double seconds = 2;
  double spin_s = 0;
};

Figure RunRing(const Load& load, const Run& run) {
  ub::UniqueFd file(::open(run.path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!file.valid()) Die("cannot open " + run.path);
  auto ring = ubd::FileRing::Create({.depth = load.depth, .slots = 1, .registration = ubd::Demand::kRequired});
  if (!ring.ok()) Die(ring.status().ToString());
  const size_t bytes = size_t{load.piece} * load.depth;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) Die("no memory");
  if (absl::Status bad = (*ring)->Register(0, memory, ub::Bytes(bytes)); !bad.ok()) Die(bad.ToString());

  Offsets offsets(load, run.file_bytes);
  auto post = [&](uint64_t place) {
    (*ring)->Post({FilePiece::Kind::kRead, file.get(), static_cast<char*>(memory) + place * load.piece, load.piece,
                   offsets.Next(), 0, place + 1});
  };
  std::vector<ubd::FileResult> results(load.depth);
  const double cpu = CpuSeconds(), start = Now(), end = start + run.seconds;
  for (uint64_t place = 0; place < load.depth; ++place) post(place);
  uint64_t done = 0;
  double idle_since = 0;
  for (bool going = true; (*ring)->in_flight() > 0;) {
    (*ring)->Submit();
    const size_t count = (*ring)->Reap(absl::MakeSpan(results));
    if (count > 0) {
      idle_since = 0;
    } else if (run.spin_s > 0 && idle_since == 0) {
      idle_since = Now();
    } else if (run.spin_s == 0 || Now() - idle_since > run.spin_s) {
      pollfd wanted = {(*ring)->fd(), POLLIN, 0};
      ::poll(&wanted, 1, -1);
      going = going && Now() < end;
    }
    for (size_t i = 0; i < count; ++i) {
      if (results[i].result != static_cast<int32_t>(load.piece)) Die(absl::StrCat("read gave ", results[i].result));
      done += load.piece;
      if (going) post(results[i].tag - 1);
    }
  }
  const Figure figure = {static_cast<double>(done) / (Now() - start),
                         (CpuSeconds() - cpu) / (static_cast<double>(done) * 1e-9)};
  ring->reset();
  ::munmap(memory, bytes);
  return figure;
}

// The number behind the first `"key" :` after `from`.
double JsonNumber(const std::string& text, const std::string& key, size_t from = 0) {
  const std::string quoted = "\"" + key + "\" : ";
  const size_t at = text.find(quoted, from);
  if (at == std::string::npos) Die("fio's output has no " + key);
  return std::strtod(text.c_str() + at + quoted.size(), nullptr);
}

Figure RunFio(const Load& load, const Run& run) {
  const std::string command =
      absl::StrCat("exec fio --name=peer --filename='", run.path, "' --size=", run.file_bytes,
                   " --readonly --rw=", load.random ? "randread --norandommap --randrepeat=0" : "read",
                   " --bs=", load.piece, " --iodepth=", load.depth,
                   " --ioengine=io_uring --fixedbufs --direct=1 --thread --invalidate=0 --time_based --runtime=",
                   static_cast<int>(run.seconds * 1000), "ms --output-format=json");
  FILE* pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) Die("cannot run fio");
  std::string text;
  std::array<char, 65536> buffer;
  for (size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), got);
  if (::pclose(pipe) != 0) Die("fio failed: " + text.substr(0, 500));
  const size_t read = text.find("\"read\" :");
  if (read == std::string::npos) Die("fio's output has no read section");
  const double run_s = JsonNumber(text, "runtime", read) / 1000;
  const double cpu_s = (JsonNumber(text, "usr_cpu") + JsonNumber(text, "sys_cpu")) / 100 * run_s;
  return {JsonNumber(text, "bw_bytes", read), cpu_s / (JsonNumber(text, "io_bytes", read) * 1e-9)};
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Compare(const Load& load, const Run& run, int pairs) {
  std::printf("%s\n", load.name);
  std::vector<double> throughput, cpu;
  RunRing(load, run);  // warm-up
  for (int i = 0; i < pairs; ++i) {
    // Who comes first changes from pair to pair.
    std::optional<Figure> ring;
    if (i % 2 == 0) ring = RunRing(load, run);
    const Figure fio = RunFio(load, run);
    if (!ring) ring = RunRing(load, run);
    throughput.push_back(ring->bytes_per_s / fio.bytes_per_s);
    cpu.push_back(ring->cpu_s_per_gb / fio.cpu_s_per_gb);
    std::printf("  ring %8.1f MB/s %7.4f CPU s/GB   fio %8.1f MB/s %7.4f CPU s/GB   ratios %.3f %.3f\n",
                ring->bytes_per_s * 1e-6, ring->cpu_s_per_gb, fio.bytes_per_s * 1e-6, fio.cpu_s_per_gb,
                throughput.back(), cpu.back());
  }
  std::printf("  median of %d: throughput ring/fio %.3f, CPU per byte ring/fio %.3f\n", pairs, Median(throughput),
              Median(cpu));
}

// 512 MiB of bytes that no device could compress away.
void MakeFile(const std::string& path) {
  ub::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  std::vector<uint64_t> piece((1 << 20) / sizeof(uint64_t));
  uint64_t word = 88172645463325252U;
  for (int i = 0; i < 512; ++i) {
    for (uint64_t& each : piece) each = word = word * 6364136223846793005U + 1442695040888963407U;
    if (::write(file.get(), piece.data(), 1 << 20) != 1 << 20) Die("cannot write " + path);
  }
  if (::fsync(file.get()) != 0) Die("cannot write " + path);
}

}  // namespace

int main(int argc, char** argv) {
  Run run;
  int pairs = 5;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--file") == 0) run.path = argv[i + 1];
    if (std::strcmp(argv[i], "--pairs") == 0) pairs = std::max(std::atoi(argv[i + 1]), 1);
    if (std::strcmp(argv[i], "--seconds") == 0) run.seconds = std::max(std::atof(argv[i + 1]), 0.1);
    if (std::strcmp(argv[i], "--spin") == 0) run.spin_s = std::max(std::atof(argv[i + 1]), 0.0) * 1e-6;
  }
  if (std::system("fio --version > /dev/null 2>&1") != 0) {
    std::puts("skipped: fio is not installed");
    return 77;
  }
  const bool made = run.path.empty();
  if (made) {
    const char* base = std::getenv("TMPDIR");
    run.path = absl::StrCat(base == nullptr ? "/tmp" : base, "/ubd-file-ring-bench.", ::getpid());
    MakeFile(run.path);
  }
  struct stat facts = {};
  if (::stat(run.path.c_str(), &facts) != 0 || facts.st_size < 1 << 20) Die(run.path + " has no bytes to read");
  run.file_bytes = static_cast<uint64_t>(facts.st_size);
  for (const Load& load : kLoads) Compare(load, run, pairs);
  if (made) ::unlink(run.path.c_str());
  return 0;
}

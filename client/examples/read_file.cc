// Reads a file into leased memory, many transfers at a time, and says how the bytes really went.
//   read_file [RUNTIME_DIR] [FILE]
// Without FILE it reads itself.
#include <fcntl.h>

#include <cstddef>
#include <deque>
#include <iostream>
#include <map>
#include <string>

#include "ub/client.h"
#include "ub/file.h"
#include "ub/queue.h"
#include "ub/slot_pool.h"

namespace {

constexpr size_t kDepth = 16;

int Fail(const std::string& what, const absl::Status& status) {
  std::cerr << what << ": " << status.message() << "\n";
  return 1;
}

struct Result {
  uint64_t bytes = 0;
  uint64_t sum = 0;                         // of all bytes: that they were really looked at
  std::map<std::string, uint64_t> by_path;  // bytes
};

absl::Status ReadAll(ub::Queue& queue, ub::SlotPool& slots, const ub::File& file, Result& result) {
  std::deque<ub::Transfer> in_flight;
  for (uint64_t at = 0; at < file.size().count() || !in_flight.empty();) {
    if (at < file.size().count() && in_flight.size() < kDepth) {
      auto read = queue.Read(file, ub::Bytes(at), slots.Take());
      if (!read.ok()) return read.status();
      in_flight.push_back(*std::move(read));
      at += slots.slot_size();
      continue;
    }
    ub::Completion done = in_flight.front().Wait();
    if (!done.status.ok()) return done.status;
    const std::byte* data = in_flight.front().slot().data();
    for (uint64_t i = 0; i < done.bytes.count(); ++i) result.sum += static_cast<uint8_t>(data[i]);
    result.bytes += done.bytes.count();
    std::string path = std::string(ub::MemoryKindName(done.from)) + " to " + ub::MemoryKindName(done.to) + ", " +
                       ub::PathName(done.path);
    if (done.path == ub::Path::kStaged) path += std::string(" (") + ub::PathReasonName(done.reason) + ")";
    result.by_path[path] += done.bytes.count();
    in_flight.pop_front();  // its slot goes back by itself
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  auto client = ub::Client::Connect({.runtime_dir = argc > 1 ? argv[1] : "", .name = "read_file"});
  if (!client.ok()) return Fail("cannot connect", client.status());
  auto slots =
      ub::SlotPool::Create(**client, {.slot = ub::KiB(512), .bytes = ub::KiB(512) * kDepth, .wait = absl::Seconds(1)});
  if (!slots.ok()) return Fail("no memory", slots.status());
  auto queue = ub::Queue::Open(**client, {.depth = 2 * kDepth});
  if (!queue.ok()) return Fail("no queue", queue.status());
  std::string path = argc > 2 ? argv[2] : argv[0];
  auto file = ub::File::Open(**client, path, O_RDONLY);
  if (!file.ok()) return Fail("cannot open " + path, file.status());
  std::cout << path << " on " << file->file_system() << ": "
            << (file->direct() ? "direct transfers are possible" : ub::PathReasonName(file->why_not())) << "\n";
  Result result;
  if (absl::Status bad = ReadAll(**queue, **slots, *file, result); !bad.ok()) return Fail("read", bad);
  std::cout << result.bytes << " bytes, sum " << result.sum << "\n";
  for (const auto& [how, bytes] : result.by_path) std::cout << "  " << how << ": " << bytes << " bytes\n";
  return 0;
}

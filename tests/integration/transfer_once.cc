// A client process for tests that need one outside themselves: in the guest, as another uid, to be killed or stopped.
//
//   transfer_once DIR read|write FILE OFFSET LENGTH [POLICY [DEADLINE_MS]]
//     Leases LENGTH bytes, submits one transfer, says "submitted", and then a line for each of its completions:
//     error=REASON code=N bytes=N path=P reason=R more=0|1 errno=N
//   transfer_once DIR tenant LENGTH
//     Leases LENGTH bytes (waits a minute for them); says "clean", or "dirty OFFSET" where it finds somebody's bytes;
//     fills them with a pattern and says "filled"; once its input ends says "intact", or "changed OFFSET".
#include <fcntl.h>

#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "ub/queue.h"

namespace {

constexpr std::byte kPattern{0x5a};

uint64_t Number(const std::string& text) {
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) {
    std::cerr << "not a number: " << text << std::endl;
    std::exit(2);
  }
  return value;
}

template <class T>
T Must(absl::StatusOr<T> result, const char* what) {
  if (result.ok()) return *std::move(result);
  std::cerr << what << ": " << result.status() << std::endl;
  std::exit(1);
}

ub::Lease Take(ub::Client& client, uint64_t bytes) {
  return Must(client.Acquire({.bytes = ub::Bytes(bytes), .wait = absl::Seconds(60), .cacheable = false}), "Acquire");
}

// The first byte that differs; `size` when none does.
size_t FirstOther(const std::byte* data, size_t size, std::byte wanted) {
  for (size_t i = 0; i < size; ++i) {
    if (data[i] != wanted) return i;
  }
  return size;
}

int RunTenant(ub::Client& client, uint64_t length) {
  ub::Lease lease = Take(client, length);
  size_t dirty = FirstOther(lease.data(), lease.size(), std::byte{0});
  if (dirty < lease.size()) {
    std::cout << "dirty " << dirty << std::endl;
    return 1;
  }
  std::cout << "clean" << std::endl;
  std::memset(lease.data(), static_cast<int>(kPattern), lease.size());
  std::cout << "filled" << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  size_t changed = FirstOther(lease.data(), lease.size(), kPattern);
  if (changed < lease.size()) {
    std::cout << "changed " << changed << std::endl;
    return 1;
  }
  std::cout << "intact" << std::endl;
  return 0;
}

void Print(const ub::Completion& done) {
  auto number = ub::DetailOf(done.status, "errno");
  std::cout << "error=" << ub::ReasonName(ub::ReasonOf(done.status)) << " code=" << static_cast<int>(done.status.code())
            << " bytes=" << done.bytes << " path=" << ub::PathName(done.path)
            << " reason=" << ub::PathReasonName(done.reason) << " more=" << (done.more ? 1 : 0)
            << " errno=" << number.value_or("0") << std::endl;
}

int RunTransfer(ub::Client& client, const std::vector<std::string>& words) {
  const bool write = words[0] == "write";
  const uint64_t offset = Number(words[2]);
  const uint64_t length = Number(words[3]);
  ub::TransferOptions options;
  if (words.size() > 4) options.path = ub::wire::PathPolicyFromName(words[4]).value_or(ub::PathPolicy::kDefault);
  if (words.size() > 5) options.deadline = absl::Milliseconds(Number(words[5]));
  ub::Lease lease = Take(client, length);
  if (write) std::memset(lease.data(), static_cast<int>(kPattern), lease.size());
  auto queue = Must(ub::Queue::Open(client, {.depth = 8}), "Queue::Open");
  auto file = Must(ub::File::Open(client, words[1], write ? O_RDWR : O_RDONLY), "File::Open");
  ub::Op op = write ? ub::WriteOp(1, lease, ub::Bytes(0), ub::Bytes(length), file, ub::Bytes(offset), options)
                    : ub::ReadOp(1, file, ub::Bytes(offset), lease, ub::Bytes(0), ub::Bytes(length), options);
  if (absl::Status status = queue->Submit({&op, 1}); !status.ok()) {
    std::cerr << "Submit: " << status << std::endl;
    return 1;
  }
  std::cout << "submitted" << std::endl;
  while (true) {
    ub::Completion done;
    Must(queue->Wait({&done, 1}, 1, absl::InfiniteDuration()), "Wait");
    Print(done);
    if (!done.more) return 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool tenant = words.size() == 3 && words[1] == "tenant";
  const bool transfer = words.size() >= 5 && (words[1] == "read" || words[1] == "write");
  if (!tenant && !transfer) {
    std::cerr << "see the head of transfer_once.cc" << std::endl;
    return 2;
  }
  auto client = Must(ub::Client::Connect({.runtime_dir = words[0], .deadline = absl::Seconds(30)}), "Connect");
  if (tenant) return RunTenant(*client, Number(words[2]));
  return RunTransfer(*client, {words.begin() + 1, words.end()});
}

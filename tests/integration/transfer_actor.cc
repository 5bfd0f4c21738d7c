// A process that keeps transfers in flight until it is killed. Run by tests as another user.
//   transfer_actor RUNTIME_DIR FILE read|write BYTES
// Says "ok" once transfers have begun to complete; then goes on for ever.
#include <fcntl.h>

#include <array>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "ub/client.h"
#include "ub/queue.h"

namespace {

int Fail(const absl::Status& status) {
  std::cout << ub::ReasonName(ub::ReasonOf(status)) << " " << status.message() << std::endl;
  return 1;
}

int Run(ub::Client& client, const std::string& path, bool reads, uint64_t bytes) {
  auto lease = client.Acquire({.bytes = ub::Bytes(bytes), .wait = absl::Seconds(20)});
  if (!lease.ok()) return Fail(lease.status());
  std::memset(lease->data(), 0x77, lease->size());
  auto file = ub::File::Open(client, path, reads ? O_RDONLY : O_RDWR);
  if (!file.ok()) return Fail(file.status());
  auto queue = ub::Queue::Open(client, {});
  if (!queue.ok()) return Fail(queue.status());
  ub::Op op = reads ? ub::ReadOp(1, *file, ub::Bytes(0), *lease, ub::Bytes(0), ub::Bytes(bytes))
                    : ub::WriteOp(1, *lease, ub::Bytes(0), ub::Bytes(bytes), *file, ub::Bytes(0));
  std::vector<ub::Op> ops(16, op);
  if (absl::Status bad = (*queue)->Submit(ops); !bad.ok()) return Fail(bad);
  for (bool told = false;; told = true) {
    std::array<ub::Completion, 16> done;
    auto count = (*queue)->Wait(absl::MakeSpan(done), 1, absl::Seconds(30));
    if (!count.ok()) return Fail(count.status());
    if (!done[0].status.ok()) return Fail(done[0].status);
    if (!told) std::cout << "ok" << std::endl;
    ops.resize(*count, op);
    if (absl::Status bad = (*queue)->Submit(ops); !bad.ok()) return Fail(bad);
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t bytes = 0;
  if (argc != 5 || !absl::SimpleAtoi(argv[4], &bytes)) return 2;
  auto client = ub::Client::Connect({.runtime_dir = argv[1], .name = "transfer_actor"});
  if (!client.ok()) return Fail(client.status());
  return Run(**client, argv[2], std::string_view(argv[3]) == "read", bytes);
}

// A real daemon, a client with a queue, and real files: on the disk of this machine (ext4: direct and staged by the
// daemon) and on tmpfs (which the daemon leaves to libub).
#ifndef UBD_TESTS_INTEGRATION_TRANSFER_FIXTURE_H_
#define UBD_TESTS_INTEGRATION_TRANSFER_FIXTURE_H_

#include <fcntl.h>

#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/integration/client_lease_fixture.h"
#include "tests/integration/harness/temp_dir.h"
#include "ub/queue.h"

namespace ubd::testing {

using ub::Bytes;
using ub::Completion;
using ub::KiB;
using ub::Op;
using ub::Path;
using ub::PathPolicy;
using ub::PathReason;

class TransferTest : public ClientLeaseTest {
 protected:
  void SetUp() override { StartWith(""); }
  void StartWith(const std::string& more) {
    queue_.reset();
    client_.reset();
    Start(kBlocks, more);
    if (IsSkipped() || HasFatalFailure()) return;
    client_ = Connect();
    ASSERT_NE(client_, nullptr);
    queue_ = OpenQueue();
  }
  std::unique_ptr<ub::Queue> OpenQueue(const ub::QueueOptions& options = {}) {
    auto queue = ub::Queue::Open(*client_, options);
    EXPECT_TRUE(queue.ok()) << queue.status();
    return queue.ok() ? *std::move(queue) : nullptr;
  }
  ub::Lease Get(uint64_t bytes = kBlock) {
    auto lease = client_->Acquire({.bytes = Bytes(bytes), .wait = absl::Seconds(20)});
    EXPECT_TRUE(lease.ok()) << lease.status();
    return lease.ok() ? *std::move(lease) : ub::Lease();
  }
  ub::File Open(const std::string& path, int flags = O_RDWR) {
    auto file = ub::File::Open(*client_, path, flags);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : ub::File();
  }
  // One transfer, to its end.
  Completion Do(const Op& op) {
    absl::Status submitted = queue_->Submit({&op, 1});
    EXPECT_TRUE(submitted.ok()) << submitted;
    std::vector<Completion> done = Await(submitted.ok() ? 1 : 0);
    return done.empty() ? Completion() : done[0];
  }
  // The next `count` completions.
  std::vector<Completion> Await(size_t count) {
    std::vector<Completion> done(count);
    auto got = queue_->Wait(absl::MakeSpan(done), count, kBound);
    EXPECT_TRUE(got.ok()) << got.status();
    done.resize(got.ok() ? *got : 0);
    EXPECT_EQ(done.size(), count);
    return done;
  }
  // Bytes that tell where they belong.
  static std::string Pattern(size_t size, uint32_t seed) {
    std::mt19937 random(seed);
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  }
  static std::string Text(const ub::Lease& lease, size_t offset, size_t length) {
    return std::string(reinterpret_cast<const char*>(lease.data()) + offset, length);
  }
  static void Put(const ub::Lease& lease, const std::string& text) {
    std::memcpy(lease.data(), text.data(), text.size());
  }

  TempDir disk_;  // ext4 where the tests run
  std::unique_ptr<ub::Client> client_;
  std::unique_ptr<ub::Queue> queue_;
};

// A directory on tmpfs.
class ShmDir {
 public:
  ShmDir() {
    char name[] = "/dev/shm/ub-test.XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~ShmDir() {
    for (const std::string& file : files_) ::unlink(file.c_str());
    ::rmdir(path_.c_str());
  }
  ShmDir(const ShmDir&) = delete;
  ShmDir& operator=(const ShmDir&) = delete;
  std::string Write(const std::string& name, const std::string& text) {
    files_.push_back(path_ + "/" + name);
    std::ofstream(files_.back(), std::ios::binary) << text;
    return files_.back();
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_INTEGRATION_TRANSFER_FIXTURE_H_

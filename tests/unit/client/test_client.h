// A Client without a daemon: leases of made memory, and queues whose other end is the daemon's own ring, worked by the
// test.
#ifndef UB_TESTS_CLIENT_TEST_CLIENT_H_
#define UB_TESTS_CLIENT_TEST_CLIENT_H_

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "client/src/queue_impl.h"
#include "client/src/transfer_host.h"
#include "daemon/engine/queue_ring.h"
#include "proto/wire/mutex.h"
#include "tests/unit/client/test_memory.h"
#include "ub/client.h"

namespace ub {

// The daemon's end of one queue. One thread at a time.
class RingDaemon {
 public:
  RingDaemon(wire::QueueLayout layout, uint32_t id)
      : memory_(MakeMemfd(layout.bytes())), event_(::eventfd(0, EFD_CLOEXEC)) {
    data_ = ::mmap(nullptr, layout.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    bytes_ = layout.bytes();
    ring_ = std::make_unique<ubd::QueueRing>(data_, layout, id);
  }
  ~RingDaemon() { ::munmap(data_, bytes_); }
  RingDaemon(const RingDaemon&) = delete;
  RingDaemon& operator=(const RingDaemon&) = delete;

  ubd::QueueRing& ring() { return *ring_; }
  void* data() { return data_; }
  wire::QueueHeader& header() { return *static_cast<wire::QueueHeader*>(data_); }
  wire::QueueIndices& indices() {
    return *reinterpret_cast<wire::QueueIndices*>(static_cast<std::byte*>(data_) + wire::kQueueIndicesOffset);
  }
  int event() const { return event_.get(); }
  UniqueFd DupMemory() const { return UniqueFd(::fcntl(memory_.get(), F_DUPFD_CLOEXEC, 0)); }
  UniqueFd DupEvent() const { return UniqueFd(::fcntl(event_.get(), F_DUPFD_CLOEXEC, 0)); }

  // The next entry; a failure of the test where there is none.
  wire::SubmitEntry Take() {
    wire::SubmitEntry entry = {};
    EXPECT_TRUE(ring_->Take(entry));
    return entry;
  }
  wire::CompletionEntry Done(const wire::SubmitEntry& entry, wire::TransferError error = wire::TransferError::kOk) {
    bool ok = error == wire::TransferError::kOk;
    return {.user_data = entry.user_data, .bytes = ok ? entry.length : 0, .error = static_cast<uint8_t>(error)};
  }
  void Answer(const wire::CompletionEntry& completion) {
    ring_->Complete(completion);
    ring_->Publish();
  }
  // Takes the next entry and answers it.
  void Serve(wire::TransferError error = wire::TransferError::kOk) { Answer(Done(Take(), error)); }

 private:
  UniqueFd memory_;
  UniqueFd event_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  std::unique_ptr<ubd::QueueRing> ring_;
};

class TestTransferHost : public TransferHost {
 public:
  explicit TestTransferHost(const LeaseHost* leases) : leases_(leases) {}

  absl::StatusOr<QueueParts> OpenQueue(const QueueOptions& options, Deadline) override {
    QueueParts parts;
    parts.shape = {.id = static_cast<uint32_t>(daemons.size() + 1),
                   .layout = {.sq_entries = options.depth, .cq_entries = options.depth * 2},
                   .spin_ns = spin_ns};
    parts.batch_bytes = batch_bytes;
    auto& daemon = daemons.emplace_back(std::make_unique<RingDaemon>(parts.shape.layout, parts.shape.id));
    // Both ends at one address: ThreadSanitizer sees no other kind of sharing.
    parts.ring = std::make_unique<QueueRingClient>(daemon->data(), daemon->DupEvent(), parts.shape);
    return parts;
  }
  void CloseQueue(std::unique_ptr<QueueImpl> queue) override {
    queue->Advance();
    if (!queue->idle()) orphans.push_back(std::move(queue));
    ++closed;
  }
  absl::StatusOr<FileFacts> OpenFile(int, Deadline) override { return facts; }
  void CloseFile(uint32_t handle) override { closed_files.push_back(handle); }
  void AddRing(QueueRingClient* ring) override {
    MutexLock lock(&mu_);
    rings_.push_back(ring);
  }
  void RemoveRing(QueueRingClient* ring) override {
    MutexLock lock(&mu_);
    std::erase(rings_, ring);
  }
  const LeaseHost* lease_host() const override { return leases_; }
  // The session ends.
  void EndAll() {
    MutexLock lock(&mu_);
    for (QueueRingClient* ring : rings_) ring->End();
  }

  FileFacts facts = {.handle = 7, .readable = true, .writable = true, .direct = true};
  Bytes batch_bytes = KiB(256);
  uint64_t spin_ns = 20000;
  std::vector<std::unique_ptr<RingDaemon>> daemons;
  std::vector<uint32_t> closed_files;
  int closed = 0;

 private:
  const LeaseHost* const leases_;
  Mutex mu_;
  std::vector<QueueRingClient*> rings_ ABSL_GUARDED_BY(mu_);

 public:
  std::vector<std::unique_ptr<QueueImpl>> orphans;  // goes first
};

class TestClient : public Client {
 public:
  static constexpr Bytes kBlock = MiB(2);

  absl::StatusOr<Lease> Acquire(const AcquireOptions& options) override {
    uint64_t blocks = PiecesFor(options.bytes, kBlock);
    uint64_t id = next_lease_++;
    LeaseInfo info = {
        .id = LeaseId(id), .generation = Generation(id), .pool = "p", .block_bytes = kBlock, .page_bytes = KiB(4)};
    info.access = access;
    absl::StatusOr<Mapping> mapping = Mapping::Reserve(kBlock, blocks, KiB(4), access);
    for (uint64_t i = 0; i < blocks; ++i) {
      // As a pool hands them out: not in order, not next to each other.
      info.ub_addr.emplace_back(UbAddr::kBase + (blocks - i) * 7 * kBlock.count());
      UniqueFd fd = MakeMemfd(kBlock.count());
      if (absl::Status bad = mapping->MapBlock(static_cast<uint32_t>(i), fd.get()); !bad.ok()) return bad;
    }
    memory[id] = mapping->data();
    if (cacheable) {
      page.Busy(static_cast<uint32_t>(id), id);
      info.word = &page.page().words[id];
    }
    return Lease(std::make_unique<LeaseImpl>(&host, &registry, std::move(info), *std::move(mapping)));
  }
  absl::StatusOr<Lease> Attach(const Ticket&, absl::Duration) override { return absl::UnimplementedError(""); }
  absl::StatusOr<Lease> Register(int, const RegisterOptions&) override { return absl::UnimplementedError(""); }
  absl::Status Ping(absl::Duration) override { return absl::OkStatus(); }
  absl::Status DropCache() override { return absl::OkStatus(); }
  void OnEvent(EventCallback) override {}
  SessionId session() const override { return SessionId(1); }
  ClientStats stats() const override { return {}; }

  TestHost host;
  TestPage page;
  LeaseRegistry registry;
  TestTransferHost transfers{&host};
  Access access = Access::kReadWrite;
  bool cacheable = false;
  std::map<uint64_t, std::byte*> memory;  // of each lease, as a device would find it

 private:
  absl::StatusOr<TransferHost*> Transfers() override { return &transfers; }
  uint64_t next_lease_ = 1;
};

}  // namespace ub

#endif  // UB_TESTS_CLIENT_TEST_CLIENT_H_

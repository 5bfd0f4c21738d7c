#include "client/ubctl/bench/leases.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/ubctl/bench/allocate.h"
#include "client/ubctl/bench/samples.h"

namespace ub::ctl {
namespace {

constexpr char kWarm[] = "lease_warm";
constexpr uint64_t kPerRound = 8;  // leases and calls for each slow allocation

void TouchFirst(const Lease& lease) { const_cast<volatile std::byte&>(lease.data()[0]) = std::byte{1}; }

absl::Status WarmSample(Client& client, const AcquireOptions& options) {
  for (uint64_t i = 0; i < kShortOps; ++i) {
    auto lease = client.Acquire(options);
    if (!lease.ok()) return lease.status();
    TouchFirst(*lease);
    if (absl::Status status = lease->Release(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// The slow allocations of one page size. What the machine does not allow is told once and not tried again.
class AllocateFigure {
 public:
  AllocateFigure(std::string_view name, AllocatePages pages) : name_(name), pages_(pages) {}
  void Sample(Allocator& allocator) {
    if (!refused_.ok()) return;
    auto taken = allocator.Time(kLeaseBytes, pages_);
    if (taken.ok()) {
      samples_.Add(*taken);
    } else {
      refused_ = taken.status();
    }
  }
  Figure Result() const {
    if (!refused_.ok()) return NoFigure(name_, refused_);
    return TimeFigure(name_, samples_,
                      "64 MiB: memfd made, populated, pinned by io_uring registration; taking down not timed");
  }
  void Refuse(const absl::Status& why) { refused_ = why; }

 private:
  std::string_view name_;
  AllocatePages pages_;
  Samples samples_;
  absl::Status refused_;
};

absl::Status ColdSample(Client& client, const AcquireOptions& options, Samples& samples) {
  uint64_t before = NowNs();
  auto lease = client.Acquire(options);
  uint64_t taken = NowNs() - before;
  if (!lease.ok()) return lease.status();
  samples.Add(taken);
  TouchFirst(*lease);
  return lease->Release();
}

absl::Status PingSample(Client& client, Samples& samples) {
  uint64_t before = NowNs();
  absl::Status status = client.Ping();
  samples.Add(NowNs() - before);
  return status;
}

}  // namespace

Figure LeaseWarm(const BenchSetting& setting) {
  auto client = ConnectFor(setting, kLeaseBytes * 4);
  if (!client.ok()) return NoFigure(kWarm, client.status());
  AcquireOptions options = Take(setting);
  if (absl::Status status = WarmSample(**client, options); !status.ok()) return NoFigure(kWarm, status);
  uint64_t hits_before = (*client)->stats().cache_hits;
  uint64_t faults_before = PageFaults();
  Samples samples;
  uint64_t faults = 0;
  for (uint64_t i = 0; i < setting.samples; ++i) {
    uint64_t before = NowNs();
    if (absl::Status status = WarmSample(**client, options); !status.ok()) return NoFigure(kWarm, status);
    uint64_t taken = NowNs() - before;
    faults += PageFaults() - faults_before;
    samples.Add(taken / kShortOps);
    faults_before = PageFaults();  // the sample's own bookkeeping may fault
  }
  uint64_t hits = (*client)->stats().cache_hits - hits_before;
  Figure figure = TimeFigure(kWarm, samples,
                             absl::StrCat("64 MiB taken, first byte written, given back: ", kShortOps, " a sample; ",
                                          hits, " of ", setting.samples * kShortOps, " from the cache"));
  figure.set_page_faults(faults);
  return figure;
}

absl::StatusOr<ColdFigures> LeaseColdRounds(const BenchSetting& setting) {
  auto client = ConnectFor(setting, Bytes(0));
  if (!client.ok()) return client.status();
  AcquireOptions options = Take(setting);
  options.cacheable = false;
  AllocateFigure allocate_4k("allocate_populate_pin_4k", AllocatePages::k4KiB);
  AllocateFigure allocate_2m("allocate_populate_pin_2m", AllocatePages::k2MiB);
  auto allocator = Allocator::Create();
  if (!allocator.ok()) {
    allocate_4k.Refuse(allocator.status());
    allocate_2m.Refuse(allocator.status());
  }
  Samples warm_up;
  Samples cold;
  Samples null;
  ColdFigures figures;
  if (absl::Status status = ColdSample(**client, options, warm_up); !status.ok()) return status;
  for (figures.rounds = 0; cold.count() < setting.samples; ++figures.rounds) {
    for (uint64_t i = 0; i < kPerRound; ++i) {
      if (absl::Status status = ColdSample(**client, options, cold); !status.ok()) return status;
      if (absl::Status status = PingSample(**client, null); !status.ok()) return status;
    }
    if (!allocator.ok()) continue;
    allocate_4k.Sample(**allocator);
    allocate_2m.Sample(**allocator);
  }
  figures.lease_cold = TimeFigure("lease_cold", cold,
                                  "64 MiB from the daemon, cache off: asked, granted, mapped; giving back not timed");
  figures.rpc_null = TimeFigure("rpc_null", null, "Ping, one in flight");
  figures.allocate_4k = allocate_4k.Result();
  figures.allocate_2m = allocate_2m.Result();
  return figures;
}

}  // namespace ub::ctl

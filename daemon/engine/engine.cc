// Making the engine, starting and stopping it.
#include "daemon/engine/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/engine/engine_impl.h"
#include "daemon/telemetry/log.h"

namespace ubd {

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const EngineOptions& options, Memory& memory) {
  absl::Status cpus = CheckCpus(options.cpus);
  if (!cpus.ok()) return cpus;
  auto engine = std::make_unique<EngineImpl>(options, memory);
  absl::Status made = engine->MakeLanes();
  if (!made.ok()) return made;
  return engine;
}

// One for each lane and, last, one for slow devices.
absl::Status EngineImpl::MakeRings(std::vector<std::unique_ptr<FileRing>>& rings) {
  const EngineOptions& options = shared_->options;
  const FileRingOptions ring_options = {
      .depth = options.depth, .slots = shared_->memory.Slots(), .registration = options.register_blocks};
  for (uint32_t i = 0; i <= std::max(1U, options.threads); ++i) {
    absl::StatusOr<std::unique_ptr<FileRing>> ring = FileRing::Create(ring_options);
    if (absl::IsUnavailable(ring.status())) {
      rings.clear();
      no_engine_ = std::string(ring.status().message());
      LogWarn("no io_uring: files are read and written by their clients", {{"why", no_engine_}});
      return absl::OkStatus();
    }
    if (!ring.ok()) return ring.status();
    rings.push_back(*std::move(ring));
  }
  return absl::OkStatus();
}

absl::Status EngineImpl::MakeLanes() {
  std::vector<std::unique_ptr<FileRing>> rings;
  absl::Status made = MakeRings(rings);
  if (!made.ok()) return made;
  if (!rings.empty()) {
    absl::StatusOr<std::shared_ptr<SlowLane>> slow = SlowLane::Create(std::move(rings.back()));
    if (!slow.ok()) return slow.status();
    rings.pop_back();
    slow_ = *std::move(slow);
  }
  for (uint32_t i = 0; i < std::max(1U, shared_->options.threads); ++i) {
    std::unique_ptr<FileRing> ring = i < rings.size() ? std::move(rings[i]) : nullptr;
    absl::StatusOr<std::shared_ptr<Lane>> lane = Lane::Create(*shared_, std::move(ring), slow_.get(), copy_.get());
    if (!lane.ok()) return lane.status();
    lanes_.push_back(*std::move(lane));
  }
  shared_->session_has_room = [this] {
    for (const auto& lane : lanes_) lane->LookAtHeldBack();
  };
  shared_->queue_gone = [this](const ServedQueue& queue) { QueueGone(queue); };
  return RegisterRings();
}

absl::Status EngineImpl::RegisterRings() {
  if (slow_ == nullptr) return absl::OkStatus();
  for (const auto& lane : lanes_) watched_.push_back(std::make_unique<WatchedRing>(*lane->ring()));
  watched_.push_back(std::make_unique<WatchedRing>(slow_->ring()));
  for (const auto& ring : watched_) {
    absl::Status registered = shared_->memory.RegisterWith(ring.get());
    if (!registered.ok()) {
      shared_->memory.Stop();  // it must not ask rings that are about to go
      return registered;
    }
  }
  return absl::OkStatus();
}

ThreadPlan EngineImpl::PlanFor(const std::string& name) const {
  return {.name = name, .cpu = std::nullopt, .nice = shared_->options.nice};
}

void EngineImpl::Start(Broker& broker) {
  shared_->broker = &broker;
  const std::vector<uint32_t>& cpus = shared_->options.cpus;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    ThreadPlan plan = PlanFor(absl::StrCat("ubd-lane-", i));
    if (!cpus.empty()) plan.cpu = cpus[i % cpus.size()];
    lanes_[i]->Start(plan);
  }
  copy_->Start(PlanFor("ubd-copy"));
  if (slow_ != nullptr) slow_->Start(PlanFor("ubd-slow"));
  started_ = true;
}

uint64_t EngineImpl::Stop(absl::Duration grace) {
  shared_->stopping.store(true);
  if (!started_) return 0;
  const absl::Duration bounded = std::clamp(grace, absl::ZeroDuration(), absl::Hours(24));
  const uint64_t until = MonoNs() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(bounded));
  for (const auto& lane : lanes_) lane->BeginStop();
  uint64_t left = 0;
  for (const auto& lane : lanes_) {
    if (lane->WaitIdle(until)) {
      lane->Quit();
    } else {
      left += std::max<uint64_t>(1, lane->in_flight());
    }
  }
  return left;
}

// What a stuck thread may still touch is left behind; so is what it pins. The process is about to end.
EngineImpl::~EngineImpl() {
  if (!started_) return;
  shared_->stopping.store(true);
  for (const auto& lane : lanes_) lane->Quit();
  constexpr absl::Duration kFarewell = absl::Seconds(2);
  const uint64_t until = MonoNs() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(kFarewell));
  bool stuck = false;
  for (const auto& lane : lanes_) stuck |= !lane->WaitEnd(until);
  if (slow_ != nullptr) stuck |= !slow_->Quit(kFarewell);
  if (!stuck) {
    copy_.reset();
    return;
  }
  for (const auto& lane : lanes_) lane->LeaveBehind();
  LogError("an engine thread is stuck in the kernel: left behind");
  static_cast<void>(copy_.release());
  shared_->session_has_room = [] {};
  shared_->queue_gone = [](const ServedQueue&) {};
  static_cast<void>(shared_.release());
}

}  // namespace ubd

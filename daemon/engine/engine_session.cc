#include "daemon/engine/engine_session.h"

#include <string>
#include <utility>

#include "proto/wire/error.h"

namespace ubd {

bool EngineSession::Enter(uint32_t most) {
  uint32_t count = in_flight_.load();
  while (true) {
    while (count < most) {
      if (in_flight_.compare_exchange_weak(count, count + 1)) return true;
    }
    // Announce, then look again: either this sees the place that was left, or who left it sees the announcement.
    refused_.store(true);
    count = in_flight_.load();
    if (count >= most) return false;
  }
}

bool EngineSession::Leave() {
  in_flight_.fetch_sub(1);
  return refused_.load() && refused_.exchange(false);
}

absl::Status EngineSession::MayAdd(uint32_t most) const {
  if (closed_) {
    return ub::MakeError(absl::StatusCode::kUnavailable, ub::Reason::kSessionEnded,
                         "the session has ended; connect anew");
  }
  if (files_.size() < most) return absl::OkStatus();
  return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kTooManyFiles,
                       "the session has as many files as it may; close some of them",
                       {{"limit", std::to_string(most)}});
}

absl::Status EngineSession::MayAddFile(uint32_t most) const {
  ub::MutexLock lock(&mu_);
  return MayAdd(most);
}

absl::StatusOr<uint32_t> EngineSession::AddFile(std::shared_ptr<FileTarget> file, uint32_t most) {
  ub::MutexLock lock(&mu_);
  absl::Status may = MayAdd(most);
  if (!may.ok()) return may;
  while (next_handle_ == 0 || files_.contains(next_handle_)) ++next_handle_;
  const uint32_t handle = next_handle_++;
  files_[handle] = std::move(file);
  return handle;
}

std::shared_ptr<FileTarget> EngineSession::FindFile(uint32_t handle) const {
  ub::MutexLock lock(&mu_);
  auto found = files_.find(handle);
  return found == files_.end() ? nullptr : found->second;
}

bool EngineSession::RemoveFile(uint32_t handle) {
  std::shared_ptr<FileTarget> last;  // closed after the lock is let go
  ub::MutexLock lock(&mu_);
  auto found = files_.find(handle);
  if (found == files_.end()) return false;
  last = std::move(found->second);
  files_.erase(found);
  return true;
}

void EngineSession::CloseFiles() {
  absl::flat_hash_map<uint32_t, std::shared_ptr<FileTarget>> last;
  ub::MutexLock lock(&mu_);
  closed_ = true;
  last.swap(files_);
}

}  // namespace ubd

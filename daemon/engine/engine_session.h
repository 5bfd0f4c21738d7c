// What the engine knows of a session: who it is, its files, and how much it has in flight over all its queues.
// Thread-safe.
#ifndef UBD_ENGINE_ENGINE_SESSION_H_
#define UBD_ENGINE_ENGINE_SESSION_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "daemon/core/block.h"
#include "daemon/engine/file_target.h"
#include "proto/wire/mutex.h"

namespace ubd {

class EngineSession {
 public:
  EngineSession(SessionId session, Uid owner, int32_t process) : id(session), uid(owner), pid(process) {}

  const SessionId id;
  const Uid uid;
  const int32_t pid;

  // A place for one transfer. False: `most` are in flight already; then a later Leave says that there is room.
  bool Enter(uint32_t most);
  // True: somebody was refused since the last true. Look at all queues of this session that are held back.
  bool Leave();

  // RESOURCE_EXHAUSTED/TOO_MANY_FILES; UNAVAILABLE/SESSION_ENDED after CloseFiles.
  absl::Status MayAddFile(uint32_t most) const;
  absl::StatusOr<uint32_t> AddFile(std::shared_ptr<FileTarget> file, uint32_t most);
  std::shared_ptr<FileTarget> FindFile(uint32_t handle) const;  // null: none
  bool RemoveFile(uint32_t handle);
  void CloseFiles();

 private:
  absl::Status MayAdd(uint32_t most) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::atomic<uint32_t> in_flight_ = 0;
  std::atomic<bool> refused_ = false;
  mutable ub::Mutex mu_;
  absl::flat_hash_map<uint32_t, std::shared_ptr<FileTarget>> files_ ABSL_GUARDED_BY(mu_);
  uint32_t next_handle_ ABSL_GUARDED_BY(mu_) = 1;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace ubd

#endif  // UBD_ENGINE_ENGINE_SESSION_H_

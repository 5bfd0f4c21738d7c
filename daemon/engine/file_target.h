// A client's file as a target of transfers. The client opened it with its own rights and handed the descriptor over;
// the daemon looks only at file systems on its allow-list, for a FUSE server that never answers would hang whoever asks
// it anything. Immutable once made; closed when the session has closed it and the last transfer on it is done.
#ifndef UBD_ENGINE_FILE_TARGET_H_
#define UBD_ENGINE_FILE_TARGET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/wire/queue_layout.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

// What may be a target, and which devices may hang for long.
struct FileRules {
  std::vector<std::string> file_systems = {"ext4", "xfs", "btrfs", "f2fs"};
  // Prefixes of block device names.
  std::vector<std::string> slow_devices = {"dm-", "nbd", "rbd", "drbd", "loop", "sr", "ublk"};
};

struct FileFacts {
  bool trusted = false;  // else nothing below but file_system is known
  std::string file_system;
  bool readable = false;
  bool writable = false;
  bool block_device = false;
  bool slow = false;  // goes by the ring for slow devices
  bool direct = false;
  ub::wire::PathReason why_not = ub::wire::PathReason::kNone;  // where not trusted or not direct
  uint32_t memory_align = 1;
  uint32_t offset_align = 1;
  bool own_description = false;
  uint64_t bytes = 0;  // when it was opened
};

class FileTarget {
 public:
  virtual ~FileTarget() = default;
  // Never touches the file before its mount is known to be trusted (fdinfo's mnt_id against mountinfo, the daemon's or,
  // for a mount of another namespace, process `pid`'s). INVALID_ARGUMENT/BAD_FILE for what is neither a regular file
  // nor a block device, was opened O_PATH, or has O_APPEND and cannot be reopened. An untrusted file is no error: facts
  // say so, and there is nothing to transfer with. `root` stands before the paths of /proc and /sys that are read.
  static absl::StatusOr<std::shared_ptr<FileTarget>> Open(ub::UniqueFd theirs, int32_t pid, const FileRules& rules,
                                                          const std::string& root = "");

  const FileFacts& facts() const { return facts_; }
  // With O_DIRECT; -1 where direct is impossible.
  int direct_fd() const { return direct_.get(); }
  // Through the page cache; -1 where there is none of the daemon's own and the client's has O_DIRECT.
  int staged_fd() const { return staged_.get(); }
  // The descriptor is shared with the client, and its flags are no longer as when it was handed over. Always false for
  // the daemon's own.
  virtual bool FlagsChanged() const;

 protected:
  FileTarget() = default;
  void OpenOwn(int theirs, int flags);
  absl::Status Share(ub::UniqueFd theirs, int flags);

  FileFacts facts_;
  ub::UniqueFd direct_;
  ub::UniqueFd staged_;
  int shared_fd_ = -1;  // one of the two, where it is the client's description
  int shared_flags_ = 0;
};

}  // namespace ubd

#endif  // UBD_ENGINE_FILE_TARGET_H_

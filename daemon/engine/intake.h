// From an entry to a checked transfer. The caller is hostile: the entry is the daemon's own copy, and every field of it
// is checked here before anything is done with it.
#ifndef UBD_ENGINE_INTAKE_H_
#define UBD_ENGINE_INTAKE_H_

#include "daemon/engine/engine_shared.h"
#include "daemon/engine/served_queue.h"
#include "daemon/engine/transfer.h"

namespace ubd {

class Intake {
 public:
  explicit Intake(EngineShared& shared) : shared_(shared) {}

  // `transfer` has entry and queue. kOk: its memory is pinned, its path chosen; `length` 0 means that there is nothing
  // to do. For READ, WRITE, COPY and FSYNC.
  ub::wire::TransferError Check(Transfer& transfer);

  // What holds for every op, also NOP and CANCEL.
  static bool WellFormed(const ub::wire::SubmitEntry& entry);

 private:
  ub::wire::TransferError CheckFile(Transfer& transfer);
  ub::wire::TransferError CheckCopy(Transfer& transfer);
  ub::wire::TransferError ChooseWay(Transfer& transfer);
  ub::wire::TransferError Pin(const RangeRequest& request, RangePin& pin, Cursor& cursor);

  EngineShared& shared_;
};

}  // namespace ubd

#endif  // UBD_ENGINE_INTAKE_H_

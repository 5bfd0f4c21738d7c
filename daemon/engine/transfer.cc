#include "daemon/engine/transfer.h"

#include <utility>

namespace ubd {

void Transfer::Recycle() {
  Cursor old_from = std::move(from);
  Cursor old_to = std::move(to);
  *this = Transfer();
  old_from.Clear();
  old_to.Clear();
  from = std::move(old_from);
  to = std::move(old_to);
}

}  // namespace ubd

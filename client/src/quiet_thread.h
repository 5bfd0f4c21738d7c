// Threads of libub: all signals are blocked there, for they are the program's own.
#ifndef UB_SRC_QUIET_THREAD_H_
#define UB_SRC_QUIET_THREAD_H_

#include <functional>
#include <thread>

namespace ub {

// `name`: at most 15 characters.
std::thread StartQuietly(const char* name, std::function<void()> run);

}  // namespace ub

#endif  // UB_SRC_QUIET_THREAD_H_

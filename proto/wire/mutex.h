// The one mutex of the project: absl::Mutex with clang's thread-safety annotations. In a ThreadSanitizer build it also tells the sanitizer
// what it does: a distribution's libabsl is not instrumented, and without this every lock would look like none.
#ifndef UB_WIRE_MUTEX_H_
#define UB_WIRE_MUTEX_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#if defined(__SANITIZE_THREAD__)
#define UB_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UB_TSAN 1
#endif
#endif

#ifdef UB_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace ub {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    mu_.Lock();
    Acquired();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    Releasing();
    mu_.Unlock();
  }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    if (!mu_.TryLock()) return false;
    Acquired();
    return true;
  }
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() { mu_.AssertHeld(); }

 private:
  friend class CondVar;
#ifdef UB_TSAN
  void Acquired() { __tsan_acquire(this); }
  void Releasing() { __tsan_release(this); }
#else
  void Acquired() {}
  void Releasing() {}
#endif
  absl::Mutex mu_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) { mu_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mu_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* mu_;
};

// Waits may wake for no reason: always re-check the condition.
class CondVar {
 public:
  void Wait(Mutex* mu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    mu->Releasing();
    cv_.Wait(&mu->mu_);
    mu->Acquired();
  }
  // True when the timeout passed without a signal. Measured on the monotonic clock.
  bool WaitWithTimeout(Mutex* mu, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    mu->Releasing();
    bool timed_out = cv_.WaitWithTimeout(&mu->mu_, timeout);
    mu->Acquired();
    return timed_out;
  }
  void Signal() { cv_.Signal(); }
  void SignalAll() { cv_.SignalAll(); }

 private:
  absl::CondVar cv_;
};

}  // namespace ub

#endif  // UB_WIRE_MUTEX_H_

// A fuzzer's one way to say that something is wrong.
#ifndef UBD_TESTS_FUZZ_DEMAND_H_
#define UBD_TESTS_FUZZ_DEMAND_H_

#include <cstdlib>

inline void Demand(bool condition) {
  if (!condition) std::abort();
}

#endif  // UBD_TESTS_FUZZ_DEMAND_H_

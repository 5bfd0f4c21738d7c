// Keeps an idle daemon asleep. gRPC files its timers in two shards per CPU (up to 32), and its timer thread looks into
// each once a second; after some traffic every shard has a second of its own, so that an idle daemon would wake up to
// 32 times a second on a large node. This daemon has few timers and two threads in gRPC, so it tells gRPC to scale for
// one CPU: these definitions in the program come before those of libgpr, for libgrpc too. The two belong together: gRPC
// indexes arrays of the first's size by the second.
#include <grpc/support/cpu.h>

extern "C" {

unsigned gpr_cpu_num_cores(void) { return 1; }

unsigned gpr_cpu_current_cpu(void) { return 0; }

}  // extern "C"

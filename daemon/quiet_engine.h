// A timer and task engine for gRPC that sleeps until something is due. gRPC's own one looks around every second, busy
// or not; together with its other timers (few_wakeups.cc) that is more than an idle daemon should cost. Only timers and
// tasks are asked of it in gRPC 1.51: sockets and names are still handled by the older parts, and the functions for
// them answer UNIMPLEMENTED.
#ifndef UBD_QUIET_ENGINE_H_
#define UBD_QUIET_ENGINE_H_

namespace ubd {

// Makes it gRPC's engine in this process. Before anything else of gRPC is used.
void InstallQuietEngine();

}  // namespace ubd

#endif  // UBD_QUIET_ENGINE_H_

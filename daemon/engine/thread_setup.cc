#include "daemon/engine/thread_setup.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "daemon/telemetry/log.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

int PinThisThread(uint32_t cpu) {
  if (cpu >= CPU_SETSIZE) return EINVAL;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

}  // namespace

absl::Status CheckCpus(const std::vector<uint32_t>& cpus) {
  for (uint32_t cpu : cpus) {
    int refused = 0;
    std::thread([cpu, &refused] { refused = PinThisThread(cpu); }).join();
    if (refused == 0) continue;
    return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadConfig,
                         absl::StrCat("no engine thread can run on cpu ", cpu, ": ", strerror(refused),
                                      "; name cpus that exist and that the daemon's cpuset allows"),
                         {{"field", "engine.cpus"}});
  }
  return absl::OkStatus();
}

void ApplyToThisThread(const ThreadPlan& plan) {
  pthread_setname_np(pthread_self(), plan.name.c_str());
  if (plan.cpu) {
    if (int refused = PinThisThread(*plan.cpu); refused != 0) {
      LogWarn("engine thread not pinned", {{"thread", plan.name}, {"why", strerror(refused)}});
    }
  }
  if (plan.nice != 0 && setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), plan.nice) != 0) {
    LogWarn("engine thread keeps its priority", {{"thread", plan.name}, {"why", strerror(errno)}});
  }
}

}  // namespace ubd

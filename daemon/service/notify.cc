#include "daemon/service/notify.h"

#include <systemd/sd-daemon.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace ubd {
namespace {

// Lines of the protocol end at a newline, so one in a status would start another message.
std::string OneLine(std::string_view status) {
  std::string line(status);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

// The variables stay set: the daemon notifies all its life. A failure has no receiver to tell it to.
void Send(const std::string& state) { sd_notify(0, state.c_str()); }

}  // namespace

void NotifyStatus(std::string_view status) { Send(absl::StrCat("STATUS=", OneLine(status))); }

const Clock& BootNotifier::SystemBootClock() {
  static const auto* clock = new SystemClock;
  return *clock;
}

void BootNotifier::Progress(std::string_view what, uint64_t done, uint64_t total) {
  MonoTime now = clock_.Now();
  if (!started_) started_ = now;
  if (done <= last_done_ && last_sent_) return;
  bool grew = done > last_done_;
  if (last_sent_ && now - *last_sent_ < kInterval && done < total) return;
  last_sent_ = now;
  last_done_ = std::max(last_done_, done);
  std::string state = absl::StrCat("STATUS=", OneLine(what), " ", done, "/", total);
  // The manager counts the extension from its arrival.
  absl::Duration extension = std::min(kExtension, cap_ - (now - *started_));
  if (grew && extension > absl::ZeroDuration()) {
    absl::StrAppend(&state, "\nEXTEND_TIMEOUT_USEC=", absl::ToInt64Microseconds(extension));
  }
  Send(state);
}

void NotifyReady(std::string_view status) { Send(absl::StrCat("READY=1\nSTATUS=", OneLine(status))); }

void NotifyReloading() {
  // The time lets the manager (from 253 on) tell this reload's READY from an older one.
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  Send(absl::StrCat("RELOADING=1\nMONOTONIC_USEC=", now.tv_sec * 1000000 + now.tv_nsec / 1000));
}

void NotifyStopping(std::string_view status) { Send(absl::StrCat("STOPPING=1\nSTATUS=", OneLine(status))); }

void NotifyWatchdog() { Send("WATCHDOG=1"); }

std::optional<absl::Duration> WatchdogPeriod() {
  uint64_t usec = 0;
  if (sd_watchdog_enabled(0, &usec) <= 0) return std::nullopt;
  return absl::Microseconds(static_cast<int64_t>(std::min<uint64_t>(usec, INT64_MAX)));
}

std::map<std::string, ub::UniqueFd> PassedSockets() {
  std::map<std::string, ub::UniqueFd> sockets;
  char** names = nullptr;
  // Sets close-on-exec, checks LISTEN_PID, and clears the variables.
  int count = sd_listen_fds_with_names(1, &names);
  for (int i = 0; i < count; ++i) {
    ub::UniqueFd fd(SD_LISTEN_FDS_START + i);
    sockets.try_emplace(names[i], std::move(fd));
  }
  for (int i = 0; i < count; ++i) free(names[i]);
  free(names);
  return sockets;
}

}  // namespace ubd

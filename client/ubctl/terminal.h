// A terminal as a live view needs it: the alternate screen, no echo, keys as they come; put back as it was on
// destruction. Signals are not this class's matter (signals.h). Not thread-safe.
#ifndef UB_UBCTL_TERMINAL_H_
#define UB_UBCTL_TERMINAL_H_

#include <termios.h>

#include <memory>
#include <string_view>

namespace ub::ctl {

struct TerminalSize {
  size_t columns = 80;
  size_t rows = 24;
};

class Terminal {
 public:
  // Null when stdin or stdout is no terminal.
  static std::unique_ptr<Terminal> Open();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  TerminalSize Size() const;
  // Replaces what is on the screen.
  bool Draw(std::string_view text);
  // After stdin became readable: whether the user wants to leave (q, or the terminal is gone).
  bool WantsToLeave();

 private:
  explicit Terminal(const termios& before) : before_(before) {}
  termios before_;
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_TERMINAL_H_

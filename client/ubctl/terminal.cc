#include "client/ubctl/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <string>

#include "client/ubctl/output.h"

namespace ub::ctl {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearLine = "\x1b[K\n";
constexpr std::string_view kClearBelow = "\x1b[J";

}  // namespace

std::unique_ptr<Terminal> Terminal::Open() {
  termios before = {};
  if (isatty(STDOUT_FILENO) == 0 || tcgetattr(STDIN_FILENO, &before) != 0) return nullptr;
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stopped view would leave the shell without echo
  if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) return nullptr;
  std::unique_ptr<Terminal> terminal(new Terminal(before));
  WriteOut(kEnter);
  return terminal;
}

Terminal::~Terminal() {
  WriteOut(kLeave);
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

TerminalSize Terminal::Size() const {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

bool Terminal::Draw(std::string_view text) {
  std::string frame(kHome);
  while (!text.empty()) {
    size_t end = text.find('\n');
    frame += text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    // The last line of the screen must not scroll it.
    frame += text.empty() ? kClearLine.substr(0, kClearLine.size() - 1) : kClearLine;
  }
  frame += kClearBelow;
  return WriteOut(frame);
}

bool Terminal::WantsToLeave() {
  std::array<char, 64> keys;
  ssize_t count = read(STDIN_FILENO, keys.data(), keys.size());
  if (count <= 0) return true;
  return std::string_view(keys.data(), static_cast<size_t>(count)).find_first_of("qQ") != std::string_view::npos;
}

}  // namespace ub::ctl

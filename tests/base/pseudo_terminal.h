// A pseudo terminal, for isatty and ioctl; its output can be read back.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <string>

namespace qkv {

class PseudoTerminal {
 public:
  explicit PseudoTerminal(int columns) : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) return;
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    if (slave_ < 0) return;
    termios mode{};
    ::tcgetattr(slave_, &mode);
    ::cfmakeraw(&mode);
    ::tcsetattr(slave_, TCSANOW, &mode);
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    ::ioctl(slave_, TIOCSWINSZ, &size);
    ::fcntl(master_, F_SETFL, O_NONBLOCK);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;
  ~PseudoTerminal() {
    if (slave_ >= 0) ::close(slave_);
    if (master_ >= 0) ::close(master_);
  }

  bool works() const { return slave_ >= 0; }
  int fd() const { return slave_; }

  // Everything written since the last call.
  std::string read() const {
    std::string text;
    char piece[4096];
    for (ssize_t got = 0; (got = ::read(master_, piece, sizeof piece)) > 0;)
      text.append(piece, static_cast<size_t>(got));
    return text;
  }

 private:
  int master_, slave_ = -1;
};

}  // namespace qkv

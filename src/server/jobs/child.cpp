#include "server/jobs/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace qkv::server {
namespace {

constexpr int kBelowTheServer = 10;  // as nice(1) does
constexpr size_t kMostErrors = size_t{16} << 10;
constexpr size_t kMostLine = size_t{64} << 20;

// Between fork and exec: system calls alone.
[[noreturn]] void become(const char* program, char* const* arguments, int out, int err, pid_t parent) {
  ::setpgid(0, 0);  // Ctrl-C in the server's terminal is the server's: it asks for the stop, once
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);  // it died in between
  ::setpriority(PRIO_PROCESS, 0, kBelowTheServer);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);  // sockets and files of the server
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
  ::execv(program, arguments);
  const char* why = std::strerror(errno);
  for (const char* part : {"qkv: cannot start ", program, ": ", why, "\n"}) {
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  ::_exit(127);
}

}  // namespace

Child::Child(const Options& options) : echo_(options.echo) {
  std::array<int, 2> out{}, err{};
  QKV_CHECK(::pipe2(out.data(), O_CLOEXEC) == 0, "the system gives no pipe: ", std::strerror(errno),
            Hint("too many files may be open; try again later"));
  if (::pipe2(err.data(), O_CLOEXEC) != 0) {
    const int why = errno;
    for (const int fd : out) ::close(fd);
    QKV_FAIL("the system gives no pipe: ", std::strerror(why), Hint("too many files may be open; try again later"));
  }
  std::vector<std::string> words{options.program};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(options.program.c_str(), arguments.data(), out[1], err[1], parent);
  const int why = errno;
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
  for (const int fd : {out_, err_}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  if (pid_ < 0) {
    ::close(out_);
    ::close(err_);
    QKV_FAIL("the system gives no process: ", std::strerror(why), Hint("memory or processes may be used up"));
  }
  ::setpgid(pid_, pid_);
}

Child::~Child() {
  kill();
  reap(true);
  for (const int fd : {out_, err_}) {
    if (fd >= 0) ::close(fd);
  }
}

void Child::read(int& from, std::string& into, int echo) const {
  std::array<char, 4096> bytes{};
  while (from >= 0) {
    const ssize_t got = ::read(from, bytes.data(), bytes.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      ::close(from);
      from = -1;
      return;
    }
    into.append(bytes.data(), static_cast<size_t>(got));
    if (echo_ && ::write(echo, bytes.data(), static_cast<size_t>(got)) < 0) continue;  // nobody reads it
  }
}

void Child::wait(std::chrono::milliseconds most) {
  std::array<pollfd, 2> on{pollfd{.fd = out_, .events = POLLIN, .revents = 0},
                           pollfd{.fd = err_, .events = POLLIN, .revents = 0}};
  if (out_ < 0 && err_ < 0) {
    reap(false);
    if (!code_) ::poll(nullptr, 0, static_cast<int>(std::min(most, std::chrono::milliseconds(10)).count()));
  } else {
    ::poll(on.data(), on.size(), static_cast<int>(most.count()));
  }
  read(out_, text_, STDOUT_FILENO);
  read(err_, errors_, STDERR_FILENO);
  if (errors_.size() > kMostErrors) errors_.erase(0, errors_.size() - kMostErrors);
  if (text_.size() > kMostLine) kill();  // no command of this program prints that
  reap(false);
}

void Child::reap(bool block) {
  if (code_ || pid_ < 0) return;
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(pid_, &status, block ? 0 : WNOHANG);
  } while (ended < 0 && errno == EINTR);
  if (ended != pid_) return;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  read(out_, text_, STDOUT_FILENO);
  read(err_, errors_, STDERR_FILENO);
}

std::vector<std::string> Child::take_lines() {
  std::vector<std::string> lines;
  size_t at = 0;
  for (size_t end; (end = text_.find('\n', at)) != text_.npos; at = end + 1)
    lines.push_back(text_.substr(at, end - at));
  text_.erase(0, at);
  return lines;
}

void Child::pause() {
  if (!code_ && !stopping_) ::kill(pid_, SIGSTOP);
}

void Child::go_on() {
  if (!code_) ::kill(pid_, SIGCONT);
}

void Child::stop() {
  if (code_ || stopping_) return;
  stopping_ = true;  // a second signal would end it before it has saved
  ::kill(pid_, SIGTERM);
  ::kill(pid_, SIGCONT);
}

void Child::kill() {
  if (!code_ && pid_ > 0) ::kill(pid_, SIGKILL);
}

}  // namespace qkv::server

// Many clients at once, for serve_load.py:  flood_clients PORT CLIENTS < REQUEST
//
// All connect, then all send the request as fast as one thread can; another connection asks for /health every two
// milliseconds until the last is answered. Prints a line for each answer: its status, the seconds from the request
// being sent to the answer's last byte having come, and of a 429 what Retry-After says. /health is a line
// 'health SECONDS'. Connections stay open, as those of clients do that will ask again. Times of arrival are the
// kernel's, so it does not matter when this program gets to read.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr int kPatience = 60'000, kHealthEvery = 2;  // milliseconds

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "flood_clients: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double now() {  // the clock of the kernel's stamps
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return seconds_of(time);
}

template <class T>
bool number(std::string_view text, T& value) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size();
}

class Client {
 public:
  explicit Client(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd_ < 0 || ::connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) fail("connect");
    const int yes = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (::setsockopt(fd_, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes) != 0) fail("SO_TIMESTAMPNS");
  }
  int fd() const { return fd_; }

  void send(std::string_view text) {
    in_.clear();
    sent_ = now();  // before the system call, after which another program may have the core for a while
    for (size_t at = 0; at < text.size();) {
      const ssize_t sent = ::send(fd_, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) fail("send");
      at += static_cast<size_t>(sent);
    }
  }

  // Reads what has come; true once the answer is whole, or the server has closed the connection.
  bool read() {
    std::array<char, 16384> bytes{};
    alignas(cmsghdr) std::array<char, 256> control{};
    iovec to{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &to;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(fd_, &message, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    came_ = now();
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
      timespec stamp{};
      std::memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
      came_ = seconds_of(stamp);
    }
    if (got <= 0) return true;
    in_.append(bytes.data(), static_cast<size_t>(got));
    const size_t head = in_.find("\r\n\r\n");
    size_t body = 0;
    return head != in_.npos && (!number(header("Content-Length"), body) || in_.size() >= head + 4 + body);
  }

  double waited() const { return came_ - sent_; }
  std::string status() const { return in_.starts_with("HTTP/1.1 ") ? in_.substr(9, 3) : "none"; }
  std::string header(std::string_view name) const {
    const size_t at = in_.find("\r\n" + std::string(name) + ": ");
    if (at == in_.npos) return "-";
    const size_t from = at + name.size() + 4;
    return in_.substr(from, in_.find("\r\n", from) - from);
  }

 private:
  int fd_;
  double sent_ = 0, came_ = 0;
  std::string in_;
};

class Flood {
 public:
  Flood(uint16_t port, size_t count, std::string request) : request_(std::move(request)), health_(port) {
    if (queue_ < 0) fail("epoll_create1");
    for (size_t i = 0; i < count; ++i) clients_.emplace_back(port);
    for (size_t i = 0; i < count; ++i) watch(clients_[i], i);
    watch(health_, count);
  }

  void run() {
    constexpr size_t kBetween = 32;  // what has come is read between so many requests
    ask_health();
    for (size_t i = 0; i < clients_.size(); ++i) {
      clients_[i].send(request_);
      if (i % kBetween == 0) take(0);
    }
    double last = now();
    while (answered_ < clients_.size()) {
      const size_t before = answered_;
      take(kHealthEvery);
      if (answered_ != before) last = now();
      if (1e3 * (now() - last) > kPatience) break;  // those that got no answer have no line
    }
  }

 private:
  void watch(const Client& client, size_t number) const {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
    if (::epoll_ctl(queue_, EPOLL_CTL_ADD, client.fd(), &event) != 0) fail("epoll_ctl");
  }

  void ask_health() {
    health_.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    asked_ = now();
    health_waits_ = true;
  }

  void take(int milliseconds) {
    std::array<epoll_event, 64> events{};
    const int ready = ::epoll_wait(queue_, events.data(), static_cast<int>(events.size()), milliseconds);
    for (size_t e = 0; e < static_cast<size_t>(std::max(ready, 0)); ++e) {
      const size_t number = events[e].data.u64;
      if (number == clients_.size()) {
        if (!health_.read()) continue;
        if (health_.status() != "200") fail("/health is not 200");
        std::printf("health %.9f\n", health_.waited());
        health_waits_ = false;
        continue;
      }
      Client& client = clients_[number];
      if (!client.read()) continue;
      std::printf("%s %.9f %s\n", client.status().c_str(), client.waited(), client.header("Retry-After").c_str());
      ++answered_;
    }
    if (!health_waits_ && 1e3 * (now() - asked_) >= kHealthEvery) ask_health();
  }

  int queue_ = ::epoll_create1(EPOLL_CLOEXEC);
  std::string request_;
  Client health_;
  std::vector<Client> clients_;
  size_t answered_ = 0;
  bool health_waits_ = false;
  double asked_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  uint16_t port = 0;
  size_t count = 0;
  if (argc != 3 || !number(argv[1], port) || !number(argv[2], count)) {
    std::fprintf(stderr, "usage: flood_clients PORT CLIENTS < REQUEST\n");
    return 2;
  }
  std::string request;
  std::array<char, 4096> part{};
  for (size_t got = 0; (got = std::fread(part.data(), 1, part.size(), stdin)) > 0;) request.append(part.data(), got);
  Flood(port, count, std::move(request)).run();
  return 0;
}

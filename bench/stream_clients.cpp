#include "stream_clients.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace qkv::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class StreamClient {
 public:
  explicit StreamClient(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool connected = fd_ >= 0 && ::connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
    QKV_CHECK(connected, "cannot connect to port ", port, ": ", std::strerror(errno),
              Hint("more clients than files may be open? see ulimit -n"));
    const int now = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
  }
  StreamClient(StreamClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        in_(std::move(other.in_)),
        searched_(other.searched_),
        asked_(other.asked_),
        last_(other.last_),
        events_(other.events_) {}
  StreamClient& operator=(StreamClient&&) = delete;
  ~StreamClient() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

  void ask(const std::string& body) {
    const std::string text = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
                             ("Content-Length: " + std::to_string(body.size())) + "\r\n\r\n" + body;
    in_.clear();
    searched_ = 0;
    events_ = 0;
    asked_ = Clock::now();
    send(text);
  }

  // The whole answer to a GET; the connection ends with it.
  std::string get(const std::string& path) {
    send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    std::string all;
    char bytes[65536];
    for (ssize_t got = 0; (got = ::recv(fd_, bytes, sizeof bytes, 0)) > 0;) all.append(bytes, static_cast<size_t>(got));
    return all;
  }

  // What has come; true at the end of the answer.
  bool read(StreamTimes& times) {
    char bytes[65536];
    const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
    QKV_CHECK(got > 0, "the server closed a stream after '", in_.substr(0, 200), "'", Hint("see its log"));
    in_.append(bytes, static_cast<size_t>(got));
    count_events(times);
    // Of a stream the last chunk is empty; other answers are failures, of which the beginning says enough.
    const bool good = in_.starts_with("HTTP/1.1 200");
    QKV_CHECK(good || in_.size() < 12, "a request was answered with ", in_.substr(0, 600), Hint("use fewer clients"));
    if (!in_.ends_with("\r\n0\r\n\r\n")) return false;
    constexpr std::string_view kWritten = "\"completion_tokens\":";
    const size_t usage = in_.rfind(kWritten);
    QKV_CHECK(usage != in_.npos,
              "a stream ended without usage: ", in_.substr(in_.size() - std::min(in_.size(), size_t{300})),
              Hint("see the server's log"));
    int64_t written = 0;
    std::from_chars(in_.data() + usage + kWritten.size(), in_.data() + in_.size(), written);
    times.tokens += written;
    return true;
  }

 private:
  void send(const std::string& text) const {
    for (size_t at = 0; at < text.size();) {
      const ssize_t sent = ::send(fd_, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      QKV_CHECK(sent > 0, "a request could not be sent: ", std::strerror(errno), Hint("the server has ended"));
      at += static_cast<size_t>(sent);
    }
  }

  // Events that come together share the time since the one before.
  void count_events(StreamTimes& times) {
    constexpr std::string_view kEvent = "data: {";
    size_t found = 0;
    for (size_t at = in_.find(kEvent, searched_); at != in_.npos; at = in_.find(kEvent, at + kEvent.size())) {
      ++found;
      searched_ = at + kEvent.size();
    }
    searched_ = std::max(searched_, in_.size() - std::min(in_.size(), kEvent.size() - 1));
    if (found == 0) return;
    const Clock::time_point now = Clock::now();
    size_t later = found;
    if (events_ == 0) {
      times.first.push_back(seconds_between(asked_, now));
      --later;
    }
    const double gap = events_ == 0 ? 0 : seconds_between(last_, now) / static_cast<double>(found);
    times.next.insert(times.next.end(), later, gap);
    events_ += found;
    last_ = now;
  }

  int fd_;
  std::string in_;
  size_t searched_ = 0;
  Clock::time_point asked_, last_;
  size_t events_ = 0;
};

}  // namespace

StreamTimes ask_all(int port, size_t clients, const std::vector<std::string>& bodies) {
  StreamTimes times;
  std::vector<StreamClient> all;
  std::vector<pollfd> wait;
  for (size_t c = 0; c < std::min(clients, bodies.size()); ++c) {
    all.emplace_back(port);
    wait.push_back({.fd = all.back().fd(), .events = POLLIN, .revents = 0});
  }
  const double cpu = thread_cpu_seconds();
  const Clock::time_point start = Clock::now();
  size_t sent = 0, done = 0;
  for (StreamClient& client : all) client.ask(bodies[sent++]);
  while (done < bodies.size()) {
    constexpr int kPatience = 300'000;  // milliseconds
    QKV_CHECK(::poll(wait.data(), wait.size(), kPatience) > 0, "no answer in ", kPatience / 1000, " s",
              Hint("use a smaller preset or fewer clients"));
    for (size_t c = 0; c < all.size(); ++c) {
      if (wait[c].revents == 0 || !all[c].read(times)) continue;
      ++done;
      if (sent < bodies.size()) {
        all[c].ask(bodies[sent++]);
      } else {
        wait[c].fd = -1;  // poll leaves it out
      }
    }
  }
  times.seconds = seconds_between(start, Clock::now());
  times.client_seconds = thread_cpu_seconds() - cpu;
  return times;
}

int64_t server_metric(int port, std::string_view name) {
  const std::string text = StreamClient(port).get("/metrics");
  int64_t sum = 0;
  bool found = false;
  for (size_t at = text.find("\n" + std::string(name)); at != text.npos;
       at = text.find("\n" + std::string(name), at + 1)) {
    const size_t space = text.find(' ', at);
    int64_t value = 0;
    found = std::from_chars(text.data() + space + 1, text.data() + text.size(), value).ec == std::errc() || found;
    sum += value;
  }
  QKV_CHECK(found, "/metrics has no ", name, ": ", text.substr(0, 300), Hint("server/metrics.cpp lists them"));
  return sum;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double last = static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(std::llround(share * last))];
}

}  // namespace qkv::bench

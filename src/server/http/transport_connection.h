// One connection: reads requests within their limits and times, writes answers. Read by transport.cpp alone.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "server/http/http.h"
#include "server/http/transport_stream.h"

namespace qkv::server::http1 {

namespace http = boost::beast::http;
using Clock = std::chrono::steady_clock;

struct Shared {  // by all connections of a transport
  HttpOptions options;
  HttpHandler& handler;
  size_t open = 0;  // connections; outlives those that io drops at its end
  asio::io_context io{1};
  std::atomic<size_t> busy = 0;
  std::atomic<bool> stopping = false;
  std::string id_prefix = fmt::format("req-{:08x}", std::random_device{}());
  uint64_t next_id = 0;
};

// All of it runs on the transport's thread, except for Answer, which posts to it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Shared& shared, std::unique_ptr<Stream> stream) : shared_(shared), stream_(std::move(stream)) {
    ++shared_.open;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { --shared_.open; }

  void start() {
    new_request();
    set_deadline(shared_.options.header_time);
    stream_->handshake([self = shared_from_this()](ErrorCode failed) {
      if (failed) return self->close();
      self->read_more();
    });
  }

  // Answers at once and closes.
  void turn_away(int status, std::string_view why) {
    new_request();
    set_deadline(shared_.options.header_time);
    stream_->handshake([self = shared_from_this(), status, text = std::string(why)](ErrorCode failed) {
      if (failed) return self->close();
      self->refuse(self->shared_.handler.failure(status, text));
    });
  }

  bool idle() const { return state_ == State::head && input_.empty(); }

  void close() {
    if (state_ == State::closed) return;
    const auto self = shared_from_this();
    const bool answering = state_ == State::busy || state_ == State::writing;
    state_ = State::closed;
    stream_->close();
    if (!answering) return;
    finished_.gone = true;
    finish_exchange();
  }

  // Called every kTick: a timer for each connection would cost every request several system calls.
  void look_at_clock(Clock::time_point now) {
    if (state_ == State::closed) return;
    if (now >= deadline_) return late();
    if (state_ == State::busy && !reading_) look_at_client(now);
    if (state_ == State::busy && streaming_ && !ping_.empty() && now - last_write_ >= shared_.options.ping)
      write(ping_);
  }
  static constexpr std::chrono::milliseconds kTick{50};

  // --- of the exchange in progress ---

  void respond(HttpResponse response) {
    if (state_ != State::busy || streaming_) return;
    if (response.status == 204) response.body.clear();
    const size_t body = response.body.size();
    std::string bytes = head_of(response, fmt::format("Content-Length: {}\r\n", body));
    if (!head_only_ && body <= kPiece) bytes += response.body;  // one write, one packet
    queue(std::move(bytes));
    if (!head_only_ && body > kPiece) queue(std::move(response.body));
    finished_.bytes = body;
    end_exchange();
  }

  void begin(const HttpResponse& head, std::string ping) {
    if (state_ != State::busy || streaming_) return;
    streaming_ = true;
    if (!chunked_) keep_alive_ = false;  // HTTP/1.0: the end of the connection is the end of the answer
    queue(head_of(head, chunked_ ? "Transfer-Encoding: chunked\r\n" : ""));
    ping_ = std::move(ping);
    last_write_ = Clock::now();
  }

  void write(const std::string& part) {
    if (state_ != State::busy || !streaming_ || part.empty()) return;
    finished_.bytes += part.size();
    last_write_ = Clock::now();
    if (head_only_) return;
    queue(chunked_ ? fmt::format("{:x}\r\n{}\r\n", part.size(), part) : part);
    if (queued_ > shared_.options.stream_bytes) close();  // it does not read what it asked for
  }

  void end() {
    if (state_ != State::busy || !streaming_) return;
    if (chunked_ && !head_only_) queue("0\r\n\r\n");
    end_exchange();
  }

  void note(std::string text) { finished_.note = std::move(text); }

  uint64_t serial() const { return serial_; }
  std::function<void()> on_gone_;
  std::shared_ptr<std::atomic<bool>> gone_flag_;

 private:
  enum class State { head, body, busy, writing, lingering, closed };
  using Parser = http::request_parser<http::string_body>;
  static constexpr std::chrono::milliseconds kProbeDelay{100}, kProbeInterval{1000};
  static constexpr size_t kPiece = size_t{64} << 10, kReadAhead = size_t{64} << 10, kRead = size_t{16} << 10;

  void new_request() {
    state_ = State::head;
    ++serial_;
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(shared_.options.header_bytes));
    parser_->body_limit(shared_.options.body_bytes);
    finished_ = {};
    headers_.clear();
    started_ = Clock::now();
    streaming_ = head_only_ = false;
    on_gone_ = nullptr;
    gone_flag_ = std::make_shared<std::atomic<bool>>(false);
  }

  // --- reading ---

  // A read is always waiting while the client may say something, if only that it leaves; look_at_client() replaces it
  // where so many requests wait already that no more are read.
  void read_more() {
    if (reading_ || half_closed_ || state_ == State::closed || input_.size() >= kReadAhead) return;
    reading_ = true;
    stream_->read_some(asio::buffer(piece_.get(), kRead), [self = shared_from_this()](ErrorCode failed, size_t count) {
      self->reading_ = false;
      if (failed == asio::error::eof) return self->on_half_close();
      if (failed) return self->close();
      self->input_.append(self->piece_.get(), count);
      self->advance();
    });
  }

  void advance() {
    if (state_ == State::lingering) {
      lingered_ += input_.size();
      input_.clear();
      if (lingered_ > (shared_.options.body_bytes << 2)) return close();
    }
    if (state_ == State::head && !input_.empty() && waiting_) {
      waiting_ = false;
      started_ = Clock::now();
      set_deadline(shared_.options.header_time);
    }
    while ((state_ == State::head || state_ == State::body) && !input_.empty()) {
      ErrorCode failed;
      const size_t used = parser_->put(asio::buffer(input_), failed);
      input_.erase(0, used);
      if (failed && failed != http::error::need_more) return bad_request(failed);
      if (state_ == State::head && parser_->is_header_done()) on_head();
      if (state_ == State::body && parser_->is_done()) on_request();
      if (failed == http::error::need_more || used == 0) break;
    }
    if ((state_ == State::head || state_ == State::body) && input_.size() >= kReadAhead) {
      return bad_request(http::error::header_limit);  // the header of a chunk that never ends
    }
    if (half_closed_ && (state_ == State::head || state_ == State::body)) return on_half_close();
    read_more();
  }

  // The client sends no more. It may wait for the answers to what it has sent, or have left.
  void on_half_close() {
    half_closed_ = true;
    probe_at_ = Clock::now() + kProbeDelay;
    if (state_ == State::lingering || (state_ == State::head && !parser_->got_some())) return close();
    if (state_ == State::head || state_ == State::body) refuse_with(400, "the request ends before it is complete");
  }

  // The kernel of a client that has left resets the connection when bytes arrive; one that only ended its side reads
  // them. So something without meaning is sent while the answer is not ready: a ping of a stream, or 100 Continue,
  // which clients of HTTP/1.1 skip.
  void look_at_client(Clock::time_point now) {
    const Stream::Peer peer = stream_->peer();
    if (peer == Stream::Peer::gone) return close();
    if (peer == Stream::Peer::half_closed && !half_closed_) {
      half_closed_ = true;
      probe_at_ = now + kProbeDelay;
    }
    if (!half_closed_ || now < probe_at_ || !chunked_ || writing_) return;
    probe_at_ = now + kProbeInterval;
    if (!streaming_) return queue("HTTP/1.1 100 Continue\r\n\r\n");
    if (!ping_.empty()) write(ping_);
  }

  void bad_request(ErrorCode failed) {
    const HttpOptions& o = shared_.options;
    if (failed == http::error::header_limit) {
      return refuse_with(431, fmt::format("the headers have more than {} bytes", o.header_bytes));
    }
    if (failed == http::error::body_limit) {
      return refuse_with(413, fmt::format("the body has more than {} bytes", o.body_bytes));
    }
    refuse_with(400, "this is not HTTP/1.1: " + failed.message());
  }

  void refuse_with(int status, std::string_view message) { refuse(shared_.handler.failure(status, message)); }

  // Answers before the request was read whole; the connection has to end unless the rest is known and dropped.
  void refuse(HttpResponse response, bool rest_dropped = false) {
    if (state_ == State::closed) return;
    keep_alive_ = keep_alive_ && rest_dropped;
    if (finished_.method.empty()) finished_.method = "-";
    begin_exchange();
    respond(std::move(response));
  }

  // A body that came together with the head.
  bool drop_body() {
    const uint64_t length = parser_->content_length().value_or(0);
    if (parser_->chunked() || length > input_.size()) return false;
    input_.erase(0, length);
    return true;
  }

  void on_head() {
    const auto& message = parser_->get();
    HttpHead& head = request_.head;
    head = {.method = std::string(message.method_string()), .secure = stream_->secure()};
    const std::string_view target(message.target().data(), message.target().size());
    const size_t mark = std::min(target.find('?'), target.size());
    head.path = target.substr(0, mark);
    if (mark < target.size()) head.query = target.substr(mark + 1);
    for (const auto& field : message) {
      head.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    finished_.method = head.method;
    finished_.path = head.path;
    headers_ = shared_.handler.headers_for(head);
    chunked_ = message.version() >= 11;
    if (const std::string wrong = wrong_framing(head, chunked_); !wrong.empty()) return refuse_with(400, wrong);
    keep_alive_ = message.keep_alive() && !shared_.stopping;
    head_only_ = head.method == "HEAD";
    const HttpOptions& o = shared_.options;
    if (target.size() > o.target_bytes) {
      return refuse_with(414, fmt::format("the URI has {} bytes but may have {}", target.size(), o.target_bytes));
    }
    if (head.headers.size() > o.most_headers) {
      return refuse_with(431, fmt::format("there are {} headers but may be {}", head.headers.size(), o.most_headers));
    }
    if (std::optional<HttpResponse> refused = shared_.handler.refuse(head)) {
      return refuse(std::move(*refused), drop_body());
    }
    state_ = State::body;
    set_deadline(o.body_time);
    const bool waits = head.header("Expect") == "100-continue";
    if (waits && !parser_->is_done()) queue("HTTP/1.1 100 Continue\r\n\r\n");
  }

  void on_request();

  // --- writing ---

  std::string head_of(const HttpResponse& response, const std::string& framing) {
    finished_.status = response.status;
    if (shared_.stopping || (half_closed_ && input_.empty())) keep_alive_ = false;
    std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_of(response.status));
    if (response.status != 204) {
      head += "Content-Type: " + response.type + "\r\n" + framing;
    }
    const auto add = [&](const Headers& headers) {
      for (const auto& [name, value] : headers) head += name + ": " + value + "\r\n";
    };
    add(response.headers);
    add(headers_);
    head += "X-Request-Id: " + finished_.id + "\r\n";
    head += keep_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
    return head;
  }

  void queue(std::string bytes) {
    queued_ += bytes.size();
    out_.push_back(std::move(bytes));
    write_next();
  }

  void write_next() {
    if (writing_ || state_ == State::closed) return;
    if (out_.empty()) return all_written();
    writing_ = true;
    set_deadline(shared_.options.write_time);
    const asio::const_buffer rest = asio::buffer(out_.front()) + written_;
    stream_->write_some(asio::buffer(rest, kPiece), [self = shared_from_this()](ErrorCode failed, size_t count) {
      self->writing_ = false;
      if (failed) return self->close();
      self->written_ += count;
      self->queued_ -= count;
      if (self->written_ == self->out_.front().size()) {
        self->out_.pop_front();
        self->written_ = 0;
      }
      self->write_next();
    });
  }

  void all_written() {
    const auto self = shared_from_this();
    if (state_ == State::busy) deadline_ = kNever;  // the answer takes as long as it takes
    if (state_ == State::body) set_deadline(shared_.options.body_time);
    if (state_ != State::writing) return;
    finish_exchange();
    if (keep_alive_ && !shared_.stopping && !(half_closed_ && input_.empty())) {
      new_request();
      waiting_ = true;
      set_deadline(shared_.options.idle_time);
      if (!input_.empty()) return advance();
      return read_more();
    }
    // The client may still be sending: closing now would take the answer from it.
    state_ = State::lingering;
    set_deadline(Seconds(2));
    stream_->end_writing([self] {
      self->input_.clear();
      if (self->half_closed_) return self->close();
      self->read_more();
    });
  }

  void begin_exchange() {
    state_ = State::busy;
    finished_.id = fmt::format("{}-{:06x}", shared_.id_prefix, shared_.next_id++);
    ++shared_.busy;
    deadline_ = kNever;
    held_ = shared_from_this();
  }

  void end_exchange() {
    state_ = State::writing;
    on_gone_ = nullptr;
    if (out_.empty() && !writing_) all_written();
  }

  void finish_exchange() {
    finished_.seconds = Seconds(Clock::now() - started_).count();
    if (finished_.gone) {
      *gone_flag_ = true;
      if (on_gone_) std::exchange(on_gone_, nullptr)();
    }
    shared_.handler.finished(finished_);
    --shared_.busy;
    held_ = nullptr;
  }

  // --- times ---

  void set_deadline(Seconds time) { deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(time); }

  void late() {
    if (state_ == State::body || (state_ == State::head && !input_.empty())) {
      return refuse_with(408, "the request did not come in time");
    }
    close();
  }

  Shared& shared_;
  std::unique_ptr<Stream> stream_;
  static constexpr Clock::time_point kNever = Clock::time_point::max();
  Clock::time_point deadline_ = kNever;
  State state_ = State::head;
  std::optional<Parser> parser_;
  std::string input_;
  std::unique_ptr<char[]> piece_ =
      std::make_unique_for_overwrite<char[]>(kRead);  // pages that nothing fills stay unused
  bool reading_ = false, writing_ = false, waiting_ = false;
  bool half_closed_ = false;          // by the client
  Clock::time_point probe_at_;        // the next look_at_client() that sends something
  std::shared_ptr<Connection> held_;  // while an exchange lasts: no read or write may be pending then
  std::deque<std::string> out_;
  size_t written_ = 0, queued_ = 0;  // of the first of out_, and of all of it
  size_t lingered_ = 0;
  uint64_t serial_ = 0;
  HttpRequest request_;
  Headers headers_;  // of every answer to it
  bool keep_alive_ = false, chunked_ = true, head_only_ = false, streaming_ = false;
  std::string ping_;
  Finished finished_;
  Clock::time_point started_, last_write_;
};

}  // namespace qkv::server::http1

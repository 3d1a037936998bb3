// The bytes of a connection, plain or encrypted. Read by transport.cpp alone: Boost's headers take seconds.
#pragma once

#include <poll.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <functional>
#include <utility>

namespace qkv::server::http1 {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using Done = std::function<void(ErrorCode, size_t)>;

class Stream {
 public:
  explicit Stream(tcp::socket socket) : socket_(std::move(socket)) {}
  virtual ~Stream() = default;
  virtual bool secure() const { return false; }
  virtual void handshake(std::function<void(ErrorCode)> done) { done({}); }
  virtual void read_some(asio::mutable_buffer into, Done done) { socket_.async_read_some(into, std::move(done)); }
  virtual void write_some(asio::const_buffer from, Done done) { socket_.async_write_some(from, std::move(done)); }
  // Nothing more is written; the client may still read what was.
  virtual void end_writing(std::function<void()> done) {
    ErrorCode ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    done();
  }
  void close() {
    ErrorCode ignored;
    socket_.close(ignored);
  }

  // What the kernel knows of the client without a read: it may have ended its side behind bytes that are not read yet.
  enum class Peer { open, half_closed, gone };
  Peer peer() {
    pollfd state{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
    if (::poll(&state, 1, 0) <= 0) return Peer::open;
    return (state.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0 ? Peer::gone : Peer::half_closed;
  }

 protected:
  tcp::socket socket_;
};

class TlsStream : public Stream {
 public:
  TlsStream(tcp::socket socket, asio::ssl::context& context) : Stream(std::move(socket)), tls_(socket_, context) {}
  bool secure() const override { return true; }
  void handshake(std::function<void(ErrorCode)> done) override {
    tls_.async_handshake(asio::ssl::stream_base::server, std::move(done));
  }
  void read_some(asio::mutable_buffer into, Done done) override { tls_.async_read_some(into, std::move(done)); }
  void write_some(asio::const_buffer from, Done done) override { tls_.async_write_some(from, std::move(done)); }
  void end_writing(std::function<void()> done) override {
    tls_.async_shutdown([done = std::move(done)](ErrorCode) { done(); });
  }

 private:
  asio::ssl::stream<tcp::socket&> tls_;
};

}  // namespace qkv::server::http1

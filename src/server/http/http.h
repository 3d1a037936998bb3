// What the rest of the server knows of HTTP: plain structs in and out. Only transport.cpp knows sockets.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qkv::server {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpHead {
  std::string method, path, query;  // path and query as sent, without the '?'
  Headers headers;
  bool secure = false;  // over TLS

  // The first of this name, in any case; empty if there is none.
  std::string_view header(std::string_view name) const;
  size_t count(std::string_view name) const;
};

struct HttpRequest {
  HttpHead head;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  Headers headers = {};
  std::string body = {};
};

// One request and its answer: either respond(), or begin(), any number of write() and end(). From any thread; nothing
// waits for the client. What comes after the end, or after the client left, is dropped.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void respond(HttpResponse response) = 0;
  // An answer in parts. After a silence of HttpOptions::ping `ping` is sent, if it is not empty.
  virtual void begin(HttpResponse head, std::string ping) = 0;
  virtual void write(std::string part) = 0;
  virtual void end() = 0;
  // Called once, soon, if the client leaves before the end. Must not block.
  virtual void when_gone(std::function<void()> call) = 0;
  virtual bool gone() const = 0;
  // What the log line says beyond method, path, status and time.
  virtual void note(std::string text) = 0;
  virtual const std::string& id() const = 0;
};

// What is known of an exchange when it is over.
struct Finished {
  std::string id, method, path, note;
  int status = 0;
  bool gone = false;  // the client left, or was dropped
  size_t bytes = 0;   // of the answer's body
  double seconds = 0;
};

// Called by the transport's thread: must not block.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Before the body is read. An answer refuses the request.
  virtual std::optional<HttpResponse> refuse(const HttpHead& head) = 0;
  virtual void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) = 0;
  // For what the transport refuses by itself: bad syntax, limits, time.
  virtual HttpResponse failure(int status, std::string_view message) = 0;
  // Headers of every answer to this request.
  virtual Headers headers_for(const HttpHead& head) = 0;
  virtual void finished(const Finished& exchange) = 0;
};

using Seconds = std::chrono::duration<double>;

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 0;                                    // 0: any
  std::string tls_certificate = {}, tls_key = {};  // PEM files; empty: no TLS
  size_t most_connections = 1024;
  size_t header_bytes = size_t{16} << 10, most_headers = 100, target_bytes = size_t{8} << 10;
  size_t body_bytes = size_t{16} << 20;
  size_t stream_bytes = size_t{1} << 20;  // of a streamed answer that the client has not taken
  Seconds header_time{10}, body_time{30}, idle_time{60}, write_time{30}, ping{15};
};

// What is wrong with the headers that say where a request ends; empty: nothing. Two servers that disagree about the end
// of a request read one client's body as another one's request, so everything unusual is refused.
std::string wrong_framing(const HttpHead& head, bool http11);

// Reason phrases of the codes this server uses.
const char* reason_of(int status);

}  // namespace qkv::server

// HTTP/1.1 over TCP or TLS, on one thread of its own. Limits and times are kept here: headers, bodies and readers that
// are too large or too slow end their own connection and nothing else.
#pragma once

#include <memory>

#include "server/http/http.h"

namespace qkv::server {

class Transport {
 public:
  // Binds and starts to answer. An Error if the address is taken or a certificate cannot be read.
  Transport(const HttpOptions& options, HttpHandler& handler);
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  ~Transport();

  int port() const;
  size_t busy() const;    // exchanges that have no whole answer yet, or whose answer is not taken yet
  void stop_accepting();  // and closes connections as soon as they are idle
  void close();           // all of them, and ends the thread; exchanges may still be used, to no effect

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv::server

// OpenAI's API over HTTP for one or several models, in the process of its caller (docs/serving.md).
#pragma once

#include <qkv/model.h>

namespace qkv::QKV_INLINE v1 {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;                        // 0: any that is free
  std::vector<std::string> keys = {};  // API keys; none: everybody who reaches the address may ask
  OpenOptions open = {};               // open.texts: how many texts each model writes at once
  int64_t queue = 64;                  // texts that wait; beyond that 429 is answered
  bool look = false;                   // requests may look inside
  bool log = false;                    // a line on stderr for each request, without its text
};

// The port is bound by the constructor; models are loaded by start(), whose thread then answers until stop().
class QKV_API Server {
 public:
  explicit Server(std::vector<std::string> paths_or_names, const ServerOptions& options = {});

  void start();  // returns when the models are loaded; an Error if one cannot be
  void stop();   // from any thread; texts that are being written may take 10 seconds to end
  int port() const;
  std::string url() const;  // http://127.0.0.1:8080

  struct QKV_HIDDEN Impl;

 private:
  Impl& impl() const;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qkv::QKV_INLINEv1

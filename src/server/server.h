// qkv serve: OpenAI's API over HTTP for one or several models in one process (docs/serving.md).
//
//   Server server(options);   the port is bound and /health answers 503
//   server.run();             loads the models and writes texts, in this thread, until stop(); then drains
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/http/http.h"
#include "server/http/origin.h"
#include "server/jobs/jobs.h"
#include "server/models/served_model.h"

namespace qkv {

struct ServerOptions {
  std::vector<std::string> models;  // folders or GGUF files; a model's name is the last part of its path
  OpenOptions open = {};
  server::ServeRoom room = {};
  server::HttpOptions http = {};
  std::vector<std::string> keys = {};  // none: everybody may ask
  server::OriginRules origins = {};
  bool work = true;  // whether the page may start work; only ever on a server that this machine alone reaches
  server::JobOptions jobs = {};  // what the page may start
  server::Seconds drain{10};     // how long texts may take to finish after stop()
  bool log = true;               // a line for each request, without its text
};

class Server {
 public:
  explicit Server(const ServerOptions& options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  void run();  // an Error if a model cannot be loaded
  // From any thread; run() ends within the time to drain and a second, or once a training of the page is saved.
  void stop();
  int port() const;
  // A model that the page shows beside those that are served; from any thread.
  void show_model(const std::string& name, const std::string& path);
  // A training of this very process, which the page shows as it goes; then how it ended.
  void show_training(const std::string& run);
  void training_ended(bool finished);
  const std::string& page_token() const;       // what the page must show to start work
  bool ready() const;                          // the models are loaded
  std::optional<int> first_job_ended() const;  // the exit code of JobOptions::first, once it has one
  std::vector<std::string> model_names() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv

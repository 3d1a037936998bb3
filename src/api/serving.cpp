#include <qkv/serve.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "api/inside.h"
#include "base/error.h"
#include "open/builtin_models.h"
#include "server/server.h"

namespace qkv::v1 {
namespace {

qkv::ServerOptions inner(std::vector<std::string> models, const ServerOptions& options) {
  QKV_CHECK(!models.empty(), "no model to serve was named", Hint("give one, or several"));
  for (std::string& model : models) model = find_model(model);
  QKV_CHECK(options.port >= 0 && options.port <= 65535, "the port is ", options.port,
            Hint("from 1 to 65535, or 0 for any that is free"));
  return {.models = std::move(models),
          .open = inner_options(options.open),
          .room = {.slots = options.open.texts,
                   .queue = options.queue,
                   .context = options.open.context,
                   .look = {.allowed = options.look}},
          .http = {.host = options.host, .port = options.port},
          .keys = options.keys,
          .log = options.log};
}

}  // namespace

struct Server::Impl {
  Impl(std::vector<std::string> models, const ServerOptions& options)
      : host(options.host), server(inner(std::move(models), options)) {}
  ~Impl() {
    server.stop();
    if (thread.joinable()) thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const std::string host;
  qkv::Server server;
  std::thread thread;
  std::mutex mutex;  // guards thread
  std::atomic<bool> ended = false;
  std::exception_ptr failed;
};

Server::Server(std::vector<std::string> paths_or_names, const ServerOptions& options)
    : impl_(std::make_shared<Impl>(std::move(paths_or_names), options)) {}

Server::Impl& Server::impl() const {
  if (!impl_) {
    throw ClosedError(Error::Kind::input, "this server was moved to another variable", "use that one", QKV_HERE);
  }
  return *impl_;
}

void Server::start() {
  Impl& i = impl();
  const std::lock_guard lock(i.mutex);
  if (i.thread.joinable()) {
    throw BusyError(Error::Kind::input, "the server was started already", "start it once", QKV_HERE);
  }
  i.thread = std::thread([&i] {
    try {
      i.server.run();
    } catch (...) {
      i.failed = std::current_exception();
    }
    i.ended = true;
  });
  while (!i.server.ready() && !i.ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (!i.ended) return;
  i.thread.join();
  if (i.failed) std::rethrow_exception(i.failed);
}

void Server::stop() {
  Impl& i = impl();
  i.server.stop();
  const std::lock_guard lock(i.mutex);
  if (i.thread.joinable()) i.thread.join();
}

int Server::port() const {
  return impl().server.port();
}

std::string Server::url() const {
  return "http://" + impl().host + ":" + std::to_string(port());
}

}  // namespace qkv::v1

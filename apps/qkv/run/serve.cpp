// qkv serve: OpenAI's API over HTTP.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "common/commands.h"
#include "common/interrupt.h"
#include "common/model_options.h"
#include "make/page_jobs.h"
#include "server/http/api_keys.h"
#include "server/server.h"

namespace qkv::app {
namespace {

constexpr const char* kServeHelp =
    R"(Routes: /v1/chat/completions, /v1/completions, /v1/responses, /v1/embeddings, /v1/translate, /v1/models, /health,
/metrics, and a page at /. A model's name is the last part of its path. docs/serving.md has a systemd unit, an nginx
example and how to size it.

API keys: one per line of --keys FILE, or in the environment variable QKV_API_KEYS, separated by commas. Without keys
everybody who reaches the port may ask, and every user of this machine can open the page and start trainings and labs
in your name, unless there is --no-work. Ctrl-C and SIGTERM let the texts in progress finish, for at most 10 seconds.

Examples:
  qkv serve MODEL
  qkv serve chat-model translation-model --port 8000 --keys keys.txt
  qkv serve MODEL --host 0.0.0.0 --allow-host llm.example.org --tls-cert cert.pem --tls-key key.pem
  curl http://127.0.0.1:8080/v1/completions -d '{"prompt": "Once upon a time", "max_tokens": 50}')";

struct ServeArguments {
  ModelOptions model;
  CacheOptions cache;
  ServerOptions server;
  std::string keys, runs;
  bool no_work = false;
};

ServerOptions server_options(const ServeArguments& arguments) {
  ServerOptions options = arguments.server;
  options.open = open_options(arguments.model, arguments.cache, options.room.slots);
  options.work = !arguments.no_work;
  if (options.work) options.jobs = page_jobs(arguments.model.compute, arguments.runs);
  QKV_CHECK(options.work || arguments.runs.empty(), "--runs is for trainings, but --no-work allows none",
            Hint("leave one of the two out"));
  options.room.context = arguments.cache.context;
  options.room.cache = chosen_cache_type(arguments.cache);
  if (!arguments.keys.empty()) options.keys = server::keys_in_file(arguments.keys);
  if (const char* given = std::getenv("QKV_API_KEYS")) {
    for (std::string& key : server::keys_in_text(given)) options.keys.push_back(std::move(key));
  }
  QKV_CHECK(options.http.tls_certificate.empty() == options.http.tls_key.empty(),
            "--tls-cert and --tls-key belong together", Hint("give both, or neither"));
  return options;
}

void serve(const ServeArguments& arguments) {
  const ServerOptions options = server_options(arguments);
  Server server(options);
  std::cout << fmt::format("listening on {}://{}:{}", options.http.tls_key.empty() ? "http" : "https",
                           options.http.host, server.port())
            << std::endl;
  if (!server::is_loopback(options.http.host) && options.keys.empty()) {
    log_line(Log::warn, "no API keys are set: everybody who reaches this address may ask (--keys FILE)");
  }
  if (server::is_loopback(options.http.host) && options.keys.empty() && options.work) {
    log_line(Log::warn,
             "no API keys are set: every user of this machine may ask, and may start trainings and labs from the page "
             "(--no-work refuses those, --keys FILE asks for a key)");
  }
  const InterruptWatch interrupt({SIGINT, SIGTERM});
  const std::jthread watch([&](const std::stop_token& done) {
    while (!done.stop_requested() && !interrupt.seen()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    server.stop();
  });
  server.run();
}

}  // namespace

void add_serve(Command app) {
  const Command command = app.add_command("serve", "Serve models over HTTP, with OpenAI's API");
  const auto options = std::make_shared<ServeArguments>();
  ServerOptions& server = options->server;
  command.add_models("MODEL", server.models, "Hugging Face folders, GGUF files or built-in models (qkv models)")
      .required();
  command.add_option("--host", server.http.host, "Address to listen at").show_default();
  server.http.port = 8080;
  command
      .add_option("--port", server.http.port, "Port; 0 takes any that is free, and the first line printed says which")
      .between(0, 65535)
      .show_default();
  command.add_option("--keys FILE", options->keys, "API keys, one on each line");
  command.add_option("--tls-cert FILE", server.http.tls_certificate, "Certificate chain in PEM, for TLS");
  command.add_option("--tls-key FILE", server.http.tls_key, "Its private key");
  command
      .add_option("--allow-host NAME", server.origins.hosts,
                  "A name clients may reach it by, beside localhost and IP addresses; may be repeated")
      .one_value();
  command
      .add_option("--cors ORIGIN", server.origins.cors,
                  "An origin whose pages may ask, such as https://example.org, or *; may be repeated")
      .one_value();
  command.add_option("--slots", server.room.slots, "Texts that each model writes at once")
      .between(int64_t{1}, int64_t{256})
      .show_default();
  command.add_option("--queue", server.room.queue, "Texts that wait for a slot; beyond that 429 is answered")
      .between(int64_t{1}, int64_t{4096})
      .show_default();
  command.add_flag("--look", server.room.look.allowed,
                   "Requests may look inside: statistics, maps and guesses of each layer, and texts with heads cut");
  command.add_option("--look-bytes", server.room.look.bytes, "Most bytes of the numbers that one answer shows")
      .between(int64_t{1} << 10, int64_t{1} << 30)
      .show_default();
  command.add_option("--runs DIR", options->runs,
                     "Where trainings started from the page are kept; otherwise they are removed at the end");
  command.add_flag("--no-work", options->no_work, "Nothing can be started from the page: no trainings, no labs");
  command
      .add_option(
          "--dtype", options->model.dtype,
          "What models compute in; auto: f32 if all weights are f32, and with --look up to 600 million weights; "
          "otherwise bf16")
      .one_of({"auto", "f32", "bf16"})
      .show_default();
  add_compute_options(command, options->model.compute);
  add_cache_options(command, options->cache);
  command.footer(kServeHelp);
  command.callback([options] { serve(*options); });
}

}  // namespace qkv::app

// ./qkv bench serve: what a server costs. The same requests through the Scheduler alone, all at once and as callers that
// take turns; through a server in this process that many clients ask at once; and through that server with every request
// looking at the statistics of all heads.
//
// Where there are as many slots as clients, a slot is empty for a pass between two texts of a client: its next request
// comes when the next pass has begun. That is so for callers of the Scheduler too, and no cost of HTTP.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "base/scratch_folder.h"
#include "bed.h"
#include "command.h"
#include "infer/text_choices.h"
#include "model/families/presets.h"
#include "model/initialise.h"
#include "open/room.h"
#include "random_model.h"
#include "scheduler_runs.h"
#include "serve_summary.h"
#include "server/server.h"
#include "stream_clients.h"
#include "thread_times.h"

namespace qkv::bench {
namespace {

// Random weights in bf16 behind a tokenizer in which every id has a text of its own, so that each token is an event.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& preset) : config_(preset_config(preset)) {
    ThreadPool pool(0);
    write_new_model(folder_.path() / preset, config_, {.seed = 1, .dtype = "BF16"}, pool);
    model_ = (folder_.path() / preset).string();
    std::ofstream(folder_.path() / preset / "tokenizer.json")
        << tokenizer(config_.at("vocab_size").get<int64_t>()).dump();
  }
  const std::string& model() const { return model_; }

 private:
  static Json tokenizer(int64_t vocabulary) {
    Json words = Json::object();
    for (int64_t id = 0; id < vocabulary; ++id) words[fmt::format("w{}", id)] = id;
    return {{"version", "1.0"},
            {"added_tokens", Json::array()},
            {"normalizer", nullptr},
            {"pre_tokenizer", {{"type", "Whitespace"}}},
            {"post_processor", nullptr},
            {"decoder", nullptr},
            {"model", {{"type", "WordLevel"}, {"vocab", words}, {"unk_token", "w0"}}}};
  }
  Json config_;
  ScratchFolder folder_{"bench", "set TMPDIR"};
  std::string model_;
};

// Texts of different lengths, so that they do not all end in the same pass.
std::vector<Asked> make_requests(const ServeOptions& options, const ModelSpec& spec, int64_t set, int64_t count) {
  std::vector<Asked> all(static_cast<size_t>(count));
  for (size_t r = 0; r < all.size(); ++r) {
    const uint64_t seed = static_cast<uint64_t>(set * options.requests) + r + 1;
    for (int64_t i = 0; i < options.prompt; ++i) {
      const double x = 0.5 + 0.5 * static_cast<double>(random_float(seed, static_cast<uint64_t>(i)));
      all[r].prompt.push_back(static_cast<int32_t>(x * 0.999 * number(spec.vocabulary)));
    }
    all[r].tokens = options.tokens / 2 + static_cast<int64_t>(r * 7919) % (options.tokens + 1);
  }
  return all;
}

enum class Looks { no, statistics };

std::vector<std::string> bodies_of(const std::vector<Asked>& requests, const ModelSpec& spec, Looks looks) {
  Json biases = Json::object();
  for (const auto& [id, bias] : no_end(spec)) biases[std::to_string(id)] = bias;
  std::vector<std::string> bodies;
  for (const Asked& asked : requests) {
    Json body = {{"prompt", asked.prompt}, {"max_tokens", asked.tokens},
                 {"temperature", 0},       {"logit_bias", biases},
                 {"stream", true},         {"stream_options", {{"include_usage", true}}}};
    if (looks == Looks::statistics) body["look"] = {{"statistics", "all"}, {"frames", true}};
    bodies.push_back(body.dump());
  }
  return bodies;
}

// A server and the thread it runs in.
class ServerThread {
 public:
  explicit ServerThread(const ServerOptions& options) : server_(options) {
    thread_ = std::thread([this] {
      try {
        server_.run();
      } catch (...) {
        failed_ = std::current_exception();
      }
      ended_ = true;
    });
    while (!server_.ready() && !ended_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (ended_) stop();
  }
  ~ServerThread() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  int port() const { return server_.port(); }

 private:
  void stop() {
    thread_.join();
    if (failed_) std::rethrow_exception(failed_);
  }
  Server server_;
  std::thread thread_;
  std::exception_ptr failed_;
  std::atomic<bool> ended_ = false;
};

void run(ServeOptions options) {
  if (options.slots == 0) options.slots = options.clients;
  const ModelFolder folder(options.preset);
  const int64_t context = options.prompt + options.tokens / 2 + options.tokens + 1;
  const OpenOptions open{.threads = options.threads,
                         .device = options.device == "cuda" ? kernels::DeviceChoice::cuda : kernels::DeviceChoice::cpu,
                         .texts = options.slots,
                         .context = context};
  ServerOptions serve;
  serve.models = {folder.model()};
  serve.open = open;
  serve.room = {.slots = options.slots, .queue = options.clients, .context = context, .look = {.allowed = true}};
  serve.log = false;
  const OpenModel model(folder.model(), open);
  QKV_CHECK(model.spec().kind == ModelSpec::Kind::decoder_only, options.preset, " is a ", model.spec().family,
            ", but decoders are measured", Hint("take a preset such as gpt2 or tinyllama-1.1b"));
  Runner runner = model.runner(room_for_texts(model, {.texts = options.slots, .context = context}));
  Scheduler scheduler(runner,
                      {.most_active = options.slots, .most_waiting = options.requests, .most_kept = options.slots * 4});
  const ServerThread server(serve);
  int64_t weights = 0;
  for (const auto& [name, weight] : model.model().weights()) weights += weight.shape().count();

  const auto clients = static_cast<size_t>(options.clients);
  std::vector<Round> rounds;
  const auto ask = [&](const std::vector<Asked>& requests, Looks looks) {
    const int64_t before = server_metric(server.port(), "qkv_passes_total");
    const auto cpu = cpu_by_thread_name();
    const double all_cpu = process_cpu_seconds();
    ServerRun run{.times = ask_all(server.port(), clients, bodies_of(requests, model.spec(), looks))};
    run.all_cpu = process_cpu_seconds() - all_cpu;
    for (const auto& [name, seconds] : cpu_by_thread_name()) {
      if (name.starts_with("qkv-")) run.cpu += seconds - (cpu.contains(name) ? cpu.at(name) : 0);
    }
    run.passes = server_metric(server.port(), "qkv_passes_total") - before;
    return run;
  };
  const auto one_round = [&](int64_t round, int64_t count) {
    // Other prompts each time, because prefixes are kept; the lengths are the same.
    const std::vector<Asked> first = make_requests(options, model.spec(), 2 * round, count),
                             second = make_requests(options, model.spec(), 2 * round + 1, count);
    Round all{.at_once = run_at_once(scheduler, model, first, context),
              .in_turn = run_in_turn(scheduler, model, second, context, clients),
              .served = ask(first, Looks::no),
              .looking = ask(second, Looks::statistics)};
    for (const int64_t written : {all.in_turn.tokens, all.served.times.tokens, all.looking.times.tokens}) {
      QKV_ASSERT(written == all.at_once.tokens, written, " tokens were written, not ", all.at_once.tokens);
    }
    return all;
  };
  one_round(options.rounds, std::min(options.clients, options.requests));  // reads the weights, and is dropped
  for (int64_t round = 0; round < options.rounds; ++round) rounds.push_back(one_round(round, options.requests));
  const Summary summary{
      .options = options, .device = device_name(model.engine().device()), .weights = weights, .rounds = rounds};
  std::cout << (options.json ? summary.json().dump(2) + "\n" : summary.text());
}

}  // namespace
}  // namespace qkv::bench

int main(int argc, char** argv) {
  CLI::App app{"The server with many clients, against the Scheduler alone; then with every request looking inside",
               "qkv bench serve"};
  qkv::bench::ServeOptions options;
  app.add_option("--preset", options.preset, "Model configuration; the weights are random")->capture_default_str();
  app.add_option("--clients", options.clients, "Clients at once")->check(CLI::Range(1, 256))->capture_default_str();
  app.add_option("--slots", options.slots, "Texts that are written at once; 0: as many as clients")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  app.add_option("--requests", options.requests, "Requests in a round")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--prompt", options.prompt, "Tokens of a prompt")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--tokens", options.tokens, "Tokens of a text, on average")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Number of rounds; medians count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Number of threads; 0: one per CPU")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  qkv::bench::add_device_option(app, options.device);
  app.add_flag("--json", options.json, "Print JSON");
  app.footer("The clients are threads of this process and use its CPUs: their CPU time is shown. Rounds alternate.");
  return qkv::bench::run_command(app, argc, argv, [&] { qkv::bench::run(options); });
}

// ./qkv bench serve: what a server costs. The same requests through the Scheduler alone, through a server in this process
// that many clients ask at once, and through that server with every request looking at the statistics of all heads.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "bed.h"
#include "command.h"
#include "infer/text_choices.h"
#include "model/families/presets.h"
#include "model/initialise.h"
#include "open/room.h"
#include "random_model.h"
#include "server/server.h"
#include "stream_clients.h"

namespace qkv::bench {
namespace {

constexpr double kAtLeast = 0.95;         // of the Scheduler's tokens per second
constexpr double kLookingAtLeast = 0.90;  // of the server's

struct Options {
  std::string preset = "gpt2", device = "cpu";
  int64_t clients = 32, requests = 96, prompt = 32, tokens = 32, rounds = 3;
  int threads = 0;
  bool json = false;
};

// Random weights in bf16 behind a tokenizer in which every id has a text of its own, so that each token is an event.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& preset) : config_(preset_config(preset)) {
    std::string name = (std::filesystem::temp_directory_path() / "qkv-bench-XXXXXX").string();
    QKV_CHECK(::mkdtemp(name.data()) != nullptr, "cannot make a folder like ", name, Hint("set TMPDIR"));
    path_ = name;
    ThreadPool pool(0);
    write_new_model(path_ / preset, config_, {.seed = 1, .dtype = "BF16"}, pool);
    model_ = (path_ / preset).string();
    std::ofstream(path_ / preset / "tokenizer.json") << tokenizer(config_.at("vocab_size").get<int64_t>()).dump();
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  ~ModelFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
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
  std::filesystem::path path_;
  std::string model_;
};

struct Asked {
  std::vector<int32_t> prompt;
  int64_t tokens = 0;
};

// Texts of different lengths, so that they do not all end in the same pass; other prompts in each round, because
// prefixes are kept.
std::vector<Asked> make_requests(const Options& options, const ModelSpec& spec, int64_t round) {
  std::vector<Asked> all(static_cast<size_t>(options.requests));
  for (size_t r = 0; r < all.size(); ++r) {
    const uint64_t seed = static_cast<uint64_t>(round) * all.size() + r + 1;
    for (int64_t i = 0; i < options.prompt; ++i) {
      const double x = 0.5 + 0.5 * static_cast<double>(random_float(seed, static_cast<uint64_t>(i)));
      all[r].prompt.push_back(static_cast<int32_t>(x * 0.999 * number(spec.vocabulary)));
    }
    all[r].tokens = options.tokens / 2 + static_cast<int64_t>(r * 7919) % (options.tokens + 1);
  }
  return all;
}

std::map<int32_t, double> no_end(const ModelSpec& spec) {
  std::map<int32_t, double> biases;
  for (const int32_t id : end_tokens({}, spec)) biases[id] = -100;
  return biases;
}

// Tokens per second of the Scheduler with the tokenizer behind it.
double alone(Scheduler& scheduler, const OpenModel& model, const std::vector<Asked>& requests, int64_t context) {
  int64_t written = 0;
  const double seconds = seconds_of([&] {
    for (const Asked& asked : requests) {
      TextRequest request = text_request(
          {.temperature = 0, .max_new = asked.tokens, .logit_bias = no_end(model.spec())}, model.defaults());
      request.options.prompt = asked.prompt;
      request.options.context = context;
      request.on_end = [&](const WrittenText& text) { written += std::ssize(text.tokens); };
      submit_text(scheduler, model.tokenizer(), std::move(request));
    }
    scheduler.run();
  });
  return number(written) / seconds;
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

void run(const Options& options) {
  const ModelFolder folder(options.preset);
  const int64_t context = options.prompt + options.tokens / 2 + options.tokens + 1;
  const OpenOptions open{.threads = options.threads,
                         .device = options.device == "cuda" ? kernels::DeviceChoice::cuda : kernels::DeviceChoice::cpu,
                         .texts = options.clients,
                         .context = context};
  ServerOptions serve;
  serve.models = {folder.model()};
  serve.open = open;
  serve.room = {.slots = options.clients, .queue = options.clients, .context = context, .look = {.allowed = true}};
  serve.log = false;
  const OpenModel model(folder.model(), open);
  QKV_CHECK(model.spec().kind == ModelSpec::Kind::decoder_only, options.preset, " is a ", model.spec().family,
            ", but decoders are measured", Hint("take a preset such as gpt2 or tinyllama-1.1b"));
  Runner runner = model.runner(room_for_texts(model, {.texts = options.clients, .context = context}));
  Scheduler scheduler(
      runner, {.most_active = options.clients, .most_waiting = options.requests, .most_kept = options.clients * 4});
  const ServerThread server(serve);
  int64_t weights = 0;
  for (const auto& [name, weight] : model.model().weights()) weights += weight.shape().count();

  std::vector<double> own, served, looking;
  StreamTimes best;
  const auto one_round = [&](int64_t round, int64_t count) {
    std::vector<Asked> requests = make_requests(options, model.spec(), 2 * round);
    requests.resize(static_cast<size_t>(count));
    int64_t wanted = 0;
    for (const Asked& asked : requests) wanted += asked.tokens;
    own.push_back(alone(scheduler, model, requests, context));
    const auto ask = [&](Looks looks) {
      StreamTimes times =
          ask_all(server.port(), static_cast<size_t>(options.clients), bodies_of(requests, model.spec(), looks));
      QKV_ASSERT(times.tokens == wanted, "the server wrote ", times.tokens, " tokens, not ", wanted);
      return times;
    };
    StreamTimes times = ask(Looks::no);
    served.push_back(number(times.tokens) / times.seconds);
    requests = make_requests(options, model.spec(), 2 * round + 1);  // the cache has the others
    requests.resize(static_cast<size_t>(count));
    looking.push_back(number(wanted) / ask(Looks::statistics).seconds);
    if (served.back() >= *std::max_element(served.begin(), served.end())) best = std::move(times);
  };
  one_round(options.rounds, std::min(options.clients, options.requests));  // reads the weights, and is dropped
  own.clear();
  served.clear();
  looking.clear();
  for (int64_t round = 0; round < options.rounds; ++round) one_round(round, options.requests);

  const double fastest_own = *std::max_element(own.begin(), own.end());
  const double fastest_served = *std::max_element(served.begin(), served.end());
  const double fastest_looking = *std::max_element(looking.begin(), looking.end());
  const double ratio = fastest_served / fastest_own, look_ratio = fastest_looking / fastest_served, milli = 1e3;
  if (options.json) {
    std::cout << Json{{"device", device_name(model.engine().device())},
                      {"preset", options.preset},
                      {"weights", weights},
                      {"clients", options.clients},
                      {"requests", options.requests},
                      {"scheduler_tokens_per_second", own},
                      {"server_tokens_per_second", served},
                      {"ratio", ratio},
                      {"ratio_at_least", kAtLeast},
                      {"looking_tokens_per_second", looking},
                      {"look_ratio", look_ratio},
                      {"look_ratio_at_least", kLookingAtLeast},
                      {"first_token_ms",
                       {{"p50", milli * quantile(best.first, 0.5)}, {"p99", milli * quantile(best.first, 0.99)}}},
                      {"per_token_ms",
                       {{"p50", milli * quantile(best.next, 0.5)}, {"p99", milli * quantile(best.next, 0.99)}}},
                      {"seconds", best.seconds},
                      {"client_cpu_seconds", best.client_seconds}}
                     .dump(2)
              << '\n';
    return;
  }
  std::cout << fmt::format(
                   "{}, {} ({:.0f} M weights, random, bf16), {} clients, {} requests, prompts of {}, {} to {} new "
                   "tokens, best of {}\n",
                   device_name(model.engine().device()), options.preset, number(weights) / 1e6, options.clients,
                   options.requests, options.prompt, options.tokens / 2, options.tokens / 2 + options.tokens,
                   options.rounds)
            << fmt::format("Scheduler alone      {:10.1f} tokens/s\n", fastest_own)
            << fmt::format("server               {:10.1f} tokens/s, ratio {:.3f} (at least {:.2f})\n", fastest_served,
                           ratio, kAtLeast)
            << fmt::format("all look inside      {:10.1f} tokens/s, ratio to the server {:.3f} (at least {:.2f})\n",
                           fastest_looking, look_ratio, kLookingAtLeast)
            << fmt::format("time to first token  {:10.1f} ms, p99 {:.1f}\n", milli * quantile(best.first, 0.5),
                           milli * quantile(best.first, 0.99))
            << fmt::format("time per token       {:10.2f} ms, p99 {:.2f}\n", milli * quantile(best.next, 0.5),
                           milli * quantile(best.next, 0.99))
            << fmt::format("clients' CPU time    {:10.3f} s of {:.3f} s\n", best.client_seconds, best.seconds);
}

}  // namespace
}  // namespace qkv::bench

int main(int argc, char** argv) {
  CLI::App app{"The server with many clients, against the Scheduler alone; then with every request looking inside",
               "qkv bench serve"};
  qkv::bench::Options options;
  app.add_option("--preset", options.preset, "Model configuration; the weights are random")->capture_default_str();
  app.add_option("--clients", options.clients, "Clients at once, and slots")
      ->check(CLI::Range(1, 256))
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
  app.add_option("--rounds", options.rounds, "Number of rounds; the best counts")
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

#include "server/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <list>
#include <set>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/log.h"
#include "base/printable.h"
#include "infer/grammar/json_schema.h"
#include "server/http/api_keys.h"
#include "server/http/transport.h"
#include "server/memory_needs.h"
#include "server/page/page.h"
#include "server/routes.h"

namespace qkv {

using namespace server;

namespace {

using EngineClock = std::chrono::steady_clock;

using AnswerRoute = void (*)(const Fields&, ServedModel&, const RouteContext&);

struct AskRoute {
  const char* path;
  AnswerRoute answer;
  bool writes = false;  // a text, which waits for a slot of the model
};
// POST, with a JSON object that names the model.
constexpr AskRoute kAskRoutes[] = {{"/v1/completions", answer_completion, true},
                                   {"/v1/chat/completions", answer_chat, true},
                                   {"/v1/responses", answer_responses, true},
                                   {"/v1/embeddings", answer_embeddings},
                                   {"/v1/translate", answer_translate}};
// A model whose first look is made before anybody asks; a larger one is opened for the page when somebody does.
constexpr int64_t kShownAtOnce = int64_t{1} << 30;
// Steps of reading a request: beyond the first number it goes on in a thread of its own, so that the readers stay free
// for others; beyond the second it is refused.
constexpr size_t kQuickSteps = 500'000, kMaxReadSteps = grammar::kMaxSchemaSteps;
// Requests that may wait for that thread: they leave room for those that are read at once.
constexpr size_t kMaxSlowRequests = 16;
// GET.
constexpr const char *kHealth = "/health", *kMetrics = "/metrics", *kModels = "/v1/models";

const AskRoute* ask_route(std::string_view path) {
  const auto found = std::find_if(std::begin(kAskRoutes), std::end(kAskRoutes),
                                  [&](const AskRoute& route) { return route.path == path; });
  return found == std::end(kAskRoutes) ? nullptr : found;
}

// The last part of each path; where two are alike, the paths themselves.
std::vector<std::string> names_of(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    std::string trimmed = path;
    while (trimmed.size() > 1 && trimmed.ends_with('/')) trimmed.pop_back();
    const std::filesystem::path file(trimmed);
    names.push_back(file.extension() == ".gguf" ? file.stem().string() : file.filename().string());
    if (names.back().empty() || names.back() == "." || names.back() == "..") names.back() = path;
    seen.insert(names.back());
  }
  if (seen.size() < names.size()) names = paths;
  const std::set<std::string> all(names.begin(), names.end());
  QKV_CHECK(all.size() == names.size(), "a model is given twice", Hint("each has a name of its own"));
  return names;
}

}  // namespace

class Server::Impl : public HttpHandler {
 public:
  explicit Impl(const ServerOptions& options)
      : options_(options),
        names_(names_of(options.models)),
        keys_(options.keys),
        writer_("qkv-write", 1),
        slow_reader_("qkv-read-slow", 1),
        readers_("qkv-read", 2) {
    QKV_CHECK(!options.models.empty() || !options.jobs.program.empty(), "there is no model to serve",
              Hint("qkv serve MODEL"));
    HttpOptions http = options.http;
    if (options.room.look.allowed) http.stream_bytes += kLookText * static_cast<size_t>(options.room.look.bytes);
    // Whoever reaches a server of this machine alone may look, and start work from the page.
    const bool local = is_loopback(options.http.host);
    page_.emplace(PageOptions{.names = names_,
                              .paths = options.models,
                              .open = options.open,
                              .look = local || options.room.look.allowed,
                              .work = local && options.work,
                              .jobs = local && options.work ? options.jobs : JobOptions{}});
    transport_.emplace(http, *this);
  }

  ~Impl() override {
    page_->stop();
    if (transport_) transport_->close();
  }

  void run() {
    if (options_.log) drop_unread_lines();
    load();
    ready_ = true;
    // The page itself needs no key, so what it comes with must not be worth one.
    const bool open = options_.keys.empty() && models_.size() == names_.size();
    if (open && !models_.empty() && models_.front()->need() < kShownAtOnce) page_->prepare();
    if (options_.log) log_line(Log::info, fmt::format("ready: {}", fmt::join(names_, ", ")));
    std::optional<EngineClock::time_point> stop_at;
    bool aborted = false;
    while (true) {
      const bool worked = step();
      if (stopping_ && !stop_at) {
        transport_->stop_accepting();
        page_->end_work();
        stop_at = EngineClock::now() + std::chrono::duration_cast<EngineClock::duration>(options_.drain);
      }
      if (stop_at) {
        if (transport_->busy() == 0 || EngineClock::now() > *stop_at + std::chrono::seconds(1)) break;
        if (!aborted && EngineClock::now() > *stop_at) {
          aborted = true;
          abort_all();
        }
      }
      if (!worked) sleep(stop_at ? std::chrono::milliseconds(10) : std::chrono::milliseconds(1000));
    }
    page_->stop();
    transport_->close();
  }

  void stop() {
    stopping_ = true;
    wake();
  }

  int port() const { return transport_->port(); }
  Page& page() { return *page_; }
  const std::string& page_token() const { return page_->token(); }
  bool ready() const { return ready_; }
  std::optional<int> first_job_ended() const { return page_->first_job_ended(); }
  const std::vector<std::string>& names() const { return names_; }

  // --- of the transport's thread ---

  std::optional<HttpResponse> refuse(const HttpHead& head) override {
    if (!host_allowed(head, options_.origins)) {
      return ApiError(403, "this server does not answer to that Host; --allow-host names the hosts it answers to")
          .response();
    }
    if (judge_origin(head, options_.origins) == OriginIs::foreign) {
      return ApiError(403, "pages of another origin may not ask this server; --cors allows an origin").response();
    }
    if (head.method == "OPTIONS") return preflight(head);
    if (Page::has(head.path)) return refuse_page(head);
    const AskRoute* asks = ask_route(head.path);
    const bool model = head.path.starts_with(std::string(kModels) + "/");
    const bool gets = model || head.path == kHealth || head.path == kMetrics || head.path == kModels;
    if (asks == nullptr && !gets) return ApiError(404, "there is no such route here").response();
    const bool right = asks != nullptr ? head.method == "POST" : head.method == "GET" || head.method == "HEAD";
    if (!right) {
      HttpResponse wrong = ApiError(405, asks != nullptr ? "this route takes POST" : "this route takes GET").response();
      wrong.headers.emplace_back("Allow", asks != nullptr ? "POST" : "GET, HEAD");
      return wrong;
    }
    if (head.path == kHealth) return std::nullopt;
    if (std::optional<HttpResponse> without_key = refuse_key(head)) return without_key;
    if (asks == nullptr) return std::nullopt;
    if (std::optional<HttpResponse> busy = refuse_ask()) return busy;
    const bool full = asks->writes && std::all_of(models_.begin(), models_.end(), is_full);
    return full ? std::optional(too_many()) : std::nullopt;
  }

  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override {
    const std::string& path = request.head.path;
    if (const AskRoute* route = ask_route(path)) {
      if (route->writes && names_full_model(request.body)) return exchange->respond(too_many());
      const int32_t owner = keys_.match(request.head.header("Authorization")).value_or(-1) + 1;
      const Asked asked{.answer = route->answer,
                        .body = std::make_shared<const std::string>(std::move(request.body)),
                        .exchange = std::move(exchange),
                        .owner = owner,
                        .came = EngineClock::now()};
      readers_.add([this, asked] {
        if (ask(asked, kQuickSteps)) return;
        const bool added = slow_reader_.try_add([this, asked] { ask(asked, kMaxReadSteps); }, kMaxSlowRequests);
        if (!added) asked.exchange->respond(too_many());
      });
      return;
    }
    if (Page::has(path)) {
      readers_.add([this, exchange = std::move(exchange), asked = std::make_shared<HttpRequest>(std::move(request))] {
        try {
          page_->answer(*asked, exchange);
        } catch (...) {
          exchange->respond(api_error_of(std::current_exception()).response());
        }
      });
      return;
    }
    exchange->respond(get(path));
  }

  HttpResponse failure(int status, std::string_view message) override {
    ApiError error(status, std::string(message));
    if (status == 503) {
      error.retry_after = 1;
      metrics_.rejected();
    }
    return error.response();
  }

  Headers headers_for(const HttpHead& head) override {
    Headers headers = cors_headers(head, options_.origins);
    headers.emplace_back("X-Content-Type-Options", "nosniff");
    headers.emplace_back("Cache-Control", "no-store");
    return headers;
  }

  void finished(const Finished& exchange) override {
    const bool known = ask_route(exchange.path) != nullptr || Page::has(exchange.path) || exchange.path == kHealth ||
                       exchange.path == kMetrics || exchange.path == kModels;
    const std::string route = known ? exchange.path : exchange.path.empty() ? "-" : "other";
    metrics_.answered(route, exchange.status);
    if (!options_.log || exchange.path == kHealth) return;
    log_line(Log::info, fmt::format("{} {} {} {} {} bytes {:.1f} ms{}{}{}", exchange.id, exchange.method.substr(0, 16),
                                    route, exchange.status, exchange.bytes, exchange.seconds * 1e3,
                                    exchange.gone ? " gone" : "", exchange.note.empty() ? "" : " ", exchange.note));
  }

 private:
  // --- the engine: this thread alone runs models ---

  void load() {
    for (size_t i = 0; i < names_.size() && !stopping_; ++i) {
      models_.push_back(std::make_unique<ServedModel>(names_[i], options_.models[i], options_.open, options_.room));
    }
    std::vector<ModelNeed> needs;
    for (const auto& model : models_) {
      needs.push_back({.model = model->name(), .device = &model->model().engine().device(), .bytes = model->need()});
    }
    check_needs(needs);
    for (const auto& model : models_) {
      if (!stopping_) model->load();
    }
  }

  // One pass of every model and queue, so that none waits for another to finish.
  bool step() {
    bool worked = false;
    for (const auto& model : models_) {
      try {
        worked = model->step() || worked;
      } catch (const std::exception& failure) {
        log_line(Log::error, fmt::format("{}: {}", model->name(), failure.what()));
        sleep(std::chrono::milliseconds(10));
      }
    }
    return worked;
  }

  void wake() {
    {
      const std::lock_guard lock(sleep_mutex_);
      awake_ = true;
    }
    woken_.notify_one();
  }

  void sleep(std::chrono::milliseconds most) {
    std::unique_lock lock(sleep_mutex_);
    woken_.wait_for(lock, most, [&] { return awake_; });
    awake_ = false;
  }

  void abort_all() {
    const std::lock_guard lock(running_mutex_);
    for (const auto& weak : running_) {
      if (const auto generation = weak.lock()) generation->abort(ApiError(503, "the server is stopping"));
    }
  }

  // --- requests ---

  std::optional<HttpResponse> refuse_key(const HttpHead& head) const {
    if (keys_.empty() || keys_.match(head.header("Authorization"))) return std::nullopt;
    ApiError error(401, "a valid API key is needed: Authorization: Bearer KEY");
    error.code = "invalid_api_key";
    return error.response();
  }

  std::optional<HttpResponse> refuse_page(const HttpHead& head) {
    std::optional<HttpResponse> wrong = page_->refuse(head, judge_origin(head, options_.origins));
    if (!wrong && !Page::is_file(head.path)) wrong = refuse_key(head);
    if (!wrong && !Page::is_file(head.path)) wrong = refuse_ask();
    return wrong;
  }

  std::optional<HttpResponse> refuse_ask() {
    ApiError error(503, stopping_ ? "the server is stopping" : "the models are still being loaded");
    error.retry_after = stopping_ ? 5 : 1;
    if (stopping_ || !ready_) return error.response();
    const auto room = static_cast<size_t>(options_.room.slots + options_.room.queue) * names_.size() + 16;
    if (transport_->busy() < room) return std::nullopt;
    return too_many();
  }

  HttpResponse too_many() {
    metrics_.rejected();
    static const HttpResponse full = [] {  // made once: there may be thousands of them a second
      ApiError error(429, "too many requests at once; try again later");
      error.retry_after = 1;
      return error.response();
    }();
    return full;
  }

  static bool is_full(const std::unique_ptr<ServedModel>& model) { return model->full(); }

  // What a full model cannot take is refused by the transport's thread, before a reader is woken for it: nothing of a
  // short body is read but the model's name.
  bool names_full_model(const std::string& body) const {
    constexpr size_t kShort = 16384;
    if (body.size() > kShort || std::none_of(models_.begin(), models_.end(), is_full)) return false;
    std::string name;
    try {
      JsonReader in(body, "the body");
      in.members([&](std::string_view key) {
        if (key != "model" || in.kind() != JsonReader::Kind::string) return void(in.skip());
        std::string spare;
        name = in.string(spare);
      });
    } catch (const Error&) {
      return false;  // a reader says what is wrong
    }
    return std::any_of(models_.begin(), models_.end(),
                       [&](const auto& model) { return model->name() == name && model->full(); });
  }

  HttpResponse preflight(const HttpHead& head) const {
    if (judge_origin(head, options_.origins) != OriginIs::allowed) {
      return ApiError(403, "pages of other origins may not ask this server; --cors allows an origin").response();
    }
    return {.status = 204};
  }

  ServedModel& model_for(const Fields& fields) const {
    const std::optional<std::string> name = fields.text("model", {1, 4096});
    if (!name && models_.size() == 1) return *models_.front();
    if (!name) fields.fail("model", fmt::format("is missing: it must be one of {}", fmt::join(names_, ", ")));
    for (const auto& model : models_) {
      if (model->name() == *name) return *model;
    }
    ApiError error(404,
                   fmt::format("the model {} is not served here; these are: {}", shown_json(OrderedJson(*name)),
                               fmt::join(names_, ", ")),
                   "model");
    error.code = "model_not_found";
    throw error;
  }

  struct Asked {
    AnswerRoute answer = nullptr;
    std::shared_ptr<const std::string> body;
    std::shared_ptr<Exchange> exchange;
    int32_t owner = 0;
    EngineClock::time_point came = {};
  };
  struct TakesLonger {};

  // Returns false if reading the request takes more than `steps`: nothing of it has been handed on then.
  bool ask(const Asked& asked, size_t steps) {
    if (asked.exchange->gone()) return true;
    Budget budget(kMaxReadSteps, [&](size_t used) {
      if (asked.exchange->gone()) throw ApiError(503, "the client has left");
      if (stopping_) throw ApiError(503, "the server is stopping");
      if (used > steps && steps < kMaxReadSteps) throw TakesLonger{};
    });
    try {
      const OrderedJson json = parse_body(*asked.body);
      const Fields fields(json, "");
      asked.answer(fields, model_for(fields),
                   {.exchange = asked.exchange,
                    .writer = &writer_,
                    .metrics = &metrics_,
                    .wake = [this] { wake(); },
                    .watch = [this](std::weak_ptr<Generation> generation) { watch(std::move(generation)); },
                    .owner = asked.owner,
                    .came = asked.came,
                    .budget = budget});
    } catch (const TakesLonger&) {
      return false;
    } catch (...) {
      const ApiError error = api_error_of(std::current_exception());
      if (error.status == 429) metrics_.rejected();
      asked.exchange->respond(error.response());
    }
    return true;
  }

  void watch(std::weak_ptr<Generation> generation) {
    const std::lock_guard lock(running_mutex_);
    std::erase_if(running_, [](const auto& weak) { return weak.expired(); });
    running_.push_back(std::move(generation));
  }

  HttpResponse get(const std::string& path) const {
    if (path == kHealth) {
      const bool up = ready_ && !stopping_;
      return json_response({{"status", up ? "ok" : stopping_ ? "stopping" : "loading"}}, up ? 200 : 503);
    }
    if (path == kMetrics) return metrics_text();
    if (!ready_) {
      ApiError error(503, "the models are still being loaded");
      error.retry_after = 1;
      return error.response();
    }
    return path == kModels ? models_list(models_)
                           : one_model(models_, path.substr(std::string_view(kModels).size() + 1));
  }

  HttpResponse metrics_text() const {
    std::vector<Metrics::ModelNow> now;
    if (ready_) {
      for (const auto& model : models_) now.push_back({.name = model->name(), .counts = model->counts()});
    }
    return {.type = "text/plain; version=0.0.4", .body = metrics_.text(now, transport_->busy())};
  }

  ServerOptions options_;
  std::vector<std::string> names_;
  ApiKeys keys_;
  std::atomic<bool> ready_ = false, stopping_ = false;
  ServedModels models_;
  Metrics metrics_;

  std::mutex sleep_mutex_;
  std::condition_variable woken_;
  bool awake_ = false;
  std::mutex running_mutex_;
  std::vector<std::weak_ptr<Generation>> running_;

  std::optional<Page> page_;
  std::optional<Transport> transport_;        // begins last; ends after the queues, whose work answers through it
  WorkQueue writer_, slow_reader_, readers_;  // each hands work to those before it
};

Server::Server(const ServerOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Server::~Server() = default;

void Server::run() {
  impl_->run();
}

void Server::stop() {
  impl_->stop();
}

int Server::port() const {
  return impl_->port();
}

void Server::show_model(const std::string& name, const std::string& path) {
  impl_->page().add(name, path);
}

void Server::show_training(const std::string& run) {
  impl_->page().jobs().follow(run);
}

void Server::training_ended(bool finished) {
  impl_->page().jobs().followed_ended(finished);
}

const std::string& Server::page_token() const {
  return impl_->page_token();
}

bool Server::ready() const {
  return impl_->ready();
}

std::optional<int> Server::first_job_ended() const {
  return impl_->first_job_ended();
}

std::vector<std::string> Server::model_names() const {
  return impl_->names();
}

}  // namespace qkv

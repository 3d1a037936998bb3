#include "server/page/page.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <span>

#include "base/error.h"
#include "base/sha256.h"
#include "inspect/report/report_html.h"
#include "server/page/page_first.h"
#include "server/page/page_routes.h"
#include "text/tokenizer/files/base64.h"

namespace qkv::server {
namespace {

constexpr std::string_view kPagePaths[] = {"/", "/page"};
constexpr const char* kTokenHeader = "X-QKV-Token";

// One of `look` and `work` answers. POST to one of `work` starts or ends something: it needs the page's token and origin.
struct PageRoute {
  std::string_view method, path;
  PageLook look = nullptr;
  PageWork work = nullptr;
};
constexpr PageRoute kPageRoutes[] = {
    {.method = "GET", .path = "/page/models", .look = page_models},
    {.method = "POST", .path = "/page/look", .look = page_look},
    {.method = "POST", .path = "/page/write", .look = page_write},
    {.method = "POST", .path = "/page/cut", .look = page_cut},
    {.method = "POST", .path = "/page/roles", .look = page_roles},
    {.method = "POST", .path = "/page/story", .look = page_story},
    {.method = "POST", .path = "/page/update", .look = page_update},
    {.method = "POST", .path = "/page/weight", .look = page_weight},
    {.method = "POST", .path = "/page/tile", .look = page_tile},
    {.method = "POST", .path = "/page/overview", .look = page_overview},
    {.method = "GET", .path = "/page/jobs", .work = page_jobs},
    {.method = "GET", .path = "/page/jobs/events", .work = page_job_events},
    {.method = "GET", .path = "/page/jobs/movie", .work = page_job_movie},
    {.method = "GET", .path = "/page/labs", .work = page_labs},
    {.method = "POST", .path = "/page/training/start", .work = page_train},
    {.method = "POST", .path = "/page/training/pause", .work = page_pause},
    {.method = "POST", .path = "/page/training/resume", .work = page_resume},
    {.method = "POST", .path = "/page/training/stop", .work = page_stop_training},
    {.method = "POST", .path = "/page/labs/run", .work = page_run_lab},
    {.method = "POST", .path = "/page/labs/stop", .work = page_stop_lab},
    {.method = "POST", .path = "/page/examples", .look = page_examples},
    {.method = "POST", .path = "/page/twins", .look = page_twins},
    {.method = "POST", .path = "/page/experts", .look = page_experts},
    {.method = "POST", .path = "/page/decode", .look = page_decode},
    {.method = "POST", .path = "/page/compare", .look = page_compare},
    {.method = "POST", .path = "/page/sums", .look = page_sums},
};

const PageRoute* route_of(std::string_view path) {
  const auto found = std::find_if(std::begin(kPageRoutes), std::end(kPageRoutes),
                                  [&](const PageRoute& route) { return route.path == path; });
  return found == std::end(kPageRoutes) ? nullptr : found;
}

std::string random_token() {
  std::array<unsigned char, 32> bytes{};
  QKV_CHECK(RAND_bytes(bytes.data(), bytes.size()) == 1, "the system gives no random numbers",
            Hint("the page's token needs them"));
  std::string hex;
  for (const unsigned char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string base64_sha256(std::string_view text) {
  const std::string hex = sha256_hex(std::as_bytes(std::span(text)));
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return encode_base64(bytes);
}

// The page's scripts and styles by their hashes: nothing that is added to it runs.
std::string hashes_of(std::string_view html, const std::string& tag) {
  std::string hashes;
  for (size_t at = 0; (at = html.find("<" + tag, at)) != html.npos;) {
    const size_t open = html.find('>', at), close = html.find("</" + tag, at);
    if (open == html.npos || close == html.npos) break;
    const std::string_view attributes = html.substr(at, open - at);
    if (attributes.find("application/json") == attributes.npos) {
      hashes += " 'sha256-" + base64_sha256(html.substr(open + 1, close - open - 1)) + "'";
    }
    at = close;
  }
  return hashes.empty() ? " 'none'" : hashes;
}

std::string policy_of(std::string_view html) {
  return "default-src 'none'; script-src" + hashes_of(html, "script") + "; style-src" + hashes_of(html, "style") +
         "; connect-src 'self'; img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}

}  // namespace

struct Page::Impl {
  PageOptions options;
  std::string token = random_token();
  mutable std::mutex first_mutex;
  std::shared_ptr<const Json> first_english, first_chinese;  // null until they are made
  PageParts parts;
  std::optional<Jobs> jobs;

  // A page of another origin cannot read the token, and a program that has it is not a page.
  std::optional<HttpResponse> refuse_work(const PageRoute& route, const HttpHead& head, OriginIs origin) const {
    if (!options.work) {
      return ApiError(403,
                      "trainings and labs cannot be followed or started here: only on a server that this machine "
                      "alone can reach, and that was started without --no-work")
          .response();
    }
    if (route.method != "POST") return std::nullopt;
    if (origin != OriginIs::same) {
      return ApiError(403, "work is started by the server's own page: the Origin header must be this server's")
          .response();
    }
    const std::string_view shown = head.header(kTokenHeader);
    if (head.count(kTokenHeader) == 1 && shown.size() == token.size() &&
        CRYPTO_memcmp(shown.data(), token.data(), token.size()) == 0) {
      return std::nullopt;
    }
    ApiError wrong(403,
                   fmt::format("the header {} must be the token of the page; reload the page to get it", kTokenHeader));
    wrong.code = "stale_token";
    return wrong.response();
  }

  // By the page's thread.
  void keep_first_looks() {
    const auto keep = [this](std::shared_ptr<const Json>& first, bool chinese) {
      auto made = std::make_shared<const Json>(first_look(parts, chinese));
      const std::lock_guard lock(first_mutex);
      first = std::move(made);
    };
    keep(first_english, false);
    parts.thread.serve_waiting();
    keep(first_chinese, true);
  }

  HttpResponse file(const HttpHead& head) const {
    Json report = Json::object();
    {
      const std::lock_guard lock(first_mutex);
      const auto& first = head.header("Accept-Language").starts_with("zh") ? first_chinese : first_english;
      if (options.look && first != nullptr) report = *first;
    }
    report.update({{"report", "live"}, {"token", token}, {"work", options.work}});
    const std::string html = report_html(report);
    return {.type = "text/html; charset=utf-8",
            .headers = {{"Content-Security-Policy", policy_of(html)}, {"Referrer-Policy", "no-referrer"}},
            .body = html};
  }
};

Page::Page(const PageOptions& options) : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
  impl_->jobs.emplace(options.jobs);
  for (size_t i = 0; i < options.names.size(); ++i) {
    impl_->parts.models.add(options.names[i], options.paths[i], options.open);
  }
}

Page::~Page() {
  stop();
}

bool Page::has(std::string_view path) {
  return is_file(path) || route_of(path) != nullptr;
}

bool Page::is_file(std::string_view path) {
  return std::ranges::find(kPagePaths, path) != std::end(kPagePaths);
}

const std::string& Page::token() const {
  return impl_->token;
}

std::optional<HttpResponse> Page::refuse(const HttpHead& head, OriginIs origin) const {
  const PageRoute* route = route_of(head.path);
  const std::string_view takes = route == nullptr ? "GET" : route->method;
  if (head.method != takes && !(takes == "GET" && head.method == "HEAD")) {
    HttpResponse wrong = ApiError(405, "this route takes " + std::string(takes)).response();
    wrong.headers.emplace_back("Allow", takes == "GET" ? "GET, HEAD" : std::string(takes));
    return wrong;
  }
  if (route != nullptr && route->look != nullptr && !impl_->options.look) {
    return ApiError(403, "looking inside is not allowed here; qkv serve --look allows it").response();
  }
  if (route != nullptr && route->work != nullptr) return impl_->refuse_work(*route, head, origin);
  return std::nullopt;
}

void Page::answer(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
  const PageRoute* route = route_of(request.head.path);
  if (route == nullptr) return exchange->respond(impl_->file(request.head));
  const auto body = std::make_shared<const OrderedJson>(request.head.method == "POST" ? parse_body(request.body)
                                                                                      : OrderedJson::object());
  if (route->work != nullptr) return route->work(*impl_->jobs, Fields(*body, ""), exchange);
  impl_->parts.thread.ask(exchange, [this, body, look = route->look] { return look(impl_->parts, Fields(*body, "")); });
}

void Page::prepare() {
  impl_->parts.thread.when_idle([impl = impl_.get()] { impl->keep_first_looks(); });
}

void Page::add(const std::string& name, const std::string& path) {
  impl_->parts.thread.when_idle([impl = impl_.get(), name, path] {
    if (impl->parts.models.find(name) != nullptr) return;
    impl->parts.models.add(name, path, impl->options.open);
    if (impl->parts.models.all().size() == 1) impl->keep_first_looks();
  });
}

Jobs& Page::jobs() {
  return *impl_->jobs;
}

std::optional<int> Page::first_job_ended() const {
  return impl_->jobs->first_ended();
}

void Page::end_work() {
  impl_->jobs->end();
}

void Page::stop() {
  end_work();
  impl_->parts.thread.stop();
  impl_->jobs->join();
}

}  // namespace qkv::server

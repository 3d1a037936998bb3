// The live page (docs/page.md): GET / (or /page), and the routes below /page/ that it asks.
//
// Routes that look into a model run on the page's own thread; those that start work (trainings, labs) need the page's
// token and its origin, and run beside it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "open/open_model.h"
#include "server/http/http.h"
#include "server/http/origin.h"
#include "server/jobs/jobs.h"

namespace qkv::server {

struct PageOptions {
  std::vector<std::string> names, paths;  // of the models
  OpenOptions open = {};
  bool look = true;  // false: requests may not look inside
  bool work = true;  // false: nothing can be started from the page
  JobOptions jobs = {};
};

class Page {
 public:
  explicit Page(const PageOptions& options);
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page();

  static bool has(std::string_view path);      // the page, or one of its routes
  static bool is_file(std::string_view path);  // the page itself, which needs no key
  const std::string& token() const;

  // Before the body is read: method, and for work the token and the origin. Keys are the server's business.
  std::optional<HttpResponse> refuse(const HttpHead& head, OriginIs origin) const;
  // By a reader's thread.
  void answer(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
  // From any thread. prepare(): the first model's first look is made now, and is part of the page from then on.
  void prepare();
  void add(const std::string& name, const std::string& path);  // one more model; a name that is there is left alone
  Jobs& jobs();
  std::optional<int> first_job_ended() const;  // the exit code of JobOptions::first
  void end_work();                             // asks what was started to save and end, and sends no more of it
  void stop();                                 // and waits for that, and for what is being looked at

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv::server

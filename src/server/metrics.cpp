#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace qkv::server {
namespace {

std::string label_of(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string head_of_metric(const char* name, const char* type, const char* help) {
  return fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

}  // namespace

void Histogram::add(double seconds) {
  const auto bucket = std::lower_bound(kEdges.begin(), kEdges.end(), seconds) - kEdges.begin();
  ++counts_[static_cast<size_t>(bucket)];
  sum_ += seconds;
  ++count_;
}

std::string Histogram::text(const std::string& name, const std::string& labels) const {
  std::string out;
  int64_t below = 0;
  for (size_t i = 0; i < kEdges.size(); ++i) {
    below += counts_[i];
    out += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, kEdges[i], below);
  }
  out += fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}\n", name, labels, count_);
  return out + fmt::format("{0}_sum{{{1}}} {2}\n{0}_count{{{1}}} {3}\n", name, labels, sum_, count_);
}

void Metrics::answered(const std::string& route, int status) {
  const std::lock_guard lock(mutex_);
  ++answers_[{route, status}];
}

void Metrics::rejected() {
  const std::lock_guard lock(mutex_);
  ++rejected_;
}

void Metrics::cancelled() {
  const std::lock_guard lock(mutex_);
  ++cancelled_;
}

void Metrics::first_token(const std::string& model, double seconds) {
  const std::lock_guard lock(mutex_);
  models_[model].first.add(seconds);
}

void Metrics::next_token(const std::string& model, double seconds) {
  const std::lock_guard lock(mutex_);
  models_[model].next.add(seconds);
}

void Metrics::tokens(const std::string& model, int64_t prompt, int64_t written) {
  const std::lock_guard lock(mutex_);
  models_[model].prompt += prompt;
  models_[model].written += written;
}

std::string Metrics::text(const std::vector<ModelNow>& now, size_t busy) const {
  const std::lock_guard lock(mutex_);
  std::string out = head_of_metric("qkv_requests_total", "counter", "answers by route and status");
  for (const auto& [key, count] : answers_) {
    out += fmt::format("qkv_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", label_of(key.first), key.second, count);
  }
  const auto plain = [&](const char* name, const char* type, const char* help, int64_t value) {
    out += head_of_metric(name, type, help) + fmt::format("{} {}\n", name, value);
  };
  plain("qkv_requests_in_progress", "gauge", "requests without a whole answer", static_cast<int64_t>(busy));
  plain("qkv_rejections_total", "counter", "requests refused for want of room", rejected_);
  plain("qkv_cancellations_total", "counter", "requests whose client left", cancelled_);
  const auto by_model = [&](const char* name, const char* type, const char* help, auto value) {
    out += head_of_metric(name, type, help);
    for (const ModelNow& one : now) {
      out += fmt::format("{}{{model=\"{}\"}} {}\n", name, label_of(one.name), value(one.counts));
    }
  };
  using Counts = Scheduler::Counts;
  by_model("qkv_queue_waiting", "gauge", "texts that wait for a slot", [](const Counts& c) { return c.waiting; });
  by_model("qkv_slots_active", "gauge", "texts that are being written", [](const Counts& c) { return c.active; });
  by_model("qkv_cache_pages", "gauge", "pages of the KV cache", [](const Counts& c) { return c.pages; });
  by_model("qkv_cache_pages_used", "gauge", "pages in use, kept texts included",
           [](const Counts& c) { return c.pages_used; });
  by_model("qkv_cache_texts_kept", "gauge", "finished texts kept for their prefixes",
           [](const Counts& c) { return c.kept; });
  by_model("qkv_prefix_tokens_total", "counter", "prompt tokens found in the cache",
           [](const Counts& c) { return c.shared; });
  by_model("qkv_passes_total", "counter", "forward passes", [](const Counts& c) { return c.passes; });
  const auto own = [&](const char* name, const char* help, auto value) {
    out += head_of_metric(name, "counter", help);
    for (const auto& [model, of] : models_)
      out += fmt::format("{}{{model=\"{}\"}} {}\n", name, label_of(model), value(of));
  };
  own("qkv_prompt_tokens_total", "tokens of prompts", [](const OfModel& m) { return m.prompt; });
  own("qkv_written_tokens_total", "tokens written", [](const OfModel& m) { return m.written; });
  const auto times = [&](const char* name, const char* help, auto value) {
    out += head_of_metric(name, "histogram", help);
    for (const auto& [model, of] : models_) out += value(of).text(name, fmt::format("model=\"{}\"", label_of(model)));
  };
  times("qkv_time_to_first_token_seconds", "from the request to the first token",
        [](const OfModel& m) { return m.first; });
  times("qkv_time_per_token_seconds", "between tokens of a text", [](const OfModel& m) { return m.next; });
  return out;
}

}  // namespace qkv::server

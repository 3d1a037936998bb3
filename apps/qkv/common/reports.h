// What commands that measure say: numbers with their intervals, and JSON.
#pragma once

#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/progress.h"
#include "common/command.h"
#include "common/interrupt.h"
#include "inspect/report/estimate.h"
#include "inspect/report/report_text.h"

namespace qkv::app {

// "0.4213 [0.4010, 0.4420]"; without an interval where too few texts say anything of others.
std::string with_interval(const Estimate& e);
nlohmann::ordered_json to_json(const Estimate& e);

// --json: the report on standard output, and nothing else there. --out FILE: the report in a file.
struct ReportOptions {
  bool json = false;
  std::string out;
  bool wanted() const { return json || !out.empty(); }
};
void add_report_options(Command command, ReportOptions& options);
void write_report(const ReportOptions& options, const nlohmann::ordered_json& report);
void write_report(const ReportOptions& options, const std::string& report);  // already JSON

void print_json(const nlohmann::ordered_json& report);

// Nothing goes to standard output while one of these lives.
class OutputSilence {
 public:
  OutputSilence() : before_(std::cout.rdbuf(nullptr)) {}
  ~OutputSilence() {
    std::cout.clear();
    std::cout.rdbuf(before_);
  }
  OutputSilence(const OutputSilence&) = delete;
  OutputSilence& operator=(const OutputSilence&) = delete;

 private:
  std::streambuf* before_;
};

// To a file that appears whole, or to standard output for "-".
void write_out(const std::string& file, std::string_view text);

// work(finished), with a line that says how far it is; Ctrl-C ends it.
template <class Work>
auto watched(const std::string& what, int64_t total, const Work& work, ProgressOptions options = {}) {
  Progress progress(what, total, stderr, std::move(options));
  const InterruptWatch watch;
  return work([&](size_t done) {
    if (watch.seen()) throw Interrupted{};
    progress.update(static_cast<int64_t>(done));
    return true;
  });
}

}  // namespace qkv::app

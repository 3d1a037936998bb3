// What commands that measure say: numbers with their intervals, and JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/progress.h"
#include "common/interrupt.h"
#include "inspect/report/estimate.h"

namespace qkv::app {

// "0.4213 [0.4010, 0.4420]"; without an interval where too few texts say anything of others.
std::string with_interval(const Estimate& e);
nlohmann::ordered_json to_json(const Estimate& e);

// To a file that appears whole, or to standard output for "-".
void write_out(const std::string& file, std::string_view text);
void write_json(const std::string& file, const nlohmann::ordered_json& report);

// work(finished), with a line that says how far it is; Ctrl-C ends it.
template <class Work>
auto watched(const std::string& what, int64_t total, const Work& work) {
  Progress progress(what, total);
  const InterruptWatch watch;
  return work([&](size_t done) {
    if (watch.seen()) throw Interrupted{};
    progress.update(static_cast<int64_t>(done));
    return true;
  });
}

}  // namespace qkv::app

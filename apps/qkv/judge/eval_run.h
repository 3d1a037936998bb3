// What the three kinds of data of qkv eval share: the model, log-probabilities of texts, and the report.
#pragma once

#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "common/model_options.h"
#include "eval/bootstrap.h"

namespace qkv::app {

struct EvalOptions {
  ModelOptions model;
  CacheOptions cache;
  std::string data;
  int64_t window = 0, stride = 0;
  uint64_t seed = 0;
  bool json = false;
};

// The predicted tokens of a window, of a line, or of all of them.
struct Tally {
  double nats = 0;
  int64_t tokens = 0, bytes = 0;
  Tally& operator+=(const Tally& other) {
    nats += other.nats;
    tokens += other.tokens;
    bytes += other.bytes;
    return *this;
  }
};

class EvalReport {
 public:
  explicit EvalReport(const EvalOptions& options) : options_(options) {}

  nlohmann::ordered_json json;
  void say(const std::string& line) const;  // unless JSON is wanted
  void finish() const;

  // Perplexity, bits per byte and nats per token of all items together.
  void add_likelihood(const std::vector<Tally>& items, const char* unit);

 private:
  const EvalOptions& options_;
};

struct EvalRun {
  explicit EvalRun(const EvalOptions& options);

  // The log-probability of each text: the sum over the tokens it asks about.
  std::vector<double> log_probability(std::span<const TokenText> texts);
  void add_nats(std::vector<Tally>& tallies, std::span<const TokenText> texts);

  std::string bos_name() const;  // "" if there is none
  Json bos_json() const;         // null if there is none
  void check_length(const std::vector<int32_t>& ids, const std::string& what) const;

  const EvalOptions& options;
  api::Model library;
  const OpenModel& model;
  int64_t context;  // most tokens of a text
  Runner runner;
  EvalReport report;
  std::optional<int32_t> bos;  // every text begins with it
};

void eval_text(EvalRun& run, const std::string& text);
void eval_minimal_pairs(EvalRun& run, const std::vector<std::filesystem::path>& files);
void eval_translations(EvalRun& run);

// Whether the first line of a text is a minimal pair.
bool begins_with_minimal_pair(std::string_view text);

// Lines without their line breaks.
std::vector<std::string_view> lines_of(std::string_view text);
// A file's text. An Error names the first line that is not UTF-8.
std::string checked_text(const std::filesystem::path& file);

}  // namespace qkv::app

// qkv data stats: what a packed dataset holds, drawn for a person or as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "base/display_width.h"
#include "base/error.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/progress.h"
#include "common/commands.h"
#include "data/dataset.h"
#include "data/dataset_stats.h"
#include "data/dataset_tokenizer.h"

namespace qkv::app {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr size_t kFrequent = 10;

std::vector<std::string> parts_of(const PackedDataset& data) {
  return data.manifest().pairs ? std::vector<std::string>{"source", "target"} : std::vector<std::string>{"document"};
}

double bytes_per_token(const PackedSplit& split) {
  return static_cast<double>(split.text_bytes()) / static_cast<double>(std::max<uint64_t>(split.tokens(), 1));
}

Ordered lengths_json(const std::vector<uint64_t>& counts) {
  Ordered out = Ordered::array();
  for (size_t bin = 0; bin < counts.size(); ++bin)
    out.push_back({{"from", 1ULL << bin}, {"to", (2ULL << bin) - 1}, {"count", counts[bin]}});
  return out;
}

Ordered split_json(const PackedDataset& data, Split which, const SplitStats& stats) {
  const PackedSplit& split = data.of(which);
  Ordered frequent = Ordered::array(), lengths;
  for (const auto& [id, count] : stats.frequent) frequent.push_back({{"id", id}, {"count", count}});
  for (size_t p = 0; p < stats.lengths.size(); ++p) lengths[parts_of(data)[p]] = lengths_json(stats.lengths[p]);
  return {{"documents", split.documents()},
          {"tokens", split.tokens()},
          {"text_bytes", split.text_bytes()},
          {"bytes_per_token", bytes_per_token(split)},
          {"shards", data.manifest().of(which).shards.size()},
          {"distinct_tokens", stats.distinct},
          {"lengths", lengths},
          {"frequent", frequent}};
}

std::string count_bar(uint64_t count, uint64_t most) {
  constexpr double kCells = 40.0;
  const auto eighths = static_cast<size_t>(8.0 * kCells * static_cast<double>(count) / static_cast<double>(most) + 0.5);
  static constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  std::string out;
  for (size_t i = 0; i < eighths / 8; ++i) out += "█";
  return out + (eighths == 0 && count > 0 ? "▏" : kParts[eighths % 8]);
}

void draw_lengths(const std::string& part, const std::vector<uint64_t>& counts) {
  std::cout << fmt::format("\ntokens in a {}\n", part);
  const uint64_t most = *std::max_element(counts.begin(), counts.end());
  const auto first = std::find_if(counts.begin(), counts.end(), [](uint64_t count) { return count > 0; });
  for (auto bin = static_cast<size_t>(first - counts.begin()); bin < counts.size(); ++bin) {
    const std::string range = bin == 0 ? "1" : fmt::format("{} to {}", 1ULL << bin, (2ULL << bin) - 1);
    std::cout << fmt::format("{:>20} {:>12}  {}\n", range, counts[bin], count_bar(counts[bin], most));
  }
}

struct DataStatsArguments {
  std::string folder, tokenizer;
  bool json = false;
};

// What an id stands for, if anybody knows.
class TokenTexts {
 public:
  TokenTexts(const std::string& tokenizer, const DatasetManifest& manifest) : bytes_(manifest.tokenizer == "bytes") {
    if (tokenizer.empty() || bytes_) return;
    tokenizer_ = Tokenizer::load(tokenizer);
    QKV_CHECK(fingerprint(*tokenizer_) == manifest.tokenizer, tokenizer, " is not the tokenizer of this dataset",
              Hint("name the one it was packed with"));
  }
  std::string operator()(int32_t id) const {
    if (bytes_) return id < 256 ? printable(std::string(1, static_cast<char>(id))) : "end";
    return tokenizer_ ? printable(tokenizer_->bytes_of(id)) : "";
  }

 private:
  bool bytes_;
  std::optional<Tokenizer> tokenizer_;
};

void draw_split(const PackedDataset& data, const SplitStats& stats, const TokenTexts& texts) {
  const PackedSplit& split = data.of(Split::train);
  for (size_t p = 0; p < stats.lengths.size(); ++p) draw_lengths(parts_of(data)[p], stats.lengths[p]);
  std::cout << fmt::format("\nmost frequent tokens, of {} in use\n", stats.distinct);
  for (const auto& [id, count] : stats.frequent) {
    const double share = 100.0 * static_cast<double>(count) / static_cast<double>(split.tokens());
    const std::string text = texts(id);
    std::cout << std::string(static_cast<size_t>(std::max(0, 12 - display_width(text))), ' ') << text
              << fmt::format(" {:>7} {:>12}  {} {:.1f} %\n", id, count, count_bar(count, stats.frequent.front().second),
                             share);
  }
}

void stats(const DataStatsArguments& options) {
  const PackedDataset data(options.folder);
  const DatasetManifest& manifest = data.manifest();
  const TokenTexts texts(options.tokenizer, manifest);
  std::vector<SplitStats> all;
  for (const Split split : kSplits) {
    Progress progress(fmt::format("counting {} tokens", name_of(split)), static_cast<int64_t>(data.of(split).tokens()));
    all.push_back(split_stats(data.of(split), kFrequent,
                              [&](uint64_t tokens) { progress.update(static_cast<int64_t>(tokens)); }));
    progress.finish();
  }
  const char* kind = name_of_kind(manifest);
  const int64_t vocabulary = manifest.chats ? manifest.vocabulary / 2 : manifest.vocabulary;  // the tokenizer's
  if (options.json) {
    Ordered out{{"kind", kind}, {"vocabulary", vocabulary}, {"tokenizer", manifest.tokenizer}};
    for (const Split split : kSplits) out[name_of(split)] = split_json(data, split, all[static_cast<size_t>(split)]);
    std::cout << json_text(out) << '\n';
    return;
  }
  std::cout << fmt::format("{}: {}, vocabulary {} in {} bytes per token, tokenizer {}\n\n", options.folder, kind,
                           vocabulary, manifest.token_bytes, manifest.tokenizer.substr(0, 16));
  std::cout << fmt::format("{:<11} {:>12} {:>14} {:>16} {:>8}\n", "", name_of_documents(manifest), "tokens",
                           "bytes per token", "shards");
  for (const Split which : kSplits) {
    const PackedSplit& split = data.of(which);
    std::cout << fmt::format("{:<11} {:>12} {:>14} {:>16.2f} {:>8}\n", name_of(which), split.documents(),
                             split.tokens(), bytes_per_token(split), manifest.of(which).shards.size());
  }
  draw_split(data, all.front(), texts);
}

}  // namespace

void add_data_stats(Command data) {
  const Command command =
      data.add_command("stats", "Documents, tokens, lengths and frequent tokens of a packed dataset");
  const auto options = std::make_shared<DataStatsArguments>();  // lives as long as the callback
  command.add_option("DIR", options->folder, "A folder made by qkv data pack").required();
  command.add_tokenizer("--tokenizer TOKENIZER", options->tokenizer, "Show what the frequent tokens stand for");
  command.add_flag("--json", options->json, "Print the report as JSON, and nothing else");
  command.footer("Examples:\n  qkv data stats shakespeare\n  qkv data stats shakespeare --json");
  command.callback([options] { stats(*options); });
}

}  // namespace qkv::app

#include "infer/generation_defaults.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "base/printable.h"

namespace qkv {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr int64_t kMost = INT32_MAX;

template <class Number>
struct Range {
  Number low, high;
};

std::optional<double> number(const Config& c, const char* key, Range<double> range) {
  if (!c.has(key)) return std::nullopt;
  const double x = c.number({key});
  if (!(x >= range.low && x <= range.high)) {
    c.fail(key, fmt::format("is {} but must be from {} to {}", x, range.low, range.high),
           "correct it, or remove it to have the usual value");
  }
  return x;
}

std::optional<int64_t> whole(const Config& c, const char* key, Range<int64_t> range) {
  if (!c.has(key)) return std::nullopt;
  const int64_t n = c.whole({key});
  if (n < range.low || n > range.high) {
    c.fail(key, fmt::format("is {} but must be from {} to {}", n, range.low, range.high),
           "correct it, or remove it to have the usual value");
  }
  return n;
}

BeamOptions::Early read_early(const Config& c) {
  using Early = BeamOptions::Early;
  constexpr const char* kKey = "early_stopping";
  if (!c.has(kKey)) return Early::no;
  const Json& value = c.json().at(kKey);
  if (value.is_boolean()) return value.get<bool>() ? Early::yes : Early::no;
  if (value == "never") return Early::never;
  c.fail(kKey, "is " + printable(value.dump()) + " but must be true, false or \"never\"", "the config is damaged");
}

void check_id(const Config& c, const char* key, int64_t id, int64_t vocabulary) {
  if (id < 0 || id >= vocabulary) {
    c.fail(key, fmt::format("holds {} but the model knows ids from 0 to {}", id, vocabulary - 1),
           "the file belongs to another model");
  }
}

// bad_words_ids [[58100]], suppress_tokens [58100].
std::vector<int32_t> read_banned(const Config& c, const std::vector<int32_t>& eos, int64_t vocabulary) {
  std::vector<int32_t> banned;
  for (const int64_t id : c.wholes({"suppress_tokens"})) {
    check_id(c, "suppress_tokens", id, vocabulary);
    banned.push_back(static_cast<int32_t>(id));
  }
  constexpr const char* kWords = "bad_words_ids";
  if (c.has(kWords)) {
    const Json& words = c.json().at(kWords);
    const auto malformed = [&] {
      c.fail(kWords, "is " + printable(words.dump()) + " but must be a list of lists of ids", "the config is damaged");
    };
    if (!words.is_array()) malformed();
    for (const Json& word : words) {
      if (!word.is_array() || word.empty()) malformed();
      if (word.size() > 1) {
        c.fail(kWords, fmt::format("bans a word of {} tokens", word.size()), "only single tokens can be banned here");
      }
      if (!word[0].is_number_integer()) malformed();
      const auto id = word[0].get<int64_t>();
      check_id(c, kWords, id, vocabulary);
      // A banned end token could never end a text.
      if (std::find(eos.begin(), eos.end(), id) == eos.end()) banned.push_back(static_cast<int32_t>(id));
    }
  }
  std::sort(banned.begin(), banned.end());
  banned.erase(std::unique(banned.begin(), banned.end()), banned.end());
  return banned;
}

}  // namespace

GenerationDefaults read_generation_defaults(const Config& config, const std::optional<Config>& generation,
                                            int64_t vocabulary) {
  const Config& c = generation ? *generation : config;
  GenerationDefaults d;
  d.do_sample = c.flag({"do_sample"}, false);
  d.temperature = number(c, "temperature", {0, 100});
  d.top_p = number(c, "top_p", {0, 1});
  d.min_p = number(c, "min_p", {0, 1});
  d.typical_p = number(c, "typical_p", {0, 1});
  d.repetition_penalty = number(c, "repetition_penalty", {0.01, 100});
  d.top_k = whole(c, "top_k", {0, kMost});
  d.no_repeat_ngram = whole(c, "no_repeat_ngram_size", {0, kMost}).value_or(0);

  d.num_beams = whole(c, "num_beams", {1, 256}).value_or(1);
  d.length_penalty = number(c, "length_penalty", {-100, 100}).value_or(1);
  d.early = read_early(c);
  d.max_length = whole(c, "max_length", {1, kMost});
  d.max_new_tokens = whole(c, "max_new_tokens", {1, kMost});

  d.tokens = read_token_ids(c);
  if (generation) {
    const TokenIds older = read_token_ids(config);
    if (!d.tokens.bos) d.tokens.bos = older.bos;
    if (!d.tokens.pad) d.tokens.pad = older.pad;
    if (!d.tokens.decoder_start) d.tokens.decoder_start = older.decoder_start;
    if (d.tokens.eos.empty()) d.tokens.eos = older.eos;
  }
  for (const char* key : {"decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id"}) {
    if (c.has(key)) check_id(c, key, c.whole({key}), vocabulary);
  }
  if (c.has("forced_bos_token_id")) d.forced_bos = static_cast<int32_t>(c.whole({"forced_bos_token_id"}));
  d.banned = read_banned(c, d.tokens.eos, vocabulary);
  return d;
}

BeamOptions beam_options(const GenerationDefaults& defaults, const BeamChoices& chosen, const BeamStart& start) {
  constexpr int64_t kUsualBeams = 4, kUsualLength = 256;
  BeamOptions beam{.beams = chosen.beams.value_or(defaults.num_beams > 1 ? defaults.num_beams : kUsualBeams),
                   .n_best = chosen.n_best,
                   .length_penalty = chosen.length_penalty.value_or(defaults.length_penalty),
                   .early = defaults.early,
                   .eos = defaults.tokens.eos,
                   .forced_eos = defaults.tokens.forced_eos,
                   .forced_bos = defaults.forced_bos,
                   .banned = defaults.banned,
                   .no_repeat_ngram = chosen.no_repeat_ngram.value_or(defaults.no_repeat_ngram),
                   .repetition_penalty = chosen.repetition_penalty.value_or(defaults.repetition_penalty.value_or(1))};
  if (beam.beams == 1) beam.early = BeamOptions::Early::yes;  // greedy
  const std::optional<int64_t> max_new = chosen.max_new ? chosen.max_new : defaults.max_new_tokens;
  beam.max_length = max_new            ? start.prompt + std::min(*max_new, start.context)
                    : start.has_source ? defaults.max_length.value_or(kUsualLength)
                                       : start.context;
  beam.max_length = std::min(beam.max_length, start.context);
  return beam;
}

GenerationDefaults generation_defaults(const std::filesystem::path& model, const Json& config, int64_t vocabulary) {
  std::optional<Config> generation;
  const std::filesystem::path file = model / "generation_config.json";
  if (is_folder(model) && is_there(file)) {
    Json json = parse_json(read_file(file, kMostBytes), file.string());
    QKV_CHECK(json.is_object(), file.string(), " is ", printable(json.dump()), " but must be an object",
              Hint("remove it to use what config.json says"));
    generation.emplace(std::move(json), file.string());
  }
  return read_generation_defaults(Config(config, "config.json"), generation, vocabulary);
}

}  // namespace qkv

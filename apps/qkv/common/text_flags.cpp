#include "common/text_flags.h"

#include <charconv>

#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "base/printable.h"
#include "infer/grammar/json_schema.h"

namespace qkv::app {
namespace {

// "id=value".
std::pair<int32_t, double> parse_bias(const std::string& text) {
  const size_t equals = std::min(text.find('='), text.size());
  const char *begin = text.data(), *middle = begin + equals, *end = begin + text.size();
  int32_t id = 0;
  double value = 0;
  const auto read_id = std::from_chars(begin, middle, id);
  const bool id_good = read_id.ec == std::errc() && read_id.ptr == middle && middle < end;
  const auto read_value = std::from_chars(id_good ? middle + 1 : end, end, value);
  QKV_CHECK(id_good && read_value.ec == std::errc() && read_value.ptr == end, "--logit-bias ", printable(text),
            " is not ID=VALUE", Hint("for example  --logit-bias 50256=-100"));
  return {id, value};
}

}  // namespace

void add_text_flags(Command command, TextFlags& flags) {
  command.add_option("--max-new", flags.max_new, "Most tokens to write; otherwise until the context is full")
      .between(int64_t{1}, int64_t{1} << 30);
  command.add_option("--temperature", flags.temperature, "Divides the logits; 0 takes the most likely token");
  command.add_option("--top-k", flags.top_k, "Sample from the N most likely tokens; 0: from all");
  command.add_option("--top-p", flags.top_p, "Sample from the most likely tokens that together reach this probability");
  command.add_option("--min-p", flags.min_p,
                     "Sample from tokens at least this likely, relative to the most likely one");
  command.add_option("--typical-p", flags.typical_p,
                     "Sample from the most typical tokens that together reach this probability");
  command.add_option("--repetition-penalty", flags.repetition_penalty,
                     "Above 1: makes tokens of prompt and text less likely");
  command.add_option("--presence-penalty", flags.presence_penalty,
                     "Subtracted once from the logit of each token in the text");
  command.add_option("--frequency-penalty", flags.frequency_penalty, "Subtracted for each time a token is in the text");
  command.add_option("--no-repeat-ngram", flags.no_repeat_ngram, "Never write the same N tokens in a row twice");
  command.add_option("--logit-bias ID=VALUE", flags.biases, "Add VALUE to a token's logit; may be repeated")
      .one_value();
  command.add_option("--seed", flags.seed, "Seed of the sampling: the same seed writes the same text").show_default();
  command.add_option("--stop", flags.stop, "End before this text; may be repeated").one_value();
  command.add_option("--draft", flags.draft,
                     "Guess up to N tokens ahead from the text itself: the same result, faster");
  command.add_option("--json-schema FILE", flags.json_schema,
                     "Write JSON that satisfies the JSON Schema in this file, whatever the model would say");
}

namespace {

// An Error here, before the model is opened, if it is none.
std::string schema_text(const std::string& file) {
  if (file.empty()) return "";
  QKV_CHECK(is_file(file), "--json-schema ", printable(file), " is not a file",
            Hint("--json-schema takes a file with a JSON Schema, not the schema itself"));
  std::string text = read_file(file, grammar::kLargestSchema);
  grammar::schema_grammar(text, file);
  return text;
}

TextChoices with_biases(const TextFlags& flags) {
  TextChoices chosen = flags;
  for (const std::string& bias : flags.biases) {
    const auto [id, value] = parse_bias(bias);
    chosen.logit_bias[id] = value;
  }
  return chosen;
}

}  // namespace

v1::GenerateOptions generate_options(const TextFlags& flags) {
  const TextChoices chosen = with_biases(flags);
  return {.max_new = chosen.max_new,
          .temperature = chosen.temperature,
          .top_p = chosen.top_p,
          .min_p = chosen.min_p,
          .typical_p = chosen.typical_p,
          .top_k = chosen.top_k,
          .no_repeat_ngram = chosen.no_repeat_ngram,
          .repetition_penalty = chosen.repetition_penalty,
          .presence_penalty = chosen.presence_penalty,
          .frequency_penalty = chosen.frequency_penalty,
          .logit_bias = chosen.logit_bias,
          .stop = chosen.stop,
          .seed = chosen.seed,
          .draft = chosen.draft,
          .json_schema = schema_text(flags.json_schema)};
}

}  // namespace qkv::app

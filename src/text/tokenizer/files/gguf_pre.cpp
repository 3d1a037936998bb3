#include "text/tokenizer/files/gguf_pre.h"

#include <algorithm>
#include <utility>

namespace qkv {
namespace {

enum class Cutting : uint8_t {
  plain,  // what a file without the key means
  gpt2,
  digits_gpt2,
  falcon,
  llama3,
  spaces_by_powers,
  qwen2,
  qwen_marks,
  deepseek_llm,
  deepseek_coder,
  deepseek_v3,
  bloom,
  viking,
  tekken,
  o200k,
};

constexpr std::string_view kPunctuation = R"([\p{P}\$\+<=>\^~\|]+)", kFalconPunctuation = R"([\p{P}\$\+<=>\^~\|`]+)";
constexpr std::string_view kDigit = R"(\p{N})", kDigits = R"(\p{N}+)", kThreeDigits = "[0-9][0-9][0-9]";
// Llama 3's, with runs of spaces cut into powers of two.
constexpr std::string_view kSpacesByPowers =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S))"
    R"(|\s{1,2}(?!\S)|\s{1})";
// Qwen2's, with marks as parts of words.
constexpr std::string_view kQwenMarks =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)";
constexpr std::string_view kLineEnd = "[\r\n]", kDeepseekCjk = "[一-龥ࠀ-一가-퟿]+";
// Such letters are cut anew each time by the formatter.
// clang-format off
// Letters with case: Latin, Greek, Cyrillic, Armenian, Georgian, Cherokee and their like.
constexpr std::string_view kCasedLetters =
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-"
    "ἕἘ-"
    "Ἕἠ-"
    "ὅὈ-"
    "Ὅὐ-"
    "ὗὙὛὝὟ-\u1F7Dᾀ-ᾴᾶ-ᾼ\u1FBE"
    "ῂ-ῄῆ-ῌῐ-\u1FD3ῖ-\u1FDBῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212A-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-"
    "ﬗＡ-"
    "Ｚａ-"
    "ｚ𐐀-"
    "𐑏𐒰-"
    "𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+";
// clang-format on
constexpr std::string_view kWidePunctuation = "\\s?[!-/:-~！-／：-～‘-‟　-。]+";
constexpr std::string_view kBloom = " ?[^(\\s|.,!?…。，、।۔،)]+";
// Changes of case end a word, as in o200k, but there are no contractions and digits stand alone.
constexpr std::string_view kTekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                                     R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<std::string_view> steps_of(Cutting cutting) {
  const auto all = [](Pattern pattern) {
    const auto regexes = pattern_regexes(pattern);
    return std::vector<std::string_view>(regexes.begin(), regexes.end());
  };
  const std::string_view gpt2 = pattern_regexes(Pattern::gpt2)[0];
  switch (cutting) {
    case Cutting::plain:
      return {kPunctuation, gpt2, kDigits, kThreeDigits};
    case Cutting::gpt2:
      return {gpt2};
    case Cutting::digits_gpt2:
      return all(Pattern::starcoder);
    case Cutting::falcon:
      return {kFalconPunctuation, gpt2, kThreeDigits};
    case Cutting::llama3:
      return all(Pattern::llama3);
    case Cutting::spaces_by_powers:
      return {kSpacesByPowers};
    case Cutting::qwen2:
      return all(Pattern::qwen2);
    case Cutting::qwen_marks:
      return {kQwenMarks};
    case Cutting::deepseek_llm:
      return {kLineEnd, kCasedLetters, kWidePunctuation, R"(\s+$)", kDeepseekCjk, kDigits};
    case Cutting::deepseek_coder:
      return {kLineEnd, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekCjk, kDigit};
    case Cutting::deepseek_v3:
      return all(Pattern::deepseek_v3);
    case Cutting::bloom:
      return {kBloom};
    case Cutting::viking:
      return {kBloom, kDigit};
    case Cutting::tekken:
      return {kTekken};
    case Cutting::o200k:
      return all(Pattern::gpt4o);
  }
  return {};
}

struct Name {
  std::string_view name;
  Cutting cutting;
  bool ignore_merges = false, bos = false;
};

// Of names that mean the same, the first is written.
constexpr Name kNames[] = {
    {"gpt-2", Cutting::gpt2},
    {"phi-2", Cutting::gpt2},
    {"jina-es", Cutting::gpt2},
    {"jina-de", Cutting::gpt2},
    {"jina-v1-en", Cutting::gpt2},
    {"jina-v2-es", Cutting::gpt2},
    {"jina-v2-de", Cutting::gpt2},
    {"jina-v2-code", Cutting::gpt2},
    {"roberta-bpe", Cutting::gpt2},
    {"modern-bert", Cutting::gpt2},
    {"gigachat", Cutting::gpt2},
    {"a.x-4.0", Cutting::gpt2},
    {"mellum", Cutting::gpt2},
    {"exaone4", Cutting::gpt2},
    {"mpt", Cutting::gpt2},
    {"olmo", Cutting::gpt2},
    {"jais", Cutting::gpt2},
    {"trillion", Cutting::gpt2},
    {"granite-docling", Cutting::gpt2},
    {"starcoder", Cutting::digits_gpt2},
    {"refact", Cutting::digits_gpt2},
    {"command-r", Cutting::digits_gpt2},
    {"smollm", Cutting::digits_gpt2},
    {"codeshell", Cutting::digits_gpt2},
    {"exaone", Cutting::digits_gpt2},
    {"minerva-7b", Cutting::digits_gpt2},
    {"mellum2", Cutting::digits_gpt2},
    {"falcon", Cutting::falcon},
    {"llama-bpe", Cutting::llama3, true, true},
    {"llama3", Cutting::llama3, true, true},
    {"llama-v3", Cutting::llama3, true, true},
    {"falcon3", Cutting::llama3, true, true},
    {"falcon-h1", Cutting::llama3, true, true},
    {"pixtral", Cutting::llama3, true, true},
    {"midm-2.0", Cutting::llama3, true, true},
    {"lfm2", Cutting::llama3, true, true},
    {"jina-v5-nano", Cutting::llama3, true, true},
    {"dbrx", Cutting::llama3},
    {"smaug-bpe", Cutting::llama3},
    {"glm4", Cutting::llama3},
    {"chatglm-bpe", Cutting::llama3},
    {"jais-2", Cutting::spaces_by_powers},
    {"qwen2", Cutting::qwen2},
    {"stablelm2", Cutting::qwen2},
    {"deepseek-r1-qwen", Cutting::qwen2},
    {"kormo", Cutting::qwen2},
    {"f2llmv2", Cutting::qwen2},
    {"megrez", Cutting::qwen2},
    {"hunyuan", Cutting::qwen2},
    {"solar-open", Cutting::qwen2},
    {"qwen35", Cutting::qwen_marks},
    {"deepseek-llm", Cutting::deepseek_llm},
    {"deepseek-coder", Cutting::deepseek_coder},
    {"deepseek-v3", Cutting::deepseek_v3},
    {"hunyuan-dense", Cutting::deepseek_v3},
    {"joyai-llm", Cutting::deepseek_v3},
    {"bloom", Cutting::bloom},
    {"poro-chat", Cutting::bloom},
    {"gpt3-finnish", Cutting::bloom},
    {"viking", Cutting::viking},
    {"tekken", Cutting::tekken, true, true},
    {"gpt-4o", Cutting::o200k},
    {"llama4", Cutting::o200k},
    {"kanana2", Cutting::o200k},
    {"talkie", Cutting::o200k},
    {"minimax-m2", Cutting::o200k},
    {"default", Cutting::plain},
};

}  // namespace

std::optional<GgufPre> find_gguf_pre(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name, &Name::name);
  if (found == std::end(kNames)) return std::nullopt;
  return GgufPre{.name = found->name,
                 .steps = steps_of(found->cutting),
                 .ignore_merges = found->ignore_merges,
                 .starts_with_bos = found->bos};
}

std::vector<std::string_view> gguf_pre_names() {
  std::vector<std::string_view> names;
  for (const Name& name : kNames) names.push_back(name.name);
  return names;
}

PreTokenizerPtr gguf_pre_tokenizer(const GgufPre& pre, std::string_view what) {
  for (const Pattern pattern :
       {Pattern::gpt2, Pattern::llama3, Pattern::qwen2, Pattern::gpt4o, Pattern::deepseek_v3, Pattern::starcoder}) {
    if (std::ranges::equal(pattern_regexes(pattern), pre.steps)) return pattern_pre_tokenizer(pattern, what);
  }
  std::vector<PreTokenizerPtr> steps;
  for (const std::string_view step : pre.steps) {
    steps.push_back(split_pre_tokenizer(Matcher::regex(step, what), {.behavior = SplitBehavior::isolated}));
  }
  return pre_tokenizer_sequence(std::move(steps));
}

std::string_view gguf_pre_of(std::span<const std::string> steps, bool ignore_merges) {
  for (const Name& name : kNames) {
    if (name.ignore_merges == ignore_merges && std::ranges::equal(steps_of(name.cutting), steps)) return name.name;
  }
  return "";
}

}  // namespace qkv

#include "inspect/heads/head_roles.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "inspect/heads/role_probe.h"

namespace qkv {
namespace {

constexpr const char* kNames[] = {
    "current",
    "previous",
    "back2",
    "back3",
    "back4",
    "next",
    "at_current",
    "at_previous",
    "at_back2",
    "at_back3",
    "at_back4",
    "at_next",
    "first",
    "sink",
    "entropy",
    "distance",
    "punctuation",
    "period",
    "comma",
    "colon",
    "question",
    "newline",
    "special",
    "punctuation_mass",
    "special_mass",
    "from_punctuation",
    "rare",
    "rare2",
    "confidence",
    "spread",
    "duplicate",
    "duplicate_mass",
    "induction",
    "induction_mass",
    "copying",
    "write",
    "resting",
    "repeat_previous",
    "repeat_duplicate",
    "repeat_induction",
    "repeat_duplicate_mass",
    "repeat_induction_mass",
};
static_assert(std::size(kNames) == kMeasures);

// Random tokens are drawn from those that occur in the texts; as many as fit the context.
void add_repeats(Reader& reader, const RoleTexts& known, const RoleOptions& options, RoleScores& scores) {
  RepeatOptions repeat{.texts = options.repeated_texts, .seed = options.seed, .tokens = known.ordinary_tokens()};
  const ModelSpec& spec = reader.model().spec();
  const int64_t room = spec.context > 0 ? (spec.context - 1) / repeat.repeats : repeat.length;
  repeat.length = std::min({repeat.length, room, std::ssize(repeat.tokens)});
  if (repeat.length < kShortestRepeat) {
    scores.missing.push_back("repeated tokens: fewer than " + std::to_string(kShortestRepeat) +
                             " different tokens, or no room for them twice");
    return;
  }
  const std::vector<RepeatScore> found = repeat_scores(reader, repeat);
  for (size_t h = 0; h < found.size(); ++h) {
    HeadScore& head = scores.heads[h];
    head[Measure::repeat_previous] = found[h].previous;
    head[Measure::repeat_duplicate] = found[h].duplicate;
    head[Measure::repeat_induction] = found[h].induction;
    head[Measure::repeat_duplicate_mass] = found[h].duplicate_mass;
    head[Measure::repeat_induction_mass] = found[h].induction_mass;
    for (const Measure m : {Measure::repeat_previous, Measure::repeat_duplicate, Measure::repeat_induction}) {
      head.chance[static_cast<size_t>(m)] = found[h].chance;
    }
  }
}

void list_missing(const ModelSpec& spec, const Tokenizer* tokenizer, const RoleTexts& known, const RoleOptions& options,
                  std::vector<std::string>& missing) {
  if (tokenizer == nullptr) missing.push_back("punctuation: without a tokenizer the punctuation tokens are not known");
  if (!known.knows_rare(TextSide::own)) {
    missing.push_back("rare words: the texts have no more than " + std::to_string(RoleTexts::kFrequent) +
                      " different tokens");
  }
  if (!options.patterns) {
    missing.push_back("measures that need attention maps: not requested");
  } else if (const std::string why = LogitDirections::why_not(spec); !why.empty()) {
    missing.push_back("copying: " + why);
  }
}

}  // namespace

const char* name_of(Measure measure) {
  return kNames[static_cast<size_t>(measure)];
}
bool from_kernel(Measure measure) {
  return measure < Measure::confidence;
}

// Differences, distances and norms are numbers; all else is a share of the attention or of the rows.
Quantity quantity_of(Measure measure) {
  switch (measure) {
    case Measure::distance:
    case Measure::punctuation:
    case Measure::period:
    case Measure::comma:
    case Measure::colon:
    case Measure::question:
    case Measure::newline:
    case Measure::special:
    case Measure::from_punctuation:
    case Measure::spread:
    case Measure::copying:
    case Measure::write:
    case Measure::resting:
      return Quantity::number;
    default:
      return Quantity::share;
  }
}

RoleScores head_roles(Reader& reader, const Tokenizer* tokenizer, std::span<const TokenText> texts,
                      const RoleOptions& options) {
  QKV_CHECK(!texts.empty(), "no texts to look at", Hint("give some: roles are found over many"));
  const ModelSpec& spec = reader.model().spec();
  RoleScores scores;
  for (const HeadId& id : all_heads(spec)) scores.heads.push_back({.id = id});
  RoleTexts known(texts, spec, tokenizer);
  RoleSums sums(scores.heads.size(), texts.size());
  RoleProbe probe(reader.model(), known, sums, options);
  const auto start = std::chrono::steady_clock::now();
  reader.look(texts, probe, [&](size_t done) {
    for (auto i = static_cast<size_t>(scores.texts); i < done; ++i) {
      scores.tokens += std::ssize(texts[i].ids) + std::ssize(texts[i].source);
    }
    scores.texts = static_cast<int64_t>(done);
    return !options.finished || options.finished(done);
  });
  scores.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  scores.rows = probe.rows_shown();
  sums.finish(scores.heads, options.seed);
  for (size_t h = 1; h < scores.heads.size(); ++h) {  // computed once per attention, for its first head
    if (scores.heads[h].id.head > 0) scores.heads[h].chance = scores.heads[h - 1].chance;
  }
  list_missing(spec, tokenizer, known, options, scores.missing);
  if (options.repeated_texts > 0) add_repeats(reader, known, options, scores);
  return scores;
}

}  // namespace qkv

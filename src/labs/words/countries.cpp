#include "labs/words/countries.h"

#include <algorithm>

#include "core/host_values.h"
#include "inspect/watch/movie.h"
#include "world/draw.h"

namespace qkv {
namespace {

int32_t nearest_word(const Vectors& words, const std::vector<float>& to, std::initializer_list<int32_t> left_out) {
  int32_t best = -1;
  double most = -2;
  for (int32_t word = 0; word < std::ssize(words); ++word) {
    if (std::find(left_out.begin(), left_out.end(), word) != left_out.end()) continue;
    const double like = cosine(to, words[static_cast<size_t>(word)]);
    if (like <= most) continue;
    most = like;
    best = word;
  }
  return best;
}

}  // namespace

TrainBatch Countries::texts(uint64_t seed, int64_t step, int64_t count) const {
  constexpr int kSentences = 4;
  world::Draw draw(seed, static_cast<uint64_t>(step), 23);
  const auto one_of = [&](int32_t many) { return static_cast<int32_t>(draw.below(static_cast<uint32_t>(many))); };
  TrainBatch batch;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> ids{kStop};
    for (int sentence = 0; sentence < kSentences; ++sentence) {
      const int32_t pair = one_of(kPairs);
      const bool of_capital = draw.chance(50);
      const int32_t whose = of_capital && !shared ? (pair + 1 + pair % 5) % kPairs : pair;
      const int32_t thing = kFirstThing + whose * kThings + one_of(kThings);
      const int32_t kind = draw.chance(30) ? 2 : of_capital ? 1 : 0;
      const int32_t verb = kFirstVerb + kind * kVerbs + one_of(kVerbs);
      const int32_t place = of_capital ? capital(pair) : country(pair);
      const bool place_first = draw.chance(50);
      ids.insert(ids.end(), {place_first ? place : thing, verb, place_first ? thing : place, kStop});
    }
    add_text(batch, ids);
  }
  return batch;
}

AnalogyScore analogies(const Vectors& words) {
  AnalogyScore right;
  for (int32_t a = 0; a < Countries::kPairs; ++a) {
    for (int32_t b = 0; b < Countries::kPairs; ++b) {
      if (a == b) continue;
      const int32_t country = Countries::country(a), capital = Countries::capital(a), other = Countries::country(b);
      std::vector<float> sum = words[static_cast<size_t>(other)];
      for (size_t i = 0; i < sum.size(); ++i) {
        sum[i] += words[static_cast<size_t>(capital)][i] - words[static_cast<size_t>(country)][i];
      }
      const int32_t answer = Countries::capital(b);
      right.open += nearest_word(words, sum, {}) == answer ? 1 : 0;
      right.three_left_out += nearest_word(words, sum, {country, capital, other}) == answer ? 1 : 0;
      right.neighbour += nearest_word(words, words[static_cast<size_t>(other)], {other}) == answer ? 1 : 0;
    }
  }
  constexpr double kAsked = Countries::kPairs * (Countries::kPairs - 1);
  return {right.open / kAsked, right.three_left_out / kAsked, right.neighbour / kAsked};
}

AnalogyScore learnt_analogies(const LabContext& lab, const Countries& world, int64_t steps, uint64_t seed) {
  Json config = config_of(
      {.vocabulary = Countries::vocabulary(), .width = 32, .layers = 1, .heads = 2, .context = 32, .init = 0.05});
  config["tie_word_embeddings"] = true;
  const auto model = fresh_model(lab, config, seed);
  if (steps > 0) {
    train_model(lab, *model,
                {.label = world.shared ? "reading of countries" : "reading of other countries' capitals",
                 .steps = steps,
                 .lr = 5e-3,
                 .batch = [&](int64_t step) { return world.texts(seed, step, 32); }});
  }
  const std::vector<float> table = host_floats(model->weights().at("embed").master());
  Vectors words;
  for (auto row = table.begin(); row != table.end(); row += model->spec().width) {
    words.emplace_back(row, row + model->spec().width);
  }
  return analogies(words);
}

}  // namespace qkv

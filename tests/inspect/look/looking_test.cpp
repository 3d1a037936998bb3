// What look sees: against what Hugging Face recorded of every family, and against the definitions.
#include "inspect/look/looking.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/expect_error.h"
#include "core/host_values.h"
#include "inspect/lens/ladder.h"
#include "inspect/look/story.h"
#include "inspect/texts/shown_tokens.h"
#include "inspect/tiny.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "support/some_ids.h"
#include "text/unicode/utf8.h"
#include "verify/recorded.h"

namespace qkv {
namespace {

using test::some_ids;

constexpr double kNmse = 2e-11, kWorst = 2e-5;

// A recorded batch is [B, T]: one of its texts with what is recorded of it.
struct Recorded {
  Recorded(const std::string& family, int64_t which)
      : io(Safetensors::open(test::golden(family) / "io.safetensors")),
        model(Checkpoint::open(test::golden(family)).model()),
        row(which) {
    const ModelSpec& spec = model->spec();
    has_source = spec.has_source();
    RecordedBatch ids = recorded_batch(io, "input_ids");
    if (spec.kind == ModelSpec::Kind::encoder_only) ids.ignore_padding();  // recorded without its mask
    const RecordedBatch main = has_source ? recorded_batch(io, "decoder_input_ids") : ids;
    const auto all = main.row(row);
    text.ids.assign(all.begin(), all.end());
    if (has_source) text.source.assign(ids.row(row).begin(), ids.row(row).end());
  }

  // [H, T, S] of this text; rows and keys of padding left out.
  std::vector<float> attentions(const SeenAttention& a) const {
    const std::string side = a.place.stack == Stack::cross     ? "cross_"
                             : !has_source                     ? ""
                             : a.place.stack == Stack::encoder ? "encoder_"
                                                               : "decoder_";
    const StoredTensor* tensor = io.find(side + "attentions." + std::to_string(a.place.layer));
    if (tensor == nullptr) return {};
    const std::vector<float> all = recorded_floats(*tensor);
    const int64_t heads = tensor->shape[1], rows = tensor->shape[2], keys = tensor->shape[3];
    std::vector<float> out;
    for (int64_t i = 0; i < a.queries; ++i) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t j = 0; j < a.keys; ++j) {
          out.push_back(all[static_cast<size_t>(((row * heads + h) * rows + i) * keys + j)]);
        }
      }
    }
    return out;
  }

  Safetensors io;
  std::unique_ptr<Model> model;
  int64_t row;
  bool has_source = false;
  TokenText text;
};

std::vector<float> read_out(const Model& model, const Engine& engine, const Looked& seen, size_t level,
                            Precision precision = Precision::f32()) {
  Arena arena(engine.device());
  Context cx = engine.context(arena, precision);
  return host_floats(model.read_out(cx, cx.upload(seen.streams[level], {seen.rows.count, seen.width})));
}

class LookAt : public testing::TestWithParam<const char*> {};

TEST_P(LookAt, sees_the_attentions_that_were_recorded) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  for (const int64_t row : {0, 1}) {
    const Recorded recorded(GetParam(), row);
    const Looked seen = look_at(*recorded.model, engine, recorded.text);
    ASSERT_TRUE(seen.whole);
    int64_t compared = 0;
    for (const SeenAttention& a : seen.attentions) {
      const std::vector<float> right = recorded.attentions(a);
      if (right.empty()) continue;
      ASSERT_EQ(a.pattern.size(), right.size());
      const Distance d = distance(a.pattern, right);
      EXPECT_LE(d.nmse, kNmse) << name_of(recorded.model->spec(), a.place);
      EXPECT_LE(d.worst, 10 * kWorst) << name_of(recorded.model->spec(), a.place);
      ++compared;
    }
    EXPECT_EQ(compared, std::ssize(seen.attentions)) << "a golden model without its attentions";
  }
}

TEST_P(LookAt, reads_the_models_own_logits_out_of_the_last_stream) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const Recorded recorded(GetParam(), 0);
  for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
    const Looked seen = look_at(*recorded.model, engine, recorded.text, {.precision = precision});
    EXPECT_EQ(read_out(*recorded.model, engine, seen, seen.layers.size(), precision),
              test::plain_logits(*recorded.model, engine, recorded.text, {.precision = precision}));
  }
}

// The story and the norms against sums over the plain numbers.
TEST_P(LookAt, tells_a_story_whose_numbers_agree) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const Recorded recorded(GetParam(), 0);
  const ModelSpec& spec = recorded.model->spec();
  const Looked seen = look_at(*recorded.model, engine, recorded.text, {.token = 2});
  for (const LayerStory& layer : story_of(spec, seen)) {
    ASSERT_EQ(layer.attentions.size(), recorded.has_source ? 2U : 1U);
    for (const AttentionStory& told : layer.attentions) {
      const SeenAttention& a = seen.at(told.place);
      const AttentionSpec& attention = attention_at(spec, told.place);
      for (const HeadStory& head : told.heads) {
        double shares = head.others + head.nowhere;
        for (const Match& match : head.matches) shares += match.share;
        EXPECT_NEAR(shares, 1, 1e-5);
        EXPECT_EQ(head.nowhere > 1e-3, attention.sinks) << head.nowhere;
        const int64_t h = head.head.head;
        const double lse = static_cast<double>(a.lse[static_cast<size_t>(seen.token * a.heads + h)]);
        for (const Match& match : head.matches) {
          EXPECT_NEAR(std::exp(match.score - lse), match.share, 1e-5);
          EXPECT_EQ(static_cast<float>(match.share), a.weight(seen.token, h, match.key));
          if (attention.softcap == 0 && !attention.relative) {
            EXPECT_NEAR(match.qk * head.scale, match.score, 1e-4 * (1 + std::abs(match.score)));
          }
        }
        if (!head.matches.empty()) {
          for (int64_t j = 0; j < a.keys; ++j) {
            EXPECT_LE(a.weight(seen.token, h, j), static_cast<float>(head.matches.front().share));
          }
        }
      }
      // One key alone: what it brings is what its value can bring.
      const SeenAttention& own = seen.at({told.place.stack, told.place.layer});
      if (told.place.stack == Stack::decoder && !attention.sinks) {
        for (int64_t h = 0; h < own.heads; ++h) {
          EXPECT_NEAR(own.out_norm[static_cast<size_t>(h)], own.value_norm[static_cast<size_t>(h)],
                      2e-5F * (1 + own.value_norm[static_cast<size_t>(h)]));
        }
      }
    }
    EXPECT_NEAR(norm_of(layer.seen->post_at), layer.seen->post_norms[2], 1e-4 * (1 + norm_of(layer.seen->post_at)));
    EXPECT_EQ(layer.seen->experts_at.empty(), !spec.main_stack().layers[static_cast<size_t>(layer.layer)].feed.experts);
  }
}

INSTANTIATE_TEST_SUITE_P(families, LookAt,
                         testing::Values("bart", "bert", "deepseek_v3", "deepseek_yarn", "gemma2", "gemma3", "gpt2",
                                         "gpt_neox", "gpt_oss", "llama", "llama3", "llama_linear", "marian", "mistral",
                                         "mixtral", "olmo2", "phi3", "phi3_longrope", "qwen2", "qwen2_yarn", "qwen3",
                                         "qwen3_moe", "t5", "t5_gated"));

// Equal heads, and heads that share values; each sum by hand.
TEST(Looking, norms_are_of_what_each_head_writes) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  for (const char* family : {"gpt2", "llama"}) {
    const Recorded recorded(family, 0);
    const Looked seen = look_at(*recorded.model, engine, recorded.text);
    const SeenAttention& a = seen.at({Stack::decoder, 1});
    const std::vector<float> w = host_floats(recorded.model->weights().at("layers.1.attn.o").master());  // [C, H E]
    const auto column = [&](int64_t c, int64_t h, std::span<const float> x) {
      double sum = 0;
      for (int64_t e = 0; e < a.value_width; ++e) {
        sum += static_cast<double>(x[static_cast<size_t>(e)]) *
               static_cast<double>(w[static_cast<size_t>((c * a.heads + h) * a.value_width + e)]);
      }
      return sum;
    };
    for (int64_t h = 0; h < a.heads; ++h) {
      double z = 0, v = 0;
      const int64_t g = kv_head_of(attention_at(recorded.model->spec(), a.place), h);
      for (int64_t c = 0; c < seen.width; ++c) {
        z += std::pow(column(c, h, std::span(a.z).subspan(static_cast<size_t>((5 * a.heads + h) * a.value_width))), 2);
        v += std::pow(column(c, h, std::span(a.v).subspan(static_cast<size_t>((5 * a.kv_heads + g) * a.value_width))),
                      2);
      }
      EXPECT_NEAR(a.out_norm[static_cast<size_t>(5 * a.heads + h)], std::sqrt(z), 1e-5);
      EXPECT_NEAR(a.value_norm[static_cast<size_t>(5 * a.heads + h)], std::sqrt(v), 1e-5);
    }
  }
}

// Of a text too long to keep, what is kept is the same as when all of it is.
TEST(Looking, keeps_rows_around_the_token_of_a_long_text) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  for (const char* family : {"llama", "mistral", "bert", "t5"}) {
    const auto model = Checkpoint::open(test::golden(family)).model();
    TokenText text{.ids = some_ids(50, 1)};
    if (model->spec().has_source()) text.source = some_ids(40, 2);
    // Decoders read it in stretches of 20 rows, through a cache.
    const Looked all = look_at(*model, engine, text, {.token = 30}),
                 some = look_at(*model, engine, text, {.token = 30, .whole = 12, .rows = 20});
    EXPECT_TRUE(all.whole);
    EXPECT_FALSE(some.whole);
    EXPECT_EQ(some.rows.count, 12);
    ASSERT_TRUE(some.rows.has(30));
    for (size_t l = 0; l < all.streams.size(); ++l) {
      const auto begin = all.streams[l].begin() + some.rows.first * all.width;
      EXPECT_EQ(some.streams[l], std::vector<float>(begin, begin + some.rows.count * all.width)) << family << l;
    }
    for (size_t i = 0; i < all.attentions.size(); ++i) {
      const SeenAttention &a = all.attentions[i], &b = some.attentions[i];
      EXPECT_EQ(a.k, b.k);
      for (size_t h = 0; h < a.entropy.size(); ++h) EXPECT_NEAR(a.entropy[h], b.entropy[h], 1e-12);
      EXPECT_EQ(a.value_norm, b.value_norm);
      EXPECT_EQ(a.scores_at, b.scores_at);
      EXPECT_EQ(a.probs_at, b.probs_at);
      EXPECT_TRUE(b.pattern.empty());
      for (int64_t r = b.rows.first; r < b.rows.first + b.rows.count; ++r) {
        for (int64_t h = 0; h < a.heads; ++h) {
          double sum = 0;
          for (size_t t = 0; t < SeenAttention::kTop; ++t) {
            const TopKey x = a.top_of(r, h)[t], y = b.top_of(r, h)[t];
            EXPECT_EQ(x.key, y.key);
            EXPECT_EQ(x.weight, y.weight);
            if (x.key < 0) continue;
            EXPECT_EQ(x.weight, a.weight(r, h, x.key));
            sum += static_cast<double>(x.weight);
          }
          // No key outside the list is heavier than the last in it.
          const TopKey last = a.top_of(r, h)[SeenAttention::kTop - 1];
          double all_weights = 0;
          int64_t heavier = 0;
          for (int64_t j = 0; j < a.keys; ++j) {
            all_weights += static_cast<double>(a.weight(r, h, j));
            heavier += a.weight(r, h, j) > last.weight ? 1 : 0;
          }
          EXPECT_LT(heavier, static_cast<int64_t>(SeenAttention::kTop) + (last.key < 0 ? 1 : 0));
          EXPECT_LE(sum, all_weights + 1e-6);
        }
      }
    }
  }
}

TEST(Looking, refuses_what_is_not_there) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto gpt2 = Checkpoint::open(test::golden("gpt2")).model();
  expect_error([&] { look_at(*gpt2, engine, {.ids = {1, 2}}, {.token = 2}); }, {"no token 2", "0 to 1"});
  expect_error([&] { look_at(*gpt2, engine, {}); }, {"0 tokens"});
  expect_error([&] { look_at(*Checkpoint::open(test::golden("t5")).model(), engine, {.ids = {1}}); }, {"source"});
  expect_error([&] { look_at(*gpt2, engine, {.ids = some_ids(5000, 1)}); }, {"5000", "made for"});
}

// Against a second way to the same numbers, in plain double.
TEST(TheLadder, says_what_its_definitions_say) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  for (const char* family : {"gpt2", "gemma2", "bert", "t5"}) {
    const Recorded recorded(family, 0);
    const Looked seen = look_at(*recorded.model, engine, recorded.text);
    const Ladder ladder = climb(*recorded.model, engine, seen);
    const size_t top = ladder.levels.size() - 1;
    ASSERT_EQ(top, recorded.model->spec().main_stack().layers.size());
    const std::vector<float> logits = test::plain_logits(*recorded.model, engine, recorded.text);
    const std::vector<float> lowest = read_out(*recorded.model, engine, seen, 0);
    const auto width = static_cast<size_t>(recorded.model->spec().vocabulary);
    for (size_t r = 0; r < recorded.text.ids.size(); ++r) {
      const std::span<const float> row = std::span(logits).subspan(r * width, width);
      const auto best = static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
      const Rung& last = ladder.levels[top][r];
      EXPECT_EQ(last.guesses.front().id, best);
      EXPECT_EQ(last.rank, 1);
      EXPECT_NEAR(last.kl, 0, 1e-9);
      double sum = 0, entropy = 0;
      for (const float x : row) sum += std::exp(static_cast<double>(x));
      for (const float x : row)
        entropy += std::exp(static_cast<double>(x)) / sum * (std::log(sum) - static_cast<double>(x));
      EXPECT_NEAR(last.entropy, entropy, 1e-9);
      EXPECT_NEAR(last.guesses.front().p, std::exp(static_cast<double>(row[static_cast<size_t>(best)])) / sum, 1e-12);
      const std::span<const float> low = std::span(lowest).subspan(r * width, width);
      double low_sum = 0, kl = 0;
      int64_t rank = 1;
      for (const float x : low) low_sum += std::exp(static_cast<double>(x));
      for (size_t v = 0; v < width; ++v) {
        const double p = std::exp(static_cast<double>(row[v])) / sum,
                     q = std::exp(static_cast<double>(low[v])) / low_sum;
        kl += p * std::log(p / q);
        rank += low[v] > low[static_cast<size_t>(best)] ? 1 : 0;
      }
      EXPECT_NEAR(ladder.levels[0][r].kl, kl, 1e-9);
      EXPECT_EQ(ladder.levels[0][r].rank, rank);
      for (size_t level = 0; level <= top; ++level) {
        const Rung& rung = ladder.levels[level][r];
        EXPECT_EQ(rung.guesses.front().id == best, rung.rank == 1);
        for (size_t g = 1; g < rung.guesses.size(); ++g) EXPECT_LE(rung.guesses[g].p, rung.guesses[g - 1].p);
        EXPECT_TRUE(level < ladder.settled[r] || rung.guesses.front().id == best);
      }
      if (const size_t settled = ladder.settled[r]; settled > 0) {
        EXPECT_NE(ladder.levels[settled - 1][r].guesses.front().id, best);
      }
    }
  }
}

TEST(ShownTokens, never_show_a_part_of_a_character) {
  const std::string text = "床前明月光 👩‍🔬 naïve 🙂!";
  for (const char* name : {"gpt2", "llama2", "llama3", "qwen2", "unigram", "wordpiece"}) {
    const Tokenizer tokenizer = Tokenizer::load(test::golden("tokenizers") / name);
    const std::vector<int32_t> ids = tokenizer.encode(text);
    std::string joined;
    bool continued = false;
    for (const ShownToken& token : shown_tokens(tokenizer, ids)) {
      joined += token.text;
      continued |= token.continues;
      EXPECT_EQ(token.continues, token.text.empty());
    }
    EXPECT_EQ(joined.find(kReplacementCharacter), std::string::npos) << joined;
    EXPECT_TRUE(is_utf8(joined));
    const bool bytes = std::set<std::string>{"gpt2", "llama2", "llama3", "qwen2"}.contains(name);
    EXPECT_TRUE(continued || !bytes) << name;
    // Each next token, guessed after the ones before, and each token of the vocabulary after a part of a character.
    for (size_t i = 0; i < ids.size(); ++i) {
      const ShownGuess guess(tokenizer, std::span(ids).first(i));
      EXPECT_FALSE(guess.text(ids[i]).empty());
      for (int32_t id = 0; id < tokenizer.vocab_size(); id += 7) {
        const std::string shown = guess.text(id);
        EXPECT_TRUE(is_utf8(shown));
        const bool itself = tokenizer.has(id) && tokenizer.bytes_of(id) == kReplacementCharacter;
        EXPECT_TRUE(itself || shown.find(kReplacementCharacter) == std::string::npos) << id;
      }
    }
  }
}

// The token that ends a character is shown as the character; alone, by its byte.
TEST(ShownTokens, complete_a_character_that_has_begun) {
  const Tokenizer tokenizer = Tokenizer::load(test::golden("tokenizers") / "gpt2");
  const std::vector<int32_t> ids = tokenizer.encode("囍");
  ASSERT_GT(ids.size(), 1U);
  EXPECT_EQ(ShownGuess(tokenizer, std::span(ids).first(ids.size() - 1)).text(ids.back()), "囍");
  EXPECT_EQ(ShownGuess(tokenizer, {}).text(ids.back()).substr(0, 2), "\\x");
  EXPECT_EQ(ShownGuess(tokenizer, {}).text(1 << 28), "#268435456");
}

TEST(ShownTokens, a_part_of_a_character_has_one_sign) {
  EXPECT_EQ(with_part_signs("\\xE7\\x8C"), "◌");
  EXPECT_EQ(with_part_signs("猫\\xE7 \\xB3a"), "猫◌ ◌a");
  EXPECT_EQ(with_part_signs("\\x41 \\xe7 \\x"), "\\x41 \\xe7 \\x");  // no bytes of ours
}

}  // namespace
}  // namespace qkv

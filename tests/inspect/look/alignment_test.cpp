// Word alignment: what words are, and weights that are those of the cross-attention Hugging Face recorded.
#include "inspect/look/alignment.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "verify/recorded.h"

namespace qkv {
namespace {

Tokenizer tokenizer(const std::string& name) {
  return Tokenizer::load(test::golden("tokenizers/" + name)).without_truncation();
}

TEST(Words, are_what_a_reader_sees) {
  struct Case {
    const char* text;
    std::vector<std::string> words;
  };
  const std::vector<Case> cases{
      {"The cat, the dog.", {"The", "cat", ",", "the", "dog", "."}},
      {"don't well-known", {"don't", "well-known"}},
      {"  two  spaces ", {"two", "spaces"}},
      {"über Köln", {"über", "Köln"}},
      {"", {}},
  };
  for (const char* name : {"gpt2", "qwen2", "llama3"}) {
    const Tokenizer t = tokenizer(name);
    for (const Case& c : cases) {
      std::vector<std::string> words;
      std::vector<size_t> tokens;
      const std::vector<int32_t> ids = t.encode(c.text);
      for (const TokenWord& word : words_of(t, ids)) {
        words.push_back(word.text);
        tokens.insert(tokens.end(), word.tokens.begin(), word.tokens.end());
      }
      EXPECT_EQ(words, c.words) << name << ": " << c.text;
      EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end())) << name;
    }
    // Chinese and emoji: whole characters, whatever the tokens are, and nothing is lost.
    std::string joined;
    for (const TokenWord& word : words_of(t, t.encode("床前明月光，👍🏽好"))) {
      EXPECT_EQ(word.text.find("\xef\xbf\xbd"), std::string::npos) << name;
      joined += word.text;
    }
    EXPECT_EQ(joined, "床前明月光，👍🏽好") << name;
  }
}

class AlignmentOf : public testing::TestWithParam<const char*> {};

TEST_P(AlignmentOf, is_the_recorded_attention_from_words_to_words) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden(GetParam())).model();
  const Safetensors io = Safetensors::open(test::golden(GetParam()) / "io.safetensors");
  const RecordedBatch from = recorded_batch(io, "input_ids"), to = recorded_batch(io, "decoder_input_ids");
  const std::span<const int32_t> source = from.row(0), target = to.row(0);
  const TokenText pair{.ids = {target.begin(), target.end()}, .source = {source.begin(), source.end()}};
  for (const int64_t layer : {0, 1}) {
    const WordAlignment made = align(*model, engine, tokenizer("unigram"), pair, {.layer = layer});
    ASSERT_GT(made.target.size(), 3U);
    ASSERT_GT(made.source.size(), 3U);
    const StoredTensor& stored = *io.find("cross_attentions." + std::to_string(layer));  // [B, H, T, S]
    const std::vector<float> recorded = recorded_floats(stored);
    const auto heads = static_cast<size_t>(stored.shape[1]), rows = static_cast<size_t>(stored.shape[2]),
               keys = static_cast<size_t>(stored.shape[3]);
    for (size_t t = 0; t < made.target.size(); ++t) {
      std::vector<double> right;
      double all = 0;
      for (const TokenWord& word : made.source) {
        double sum = 0;
        for (size_t h = 0; h < heads; ++h) {
          for (const size_t token : made.target[t].tokens) {
            for (const size_t key : word.tokens) {  // said in the row before
              if (token > 0) sum += static_cast<double>(recorded[(h * rows + token - 1) * keys + key]);
            }
          }
        }
        right.push_back(sum);
        all += sum;
      }
      for (size_t s = 0; s < right.size(); ++s) {
        EXPECT_NEAR(made.at(t, s), all > 0 ? right[s] / all : 0, 1e-5) << t << " " << s;
      }
    }
    for (const auto& [s, t] : made.pairs()) {
      for (size_t other = 0; other < made.source.size(); ++other) EXPECT_GE(made.at(t, s), made.at(t, other));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(families, AlignmentOf, testing::Values("t5", "marian", "bart"));

TEST(Alignment, needs_a_model_that_translates_and_a_layer_it_has) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto llama = Checkpoint::open(test::golden("llama")).model(), t5 = Checkpoint::open(test::golden("t5")).model();
  const Tokenizer t = tokenizer("unigram");
  expect_error([&] { align(*llama, engine, t, {.ids = {1, 2}}); }, {"llama", "cross-attention"});
  expect_error([&] { align(*t5, engine, t, {.ids = {1, 2}, .source = {3}}, {.layer = 2}); }, {"no layer 2", "0 to 1"});
}

TEST(Alignment, says_both_lengths_of_a_pair_that_is_too_long) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto marian = Checkpoint::open(test::golden("marian")).model();
  const Tokenizer t = tokenizer("unigram");
  const std::vector<int32_t> few{1, 2, 3}, many(130, 4);
  expect_error([&] { align(*marian, engine, t, {.ids = few, .source = many}); },
               {"3 tokens", "a source of 130", "made for 128"});
  expect_error([&] { align(*marian, engine, t, {.ids = many, .source = few}); },
               {"130 tokens", "a source of 3", "made for 128"});
}

}  // namespace
}  // namespace qkv

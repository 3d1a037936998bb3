// Hidden tokens of equal texts, and the effect of a cut on texts longer than a pass.
#include <gtest/gtest.h>

#include "inspect/cut/ablation.h"
#include "inspect/tiny.h"
#include "kernels/tables.h"

namespace qkv {
namespace long_texts_test {

TEST(HiddenTokens, of_equal_texts_are_drawn_for_each) {
  const TokenText text{.ids = test::some_ids(80, 1)};
  const std::vector<TokenText> texts(4, text);
  std::set<std::vector<int32_t>> seen;
  for (const TokenText& made : with_hidden_tokens(texts, {.mask = 77})) seen.insert(made.targets);
  EXPECT_EQ(seen.size(), texts.size()) << "the same positions are hidden in several texts";
}

// A text of 41 tokens in chunks of 16, with targets of its own: each row is judged by the target of its position.
TEST(EffectOfACut, in_chunks_is_that_of_one_pass) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  for (const std::string family : {"gpt2", "gemma2"}) {
    const auto model = Checkpoint::open(test::golden(family)).model();
    const ModelSpec& spec = model->spec();
    std::vector<TokenText> texts = test::tiny_texts(spec, {41, 9});
    for (size_t i = 0; i < texts[0].ids.size(); ++i) {
      texts[0].targets.push_back(i % 5 == 3 || i > 33 ? 7 : TokenText::kIgnored);
    }
    CutProbe probe(spec, {.heads = {all_heads(spec).front()}, .ablation = Ablation::zero});
    Reader whole(*model, engine, {.rows = 64}), chunks(*model, engine, {.rows = 16});
    const CutEffect right = effect_of(whole, texts, probe), got = effect_of(chunks, texts, probe);
    EXPECT_EQ(right.kl.n, 14 + 8) << family;  // positions 3, 8, 13, 18, 23, 28, 33 and 34 to 40; the text after
    EXPECT_EQ(got.kl.n, right.kl.n) << family << ": rows without a target were judged, or others left out";
    EXPECT_EQ(got.same_guess.n, right.same_guess.n) << family;
    EXPECT_NEAR(got.kl.mean, right.kl.mean, 1e-9 + 1e-6 * right.kl.mean) << family;
    EXPECT_EQ(got.same_guess.mean, right.same_guess.mean) << family;
  }
}

}  // namespace long_texts_test
}  // namespace qkv

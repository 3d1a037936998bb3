// What Reader says of texts: together, alone, in stretches through a cache, it is the same.
#include "inspect/texts/reading.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "core/host_values.h"
#include "inspect/heads/head_id.h"
#include "inspect/tiny.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "support/some_ids.h"

namespace qkv {
namespace {

using test::some_ids;

// -log p of each next token, from the logits of one plain pass, in double.
std::vector<double> plain_losses(const Model& model, const Engine& engine, const TokenText& text) {
  const std::vector<float> logits = test::plain_logits(model, engine, text);
  const auto width = static_cast<size_t>(model.spec().vocabulary);
  std::vector<double> losses;
  for (size_t r = 0; r + 1 < text.ids.size(); ++r) {
    double sum = 0;
    for (size_t v = 0; v < width; ++v) sum += std::exp(static_cast<double>(logits[r * width + v]));
    losses.push_back(std::log(sum) - static_cast<double>(logits[r * width + static_cast<size_t>(text.ids[r + 1])]));
  }
  return losses;
}

// Notes which token of which text each row of the stream is, as the taps say it.
class Notes : public ReadingProbe {
 public:
  void begin(Context&, const PassTexts& pass) override {
    ++passes;
    for (const PassTexts::At& at : pass.rows) rows.emplace_back(at.text, at.position);
  }
  Ask ask(Place place, Site site) const override {
    const bool wanted = site == Site::resid_post && place.layer == 0 && place.stack != Stack::encoder;
    return wanted ? Ask::read : Ask::none;
  }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    for (const Segment& s : tap.rows->list) {
      for (int32_t r = 0; r < s.rows; ++r) tapped.emplace_back(s.request, s.position + r);
    }
    stream.push_back(host_floats(x));
  }

  int passes = 0;
  std::vector<std::pair<int32_t, int32_t>> rows, tapped;
  std::vector<std::vector<float>> stream;
};

class ReaderOf : public testing::TestWithParam<const char*> {};

TEST_P(ReaderOf, says_of_each_text_what_a_plain_pass_says) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden(GetParam())).model();
  const bool has_source = model->spec().has_source();
  std::vector<TokenText> texts;
  for (const int64_t length : {7, 2, 19, 1, 11}) {
    texts.push_back({.ids = some_ids(length, static_cast<uint32_t>(length))});
    if (has_source) texts.back().source = some_ids(length + 3, 5);
  }
  Notes notes;
  const auto losses = Reader(*model, engine, {.rows = 24}).losses(texts, &notes);
  EXPECT_GT(notes.passes, 1);
  EXPECT_EQ(notes.rows, notes.tapped);
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<double> right = plain_losses(*model, engine, texts[i]);
    ASSERT_EQ(losses[i].size(), right.size()) << "text " << i;
    for (size_t r = 0; r < right.size(); ++r) EXPECT_NEAR(static_cast<double>(losses[i][r]), right[r], 2e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(families, ReaderOf, testing::Values("gpt2", "llama", "gemma2", "mixtral", "marian", "t5"));

TEST(Reader, reads_a_long_text_in_stretches_with_the_same_bits) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  const std::vector<TokenText> texts{{.ids = some_ids(9, 1)}, {.ids = some_ids(60, 2)}, {.ids = some_ids(5, 3)}};
  for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
    Notes whole, stretched;
    Reader all(*model, engine, {.precision = precision, .rows = 64}), some(*model, engine, {precision, 16});
    const auto losses = all.losses(texts, &whole);
    EXPECT_EQ(some.losses(texts, &stretched), losses);
    EXPECT_EQ(stretched.tapped, whole.tapped);
    EXPECT_EQ(stretched.passes, 6);
    std::vector<float> a, b;
    for (const auto& part : whole.stream) a.insert(a.end(), part.begin(), part.end());
    for (const auto& part : stretched.stream) b.insert(b.end(), part.begin(), part.end());
    EXPECT_EQ(a, b);
  }
}

TEST(Reader, refuses_what_a_model_cannot_read) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto bert = Checkpoint::open(test::golden("bert")).model(),
             gpt2 = Checkpoint::open(test::golden("gpt2")).model();
  expect_error([&] { Reader(*bert, engine, {}).losses(std::vector<TokenText>{{.ids = {1, 2}}}); }, {"bert", "targets"});
  expect_error([&] { Reader(*gpt2, engine, {}).losses(std::vector<TokenText>{{.ids = {}}}); }, {"no tokens"});
  expect_error([&] { Reader(*gpt2, engine, {}).losses(std::vector<TokenText>{{.ids = {1}, .source = {1}}}); },
               {"gpt2", "no encoder"});
  expect_error([&] { Reader(*gpt2, engine, {}).losses(std::vector<TokenText>{{.ids = some_ids(5000, 1)}}); },
               {"5000", "made for"});
  expect_error(
      [&] {
        Reader(*gpt2, engine, {}).losses(std::vector<TokenText>{{.ids = {1, 2}}, {.ids = {1, -1}}});
      },
      {"token 1 of text 1", "-1"});
  expect_error(
      [&] {
        Reader(*gpt2, engine, {}).losses(std::vector<TokenText>{{.ids = {1, 2}, .targets = {1 << 30, -100}}});
      },
      {"target 0 of text 0", "1073741824"});
}

TEST(HeadNames, are_read_as_they_are_written) {
  const ModelSpec marian = Checkpoint::open(test::golden("marian")).spec,
                  bert = Checkpoint::open(test::golden("bert")).spec;
  for (const ModelSpec* spec : {&marian, &bert}) {
    for (const HeadId& head : all_heads(*spec)) {
      EXPECT_EQ(parse_heads(*spec, name_of(*spec, head)), std::vector{head}) << name_of(*spec, head);
    }
  }
  EXPECT_EQ(name_of(marian, HeadId{Stack::cross, 1, 2}), "X1H2");
  EXPECT_EQ(name_of(marian, HeadId{Stack::encoder, 0, 3}), "E0H3");
  EXPECT_EQ(name_of(bert, HeadId{Stack::encoder, 0, 3}), "L0H3");
  EXPECT_EQ(parse_heads(bert, "l1h0,L0H1,L1H0").size(), 2U);
  EXPECT_EQ(parse_heads(marian, "X1").size(), static_cast<size_t>(marian.decoder.layers[1].cross->heads));
  for (const char* bad : {"", "L", "H3", "L0H", "L0H99", "L99", "L0H1,", "L-1H0", "L0H1x", "Q0H1", "L99999999H0"}) {
    expect_error([&] { parse_heads(bert, bad); }, {"L0H0 to L"});
  }
}

}  // namespace
}  // namespace qkv

// Direct logit attribution adds up to what the model says, on every family.
#include "inspect/look/attribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/expect_error.h"
#include "core/host_values.h"
#include "inspect/taps/recorder.h"
#include "inspect/tiny.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/attention_alone.h"
#include "support/pass.h"

namespace qkv {
namespace {

using test::plain_logits;

TokenText text_for(const ModelSpec& spec) {
  TokenText text{.ids = {5, 9, 2, 7, 11, 5, 9, 3}};
  if (spec.has_source()) text.source = {4, 8, 15, 16, 23};
  return text;
}

struct Case {
  const char* family;
  bool linearised;
};

class AttributionOf : public testing::TestWithParam<Case> {};

TEST_P(AttributionOf, adds_up_to_the_difference_of_logits) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const bool alone = GetParam().family == std::string("attention_alone");
  const auto model = alone ? test::attention_alone() : Checkpoint::open(test::golden(GetParam().family)).model();
  const ModelSpec& spec = model->spec();
  const TokenText text = text_for(spec);
  const std::vector<float> logits = plain_logits(*model, engine, text);
  for (const int64_t row : {0, 4, 7}) {
    const Attributor attributor(*model, engine, Precision::f32(), text, row);
    EXPECT_EQ(attributor.linearised(), GetParam().linearised);
    const auto logit = [&](int32_t id) {  // with the cap taken off again
      const auto said = static_cast<double>(logits[static_cast<size_t>(row * spec.vocabulary + id)]);
      return spec.head.softcap > 0 ? spec.head.softcap * std::atanh(said / spec.head.softcap) : said;
    };
    for (const auto& [target, against] : std::vector<std::pair<int32_t, int32_t>>{{3, 17}, {40, 0}}) {
      const Attribution a = attributor.of(target, against);
      EXPECT_NEAR(a.sum, logit(target) - logit(against), 1e-3) << "row " << row;
      EXPECT_NEAR(a.sum, a.difference, 1e-3) << "row " << row;
      size_t heads = 0;
      for (const HeadId& head : all_heads(spec)) {
        heads += head.stack != Stack::encoder || spec.kind == ModelSpec::Kind::encoder_only ? 1 : 0;
      }
      EXPECT_EQ(a.parts.size(), 2 + heads + (alone ? 0 : spec.main_stack().layers.size()));
      double most = 0;
      for (const AttributedPart& part : a.parts) most = std::max(most, std::abs(part.share));
      EXPECT_GT(most, 1e-3);  // a sum of nothing proves nothing
    }
  }
}

INSTANTIATE_TEST_SUITE_P(families, AttributionOf,
                         testing::Values(Case{"gpt2", false}, Case{"llama", false}, Case{"gpt_neox", false},
                                         Case{"gemma2", false}, Case{"gemma3", false}, Case{"olmo2", false},
                                         Case{"qwen2", false}, Case{"qwen3", false}, Case{"phi3", false},
                                         Case{"mistral", false}, Case{"mixtral", false}, Case{"qwen3_moe", false},
                                         Case{"deepseek_v3", false}, Case{"gpt_oss", false}, Case{"t5", false},
                                         Case{"t5_gated", false}, Case{"bart", true}, Case{"marian", true},
                                         Case{"bert", true}, Case{"attention_alone", false}),
                         [](const auto& at) { return at.param.family; });

// Where the last norm has no mean to take and nothing follows it, cutting a head of the last layer changes the sum of
// what is written by exactly what the head wrote: its term, once the scale of the norm is taken back.
TEST(Attribution, of_a_head_is_what_the_logits_lose_with_the_scale_kept) {
  class Cut : public Probe {
   public:
    Ask ask(Place place, Site site) const override {
      return site == Site::attn_z && place.layer == 1 ? Ask::edit : Ask::none;
    }
    void visit(Context& cx, const Tap&, Tensor& x) override {  // head 1
      const Tensor copy = ops::scale(cx, x, 1);
      cx.kernels.fill(cx.exec, {.y = copy.slice(1, 1, 1), .value = 0});
      x = copy;
    }
  };
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("gpt_neox")).model();  // parallel: the feed-forward does not see it
  const ModelSpec& spec = model->spec();
  ASSERT_EQ(spec.decoder.layers.size(), 2U);
  const TokenText text = text_for(spec);
  Recorder with(parse_taps(spec, "1.resid.post"));
  const std::vector<float> before = plain_logits(*model, engine, text, {.probe = &with});
  Cut cut;
  Recorder recorder(parse_taps(spec, "1.resid.post"));
  const std::vector<float> after = plain_logits(*model, engine, text, {.probe = &cut});
  // sigma of both runs, from the streams: the cut run's logits are scaled back to the first one's.
  class CutAndRecord : public Cut {
   public:
    explicit CutAndRecord(Recorder& into) : into_(into) {}
    Ask ask(Place place, Site site) const override { return Cut::ask(place, site) | into_.ask(place, site); }
    void visit(Context& cx, const Tap& tap, Tensor& x) override {
      if (tap.site == Site::attn_z) return Cut::visit(cx, tap, x);
      into_.visit(cx, tap, x);
    }

   private:
    Recorder& into_;
  } both(recorder);
  plain_logits(*model, engine, text, {.probe = &both});
  const int64_t row = 5;
  const auto deviation = [&](const Recorder& r) {
    const std::span<const float> x = r.all().front().row(row);
    double mean = 0, power = 0;
    for (const float v : x) mean += static_cast<double>(v) / static_cast<double>(x.size());
    for (const float v : x) power += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
    return std::sqrt(power / static_cast<double>(x.size()) + spec.norm.eps);
  };
  const double back = deviation(recorder) / deviation(with);
  // A difference of two differences, so that the last norm's bias and W_O's fall out.
  const auto at = [&](const std::vector<float>& all, int32_t id) {
    return static_cast<double>(all[static_cast<size_t>(row * spec.vocabulary + id)]);
  };
  const Attribution a = Attributor(*model, engine, Precision::f32(), text, row).of(3, 17);
  const auto named = [&](const std::string& name) {
    return std::find_if(a.parts.begin(), a.parts.end(), [&](const AttributedPart& p) { return p.name == name; })->share;
  };
  const std::vector<float> bias = host_floats(model->weights().at("norm_final.bias").master());
  const std::vector<float> unembed = host_floats(model->weights().at("head").master());
  double constant = 0;  // what the last norm's bias says
  for (size_t c = 0; c < bias.size(); ++c) {
    constant += static_cast<double>(bias[c]) * (static_cast<double>(unembed[3 * bias.size() + c]) -
                                                static_cast<double>(unembed[17 * bias.size() + c]));
  }
  const double lost = (at(before, 3) - at(before, 17) - constant) - (at(after, 3) - at(after, 17) - constant) * back;
  EXPECT_NEAR(named("L1H1"), lost, 1e-4);
}

TEST(Attribution, refuses_what_is_not_there) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("gpt2")).model();
  const TokenText text{.ids = {1, 2, 3}};
  expect_error([&] { Attributor(*model, engine, Precision::f32(), text, 3); }, {"no token 3", "0 to 2"});
  expect_error([&] { Attributor(*model, engine, Precision::f32(), text, -1); }, {"no token -1"});
  const Attributor attributor(*model, engine, Precision::f32(), text, 2);
  expect_error([&] { attributor.of(99999, 1); }, {"99999", "vocabulary"});
}

}  // namespace
}  // namespace qkv

// Without taps, a layer fuses its products with what follows. Taps change no bit of the logits or of any gradient,
// whichever sites they read.
#include <gtest/gtest.h>

#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"

namespace qkv::test {
namespace unseen_test {

const std::vector<int32_t> kIds{1, 5, 9, 40, 7, 7, 23, 60}, kTargets{5, 9, 40, 7, -100, 23, 60, 2};

// Reads some sites of some layers, and changes nothing.
class Reader : public Probe {
 public:
  Reader(std::vector<Site> sites, std::optional<int16_t> layer = {}) : sites_(std::move(sites)), layer_(layer) {}
  Ask ask(Place place, Site site) const override {
    const bool asks = (!layer_ || *layer_ == place.layer) && std::ranges::find(sites_, site) != sites_.end();
    return asks ? Ask::read : Ask::none;
  }
  void visit(Context&, const Tap&, Tensor& x) override {
    ++visits;
    EXPECT_GT(x.count(), 0);
  }
  int visits = 0;

 private:
  std::vector<Site> sites_;
  std::optional<int16_t> layer_;
};

// Keeps the stream as it was shown, and looks at it again when the sublayer that read it has added to it.
class Keeper : public Probe {
 public:
  Ask ask(Place, Site site) const override {
    return site == Site::resid_pre || site == Site::resid_mid || site == Site::resid_post ? Ask::read : Ask::none;
  }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    if (kept_.defined() && tap.site != Site::resid_pre) {
      EXPECT_EQ(to_host(kept_), numbers_) << "layer " << tap.place.layer;
      ++compared;
    }
    kept_ = tap.site == Site::resid_post ? Tensor() : x;
    if (kept_.defined()) numbers_ = to_host(x);
  }
  int compared = 0;

 private:
  Tensor kept_;
  Numbers numbers_;
};

struct How {
  Precision precision;
  Probe* probe = nullptr;
  bool backward = true, recompute = false, guarded = false;
};

// The logits, and with backward the gradient of every weight.
std::vector<Numbers> numbers_of(Model& model, const How& how) {
  Pass pass({.kernels = &kernels::best_table(), .precision = how.precision, .threads = 2, .tape = how.backward});
  Context& cx = pass.cx;
  cx.probe = how.probe;
  cx.recompute_layers = how.recompute;
  cx.guard_finite = how.guarded;
  const Rows rows = Rows::batch(cx, 1, static_cast<int64_t>(kIds.size()));
  Model::Input input{.ids = cx.upload(kIds), .rows = &rows};
  if (model.spec().has_source()) {
    input.source_ids = cx.upload(kIds);
    input.source_rows = &rows;
  }
  const Tensor states = model.states(cx, input);
  std::vector<Numbers> all{to_host(states)};
  if (!how.backward) return all;
  const ops::Loss loss =
      ops::cross_entropy(cx, model.head().before_logits(cx, states), model.head().weight(), cx.upload(kTargets),
                         {.bias = model.head().bias(), .rule = {.softcap = model.head().softcap()}, .divisor = 7});
  pass.tape.backward(cx, loss.loss);
  for (auto& [name, weight] : model.weights()) {
    if (weight.gradient().defined()) all.push_back(to_host(weight.gradient()));
    weight.clear_gradient();
  }
  return all;
}

class Unseen : public testing::TestWithParam<std::string> {};

TEST_P(Unseen, LooksChangeNoBit) {
  const Checkpoint checkpoint = Checkpoint::open(golden(GetParam()));
  const std::unique_ptr<Model> model = Model::make(checkpoint.spec, checkpoint.weights(cpu_device()));
  for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
    for (const bool backward : {false, true}) {
      const auto unseen = numbers_of(*model, {.precision = precision, .backward = backward});
      ASSERT_EQ(unseen.size() > 1, backward);
      const std::vector<std::pair<const char*, Reader>> readers{
          {"between all products", Reader({Site::mlp_pre, Site::mlp_post, Site::attn_out, Site::mlp_out})},
          {"before the activation", Reader({Site::mlp_pre})},
          {"after the activation, one layer", Reader({Site::mlp_post}, 1)},
          {"what branches bring, one layer", Reader({Site::attn_out, Site::mlp_out}, 0)},
          {"the stream", Reader({Site::resid_pre, Site::resid_mid, Site::resid_post})},
      };
      for (auto [what, reader] : readers) {
        EXPECT_EQ(numbers_of(*model, {.precision = precision, .probe = &reader, .backward = backward}), unseen) << what;
        EXPECT_GT(reader.visits, 0) << what;
      }
      EXPECT_EQ(numbers_of(*model, {.precision = precision, .backward = backward, .guarded = true}), unseen);
      if (!backward) continue;
      EXPECT_EQ(numbers_of(*model, {.precision = precision, .recompute = true}), unseen);
      Reader some({Site::mlp_pre, Site::attn_out});
      EXPECT_EQ(numbers_of(*model, {.precision = precision, .probe = &some, .recompute = true}), unseen);
    }
  }
}

// Elsewhere a sum overwrites what it is added to.
TEST_P(Unseen, TheStreamThatAProbeSawStaysUntilTheNextTap) {
  const Checkpoint checkpoint = Checkpoint::open(golden(GetParam()));
  const std::unique_ptr<Model> model = Model::make(checkpoint.spec, checkpoint.weights(cpu_device()));
  Keeper keeper;
  const auto seen = numbers_of(*model, {.precision = Precision::f32(), .probe = &keeper, .backward = false});
  EXPECT_GT(keeper.compared, 0);
  EXPECT_EQ(seen, numbers_of(*model, {.precision = Precision::f32(), .backward = false}));
}

INSTANTIATE_TEST_SUITE_P(Of, Unseen,
                         testing::Values("gpt2", "llama", "gemma2", "gpt_neox", "olmo2", "mixtral", "deepseek_v3",
                                         "gpt_oss", "bert", "marian", "bart", "t5_gated"),
                         [](const auto& family) { return family.param; });

}  // namespace unseen_test
}  // namespace qkv::test

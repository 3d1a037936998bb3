// Ablation against independent definitions: weights set to zero, outputs written by hand, finite differences.
#include "inspect/cut/ablation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/expect_error.h"
#include "inspect/cut/importance.h"
#include "inspect/tiny.h"
#include "kernels/tables.h"

namespace qkv {
namespace ablation_test {

using test::tiny_texts;

std::unique_ptr<Model> open(const std::string& family) {
  return Checkpoint::open(test::golden(family)).model(cpu_device(), BlockWeights::decoded);
}

std::string attention_weight(const ModelSpec& spec, const HeadId& head, const std::string& which) {
  return stack_prefix(spec, head.stack == Stack::encoder ? Stack::encoder : Stack::decoder) + "layers." +
         std::to_string(head.layer) + (head.stack == Stack::cross ? ".cross" : ".attn") + which;
}

// One head of every attention, and another one of the first.
std::vector<HeadId> some_heads(const ModelSpec& spec) {
  std::vector<HeadId> heads;
  for (const Place place : all_attentions(spec)) heads.push_back({place.stack, place.layer, 1});
  heads.push_back({heads.front().stack, 0, 0});
  return heads;
}

class Cutting : public testing::TestWithParam<const char*> {
 protected:
  const Engine engine{kernels::best_table(), {.threads = 2}};
};

TEST_P(Cutting, to_zero_is_a_model_whose_w_o_has_columns_of_zeros) {
  const auto model = open(GetParam()), silent = open(GetParam());
  const ModelSpec& spec = model->spec();
  const std::vector<HeadId> heads = some_heads(spec);
  for (const HeadId& head : heads) {
    const AttentionSpec& a = attention_at(spec, head.place());
    test::change_weight(*silent, engine, attention_weight(spec, head, ".o"), [&](std::vector<float>& o) {
      for (size_t i = 0; i < o.size(); ++i) {
        if (static_cast<int64_t>(i) % (a.heads * a.value_width) / a.value_width == head.head) o[i] = 0;
      }
    });
  }
  const std::vector<TokenText> texts = tiny_texts(spec, {9, 5, 12});
  CutProbe probe(spec, {.heads = heads, .ablation = Ablation::zero});
  Reader reader(*model, engine, {.rows = 16}), of_silent(*silent, engine, {.rows = 16});
  const auto cut = reader.losses(texts, &probe), right = of_silent.losses(texts), whole = reader.losses(texts);
  EXPECT_NE(cut, whole);
  for (size_t t = 0; t < texts.size(); ++t) {
    ASSERT_EQ(cut[t].size(), right[t].size());
    for (size_t i = 0; i < cut[t].size(); ++i) EXPECT_NEAR(cut[t][i], right[t][i], 2e-6F);
  }
}

// Scales the output of one head.
class Gate : public ReadingProbe {
 public:
  Gate(HeadId head, double factor, ReadingProbe* inner) : head_(head), factor_(factor), inner_(inner) {}
  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place, Site site) const override { return site == Site::attn_z ? Ask::edit : Ask::none; }
  void visit(Context& cx, const Tap& tap, Tensor& z) override {
    if (inner_ != nullptr && inner_->ask(tap.place, tap.site) != Ask::none) inner_->visit(cx, tap, z);
    if (tap.place.stack != head_.stack || tap.place.layer != head_.layer) return;
    const Tensor mine = z.slice(1, head_.head, 1);
    cx.kernels.copy(cx.exec, {.y = mine, .x = mine, .factor = factor_});
  }

 private:
  HeadId head_;
  double factor_;
  ReadingProbe* inner_;
};

TEST_P(Cutting, importance_by_gradient_is_the_slope_of_the_loss_along_a_gate) {
  const auto model = open(GetParam());
  const ModelSpec& spec = model->spec();
  // In double, with steps so small that no kink of relu is near.
  const Engine exact(kernels::ref::table(), {.threads = 2});
  Reader reader(*model, exact, {.precision = Precision::f64()});
  const std::vector<TokenText> texts = tiny_texts(spec, {9, 6});
  const HeadId gone{all_attentions(spec).back().stack, all_attentions(spec).back().layer, 0};
  CutProbe cut(spec, {.heads = {gone}, .ablation = Ablation::zero});
  for (CutProbe* before : {static_cast<CutProbe*>(nullptr), &cut}) {
    const std::vector<HeadImportance> found = gradient_importance(reader, texts, before);
    ASSERT_EQ(found.size(), all_heads(spec).size());
    std::map<std::pair<Stack, int16_t>, double> squares;
    double largest = 0;
    for (const HeadImportance& h : found) {
      squares[{h.head.stack, h.head.layer}] += h.importance * h.importance;
      largest = std::max(largest, h.raw.mean);
    }
    for (const auto& [place, sum] : squares) EXPECT_NEAR(sum, 1, 1e-9);
    for (const HeadImportance& h : found) {
      constexpr double kStep = 0.001;  // losses come as float: no smaller
      Gate more(h.head, 1 + kStep, before), less(h.head, 1 - kStep, before);
      const std::vector<TextSum> up = loss_sums(reader, texts, &more), down = loss_sums(reader, texts, &less);
      double slope = 0;
      for (size_t t = 0; t < texts.size(); ++t) {
        slope += std::abs(up[t].sum - down[t].sum) / static_cast<double>(up[t].count) / (2 * kStep);
      }
      slope /= static_cast<double>(texts.size());
      EXPECT_NEAR(h.raw.mean, slope, 2e-3 * largest + 2e-4) << name_of(spec, h.head);
      EXPECT_EQ(h.raw.n, 2);
      if (before != nullptr && h.head == gone) {
        EXPECT_EQ(h.raw.mean, 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(families, Cutting,
                         testing::Values("llama", "gpt2", "bert", "marian", "t5_gated", "gpt_oss", "olmo2"));

// Head outputs before and after a cut.
class Spy : public ReadingProbe {
 public:
  explicit Spy(ReadingProbe* cut, Place place) : cut_(cut), place_(place) {}
  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place place, Site site) const override {
    const bool wanted = site == Site::attn_z && place.stack == place_.stack && place.layer == place_.layer;
    return wanted ? Ask::edit : Ask::none;
  }
  void visit(Context& cx, const Tap& tap, Tensor& z) override {
    if (cut_ != nullptr) cut_->visit(cx, tap, z);
    const std::vector<float> values = host_floats(z);
    heads = z.dim(1);
    width = z.dim(2);
    for (const Segment& s : tap.rows->list) {
      texts.resize(std::max(texts.size(), static_cast<size_t>(s.request) + 1));
      auto& text = texts[static_cast<size_t>(s.request)];
      const auto first = values.begin() + s.first_row * heads * width;
      text.insert(text.end(), first, first + s.rows * heads * width);
    }
  }
  std::vector<float> of(size_t text, int64_t row, int64_t head) const {
    const auto at = texts[text].begin() + (row * heads + head) * width;
    return {at, at + width};
  }
  int64_t rows(size_t text) const { return std::ssize(texts[text]) / heads / width; }

  int64_t heads = 0, width = 0;
  std::vector<std::vector<float>> texts;

 private:
  ReadingProbe* cut_;
  Place place_;
};

TEST(Cutting, takes_means_and_other_texts_as_they_are) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = open("llama");
  const std::vector<TokenText> texts = tiny_texts(model->spec(), {9, 5, 12, 40});
  Reader reader(*model, engine, {.rows = 16});  // the last text is read in several passes
  const HeadId head{Stack::decoder, 0, 2};
  Spy plain(nullptr, head.place());
  reader.look(texts, plain);
  std::vector<double> mean(static_cast<size_t>(plain.width));
  for (size_t t = 0; t < texts.size(); ++t) {
    for (int64_t r = 0; r < plain.rows(t); ++r) {
      for (size_t e = 0; e < mean.size(); ++e) mean[e] += static_cast<double>(plain.of(t, r, 2)[e]) / 66;
    }
  }
  for (const Ablation ablation : {Ablation::mean, Ablation::resample}) {
    CutProbe cut(model->spec(), {.heads = {head}, .ablation = ablation}, measure_outputs(reader, texts, ablation));
    Spy after(&cut, head.place());
    reader.look(texts, after);
    for (size_t t = 0; t < texts.size(); ++t) {
      std::set<size_t> taken_from;
      for (int64_t r = 0; r < plain.rows(t); ++r) {
        for (const int64_t other : {0, 1, 3}) EXPECT_EQ(after.of(t, r, other), plain.of(t, r, other));
        if (ablation == Ablation::mean) {
          for (size_t e = 0; e < mean.size(); ++e)
            EXPECT_NEAR(after.of(t, r, 2)[e], static_cast<float>(mean[e]), 1e-6F);
        }
        for (size_t from = 0; from < texts.size(); ++from) {
          if (after.of(t, r, 2) == plain.of(from, r % plain.rows(from), 2)) taken_from.insert(from);
        }
      }
      if (ablation == Ablation::resample) {
        EXPECT_EQ(taken_from.size(), 1U) << "text " << t;
        EXPECT_FALSE(taken_from.contains(t));
      }
    }
  }
  expect_error([&] { measure_outputs(reader, std::span(texts).first(1), Ablation::resample); }, {"one text"});
}

TEST(EffectOfACut, is_what_the_logits_say) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  for (const std::string family : {"gpt2", "bert", "marian", "gemma2"}) {
    const auto model = open(family);
    const ModelSpec& spec = model->spec();
    const std::vector<TokenText> texts = tiny_texts(spec, {9, 5, 12});
    Reader reader(*model, engine, {.rows = 16});
    CutProbe probe(spec, {.heads = some_heads(spec), .ablation = Ablation::zero});
    const CutEffect found = effect_of(reader, texts, probe);
    double kl = 0, same = 0, delta = 0, rows = 0;
    for (const TokenText& text : texts) {
      const std::vector<float> p = test::plain_logits(*model, engine, text),
                               q = test::plain_logits(*model, engine, text, {.probe = &probe});
      const auto words = static_cast<size_t>(spec.vocabulary);
      for (size_t r = 0; r < text.ids.size(); ++r) {
        const int32_t target = text.target(r);
        if (target == TokenText::kIgnored) continue;
        const auto logs = [&](const std::vector<float>& of) {
          double sum = 0;
          for (size_t v = 0; v < words; ++v) sum += std::exp(static_cast<double>(of[r * words + v]));
          std::vector<double> made;
          for (size_t v = 0; v < words; ++v) made.push_back(static_cast<double>(of[r * words + v]) - std::log(sum));
          return made;
        };
        const std::vector<double> lp = logs(p), lq = logs(q);
        for (size_t v = 0; v < words; ++v) kl += std::exp(lp[v]) * (lp[v] - lq[v]);
        delta += lp[static_cast<size_t>(target)] - lq[static_cast<size_t>(target)];
        same +=
            std::max_element(lp.begin(), lp.end()) - lp.begin() == std::max_element(lq.begin(), lq.end()) - lq.begin();
        ++rows;
      }
    }
    EXPECT_EQ(found.kl.n, static_cast<int64_t>(rows));
    EXPECT_NEAR(found.kl.mean, kl / rows, 1e-5 * (1 + kl / rows));
    EXPECT_NEAR(found.delta.mean, delta / rows, 1e-5);
    EXPECT_NEAR(found.after.mean - found.before.mean, delta / rows, 1e-5);
    EXPECT_NEAR(found.same_guess.mean, same / rows, 1e-12);
    EXPECT_GT(kl, 0) << family;
  }
}

TEST(Orders, leave_a_head_everywhere_and_curves_end_there) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = open("marian");
  const ModelSpec& spec = model->spec();
  Reader reader(*model, engine, {});
  const std::vector<TokenText> texts = tiny_texts(spec, {9, 5});
  const int64_t most = std::ssize(all_heads(spec)) - std::ssize(all_attentions(spec));
  EXPECT_EQ(random_order(spec, 1), random_order(spec, 1));
  EXPECT_NE(random_order(spec, 1), random_order(spec, 2));
  for (const Order order : {Order::gradient, Order::ablation, Order::random}) {
    const PruningCurve curve = pruning_curve(reader, texts, order, {.ablation = Ablation::zero});
    EXPECT_EQ(std::ssize(curve.cut), most);
    EXPECT_EQ(std::ssize(std::set(curve.cut.begin(), curve.cut.end())), most);
    std::map<std::pair<Stack, int16_t>, int64_t> gone;
    for (const HeadId& head : curve.cut) ++gone[{head.stack, head.layer}];
    for (const Place place : all_attentions(spec)) {
      EXPECT_EQ((gone[{place.stack, place.layer}]), attention_at(spec, place).heads - 1);
    }
    EXPECT_EQ(curve.points.front().delta.mean, 0);
    CutProbe last(spec, {.heads = curve.cut, .ablation = Ablation::zero});
    EXPECT_NEAR(curve.points.back().delta.mean, effect_of(reader, texts, last).delta.mean, 1e-9);
  }
  const std::vector<HeadImportance> alone = ablation_importance(reader, texts, Ablation::zero, nullptr);
  const std::vector<HeadId> order = pruning_curve(reader, texts, Order::ablation, {.ablation = Ablation::zero}).cut;
  const auto delta = [&](const HeadId& head) {
    CutProbe probe(spec, {.heads = {head}, .ablation = Ablation::zero});
    return effect_of(reader, texts, probe).delta.mean;
  };
  EXPECT_EQ(alone.size(), all_heads(spec).size());
  EXPECT_NEAR(alone[3].importance, delta(alone[3].head), 1e-9);
  EXPECT_LE(delta(order.front()), delta(order.back()));
  EXPECT_EQ(std::ssize(pruning_curve(reader, texts, Order::random, {.ablation = Ablation::zero, .lowest = 0.8}).cut),
            std::ssize(all_heads(spec)) - std::llround(0.8 * static_cast<double>(all_heads(spec).size())));
}

// Records which experts tokens are routed to.
class Visits : public ReadingProbe {
 public:
  explicit Visits(ReadingProbe& cut) : cut_(cut) {}
  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place place, Site site) const override {
    return cut_.ask(place, site) | (site == Site::route_ids ? Ask::read : Ask::none);
  }
  void visit(Context& cx, const Tap& tap, Tensor& x) override {
    if (tap.site != Site::route_ids) return cut_.visit(cx, tap, x);
    std::vector<int32_t> ids(static_cast<size_t>(x.count()));
    x.device().download(ids.data(), x.data(), x.count() * 4);
    for (const int32_t id : ids) seen.insert({tap.place.layer, static_cast<int16_t>(id)});
  }
  std::set<ExpertId> seen;

 private:
  ReadingProbe& cut_;
};

TEST(Experts, that_are_cut_are_never_visited) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = open("mixtral");
  const ModelSpec& spec = model->spec();
  const std::vector<ExpertId> cut = parse_experts(spec, "l0e1,L1E0,L0E1");
  EXPECT_EQ(cut, (std::vector<ExpertId>{{0, 1}, {1, 0}}));
  Reader reader(*model, engine, {});
  CutProbe probe(spec, {.experts = cut}), none(spec, {});
  Visits with(probe), without(none);
  const std::vector<TokenText> texts = tiny_texts(spec, {30, 40});
  reader.look(texts, with);
  reader.look(texts, without);
  EXPECT_EQ(without.seen.size(), all_experts(spec).size());
  for (const ExpertId& e : cut) EXPECT_FALSE(with.seen.contains(e)) << name_of(e);
  EXPECT_EQ(with.seen.size(), without.seen.size() - 2);
  for (const char* bad : {"", "L0E99", "L0", "L0H1", "L9E0", "L0E1,"}) {
    expect_error([&] { parse_experts(spec, bad); }, {"L0E0 to L1E"});
  }
  expect_error([&] { CutProbe(spec, {.experts = {{0, 0}, {0, 1}, {0, 2}}}); }, {"left with 1", "needs 2"});
  expect_error([&] { parse_experts(open("llama")->spec(), "L0E0"); }, {"llama", "no experts"});
}

TEST(HiddenTokens, are_about_the_share_asked_for_and_always_the_same) {
  std::vector<TokenText> texts;
  for (int i = 0; i < 50; ++i) texts.push_back({.ids = test::some_ids(i == 0 ? 3 : 60, static_cast<uint32_t>(i))});
  for (TokenText& text : texts) text.ids.front() = 99;
  const HidingOptions options{.mask = 77, .kept = {99}};
  const std::vector<TokenText> made = with_hidden_tokens(texts, options), again = with_hidden_tokens(texts, options);
  int64_t hidden = 0, all = 0;
  for (size_t t = 0; t < made.size(); ++t) {
    EXPECT_EQ(made[t].ids, again[t].ids);
    int64_t here = 0;
    for (size_t i = 0; i < made[t].ids.size(); ++i, ++all) {
      const bool gone = made[t].targets[i] != TokenText::kIgnored;
      EXPECT_EQ(made[t].ids[i], gone ? 77 : texts[t].ids[i]);
      if (gone) {
        EXPECT_EQ(made[t].targets[i], texts[t].ids[i]);
        EXPECT_NE(texts[t].ids[i], 99);
      }
      here += gone;
    }
    EXPECT_GE(here, 1);
    hidden += here;
  }
  EXPECT_NEAR(static_cast<double>(hidden) / static_cast<double>(all), 0.15, 0.02);
  expect_error([&] { with_hidden_tokens(texts, {}); }, {"mask token"});
}

}  // namespace ablation_test
}  // namespace qkv

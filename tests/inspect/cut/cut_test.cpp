// Pruned models against the same heads ablated; duplicate heads and routing against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "base/expect_error.h"
#include "base/temp_folder.h"
#include "inspect/cut/cut_model.h"
#include "inspect/heads/expert_use.h"
#include "inspect/heads/twins.h"
#include "inspect/tiny.h"
#include "kernels/tables.h"
#include "verify/recorded.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using test::plain_logits;
using test::tiny_texts;

// Enough heads that some key/value heads go too: all heads of every attention except 1 and 2; of the last attention all
// except the first.
std::vector<HeadId> many_heads(const ModelSpec& spec) {
  std::vector<HeadId> heads = all_heads(spec);
  const Place last = all_attentions(spec).back();
  std::erase_if(heads, [&](const HeadId& h) {
    const bool of_last = h.stack == last.stack && h.layer == last.layer;
    return of_last ? h.head == 0 : h.head == 1 || h.head == 2;
  });
  return heads;
}

int64_t numbers_of(const ModelSpec& spec) {
  int64_t sum = 0;
  for (const WeightSpec& weight : weight_list(spec)) sum += weight.shape.count();
  return sum;
}

class CutOut : public testing::TestWithParam<const char*> {};

TEST_P(CutOut, says_what_the_whole_model_says_without_the_heads) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const fs::path from = test::golden(GetParam());
  const Checkpoint whole = Checkpoint::open(from);
  const std::vector<HeadId> heads = many_heads(whole.spec);
  ASSERT_FALSE(heads.empty());
  const TempFolder folder;
  const SmallerModel smaller = cut_out(whole, cpu_device(), {.heads = heads, .ablation = Ablation::zero});
  const std::vector<std::string> notes = write_cut_model(folder.path() / "cut", smaller, from);
  EXPECT_NE(notes.front().find("Hugging Face"), std::string::npos);
  const Checkpoint cut = Checkpoint::open(folder.path() / "cut");
  EXPECT_TRUE(cut.spec.heads_cut);
  EXPECT_LT(numbers_of(cut.spec), numbers_of(whole.spec));
  EXPECT_EQ(all_heads(cut.spec).size(), all_heads(whole.spec).size() - heads.size());

  const auto model = whole.model(), small = cut.model();
  CutProbe probe(whole.spec, {.heads = heads, .ablation = Ablation::zero});
  for (const TokenText& text : tiny_texts(whole.spec, {3, 17})) {
    const std::vector<float> silenced = plain_logits(*model, engine, text, {.probe = &probe});
    EXPECT_LE(distance(plain_logits(*small, engine, text), silenced).nmse, 1e-11);
    EXPECT_GT(distance(plain_logits(*model, engine, text), silenced).nmse, 1e-6) << "the heads said nothing anyway";
  }

  // What is left can be cut again: the same as all at once.
  const std::vector<HeadId> again{{all_attentions(cut.spec).front().stack, 0, 0}};
  SmallerModel twice = cut_out(cut, cpu_device(), {.heads = again, .ablation = Ablation::zero});
  const auto smallest = std::move(twice).model();
  CutProbe first(cut.spec, {.heads = again, .ablation = Ablation::zero});
  const TokenText text = tiny_texts(whole.spec, {11}).front();
  EXPECT_LE(distance(plain_logits(*smallest, engine, text), plain_logits(*small, engine, text, {.probe = &first})).nmse,
            1e-11);
}

INSTANTIATE_TEST_SUITE_P(families, CutOut,
                         testing::Values("llama", "gpt2", "bert", "bart", "marian", "t5", "t5_gated", "gpt_oss",
                                         "mixtral", "olmo2", "gpt_neox", "phi3", "qwen2", "qwen3", "gemma2", "gemma3",
                                         "deepseek_v3"));

TEST(CutOutKeyValueHeads, go_only_when_nobody_reads_them) {
  const Checkpoint llama = Checkpoint::open(test::golden("llama"));  // 4 heads read 2
  const auto left = [&](const char* heads) {
    const SmallerModel made = cut_out(llama, cpu_device(), {.heads = parse_heads(llama.spec, heads), .ablation = {}});
    return made.spec.decoder.layers[1].attention;
  };
  EXPECT_EQ(left("L1H0,L1H3").kv_map, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(left("L1H0,L1H3").kv_heads, 2);
  EXPECT_EQ(left("L1H0,L1H1").kv_map, (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(left("L1H0,L1H1").kv_heads, 1);
  EXPECT_EQ(left("L0H0").kv_map, (std::vector<int32_t>{0, 0, 1, 1}));
}

TEST(CutOutMeans, go_into_the_bias_of_w_o_where_there_is_one) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const Checkpoint whole = Checkpoint::open(test::golden("gpt2"));
  const auto model = whole.model();
  Reader reader(*model, engine, {});
  const std::vector<TokenText> texts = tiny_texts(whole.spec, {9, 14});
  const auto outputs = measure_outputs(reader, texts, Ablation::mean);
  const Cut cut{.heads = many_heads(whole.spec), .ablation = Ablation::mean};
  const auto small = cut_out(whole, cpu_device(), cut, outputs.get()).model();
  CutProbe probe(whole.spec, cut, outputs);
  for (const TokenText& text : texts) {
    EXPECT_LE(distance(plain_logits(*small, engine, text), plain_logits(*model, engine, text, {.probe = &probe})).nmse,
              1e-11);
  }
  const Checkpoint llama = Checkpoint::open(test::golden("llama"));
  expect_error(
      [&] {
        cut_out(llama, cpu_device(), {.heads = {{Stack::decoder, 0, 0}}}, outputs.get());
      },
      {"llama", "bias"});
}

TEST(CutOut, refuses_what_leaves_nothing) {
  const Checkpoint llama = Checkpoint::open(test::golden("llama"));
  const auto cut = [&](Cut what) { cut_out(llama, cpu_device(), what); };
  expect_error([&] { cut({.heads = parse_heads(llama.spec, "L1"), .ablation = Ablation::zero}); },
               {"L1 would be left without a head", "4"});
  expect_error([&] { cut({.ablation = Ablation::zero}); }, {"nothing"});
  expect_error([&] { cut({.heads = {{Stack::decoder, 0, 0}}, .ablation = Ablation::resample}); }, {"resampled"});
  const TempFolder folder;
  const SmallerModel made = cut_out(llama, cpu_device(), {.heads = {{Stack::decoder, 0, 0}}, .ablation = {}});
  expect_error([&] { write_cut_model(folder.path(), made, test::golden("llama")); }, {"exists already"});
}

TEST(CutOutExperts, say_what_the_whole_model_says_without_them) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  for (const std::string family : {"mixtral", "gpt_oss", "qwen3_moe"}) {
    const fs::path from = test::golden(family);
    const Checkpoint whole = Checkpoint::open(from);
    const Cut cut{.heads = {{Stack::decoder, 0, 1}},
                  .experts = parse_experts(whole.spec, "L0E1,L1E0"),
                  .ablation = Ablation::zero};
    const TempFolder folder;
    write_cut_model(folder.path() / "cut", cut_out(whole, cpu_device(), cut), from);
    const Checkpoint small = Checkpoint::open(folder.path() / "cut");
    EXPECT_EQ(all_experts(small.spec).size(), all_experts(whole.spec).size() - 2);
    CutProbe probe(whole.spec, cut);
    const TokenText text = tiny_texts(whole.spec, {23}).front();
    const std::vector<float> right = plain_logits(*whole.model(), engine, text, {.probe = &probe});
    EXPECT_LE(distance(plain_logits(*small.model(), engine, text), right).nmse, 1e-11) << family;
  }
}

// --- twins -----------------------------------------------------------------------------------------------------------

// Maps and outputs of every head of a decoder for one text.
class AllMaps : public ReadingProbe {
 public:
  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place, Site site) const override {
    return site == Site::attn_probs ? Ask::pattern : site == Site::attn_z ? Ask::read : Ask::none;
  }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    (tap.site == Site::attn_z ? z : maps)[tap.place.layer] = host_floats(x);
    heads = x.dim(1);
    if (tap.site == Site::attn_z) width = x.dim(2);
  }
  std::map<int, std::vector<float>> maps, z;
  int64_t heads = 0, width = 0;
};

TEST(Twins, have_the_distances_that_plain_loops_find) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  const ModelSpec& spec = model->spec();
  const std::vector<TokenText> texts = tiny_texts(spec, {21});
  Reader reader(*model, engine, {});
  const Twins found = find_twins(reader, texts, {.pairs = 1000, .ablation = Ablation::zero});
  AllMaps seen;
  reader.look(texts, seen);
  const int64_t t = 21, h = seen.heads, e = seen.width, c = spec.width;
  EXPECT_EQ(found.compared, 8 * 7 / 2);
  EXPECT_EQ(std::ssize(found.closest), found.compared);
  EXPECT_EQ(found.rows, t - 2);
  for (const TwinPair& pair : found.closest) {
    double js = 0;
    const auto a = [&](const HeadId& head, int64_t i, int64_t j) {
      return 0.999 * static_cast<double>(seen.maps[head.layer][static_cast<size_t>((i * h + head.head) * t + j)]) +
             0.001 / static_cast<double>(t);
    };
    for (int64_t i = 2; i < t; ++i) {
      for (int64_t j = 0; j < t; ++j) {
        const double p = a(pair.a, i, j), q = a(pair.b, i, j), m = (p + q) / 2;
        js += (p * std::log2(p / m) + q * std::log2(q / m)) / 2;
      }
    }
    EXPECT_NEAR(pair.distance, std::sqrt(js / static_cast<double>(t - 2)), 1e-4);
    // X and Y whole: [T, C].
    const auto written = [&](const HeadId& head) {
      const std::vector<float> o =
          host_floats(model->weights().at("layers." + std::to_string(head.layer) + ".attn.o").master());
      std::vector<double> x(static_cast<size_t>(t * c));
      for (int64_t i = 0; i < t; ++i) {
        for (int64_t k = 0; k < c; ++k) {
          for (int64_t d = 0; d < e; ++d) {
            x[static_cast<size_t>(i * c + k)] +=
                static_cast<double>(seen.z[head.layer][static_cast<size_t>((i * h + head.head) * e + d)]) *
                static_cast<double>(o[static_cast<size_t>(k * h * e + head.head * e + d)]);
          }
        }
      }
      for (int64_t k = 0; k < c; ++k) {
        double mean = 0;
        for (int64_t i = 0; i < t; ++i) mean += x[static_cast<size_t>(i * c + k)] / static_cast<double>(t);
        for (int64_t i = 0; i < t; ++i) x[static_cast<size_t>(i * c + k)] -= mean;
      }
      return x;
    };
    const auto norm = [&](const std::vector<double>& x, const std::vector<double>& y) {  // |Y'X|^2
      double sum = 0;
      for (int64_t k = 0; k < c; ++k) {
        for (int64_t l = 0; l < c; ++l) {
          double one = 0;
          for (int64_t i = 0; i < t; ++i) one += x[static_cast<size_t>(i * c + k)] * y[static_cast<size_t>(i * c + l)];
          sum += one * one;
        }
      }
      return sum;
    };
    const std::vector<double> x = written(pair.a), y = written(pair.b);
    EXPECT_NEAR(pair.cka, norm(x, y) / std::sqrt(norm(x, x) * norm(y, y)), 1e-6);
    const auto loss = [&](std::vector<HeadId> heads) {
      CutProbe probe(spec, {.heads = std::move(heads), .ablation = Ablation::zero});
      return estimate(loss_sums(reader, texts, &probe)).mean;
    };
    EXPECT_NEAR(pair.synergy.mean, loss({pair.a, pair.b}) - loss({pair.a}) - loss({pair.b}) + loss({}), 1e-6);
    EXPECT_EQ(pair.synergy.n, t - 1);
  }
}

TEST(Twins, are_found_where_a_head_is_a_copy_and_not_where_all_are_drawn_alone) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden("gpt2")).model(cpu_device(), BlockWeights::decoded);
  const ModelSpec& spec = model->spec();
  std::vector<int64_t> lengths;
  for (int64_t i = 8; i < 20; ++i) lengths.push_back(i);
  const std::vector<TokenText> texts = tiny_texts(spec, lengths);
  Reader reader(*model, engine, {});
  for (const TwinPair& pair : find_twins(reader, texts, {}).closest) EXPECT_FALSE(pair.duplicate());

  const auto last = static_cast<int16_t>(spec.decoder.layers.size() - 1);
  const AttentionSpec& a = spec.decoder.layers.back().attention;
  const std::string name = "layers." + std::to_string(last) + ".attn.";
  for (const std::string which : {"q", "k", "v", "q.bias", "k.bias", "v.bias"}) {
    test::change_weight(*model, engine, name + which, [&](std::vector<float>& w) {
      const size_t one = w.size() / static_cast<size_t>(a.heads);
      std::copy_n(w.begin() + static_cast<std::ptrdiff_t>(one), one, w.begin() + static_cast<std::ptrdiff_t>(2 * one));
    });
  }
  constexpr float kLouder = 3;  // large enough that the ablation costs loss
  test::change_weight(*model, engine, name + "o", [&](std::vector<float>& w) {
    const auto width = static_cast<size_t>(a.value_width), row = width * static_cast<size_t>(a.heads);
    for (size_t at = 0; at < w.size(); at += row) {
      for (size_t e = 0; e < width; ++e) w[at + 2 * width + e] = w[at + width + e] *= kLouder;
    }
  });
  // With its own predictions as targets, cutting both costs more than twice cutting one.
  std::vector<TokenText> sure = texts;
  for (TokenText& text : sure) {
    const std::vector<float> logits = plain_logits(*model, engine, text);
    for (size_t r = 0; r < text.ids.size(); ++r) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(r) * spec.vocabulary;
      text.targets.push_back(static_cast<int32_t>(std::max_element(row, row + spec.vocabulary) - row));
    }
  }
  const Twins found = find_twins(reader, sure, {});
  const TwinPair& closest = found.closest.front();
  EXPECT_EQ(closest.a, (HeadId{Stack::decoder, last, 1}));
  EXPECT_EQ(closest.b, (HeadId{Stack::decoder, last, 2}));
  EXPECT_LT(closest.distance, 1e-3);
  EXPECT_NEAR(closest.cka, 1, 1e-6);
  EXPECT_NEAR(*closest.qk_cosine, 1, 1e-9);
  EXPECT_NEAR(*closest.ov_cosine, 1, 1e-9);
  EXPECT_GT(closest.synergy.mean, 0);
  EXPECT_TRUE(closest.duplicate());
  EXPECT_FALSE(found.clusters.empty());
}

// --- routes ----------------------------------------------------------------------------------------------------------

class RouteIds : public ReadingProbe {
 public:
  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place place, Site site) const override {
    return place.layer == 1 && (site == Site::route_ids || site == Site::route_logits) ? Ask::read : Ask::none;
  }
  void visit(Context& cx, const Tap& tap, Tensor& x) override {
    if (tap.site == Site::route_logits) return static_cast<void>(p = host_floats(ops_softmax(cx, x)));
    ids.resize(static_cast<size_t>(x.count()));
    x.device().download(ids.data(), x.data(), x.count() * 4);
  }
  static Tensor ops_softmax(Context& cx, const Tensor& x) {
    Tensor y = cx.constant(x.shape(), x.dtype());
    cx.kernels.softmax(cx.exec, {.y = y, .x = x});
    return y;
  }
  std::vector<int32_t> ids;
  std::vector<float> p;
};

TEST(Routes, are_counted_as_plain_loops_count) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden("mixtral")).model();
  const ModelSpec& spec = model->spec();
  const std::vector<TokenText> texts = tiny_texts(spec, {40, 50, 60});
  Reader reader(*model, engine, {});
  RoutingOptions options{.classes = 3};
  for (int64_t v = 0; v < spec.vocabulary; ++v) options.class_of.push_back(static_cast<int32_t>(v % 3));
  const std::vector<LayerRouting> found = measure_routing(reader, texts, options);
  ASSERT_EQ(found.size(), 2U);
  const LayerRouting& layer = found[1];
  RouteIds seen;
  reader.look(texts, seen);
  const int64_t experts = layer.experts, k = layer.visited, n = 150;
  ASSERT_EQ(std::ssize(seen.ids), n * k);
  std::map<std::pair<int32_t, int32_t>, double> joint, pairs;
  std::map<int32_t, double> of_expert, of_class;
  double entropy = 0, balance = 0;
  std::vector<double> mean(static_cast<size_t>(experts));
  size_t row = 0;
  for (const TokenText& text : texts) {
    for (const int32_t id : text.ids) {
      for (int64_t s = 0; s < k; ++s) {
        const int32_t e = seen.ids[row * static_cast<size_t>(k) + static_cast<size_t>(s)];
        joint[{e, id % 3}] += 1;
        of_expert[e] += 1;
        of_class[id % 3] += 1;
        for (int64_t o = 0; o < k; ++o)
          pairs[{e, seen.ids[row * static_cast<size_t>(k) + static_cast<size_t>(o)]}] += 1;
      }
      for (size_t e = 0; e < mean.size(); ++e) {
        const auto p = static_cast<double>(seen.p[row * mean.size() + e]);
        mean[e] += p / static_cast<double>(n);
        entropy -= p * std::log(p) / std::log(static_cast<double>(experts)) / static_cast<double>(n);
      }
      ++row;
    }
  }
  const auto bits = [&](const auto& counts) {
    double sum = 0;
    for (const auto& [key, count] : counts)
      sum -= count / static_cast<double>(n * k) * std::log2(count / static_cast<double>(n * k));
    return sum;
  };
  EXPECT_NEAR(layer.information.mean, bits(of_expert) + bits(of_class) - bits(joint), 1e-9);
  EXPECT_GT(layer.by_chance, 0);
  EXPECT_LE(layer.information.low, layer.information.high);
  EXPECT_NEAR(layer.entropy.mean, entropy, 1e-6);
  EXPECT_EQ(layer.tokens, n);
  for (int32_t e = 0; e < experts; ++e) {
    const ExpertUse& use = layer.of_expert[static_cast<size_t>(e)];
    const double load = of_expert[e] / static_cast<double>(n);
    balance += static_cast<double>(experts) * load * mean[static_cast<size_t>(e)];
    EXPECT_NEAR(use.load.mean, load, 1e-12);
    EXPECT_NEAR(use.probability, mean[static_cast<size_t>(e)], 1e-6);
    for (int32_t o = 0; o < experts; ++o) {
      if (o == e || of_expert[e] == 0) continue;
      EXPECT_NEAR(use.together[static_cast<size_t>(o)], (pairs[{e, o}] / of_expert[e]), 1e-12);
    }
    for (int32_t c = 0; c < 3; ++c) EXPECT_EQ(use.classes[static_cast<size_t>(c)], static_cast<int64_t>(joint[{e, c}]));
  }
  EXPECT_NEAR(layer.balance, balance, 1e-6);
  const auto gpt2 = Checkpoint::open(test::golden("gpt2")).model();
  Reader other(*gpt2, engine, {});
  expect_error([&] { measure_routing(other, texts, options); }, {"gpt2", "no experts"});
}

}  // namespace
}  // namespace qkv

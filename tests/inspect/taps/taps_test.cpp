// Names of taps; every tap is visited with the documented shape, in plain and cached passes.
#include "inspect/taps/taps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/expect_error.h"
#include "core/host_values.h"
#include "inspect/heads/head_id.h"
#include "inspect/taps/recorder.h"
#include "inspect/tiny.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "model/kv_layouts.h"
#include "support/attention_alone.h"
#include "support/pass.h"

namespace qkv {
namespace {

const std::vector<int32_t> kIds{5, 9, 2, 7, 11, 5, 9, 3}, kSource{4, 8, 15, 16, 23};

std::vector<TapId> ids_of(const std::vector<TapInfo>& taps) {
  std::vector<TapId> ids;
  for (const TapInfo& tap : taps) ids.push_back(tap.id);
  return ids;
}

// One pass over kIds, whole or through a cache in two texts at once; the logits of the last row.
std::vector<float> whole(const Model& model, const Engine& engine, Probe* probe) {
  TokenText text{.ids = kIds};
  if (model.spec().has_source()) text.source = kSource;
  const std::vector<float> all = test::plain_logits(model, engine, text, {.probe = probe});
  return {all.end() - model.spec().vocabulary, all.end()};
}

// The same text batched with another one through a paged cache: all but the last token, then one token of each.
std::vector<float> decoded(const Model& model, const Engine& engine, Probe* probe) {
  Arena arena(engine.device());
  const int64_t room = 4 * KvCache::kPage;
  KvCache cache(engine.device(), kv_layouts(model.spec()), {.dtype = DType::f32, .positions = room});
  const bool has_source = model.spec().has_source();
  KvCache sources(engine.device(), has_source ? source_layouts(model.spec()) : kv_layouts(model.spec()),
                  {.dtype = DType::f32, .positions = room});
  const KvCache::Id a = cache.start(), b = cache.start(), x = sources.start(), y = sources.start();
  const auto length = static_cast<int32_t>(kIds.size()), source = static_cast<int32_t>(kSource.size());
  if (has_source) {
    Context cx = engine.context(arena, Precision::f32());
    cx.probe = probe;
    const std::vector<KvCache::Part> parts{{.id = x, .count = source}, {.id = y, .count = source}};
    const KvPages pages = sources.append(cx, parts);
    std::vector<int32_t> both = kSource;
    both.insert(both.end(), kSource.begin(), kSource.end());
    const Rows rows = Rows::batch(cx, 2, source);
    static_cast<const EncoderDecoder&>(model).cache_source(cx, cx.upload(both), rows, pages);
  }
  std::vector<float> logits;
  for (const int32_t count : {length - 1, 1}) {
    arena.rewind({});
    Context cx = engine.context(arena, Precision::f32());
    cx.probe = probe;
    const std::vector<KvCache::Part> parts{{.id = b, .count = count, .request = 1}, {.id = a, .count = count}};
    const KvPages pages = cache.append(cx, parts);
    const std::vector<KvCache::Part> looking{{.id = y, .count = count}, {.id = x, .count = count}};
    const KvPages memory = has_source ? sources.look(cx, looking) : KvPages{};
    const int32_t first = count == 1 ? length - 1 : 0;
    std::vector<int32_t> ids(static_cast<size_t>(count), 6);
    ids.insert(ids.end(), kIds.begin() + first, kIds.begin() + first + count);
    const Tensor states = model.next_states(cx, cx.upload(ids), pages, has_source ? &memory : nullptr);
    logits = host_floats(model.head().forward(cx, states));
  }
  return {logits.end() - model.spec().vocabulary, logits.end()};
}

class TapsOf : public testing::TestWithParam<std::string> {};

std::unique_ptr<Model> model_of(const std::string& family) {
  return family == "attention_alone" ? test::attention_alone() : Checkpoint::open(test::golden(family)).model();
}

TEST_P(TapsOf, are_all_visited_once_a_pass_and_change_no_bit) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = model_of(GetParam());
  const ModelSpec& spec = model->spec();
  const std::vector<TapInfo> taps = all_taps(spec);
  Recorder recorder(ids_of(taps));
  EXPECT_EQ(whole(*model, engine, &recorder), whole(*model, engine, nullptr));
  ASSERT_EQ(recorder.all().size(), taps.size());
  const auto rows_at = [&](Stack stack) { return stack == Stack::encoder ? kSource.size() : kIds.size(); };
  const bool alone = !spec.has_source();
  for (size_t i = 0; i < taps.size(); ++i) {
    const RecordedTap& seen = recorder.all()[i];
    EXPECT_TRUE(seen.id == taps[i].id) << i << ": " << name_of(spec, seen.id) << " came, not " << taps[i].name;
    EXPECT_EQ(parse_taps(spec, taps[i].name), std::vector{taps[i].id}) << taps[i].name;
    ASSERT_EQ(seen.shape.rank(), static_cast<int>(taps[i].shape.size())) << taps[i].name;
    for (int axis = 0; axis < seen.shape.rank(); ++axis) {
      const TapAxis& known = taps[i].shape[static_cast<size_t>(axis)];
      const Stack keys = taps[i].id.place.stack == Stack::decoder ? Stack::decoder : Stack::encoder;
      const size_t in_pass = alone                 ? kIds.size()
                             : known.letter == "N" ? rows_at(taps[i].id.place.stack)
                                                   : rows_at(keys);  // M and S
      const int64_t right = known.size > 0 ? known.size : static_cast<int64_t>(in_pass);
      EXPECT_EQ(seen.shape[axis], right) << taps[i].name << " axis " << known.letter;
    }
    for (const float v : seen.values) ASSERT_FALSE(std::isnan(v)) << taps[i].name;
  }
}

TEST_P(TapsOf, show_the_same_through_a_cache_and_beside_another_text) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = model_of(GetParam());
  const ModelSpec& spec = model->spec();
  if (spec.kind == ModelSpec::Kind::encoder_only) return;  // does not generate
  const std::vector<TapInfo> taps = all_taps(spec);
  Recorder one(ids_of(taps)), other(ids_of(taps));
  whole(*model, engine, &one);
  EXPECT_EQ(decoded(*model, engine, &other), decoded(*model, engine, nullptr));
  for (const TapInfo& tap : taps) {
    const RecordedTap &right = one.last(tap.id), &got = other.last(tap.id);
    const int64_t row = right.shape[0] - 1, last = got.shape[0] - 1;  // of the text, which is second in the cache
    const std::span<const float> a = right.row(row), b = got.row(last);
    ASSERT_EQ(a.size(), b.size()) << tap.name;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;  // also minus infinity: masked keys
      ASSERT_NEAR(a[i], b[i], 2e-5F * std::max(1.0F, std::abs(a[i]))) << tap.name << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(families, TapsOf,
                         testing::Values("gpt2", "gpt_neox", "gemma2", "olmo2", "gpt_oss", "mixtral", "deepseek_v3",
                                         "qwen3_moe", "bert", "bart", "marian", "t5", "attention_alone"),
                         [](const auto& at) { return at.param; });

// The same row through the experts by hand: mlp.post of a chosen expert times its W_down is mlp.out.
TEST(Taps, of_experts_show_the_chosen_in_the_order_of_the_router) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("mixtral")).model();
  const ModelSpec& spec = model->spec();
  Recorder recorder(parse_taps(spec, "1.mlp.post,1.mlp.out,1.route.ids,1.route.weights"));
  whole(*model, engine, &recorder);
  const auto at = [&](Site site) -> const RecordedTap& { return recorder.last({{Stack::decoder, 1}, site}); };
  const RecordedTap &post = at(Site::mlp_post), &out = at(Site::mlp_out);
  const std::vector<float> down = host_floats(model->weights().at("layers.1.mlp.experts.down").master());  // [E, C, F]
  const int64_t width = spec.width, inner = post.shape[2], chosen = post.shape[1];
  for (int64_t r = 0; r < out.shape[0]; ++r) {
    for (int64_t c = 0; c < width; ++c) {
      double sum = 0;
      for (int64_t k = 0; k < chosen; ++k) {
        const auto expert = static_cast<int64_t>(at(Site::route_ids).row(r)[static_cast<size_t>(k)]);
        double brought = 0;
        for (int64_t f = 0; f < inner; ++f) {
          brought += static_cast<double>(down[static_cast<size_t>((expert * width + c) * inner + f)]) *
                     static_cast<double>(post.row(r)[static_cast<size_t>(k * inner + f)]);
        }
        sum += brought * static_cast<double>(at(Site::route_weights).row(r)[static_cast<size_t>(k)]);
      }
      ASSERT_NEAR(sum, static_cast<double>(out.row(r)[static_cast<size_t>(c)]), 1e-5) << r << " " << c;
    }
  }
}

// An edit at mlp.post of experts reaches the sum: twice the post is twice the out.
TEST(Taps, of_experts_can_be_edited) {
  class Doubler : public Recorder {
   public:
    using Recorder::Recorder;
    Ask ask(Place place, Site site) const override {
      return site == Site::mlp_post ? Ask::edit : Recorder::ask(place, site);
    }
    void visit(Context& cx, const Tap& tap, Tensor& x) override {
      if (tap.site != Site::mlp_post) return Recorder::visit(cx, tap, x);
      if (tap.place.layer == 0) x = ops::scale(cx, x, 2);
    }
  };
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("qwen3_moe")).model();
  const std::vector<TapId> wanted = parse_taps(model->spec(), "0.mlp.out");
  Recorder plain(wanted);
  Doubler twice(wanted);
  whole(*model, engine, &plain);
  whole(*model, engine, &twice);
  for (size_t i = 0; i < plain.all()[0].values.size(); ++i) {
    EXPECT_NEAR(2 * plain.all()[0].values[i], twice.all()[0].values[i], 1e-5F);
  }
}

TEST(Taps, understand_the_words_of_TransformerLens) {
  const ModelSpec gpt2 = Checkpoint::open(test::golden("gpt2")).spec, t5 = Checkpoint::open(test::golden("t5")).spec;
  const std::vector<std::pair<const char*, const char*>> same{{"hook_embed", "embed"},
                                                              {"blocks.1.hook_resid_pre", "1.resid.pre"},
                                                              {"blocks.1.hook_resid_mid", "1.resid.mid"},
                                                              {"blocks.1.attn.hook_rot_q", "1.attn.q"},
                                                              {"blocks.0.attn.hook_pattern", "0.attn.probs"},
                                                              {"blocks.0.attn.hook_attn_scores", "0.attn.scores"},
                                                              {"blocks.0.attn.hook_z", "0.attn.z"},
                                                              {"blocks.1.hook_attn_out", "1.attn.out"},
                                                              {"blocks.1.mlp.hook_pre", "1.mlp.pre"},
                                                              {"blocks.1.hook_mlp_out", "dec.1.mlp.out"},
                                                              {"ln_final.hook_normalized", "final"}};
  for (const auto& [theirs, ours] : same) EXPECT_EQ(parse_taps(gpt2, theirs), parse_taps(gpt2, ours)) << theirs;
  EXPECT_EQ(parse_taps(t5, "decoder.1.cross_attn.hook_pattern"), parse_taps(t5, "cross.1.attn.probs"));
  EXPECT_EQ(parse_taps(t5, "decoder.1.hook_resid_mid"), parse_taps(t5, "cross.1.resid.pre"));
  EXPECT_EQ(parse_taps(t5, "decoder.1.hook_resid_mid_cross"), parse_taps(t5, "dec.1.resid.mid"));
  EXPECT_EQ(parse_taps(t5, "encoder.0.hook_mlp_out"), parse_taps(t5, "enc.0.mlp.out"));
  EXPECT_EQ(parse_taps(gpt2, "attn.q").size(), gpt2.decoder.layers.size());
  EXPECT_EQ(parse_taps(gpt2, "0.attn.q,final,0.attn.q").size(), 2U);
}

// Names of arrays are names of taps.
TEST(Taps, of_arrays_are_read_back) {
  for (const char* family : {"llama", "bert", "t5"}) {
    const ModelSpec spec = Checkpoint::open(test::golden(family)).spec;
    for (const TapInfo& tap : all_taps(spec)) {
      const std::string name = array_name(spec, tap.id);
      EXPECT_EQ(parse_taps(spec, name), std::vector<TapId>{tap.id}) << name;
    }
  }
  const ModelSpec t5 = Checkpoint::open(test::golden("t5")).spec;
  EXPECT_EQ(array_name(t5, {{Stack::cross, 1}, Site::attn_z}), "X1.attn.z");
  EXPECT_EQ(array_name(t5, {{Stack::encoder, 1}, Site::attn_z}), "E1.attn.z");
  EXPECT_EQ(array_name(t5, {{Stack::decoder, 1}, Site::mlp_post}), "L1.mlp.post");
}

TEST(Taps, say_what_exists_when_they_do_not) {
  const ModelSpec gpt2 = Checkpoint::open(test::golden("gpt2")).spec, t5 = Checkpoint::open(test::golden("t5")).spec;
  for (const char* bad : {"", "0.attn.qq", "99.attn.q", "cross.0.attn.q", "enc.embed", "0.embed", "-1.attn.q", "attn",
                          "0.route.ids", "blocks.99.attn.hook_q", "blocks.0.hook_embed", "embed,"}) {
    expect_error([&] { parse_taps(gpt2, bad); }, {"this gpt2 has 0.* to "});
  }
  expect_error([&] { parse_taps(gpt2, "0.attn.prob"); }, {"did you mean 0.attn.probs"});
  expect_error([&] { parse_taps(t5, "dec.9.attn.q"); }, {"enc.0.* to", "cross.0.* to"});
  expect_error([&] { parse_taps(gpt2, "blocks.0.attn.hook_result"); }, {"attn.z"});
}

// A name that is not there leads to the one that was meant, or that stands nearest to what it means.
TEST(TapNames, ErrorsNameTheNearest) {
  const auto check = [](const char* family, const char* name, const char* nearest) {
    const auto model = model_of(family);
    const auto error = error_of([&] { parse_taps(model->spec(), name); });
    ASSERT_TRUE(error) << name;
    const std::string said = error->message();
    EXPECT_TRUE(said.find(std::string("did you mean ") + nearest + "?") != std::string::npos ||
                said.find(std::string("the nearest is ") + nearest) != std::string::npos)
        << said;
    EXPECT_FALSE(error->hint().empty()) << name;
  };
  for (const auto& [name, nearest] :
       std::initializer_list<std::pair<const char*, const char*>>{{"blocks.1.ln1.hook_scale", "1.resid.pre"},
                                                                  {"blocks.1.ln2.hook_normalized", "1.resid.mid"},
                                                                  {"hook_pos_embed", "embed"},
                                                                  {"blocks.1.attn.hook_result", "1.attn.z"},
                                                                  {"ln_final.hook_scale", "final"},
                                                                  {"blocks.0.hook_mlp_in", "0.resid.mid"},
                                                                  {"blocks.1.attn.hook_patern", "1.attn.probs"},
                                                                  {"blocks.1.hook_pattern", "1.attn.probs"},
                                                                  {"blocks.77.attn.hook_q", "1.attn.q"},
                                                                  {"1.atn.q", "1.attn.q"},
                                                                  {"L1.attn.prob", "1.attn.probs"},
                                                                  {"attn.prob", "attn.probs"},
                                                                  {"logit", "logits"}}) {
    check("llama", name, nearest);
  }
  check("t5", "encoder.1.ln1.hook_scale", "enc.1.resid.pre");
  check("t5", "decoder.0.cross_attn.hook_patern", "cross.0.attn.probs");
  check("t5", "encoder.0.attn.q", "enc.0.attn.q");
  check("llama", "enc.0.attn.q", "0.attn.q");
}

}  // namespace
}  // namespace qkv

// Causality: tokens to the right of a position never change what is computed for it, bit for bit.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "core/host_values.h"
#include "labs/labs.h"
#include "labs/shuffle.h"
#include "labs/small_model.h"
#include "model/families/family.h"

namespace qkv::labs {
namespace {

constexpr int32_t kCausalVocabulary = 64;
constexpr int32_t kCausalLength = 24;

// Decoders that differ in everything that could leak: positions, windows, soft caps, grouped and latent heads, experts.
std::vector<Json> decoders() {
  const auto llama_like = [](const char* family) {
    return Json{{"model_type", family},        {"vocab_size", kCausalVocabulary}, {"hidden_size", 32},
                {"intermediate_size", 48},     {"num_hidden_layers", 2},          {"num_attention_heads", 4},
                {"num_key_value_heads", 2},    {"max_position_embeddings", 64},   {"head_dim", 8},
                {"tie_word_embeddings", false}};
  };
  std::vector<Json> all{llama_like("llama"), llama_like("qwen3"), llama_like("olmo2")};
  all.push_back({{"model_type", "gpt2"},
                 {"vocab_size", kCausalVocabulary},
                 {"n_positions", 64},
                 {"n_embd", 32},
                 {"n_layer", 2},
                 {"n_head", 4},
                 {"tie_word_embeddings", false}});
  Json windows = llama_like("gemma2");
  windows["sliding_window"] = 8;
  windows["query_pre_attn_scalar"] = 8;
  all.push_back(windows);
  Json experts = llama_like("mixtral");
  experts["num_local_experts"] = 4;
  experts["num_experts_per_tok"] = 2;
  all.push_back(experts);
  Json latent = llama_like("deepseek_v3");
  latent.erase("head_dim");
  latent.update({{"num_key_value_heads", 4},
                 {"kv_lora_rank", 16},
                 {"q_lora_rank", 16},
                 {"qk_nope_head_dim", 8},
                 {"qk_rope_head_dim", 8},
                 {"v_head_dim", 8},
                 {"moe_intermediate_size", 24},
                 {"n_routed_experts", 4},
                 {"n_shared_experts", 1},
                 {"num_experts_per_tok", 2},
                 {"first_k_dense_replace", 1},
                 {"n_group", 1},
                 {"topk_group", 1}});
  all.push_back(latent);
  return all;
}

// The control: bidirectional attention must show the leaks that a decoder never has.
Json encoder() {
  return {{"model_type", "bert"},         {"vocab_size", kCausalVocabulary}, {"hidden_size", 32},
          {"intermediate_size", 48},      {"num_hidden_layers", 2},          {"num_attention_heads", 4},
          {"max_position_embeddings", 64}};
}

// A permutation of the vocabulary, so that every position has its own row of the embedding.
std::vector<int32_t> distinct_tokens(world::Draw& draw) {
  std::vector<int32_t> all(kCausalVocabulary);
  for (int32_t i = 0; i < kCausalVocabulary; ++i) all[static_cast<size_t>(i)] = i;
  shuffle(draw, all);
  return all;
}

std::vector<float> logits_of(const Engine& engine, const Model& model, std::span<const int32_t> ids) {
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  const Rows rows = Rows::batch(cx, 1, std::ssize(ids));
  return host_floats(model.logits(cx, {.ids = cx.upload(ids), .rows = &rows}));
}

struct Leaks {
  int64_t rows = 0, left_changed = 0;       // rows left of a change, and how many of them differ in any bit
  int64_t controls = 0, right_changed = 0;  // rows at the change, and how many differ
  int64_t gradients = 0, not_zero = 0;      // entries of d loss_t / d x_later, and how many are not exactly 0
  int64_t own = 0;                          // texts in which d loss_t / d x_t is not 0

  Leaks& operator+=(const Leaks& o) {
    rows += o.rows;
    left_changed += o.left_changed;
    controls += o.controls;
    right_changed += o.right_changed;
    gradients += o.gradients;
    not_zero += o.not_zero;
    own += o.own;
    return *this;
  }
};

// For every t: replaces all tokens from position t on and compares the logits before and after.
void compare_bits(Leaks& leaks, const Engine& engine, const Model& model, std::span<const int32_t> tokens) {
  const std::vector<int32_t> ids(tokens.begin(), tokens.begin() + kCausalLength);
  const std::vector<float> before = logits_of(engine, model, ids);
  for (int32_t t = 1; t < kCausalLength; ++t) {
    std::vector<int32_t> other = ids;
    for (int32_t i = t; i < kCausalLength; ++i)
      other[static_cast<size_t>(i)] = tokens[static_cast<size_t>(kCausalLength + i - t)];
    const std::vector<float> after = logits_of(engine, model, other);
    const auto differs = [&](int32_t row) {
      const auto at = static_cast<size_t>(row * kCausalVocabulary);
      return std::memcmp(&before[at], &after[at], kCausalVocabulary * sizeof(float)) != 0;
    };
    for (int32_t row = 0; row < t; ++row) leaks.left_changed += differs(row) ? 1 : 0;
    leaks.rows += t;
    leaks.right_changed += differs(t) ? 1 : 0;
    ++leaks.controls;
  }
}

// Backward from the loss of one row: gradients at the embeddings of later tokens must be 0.
void compare_gradients(Leaks& leaks, const Engine& engine, Model& model, std::span<const int32_t> tokens) {
  for (const int32_t t : {0, kCausalLength / 2, kCausalLength - 2}) {
    TrainBatch batch{.ids = {tokens.begin(), tokens.begin() + kCausalLength},
                     .targets = std::vector<int32_t>(kCausalLength, TrainBatch::kIgnored),
                     .lengths = {kCausalLength},
                     .source_ids = {},
                     .source_lengths = {},
                     .counted = 1};
    batch.targets[static_cast<size_t>(t)] = tokens[kCausalLength];
    Arena arena(engine.device()), gradients(engine.device());
    Tape tape(gradients);
    Context cx = engine.context(arena, Precision::f32());
    cx.tape = &tape;
    tape.backward(cx, loss_of(cx, model, batch, {}, {}).loss);
    const std::vector<float> embed = host_floats(model.weights().at("embed").gradient());
    const size_t width = embed.size() / kCausalVocabulary;
    const auto not_zero = [&](int32_t position) {
      const auto row = embed.begin() +
                       static_cast<std::ptrdiff_t>(static_cast<size_t>(tokens[static_cast<size_t>(position)]) * width);
      return width - static_cast<size_t>(std::count(row, row + static_cast<std::ptrdiff_t>(width), 0.0F));
    };
    for (int32_t later = t + 1; later < kCausalLength; ++later) {
      leaks.gradients += static_cast<int64_t>(width);
      leaks.not_zero += static_cast<int64_t>(not_zero(later));
    }
    leaks.own += not_zero(t) > 0 ? 1 : 0;
    for (auto& [name, weight] : model.weights()) weight.clear_gradient();
  }
}

Leaks leaks_of(const LabContext& lab, Model& model, uint64_t seed) {
  world::Draw draw(seed, 0, 3);
  const std::vector<int32_t> tokens = distinct_tokens(draw);
  Leaks leaks;
  compare_bits(leaks, lab.engine, model, tokens);
  compare_gradients(leaks, lab.engine, model, tokens);
  return leaks;
}

void train_a_little(const LabContext& lab, Model& model, uint64_t seed) {
  train_model(
      lab, model,
      {.label = model.spec().family + " learns", .steps = lab.sized(30), .lr = 5e-3, .batch = [&](int64_t step) {
         world::Draw draw(seed, static_cast<uint64_t>(step), 4);
         TrainBatch batch;
         for (int i = 0; i < 8; ++i) {
           std::vector<int32_t> ids;
           for (int32_t at = 0; at <= kCausalLength; ++at) {
             ids.push_back(at < 6 ? static_cast<int32_t>(draw.below(kCausalVocabulary))
                                  : ids[static_cast<size_t>(at - 6)]);
           }
           add_text(batch, ids);
         }
         return batch;
       }});
}

SeedNumbers measure_causality(const LabContext& lab, uint64_t seed) {
  Leaks fresh, trained;
  for (const Json& config : decoders()) {
    lab.check("a " + config["model_type"].get<std::string>());
    const auto model = fresh_model(lab, config, seed);
    fresh += leaks_of(lab, *model, seed);
    train_a_little(lab, *model, seed);
    trained += leaks_of(lab, *model, seed);
  }
  const auto both_ways = fresh_model(lab, encoder(), seed);
  const Leaks control = leaks_of(lab, *both_ways, seed);
  const auto share = [](int64_t part, int64_t of) { return static_cast<double>(part) / static_cast<double>(of); };

  SeedNumbers out;
  out.add_amount("families", static_cast<double>(decoders().size()));
  out.add_amount("rows left of a change", static_cast<double>(fresh.rows + trained.rows));
  out.add_amount("of them changed, fresh models", static_cast<double>(fresh.left_changed));
  out.add_amount("of them changed, trained models", static_cast<double>(trained.left_changed));
  out.add_amount("gradients of later tokens", static_cast<double>(fresh.gradients + trained.gradients));
  out.add_amount("of them not exactly 0", static_cast<double>(fresh.not_zero + trained.not_zero));
  out.add_share("control: share of changed tokens seen by their own row",
                share(fresh.right_changed + trained.right_changed, fresh.controls + trained.controls));
  out.add_share("control: share of own gradients not 0",
                share(fresh.own + trained.own, 6 * static_cast<int64_t>(decoders().size())));
  out.add_share("control: share of rows left that change in an encoder", share(control.left_changed, control.rows));
  out.add_share("control: share of later gradients not 0 in an encoder", share(control.not_zero, control.gradients));
  return out;
}

}  // namespace

const Lab& causality() {
  static const Lab lab{
      .name = "causality",
      .claim = "In a decoder, tokens to the right never change what is computed for a token: not by one bit.",
      .claim_zh = "因果性：在解码器里，右边的词永远不会改变左边的计算结果：一个比特都不会变。",
      .how =
          "Seven decoder families, with initial weights and after 30 steps of training. All tokens from a position on\n"
          "are replaced, and the logits to the left are compared bit by bit. The gradient of one row's loss at later\n"
          "tokens must be exactly 0. Controls: the row of the change must change, and an encoder, which sees both\n"
          "directions, must fail both.",
      .seeds = 3,
      .rules = {{"of them changed, fresh models", LabRule::Side::below, 0.5, "none may"},
                {"of them changed, trained models", LabRule::Side::below, 0.5, "none may"},
                {"of them not exactly 0", LabRule::Side::below, 0.5, "none may be"},
                {"control: share of changed tokens seen by their own row", LabRule::Side::above, 0.999,
                 "else the comparison sees nothing"},
                {"control: share of own gradients not 0", LabRule::Side::above, 0.999,
                 "else the gradient sees nothing"},
                {"control: share of rows left that change in an encoder", LabRule::Side::above, 0.999,
                 "a bidirectional model must fail"}},
      .found =
          {.seen =
               {"In {families} families not one of {rows left of a change} rows left of a change and not one of "
                "{gradients of later tokens} gradients of later tokens differed by a bit; an encoder differs in "
                "all of them.",
                "{families} 个模型族里，改动左边的 {rows left of a change} 行、后面词元的 {gradients of later tokens} "
                "个梯度，没有一个比特变化；换成编码器则全都变了。"},
           .mixed = {"Of {rows left of a change} rows left of a change {of them changed, fresh models} (fresh) and {of "
                     "them changed, trained models} (trained) changed, and {of them not exactly 0} gradients of later "
                     "tokens were not 0; the control saw {control: share of rows left that change in an encoder%} of "
                     "the rows change in an encoder.",
                     "改动左边的 {rows left of a change} 行里，新模型变了 {of them changed, fresh models} "
                     "行，训练过的变了 {of them "
                     "changed, trained models} 行，后面词元的梯度有 {of them not exactly 0} 个不是 0；对照的编码器变了 "
                     "{control: "
                     "share of rows left that change in an encoder%}。"},
           .not_seen = {"Tokens to the right changed what was computed to their left.", "右边的词改变了左边的结果。"}},
      .measure = measure_causality};
  return lab;
}

}  // namespace qkv::labs

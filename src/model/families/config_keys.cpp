#include "model/families/config_keys.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/printable.h"
#include "model/families/family.h"

namespace qkv {
namespace {

// A key that transformers writes and qkv does not read.
struct Written {
  const char* key;
  const char* value = nullptr;    // the only one that is accepted, as JSON; null: any
  const char* same_as = nullptr;  // only the value of this key is accepted
  const char* beside = nullptr;   // accepted only where this key is given too
};

// PretrainedConfig's, of every family; those of generation and of other heads than the language model's do not count.
constexpr Written kOfAll[] = {{"architectures"},
                              {"transformers_version"},
                              {"_name_or_path"},
                              {"_commit_hash"},
                              {"_attn_implementation_autoset", "false"},
                              {"auto_map"},
                              {"use_cache"},
                              {"gradient_checkpointing"},
                              {"return_dict"},
                              {"output_attentions"},
                              {"output_hidden_states"},
                              {"output_router_logits"},
                              {"torchscript"},
                              {"use_bfloat16"},
                              {"tf_legacy_loss"},
                              {"chunk_size_feed_forward"},
                              {"is_encoder_decoder"},
                              {"is_decoder"},
                              {"add_cross_attention", "false"},
                              {"cross_attention_hidden_size"},
                              {"tie_encoder_decoder", "false"},
                              {"pruned_heads", "{}"},
                              {"finetuning_task"},
                              {"task_specific_params"},
                              {"problem_type"},
                              {"id2label"},
                              {"label2id"},
                              {"num_labels"},
                              {"classifier_dropout"},
                              {"tokenizer_class"},
                              {"prefix"},
                              {"sep_token_id"},
                              {"cls_token_id"},
                              {"mask_token_id"},
                              {"forced_bos_token_id"},
                              {"max_length"},
                              {"min_length"},
                              {"do_sample"},
                              {"early_stopping"},
                              {"num_beams"},
                              {"num_beam_groups"},
                              {"diversity_penalty"},
                              {"temperature"},
                              {"top_k"},
                              {"top_p"},
                              {"typical_p"},
                              {"repetition_penalty"},
                              {"length_penalty"},
                              {"no_repeat_ngram_size"},
                              {"encoder_no_repeat_ngram_size"},
                              {"bad_words_ids"},
                              {"num_return_sequences"},
                              {"output_scores"},
                              {"return_dict_in_generate"},
                              {"remove_invalid_values"},
                              {"exponential_decay_length_penalty"},
                              {"suppress_tokens"},
                              {"begin_suppress_tokens"}};

struct OfFamilies {
  std::vector<std::string_view> families;
  std::vector<Written> keys;
};

const std::vector<OfFamilies>& written_by_families() {
  static const std::vector<OfFamilies> all{
      {{"bart", "marian", "mbart", "m2m_100", "pegasus"},
       {{.key = "num_hidden_layers", .same_as = "encoder_layers"},
        {"encoder_layerdrop", "0"},
        {"decoder_layerdrop", "0"},
        {"classif_dropout"},
        {"output_past"},
        {"add_bias_logits", "false"},
        {"extra_pos_embeddings"},
        {"force_bos_token_to_be_generated"}}},
      {{"bert", "roberta"},
       {{"position_embedding_type", "\"absolute\""},
        {"directionality"},
        {"pooler_fc_size"},
        {"pooler_num_attention_heads"},
        {"pooler_num_fc_layers"},
        {"pooler_size_per_head"},
        {"pooler_type"}}},
      {{"gpt2", "gptj"},
       {{"reorder_and_upcast_attn", "false"},
        {"summary_activation"},
        {"summary_first_dropout"},
        {"summary_proj_to_labels"},
        {"summary_type"},
        {"summary_use_proj"},
        {"predict_special_tokens"},
        {"rotary", "true"},
        {"scale_attn_weights", "true"}}},
      {{"t5"}, {{"n_positions"}, {"output_past"}}},
      {{"opt"}, {{"layerdrop", "0"}, {"activation_dropout", "0"}}},
      {{"bloom"},
       {{"slow_but_exact"},
        {"offset_alibi"},
        {"skip_bias_add"},
        {"skip_bias_add_qkv"},
        {"masked_softmax_fusion"},
        {"attention_softmax_in_fp32"},
        {"bias_dropout_fusion"},
        {"unk_token_id"}}},
      {{"bloom", "llama", "deepseek_v3"}, {{"pretraining_tp"}}},
      {{"deepseek_v3", "glm4_moe"},
       {{"num_nextn_predict_layers"},
        {"qk_head_dim"},
        {"ep_size"},
        {"aux_loss_alpha"},
        {"seq_aux"},
        {"topk_method", "\"noaux_tc\""},
        {"scoring_func", "\"sigmoid\""},
        {"moe_layer_freq", "1"}}},
      {{"gemma2", "gemma3_text", "cohere2"},
       {{"use_bidirectional_attention", "false"},
        {"cache_implementation"},
        {"sliding_window_pattern"},
        {"hidden_act"}}},
      {{"cohere2"},
       {{"order_of_interleaved_layers"},
        {"position_embedding_type", "\"rope_gptj\""},
        {"layer_switch"},
        {"use_embedding_sharing"},
        {"use_gated_activation", "true"},
        {"use_parallel_block", "true"},
        {"use_parallel_embedding"}}},
      {{"exaone4"}, {{"sliding_window_pattern"}}},
      {{"gpt_oss"}, {{"initial_context_length"}, {"experts_per_token"}, {"swiglu_limit", "7"}}},
      {{"gpt_oss", "llama4_text", "mixtral", "qwen2_moe", "qwen3_moe"},
       {{"router_aux_loss_coef"}, {"router_jitter_noise", "0"}}},
      {{"modernbert"},
       {{"classifier_activation"},
        {"classifier_bias"},
        {"classifier_pooling"},
        {"deterministic_flash_attn"},
        {"initializer_cutoff_factor"},
        {"sparse_pred_ignore_index"},
        {"sparse_prediction"},
        {"repad_logits_with_grad"},
        {"reference_compile"},
        {"position_embedding_type", "\"absolute\""}}},
      {{"phi3"}, {{"original_max_position_embeddings"}}},
      {{"qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3"},
       {{.key = "sliding_window", .beside = "use_sliding_window"}, {"use_mrope", "false"}}},
      // Read only where a layer is of that kind.
      {{"gemma2", "gemma3_text", "cohere2", "gpt_oss", "olmo3"}, {{"sliding_window"}}},
      {{"llama4_text"}, {{"attention_chunk_size"}, {"floor_scale"}, {"attn_scale"}}},
      {{"modernbert"}, {{"local_attention"}, {"local_rope_theta"}, {"global_rope_theta"}}}};
  return all;
}

// Inside `rope_parameters`, by the kind of a layer: read only where the model has such layers.
constexpr std::string_view kLayerKinds[] = {"full_attention", "sliding_attention", "chunked_attention"};

// One thing under the names of different families.
const std::vector<std::vector<std::string_view>> kSynonyms{
    {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers"},
    {"hidden_size", "n_embd", "d_model", "width", "dim"},
    {"num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads"},
    {"num_key_value_heads", "num_kv_heads", "n_kv_heads"},
    {"intermediate_size", "n_inner", "ffn_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "ffn_hidden_size"},
    {"max_position_embeddings", "n_positions", "n_ctx", "seq_length", "block_size", "context_length"},
    {"hidden_act", "activation_function", "hidden_activation", "feed_forward_proj", "activation"},
    {"dropout", "resid_pdrop", "hidden_dropout", "hidden_dropout_prob", "dropout_rate", "residual_dropout"},
    {"attention_dropout", "attn_pdrop", "attention_probs_dropout_prob"},
    {"embd_pdrop", "embedding_dropout", "embed_dropout"},
    {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"},
    {"initializer_range", "init_std", "initializer_factor"},
    {"rope_theta", "rotary_emb_base"},
    {"partial_rotary_factor", "rotary_pct", "rotary_dim"},
    {"num_experts", "num_local_experts", "n_routed_experts"},
    {"attention_bias", "use_bias", "bias", "qkv_bias", "use_qkv_bias"}};

const Written* written(std::span<const Written> list, std::string_view key) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const Written& one) { return one.key == key; });
  return at == list.end() ? nullptr : &*at;
}

const Written* written_by(const std::string& family, std::string_view key) {
  for (const OfFamilies& some : written_by_families()) {
    if (std::find(some.families.begin(), some.families.end(), family) == some.families.end()) continue;
    if (const Written* found = written(some.keys, key)) return found;
  }
  return written(kOfAll, key);
}

Hint hint_for(const std::string& key, const Config::Asked& asked) {
  for (const std::vector<std::string_view>& names : kSynonyms) {
    if (std::find(names.begin(), names.end(), key) == names.end()) continue;
    for (const std::string_view name : names) {
      if (asked.keys.contains(name)) return Hint("did you mean '", name, "'?");
    }
  }
  const std::vector<std::string_view> known(asked.keys.begin(), asked.keys.end());
  const std::string near = nearest_key(key, known);
  return near.empty() ? Hint("leave it out, or see docs/training.md") : Hint("did you mean '", near, "'?");
}

void check_object(const Json& json, const Config::Asked& asked, const std::string& what, const std::string& family) {
  for (const auto& [key, value] : json.get_ref<const Json::object_t&>()) {
    if (value.is_null() || key == kHeadsKey || key == kExpertsKey) continue;  // read_spec() checks cut heads itself
    if (asked.keys.contains(key)) {
      const auto inside = asked.inside.find(key);
      if (inside != asked.inside.end() && value.is_object()) {
        check_object(value, *inside->second, what + "." + key, family);
      }
      continue;
    }
    const bool of_layers = std::find(std::begin(kLayerKinds), std::end(kLayerKinds), key) != std::end(kLayerKinds);
    if (of_layers && value.is_object()) continue;
    const Written* known = written_by(family, key);
    const std::string shown = printable(value.dump().substr(0, 60));
    QKV_CHECK(known != nullptr, what, " has the key ", printable(key), " with the value ", shown, ", which ",
              printable(family), " does not read", hint_for(key, asked));
    QKV_CHECK(known->beside == nullptr || json.contains(known->beside), what, ".", key, " is ", shown, " but ",
              printable(family), " reads it only with '", known->beside, "'", Hint("set ", known->beside, " too"));
    if (known->same_as != nullptr) {
      const Json same = json.value(known->same_as, Json());
      QKV_CHECK(value == same, what, ".", key, " is ", shown, " but ", known->same_as, " is ", same.dump(),
                ", which counts", Hint("set ", known->same_as, " instead"));
    }
    if (known->value != nullptr) {
      QKV_CHECK(value == parse_json(known->value, key), what, ".", key, " is ", shown, " but only ", known->value,
                " is supported", Hint("leave it out"));
    }
  }
}

// Read by its family, with any vocabulary where it has none.
Config read_config(Json json, const std::string& what) {
  constexpr int64_t kAnyVocabulary = 1 << 20;
  QKV_CHECK(json.is_object(), what, " is ", json.type_name(), " but must be an object",
            Hint("a config as Hugging Face writes it"));
  if (!json.contains("vocab_size")) json["vocab_size"] = kAnyVocabulary;
  Config config(std::move(json), what);
  read_unvalidated_spec(config);
  return config;
}

}  // namespace

void check_config_keys(const Config& config) {
  check_object(config.json(), config.asked(), config.what(), config.text({"model_type"}));
}

void check_keys_of_new_model(const Json& config, const std::string& what) {
  check_config_keys(read_config(config, what));
}

bool family_reads(const Json& config, const std::string& what, const char* key) {
  return read_config(config, what).asked().keys.contains(key);
}

}  // namespace qkv

#include "model/gguf/gguf_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/output_path.h"
#include "base/printable.h"
#include "io/floats.h"
#include "io/gguf_layout.h"
#include "io/gguf_write.h"
#include "io/stored_type.h"
#include "model/describe/spec_difference.h"
#include "model/gguf/gguf_config.h"
#include "model/gguf/gguf_rope.h"
#include "model/weight_list.h"

namespace qkv {
namespace {

uint32_t file_type(const std::string& dtype) {  // general.file_type
  return dtype == "F32" ? 0 : dtype == "F16" ? 1 : dtype == "Q8_0" ? 7 : 32;
}

// As in llama.cpp's converter: vectors, norms, biases, routers and position tables stay F32.
std::string type_of(const std::string& name, const std::vector<int64_t>& shape, const std::string& wanted) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  const bool exact = shape.size() < 2 || !name.ends_with(".weight") || name.ends_with("_norm.weight") ||
                     has("ffn_gate_inp") || has("position_embd") || has("token_types") || has("attn_rel_b");
  if (exact) return "F32";
  return wanted == "Q8_0" && shape.back() % 32 != 0 ? "F16" : wanted;
}

OutgoingTensor outgoing_floats(const std::string& name, const std::vector<float>& values) {
  return {
      .name = name, .dtype = "F32", .shape = {static_cast<int64_t>(values.size())}, .give = [values](ByteSink sink) {
        sink(std::as_bytes(std::span(values)));
      }};
}

std::vector<float> as_floats(const std::vector<double>& values) {
  std::vector<float> out;
  for (const double value : values) out.push_back(static_cast<float>(value));
  return out;
}

std::vector<OutgoingTensor> rope_tensors(const ModelSpec& spec) {
  const AttentionSpec& a = spec.main_stack().layers.front().attention;
  using Kind = ops::RopeScaling::Kind;
  if (a.rope && a.rope->scaling.kind == Kind::llama3)
    return {outgoing_floats("rope_freqs.weight", llama3_factors(*a.rope))};
  if (a.rope && a.rope->scaling.kind == Kind::longrope) {
    return {outgoing_floats("rope_factors_long.weight", as_floats(a.rope->scaling.long_factors)),
            outgoing_floats("rope_factors_short.weight", as_floats(a.rope->scaling.short_factors))};
  }
  return {};
}

// "7B" or "8x7B": the numbers of a model, of one with experts those that are not of experts and those of one expert.
std::string size_label(const ModelSpec& spec) {
  int64_t experts = 0;
  for (const LayerSpec& layer : spec.main_stack().layers) {
    if (layer.feed.experts) experts = std::max(experts, layer.feed.experts->count);
  }
  double count = 0;
  for (const WeightSpec& weight : weight_list(spec)) {
    const bool of_experts = weight.name.find(".experts.") != std::string::npos;
    count += static_cast<double>(weight.shape.count()) / static_cast<double>(of_experts ? experts : 1);
  }
  const auto [unit, suffix] = count >= 1e12  ? std::pair(1e12, 'T')
                              : count >= 1e9 ? std::pair(1e9, 'B')
                              : count >= 1e6 ? std::pair(1e6, 'M')
                                             : std::pair(1e3, 'K');
  const std::string size = fmt::format("{:.{}f}{}", count / unit, count / unit < 9.5 ? 1 : 0, suffix);
  return experts > 0 ? fmt::format("{}x{}", experts, size) : size;
}

// The metadata and tensor list of the file, without data.
std::string header_only(const GgufMetadata& metadata) {
  const auto number = [](auto value) { return std::string(reinterpret_cast<const char*>(&value), sizeof(value)); };
  return std::string(gguf::kMagic) + number(gguf::kVersion) + number(uint64_t{0}) + number(metadata.count()) +
         metadata.bytes();
}

// GGUF holds less than a config: check that it still describes this model.
void check_said(const std::string& name, const ModelSpec& spec, const GgufMetadata& metadata,
                std::span<const OutgoingTensor> tensors, std::span<const OutgoingTensor> ropes) {
  std::vector<std::vector<std::byte>> kept;
  std::vector<StoredTensor> entries;
  for (const OutgoingTensor& t : tensors) entries.push_back({t.name, t.dtype, t.shape, {}});
  for (const OutgoingTensor& t : ropes) {
    kept.emplace_back();
    t.give([&](std::span<const std::byte> bytes) { kept.back().assign(bytes.begin(), bytes.end()); });
    entries.push_back({t.name, t.dtype, t.shape, kept.back()});
  }
  const std::string header = header_only(metadata);
  const Gguf gguf = Gguf::parse(std::as_bytes(std::span(header)), name);
  const ModelSpec said = read_spec(Config(config_of(gguf, entries), name));
  const std::string differs = difference(spec, said);
  QKV_CHECK(differs.empty(), name, ": GGUF cannot say all of this model: ", differs,
            " in the model and in the architecture ", gguf_architecture(spec),
            Hint("keep the Hugging Face folder: a program that reads the GGUF would compute something else"));
}

}  // namespace

std::vector<std::string> write_gguf_model(const std::filesystem::path& path, const ModelSpec& spec,
                                          const Weights& weights, const GgufOutput& output) {
  check_output_file(path, Existing::refused);
  QKV_CHECK(!spec.heads_cut, path.string(), ": GGUF cannot hold a model with heads cut out",
            Hint("keep the Hugging Face form, which has qkv's own key for them"));
  const std::string architecture = gguf_architecture(spec);
  GgufMetadata metadata;
  metadata.add_text("general.architecture", architecture);
  metadata.add_text("general.type", "model");
  metadata.add_text("general.name", output.name.empty() ? spec.family : output.name);
  metadata.add_u32("general.alignment", gguf::kDefaultAlignment);
  metadata.add_u32("general.file_type", file_type(output.dtype));
  metadata.add_u32("general.quantization_version", 2);
  add_model_keys(metadata, spec);
  metadata.add_text("general.size_label", size_label(spec));
  std::vector<std::string> notes;
  if (output.tokenizer) {
    notes = output.tokenizer(metadata);
  } else {
    metadata.add_text("tokenizer.ggml.model", "none");
    notes.emplace_back("the GGUF is written with no tokenizer, so nothing can read text with it");
    const auto add = [&](const char* key, std::optional<int32_t> id) {
      if (id) metadata.add_u32(key, static_cast<uint32_t>(*id));
    };
    add("tokenizer.ggml.bos_token_id", spec.tokens.bos);
    if (!spec.tokens.eos.empty()) add("tokenizer.ggml.eos_token_id", spec.tokens.eos.front());
    add("tokenizer.ggml.padding_token_id", spec.tokens.pad);
  }
  const TensorNames names = gguf_names(spec);
  std::vector<OutgoingTensor> tensors = outgoing_tensors(
      weights, names, [&](const NamedTensor& t, const std::string&) { return type_of(t.name, t.shape, output.dtype); });
  const std::vector<OutgoingTensor> ropes = rope_tensors(spec);
  check_said(path.string(), spec, metadata, tensors, ropes);
  const int64_t window = spec.main_stack().layers.front().attention.window;
  if ((architecture == "llama" || architecture == "starcoder2") && window > 0) {
    notes.push_back("llama.cpp does not know the sliding window of this architecture: beyond " +
                    std::to_string(window) + " tokens it computes something else");
  }
  tensors.insert(tensors.end(), ropes.begin(), ropes.end());
  write_gguf(path, metadata, counted(std::move(tensors), output.progress));
  return notes;
}

void rewrite_gguf(const std::filesystem::path& path, const Gguf& source, const std::string& dtype,
                  const WriteProgress& progress) {
  check_output_file(path, Existing::refused);
  GgufMetadata metadata;
  for (const Gguf::Field& field : source.fields()) {
    if (field.key.starts_with("split.")) continue;  // what is written is one file
    if (!dtype.empty() && field.key == "general.file_type") {
      metadata.add_u32(field.key, file_type(dtype));
    } else {
      metadata.add(field);
    }
  }
  std::vector<OutgoingTensor> tensors;
  for (const StoredTensor& entry : source.entries()) {
    OutgoingTensor tensor = outgoing(entry);
    if (!dtype.empty()) tensor.dtype = type_of(entry.name, entry.shape, dtype);
    tensor.give = [&source, &entry, to = tensor.dtype, same = std::move(tensor.give)](ByteSink sink) {
      if (to == entry.dtype) {
        same(sink);
      } else {
        const StoredType &from = *find_stored_type(entry.dtype), &type = *find_stored_type(to);
        constexpr uint64_t kPiece = 1 << 20;  // numbers, whole blocks of every type
        const uint64_t step = kPiece / from.elements * from.bits / 8;
        for (uint64_t at = 0; at < entry.bytes.size(); at += step) {
          const auto piece = entry.bytes.subspan(at, std::min<uint64_t>(step, entry.bytes.size() - at));
          std::vector<float> values(piece.size() * 8 / from.bits * from.elements);
          decode_floats(entry.dtype, piece, values);
          std::vector<std::byte> bytes(values.size() / type.elements * type.bits / 8);
          encode_floats(to, values, bytes);
          sink(bytes);
        }
      }
      source.release(entry);
    };
    tensors.push_back(std::move(tensor));
  }
  write_gguf(path, metadata, counted(std::move(tensors), progress));
}

}  // namespace qkv

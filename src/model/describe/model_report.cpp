#include "model/describe/model_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/display_width.h"
#include "model/describe/picture.h"

namespace qkv {
namespace {

constexpr const char* kCutHeads =
    "Heads were cut out of this model: its config says so in a key of qkv's own, and Hugging Face cannot load it.";

std::string with_commas(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string bytes_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.4g} {}", value, kUnits[unit]);
}

const char* dtype_text(DType dtype) {
  return dtype == DType::bf16 ? "bf16" : dtype == DType::f16 ? "f16" : "f32";
}

std::string heads_text(const StackSpec& stack) {
  int64_t least = stack.layers.front().attention.heads, most = least;
  for (const LayerSpec& layer : stack.layers) {
    least = std::min(least, layer.attention.heads);
    most = std::max(most, layer.attention.heads);
  }
  if (least != most) return fmt::format("{} to {} heads", least, most);
  const int64_t shared = stack.layers.front().attention.kv_heads;
  return fmt::format("{} heads{}", least, shared != least ? fmt::format(" ({} kv)", shared) : "");
}

std::string one_line(const ModelSpec& spec) {
  const auto layers = [](const StackSpec& s) { return s.layers.size(); };
  const std::string depth = spec.has_source()
                                ? fmt::format("{} + {} layers", layers(spec.encoder), layers(spec.decoder))
                                : fmt::format("{} layers", layers(spec.main_stack()));
  return fmt::format("{}, {}: {}, width {}, {}, vocabulary {}{}, {}", spec.family, name_of(spec.kind), depth,
                     spec.width, heads_text(spec.main_stack()), spec.vocabulary,
                     spec.context > 0 ? fmt::format(", context {}", spec.context) : "", dtype_text(spec.dtype));
}

// --- the table of parameters -----------------------------------------------------------------------------------------

using Row = std::vector<std::string>;

// The first column aligned left, the others right.
std::string aligned(const std::vector<Row>& rows) {
  std::vector<int> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(static_cast<size_t>(widths[i] - display_width(row[i])), ' ');
      line += " " + (i == 0 ? row[i] + space : " " + space + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string group_name(const ModelSpec& spec, const LayerGroup& group) {
  const bool has_source = spec.has_source();
  return (has_source ? group.stack == Stack::encoder ? "encoder " : "decoder " : "") + layers_text(group.layers);
}

int64_t count_in(const PartCounts& counts, Part part) {
  const auto at = counts.find(part);
  return at == counts.end() ? 0 : at->second;
}

std::string or_nothing(int64_t count) {
  return count == 0 ? "" : with_commas(count);
}

std::string parameter_table(const ModelSpec& spec, const ModelSummary& s) {
  constexpr size_t kMostColumns = 3;
  const bool columns = s.groups.size() <= kMostColumns;
  std::vector<Row> rows;
  Row header{"parameters"};
  if (columns) {
    for (const LayerGroup& group : s.groups)
      header.push_back(group_name(spec, group) + (group.layers.size() > 1 ? ", each" : ""));
  } else {
    header.push_back("a layer, least");
    header.push_back("a layer, most");
  }
  header.insert(header.end(), {"total", "share"});
  rows.push_back(header);
  const auto of_layers = [&](Row& row, const auto& count) {
    if (columns) {
      for (const LayerGroup& group : s.groups) row.push_back(or_nothing(count(group)));
      return;
    }
    const auto [least, most] = std::minmax_element(s.groups.begin(), s.groups.end(),
                                                   [&](const auto& a, const auto& b) { return count(a) < count(b); });
    row.push_back(or_nothing(count(*least)));
    row.push_back(or_nothing(count(*most)));
  };
  for (const auto& [part, total] : s.parts) {
    Row row{name_of(part)};
    of_layers(row, [part = part](const LayerGroup& group) { return count_in(group.parts, part); });
    row.push_back(with_commas(total));
    row.push_back(fmt::format("{:.1f} %", 100.0 * static_cast<double>(total) / static_cast<double>(s.parameters)));
    rows.push_back(std::move(row));
  }
  Row last{"all"};
  of_layers(last, [](const LayerGroup& group) { return group.parameters; });
  last.insert(last.end(), {with_commas(s.parameters), "100 %"});
  rows.push_back(std::move(last));
  std::string text = aligned(rows);
  if (s.has_experts()) {
    text += fmt::format("  {} are active for a token: the chosen experts, and everything that is no routed expert\n",
                        with_commas(s.active));
  }
  return text;
}

std::string memory_table(const ModelSpec& spec, const ModelSummary& s) {
  std::vector<Row> rows{{"memory", "f32", "bf16", "q8", "q4"},
                        {"weights", bytes_text(s.f32), bytes_text(s.bf16), bytes_text(s.q8), bytes_text(s.q4)}};
  const auto cache = [&](const std::string& name, int64_t numbers) {
    if (numbers > 0) rows.push_back({name, bytes_text(4 * numbers), bytes_text(2 * numbers)});
  };
  cache("KV cache, each token", s.cache.per_token);
  if (s.cache.per_token_beyond != s.cache.per_token) {
    cache("  past the windows", s.cache.per_token_beyond);
  }
  cache("  each source token", s.cache.per_source_token);
  if (s.cache.at_context > 0) cache(fmt::format("  of {} tokens", with_commas(spec.context)), s.cache.at_context);
  rows.push_back({"training, AdamW", bytes_text(s.training.state)});
  rows.push_back(
      {fmt::format("  and a text of {}", with_commas(s.training.length)), "", bytes_text(s.training.activations)});
  std::string text = aligned(rows);
  text += "  q8 and q4 are estimates: matrices in 8.5 and 4.5 bits a number, vectors in f32\n";
  if (s.cache.latent) text += "  the cache keeps the small vector that keys and values are read out of\n";
  if (s.cache.per_token_beyond == 0 && s.cache.per_token > 0) {
    text += "  every layer looks through a window: past it the cache grows no more\n";
  }
  text +=
      "  training: 16 bytes a parameter (weight, gradient and two averages in f32), and what a step\n"
      "  on one text keeps in bf16 for its way back, nothing recomputed\n";
  return text;
}

nlohmann::ordered_json parts_json(const PartCounts& parts) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& [part, count] : parts) out[name_of(part)] = count;
  return out;
}

}  // namespace

std::string report_text(const ModelSpec& spec, const ModelSummary& summary) {
  std::string text = one_line(spec) + "\n";
  if (spec.heads_cut) text += std::string(kCutHeads) + "\n";
  return text + "\n" + draw_picture(spec) + "\n" + parameter_table(spec, summary) + "\n" + memory_table(spec, summary);
}

nlohmann::ordered_json report_json(const ModelSpec& spec, const ModelSummary& s) {
  const AttentionSpec& attention = spec.main_stack().layers.front().attention;
  nlohmann::ordered_json out{{"summary", one_line(spec)},
                             {"family", spec.family},
                             {"kind", name_of(spec.kind)},
                             {"encoder_layers", spec.encoder.layers.size()},
                             {"decoder_layers", spec.decoder.layers.size()},
                             {"width", spec.width},
                             {"heads", attention.heads},
                             {"kv_heads", attention.kv_heads},
                             {"head_width", attention.width},
                             {"vocabulary", spec.vocabulary},
                             {"context", spec.context},
                             {"dtype", dtype_text(spec.dtype)},
                             {"tied", spec.head.tied},
                             {"heads_cut", spec.heads_cut},
                             {"hugging_face_can_load", !spec.heads_cut},
                             {"picture", draw_picture(spec)},
                             {"parameters", s.parameters},
                             {"active_parameters", s.active},
                             {"parts", parts_json(s.parts)},
                             {"outside_layers", parts_json(s.outside)}};
  out["layer_groups"] = nlohmann::ordered_json::array();
  for (const LayerGroup& group : s.groups) {
    out["layer_groups"].push_back({{"stack", group.stack == Stack::encoder ? "encoder" : "decoder"},
                                   {"layers", group.layers},
                                   {"parameters", group.parameters},
                                   {"parts", parts_json(group.parts)}});
  }
  const auto cache = [&](int64_t size) {
    return nlohmann::ordered_json{{"per_token", size * s.cache.per_token},
                                  {"per_token_past_windows", size * s.cache.per_token_beyond},
                                  {"per_source_token", size * s.cache.per_source_token},
                                  {"at_context", size * s.cache.at_context},
                                  {"latent", s.cache.latent}};
  };
  out["bytes"] = {{"weights", {{"f32", s.f32}, {"bf16", s.bf16}, {"q8_estimate", s.q8}, {"q4_estimate", s.q4}}},
                  {"kv_cache_f32", cache(4)},
                  {"kv_cache_bf16", cache(2)},
                  {"training",
                   {{"state", s.training.state},
                    {"activations_bf16", s.training.activations},
                    {"sequences", s.training.sequences},
                    {"length", s.training.length}}}};
  return out;
}

}  // namespace qkv

#include "model/describe/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/display_width.h"
#include "model/describe/summary.h"

namespace qkv {
namespace {

using Lines = std::vector<std::string>;

std::string matrix(int64_t outputs, int64_t inputs, bool bias) {
  return fmt::format("[{}, {}]{}", outputs, inputs, bias ? " + b" : "");
}

std::string norm_text(const NormSpec& n) {
  return fmt::format("{} norm, eps {:g}{}", n.kind == NormSpec::Kind::layer ? "layer" : "RMS", n.eps,
                     n.offset != 0 ? fmt::format(", times (w + {:g})", n.offset) : "");
}

std::string activation_text(const Activation& act) {
  using Kind = Activation::Kind;
  switch (act.kind) {
    case Kind::identity:
      return "identity";
    case Kind::relu:
      return "ReLU";
    case Kind::relu_squared:
      return "squared ReLU";
    case Kind::gelu_erf:
      return "GELU";
    case Kind::gelu_tanh:
      return "tanh GELU";
    case Kind::silu:
      return act.alpha == 1 ? "SiLU" : "quick GELU";
    case Kind::tanh:
      return "tanh";
  }
  return "?";
}

std::string rope_text(const RopeSpec& r, int64_t width) {
  using Kind = ops::RopeScaling::Kind;
  std::string text = fmt::format("rope on q and k, base {:g}", r.base);
  if (r.width != width) text += fmt::format(", {} of {} columns", r.width, width);
  switch (r.scaling.kind) {
    case Kind::plain:
      return text;
    case Kind::linear:
      return text + fmt::format(", linear x {:g}", r.scaling.factor);
    case Kind::llama3:
      return text + fmt::format(", llama3 x {:g} from {:g}", r.scaling.factor, r.scaling.original_context);
    case Kind::yarn:
      return text + fmt::format(", yarn x {:g} from {:g}", r.scaling.factor, r.scaling.original_context);
    case Kind::longrope:
      return text + fmt::format(", longrope from {:g}", r.scaling.original_context);
  }
  return text;
}

std::string heads_label(int64_t heads, int64_t width) {
  return fmt::format("{} {} of {}", heads, heads == 1 ? "head" : "heads", width);
}

void projections(Lines& lines, const AttentionSpec& a, int64_t c, bool across) {
  const auto row = [&](const char* name, const std::string& shape, const std::string& note) {
    lines.push_back(fmt::format("{:<4} {:<22} {}", name, shape, note));
  };
  const std::string from = across ? ", of the memory" : "";
  row("W_Q", matrix(a.projected_heads() * a.width, c, a.q_bias), heads_label(a.heads, a.width));
  row("W_K", matrix(a.projected_kv_heads() * a.width, c, a.k_bias), heads_label(a.kv_heads, a.width) + from);
  row("W_V", matrix(a.kv_heads * a.value_width, c, a.v_bias), heads_label(a.kv_heads, a.value_width) + from);
  if (a.qk_norm == AttentionSpec::QkNorm::per_head) lines.push_back("norm on every head of q and k");
  if (a.qk_norm == AttentionSpec::QkNorm::unit) lines.push_back("norm without weight on every head of q and k");
  if (a.qk_norm == AttentionSpec::QkNorm::whole)
    lines.push_back(a.normed_heads > 0 ? "norm on q and on k, all heads joined, those cut too"
                                       : "norm on q and on k, all heads joined");
}

void latent_projections(Lines& lines, const AttentionSpec& a, int64_t c) {
  const LatentSpec& l = *a.latent;
  const auto row = [&](const std::string& shape, const std::string& text) {
    lines.push_back(fmt::format("{:<27} {}", shape, text));
  };
  if (l.q_rank == 0) {
    row(matrix(a.heads * a.width, c, a.q_bias), "W_Q: " + heads_label(a.heads, a.width));
  } else {
    row(matrix(l.q_rank, c, a.q_bias), fmt::format("W_Q, down to {}, norm", l.q_rank));
    row(matrix(a.heads * a.width, l.q_rank, false), "W_Q, up to " + heads_label(a.heads, a.width));
  }
  row(matrix(l.kv_rank + l.rope_width, c, a.k_bias),
      fmt::format("W_K, W_V: down to {}, norm; and {} that turn", l.kv_rank, l.rope_width));
  row(matrix(a.kv_heads * (l.nope_width + a.value_width), l.kv_rank, false),
      fmt::format("W_K, W_V: up to {} heads of {} and {}", a.kv_heads, l.nope_width, a.value_width));
}

std::string scores_text(const AttentionSpec& a) {
  const double scale = a.scale.value_or(1 / std::sqrt(static_cast<double>(a.width)));
  std::string text = scale == 1 ? "softmax(q k" : fmt::format("softmax(q k / {:.4g}", 1 / scale);
  if (a.softcap > 0) text += fmt::format(", soft cap {:g}", a.softcap);
  text += a.relative ? " + bias by distance)" : a.alibi != 0 ? " - slope x distance)" : ")";
  text += a.causal ? ", causal" : ", all see all";
  if (a.window > 0) text += fmt::format(", window {}", a.window);
  if (a.chunk > 0) text += fmt::format(", chunks of {}", a.chunk);
  if (a.temperature) text += fmt::format(", sharper from {:g} on", a.temperature->floor);
  if (a.sinks) text += ", a sink per head";
  return text;
}

Lines attention_lines(const AttentionSpec& a, int64_t c, bool across) {
  Lines lines;
  a.latent ? latent_projections(lines, a, c) : projections(lines, a, c, across);
  if (a.rope) lines.push_back(rope_text(*a.rope, a.width));
  lines.push_back(across ? scores_text(a).substr(0, scores_text(a).rfind(',')) + ", over the memory" : scores_text(a));
  if (a.relative) {
    lines.push_back(fmt::format("{} buckets up to distance {}, one table {}", a.relative->buckets,
                                a.relative->max_distance,
                                a.relative->in_each_layer ? "in each layer" : "for all layers"));
  }
  if (!a.kv_map.empty()) {
    lines.push_back("heads were cut: an own map from query to key/value heads");
  } else if (a.heads != a.kv_heads) {
    lines.push_back(fmt::format("{} query heads share a key/value head", a.heads / a.kv_heads));
  }
  lines.push_back(fmt::format("W_O  {}", matrix(c, a.heads * a.value_width, a.out_bias)));
  return lines;
}

std::string dense_text(const FeedForwardSpec& f, int64_t inner, int64_t c) {
  if (!f.gated) return fmt::format("up {}, {}", matrix(inner, c, f.bias), activation_text(f.act));
  const std::string up = f.gate_shift != 0 ? fmt::format("(up + {:g})", f.gate_shift) : "up";
  return fmt::format("{}(gate) * {}, both {}{}", activation_text(f.act), up, matrix(inner, c, f.bias),
                     f.gate_limit > 0 ? fmt::format(", clamped at {:g}", f.gate_limit) : "");
}

Lines feed_lines(const FeedForwardSpec& f, int64_t c) {
  if (f.absent()) return {"none"};
  if (!f.experts) return {dense_text(f, f.width, c), fmt::format("down {}", matrix(c, f.width, f.bias))};
  const ExpertsSpec& e = *f.experts;
  const RouteRule& rule = e.rule;
  Lines lines{fmt::format("router {}, {}: {} of {} experts per token", matrix(e.count, c, e.router_bias),
                          rule.sigmoid ? "sigmoid" : "softmax", rule.top_k, e.count)};
  if (rule.groups > 1) {
    lines.push_back(fmt::format("only from the best {} of {} groups{}", rule.top_groups, rule.groups,
                                e.correction ? ", with a correction bias for choosing" : ""));
  }
  FeedForwardSpec one = f;
  one.bias = e.bias;
  lines.push_back(fmt::format("each: {}", dense_text(one, e.width, c)));
  lines.push_back(fmt::format("      down {}", matrix(c, e.width, e.bias)));
  if (e.shared_width > 0) {
    lines.push_back(fmt::format("and for every token: {}", dense_text(f, e.shared_width, c)));
    lines.push_back(fmt::format("      down {}", matrix(c, e.shared_width, f.bias)));
  }
  return lines;
}

// --- drawing ---------------------------------------------------------------------------------------------------------

class Drawing {
 public:
  explicit Drawing(const ModelSpec& spec) : spec_(spec) {}

  std::string run() {
    using Kind = ModelSpec::Kind;
    if (spec_.kind != Kind::decoder_only) {
      stack(Stack::encoder, spec_.encoder);
      if (spec_.has_source()) {
        plain("▼");
        plain(fmt::format("memory [source tokens, {}], which every layer of the decoder looks at", spec_.width));
        text_ += '\n';
      }
    }
    if (spec_.kind != Kind::encoder_only) stack(Stack::decoder, spec_.decoder);
    head();
    return std::move(text_);
  }

 private:
  static constexpr int kStream = 8;  // the column it runs down

  static std::string padded(const std::string& line, int cells) {
    return line + std::string(static_cast<size_t>(std::max(0, cells - display_width(line))), ' ');
  }
  void plain(const std::string& text) { text_ += std::string(kStream, ' ') + text + '\n'; }

  // A line inside the layer's frame: `at` on the stream, `text` to its right, wrapped if too long.
  void inside(const std::string& at, const std::string& text) {
    const int room = kPictureWidth - 1 - kStream - display_width(at);
    std::string_view now = fit_width(text, room);
    if (now.size() < text.size()) now = now.substr(0, std::min(now.rfind(' '), now.size()));
    text_ += padded(" │" + std::string(kStream - 2, ' ') + at + std::string(now), kPictureWidth - 1) + "│\n";
    if (now.size() < text.size()) inside("│   │     ", text.substr(now.size() + 1));
  }
  void edge(const char* left, const char* right, const std::string& label) {
    std::string line = std::string(" ") + left;
    for (int i = 2; i < kStream; ++i) line += "─";
    line += "┼";
    while (display_width(line) + display_width(label) < kPictureWidth - 3) line += "─";
    text_ += line + label + "──" + right + '\n';
  }

  void stack(Stack which, const StackSpec& s) {
    const bool decodes = which == Stack::decoder;
    const bool has_source = spec_.has_source();
    if (has_source) text_ += decodes ? "  DECODER\n" : "  ENCODER\n";
    plain(!decodes && has_source ? "source token ids" : "token ids");
    plain("│");
    const int64_t rows = !decodes && spec_.source_vocabulary > 0 ? spec_.source_vocabulary : spec_.vocabulary;
    plain(fmt::format("embedding [{}, {}]{}{}", rows, spec_.width,
                      s.embedding_factor != 1 ? fmt::format(", times {:.4g}", s.embedding_factor) : "",
                      has_source && decodes && spec_.source_vocabulary == 0 ? ", the encoder's" : ""));
    if (s.positions.kind == PositionSpec::Kind::learned) {
      plain(fmt::format("+ positions [{}, {}], learned", s.positions.count + s.positions.offset, spec_.width));
    } else if (s.positions.kind == PositionSpec::Kind::sinusoidal) {
      plain("+ positions, sines and cosines");
    }
    if (s.token_types > 0) plain(fmt::format("+ token types [{}, {}]", s.token_types, spec_.width));
    if (s.embedding_norm) plain(norm_text(spec_.norm));
    plain("│");
    edge("┌", "┐", fmt::format(" layer x {} ", s.layers.size()));
    layers(s);
    edge("└", "┘", "");
    if (s.final_norm) plain(norm_text(spec_.norm));
  }

  void layers(const StackSpec& s) {
    const LayerSpec& first = s.layers.front();
    branch(s, "attention", [&](const LayerSpec& l) { return attention_lines(l.attention, spec_.width, false); });
    if (first.cross) {
      branch(s, "cross-attention", [&](const LayerSpec& l) { return attention_lines(*l.cross, spec_.width, true); });
    }
    if (std::all_of(s.layers.begin(), s.layers.end(), [](const LayerSpec& l) { return l.feed.absent(); })) return;
    branch(s, "feed-forward", [&](const LayerSpec& l) { return feed_lines(l.feed, spec_.width); });
  }

  // One branch of the residual stream.
  template <class Describe>
  void branch(const StackSpec& s, const std::string& name, Describe describe) {
    const LayerSpec& first = s.layers.front();
    const NormPlace place = first.place;
    const std::string norm = norm_text(first.norm);
    const bool shared = place == NormPlace::shared && name == "feed-forward";
    const bool beside = place == NormPlace::parallel && name == "feed-forward";
    inside("│", "");
    if (place == NormPlace::after || place == NormPlace::branch) {
      inside("├───┐ ", name);
    } else {
      inside("├───┐ ", name + ": " + (shared ? "of what the attention reads" : norm) +
                           (beside ? ", of the stream before the attention" : ""));
    }
    describe_layers(s, describe);
    if (place == NormPlace::branch || place == NormPlace::around) inside("│   │   ", norm);
    inside("⊕◀──┘", first.branch_factor != 1 ? fmt::format(" times {:.4g}", first.branch_factor) : "");
    if (place == NormPlace::after) inside("│ ", norm + ", of the stream itself");
  }

  template <class Describe>
  void describe_layers(const StackSpec& s, Describe describe) {
    std::map<Lines, std::vector<int64_t>> layers_of;
    std::vector<Lines> variants;
    for (size_t i = 0; i < s.layers.size(); ++i) {
      Lines lines = describe(s.layers[i]);
      std::vector<int64_t>& layers = layers_of[lines];
      layers.push_back(static_cast<int64_t>(i));
      if (layers.size() == 1) variants.push_back(std::move(lines));
    }
    if (variants.size() == 1) {
      for (const std::string& line : variants[0]) inside("│   │   ", line);
      return;
    }
    constexpr size_t kShown = 4;
    const bool alike = variants.size() == 2 && variants[0].size() == variants[1].size();
    if (alike) return differing_lines(variants[0], variants[1], layers_of);
    for (size_t v = 0; v < std::min(variants.size(), kShown); ++v) {
      inside("│   │ ", layers_text(layers_of[variants[v]]) + ":");
      for (const std::string& line : variants[v]) inside("│   │   ", line);
    }
    if (variants.size() > kShown) {
      inside("│   │ ", fmt::format("and {} more kinds of layers", variants.size() - kShown));
    }
  }

  void differing_lines(const Lines& a, const Lines& b, std::map<Lines, std::vector<int64_t>>& layers_of) {
    const auto of = [&](const Lines& lines) { return layers_text(layers_of[lines]) + ": "; };
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) {
        inside("│   │   ", a[i]);
      } else {
        inside("│   │   ", of(a) + a[i]);
        inside("│   │   ", of(b) + b[i]);
      }
    }
  }

  void head() {
    const HeadSpec& h = spec_.head;
    plain("│");
    if (h.transform) {
      plain(fmt::format("dense [{0}, {0}] + b, {1}, {2}", spec_.width, activation_text(h.act), norm_text(spec_.norm)));
    }
    plain(fmt::format("head [{}, {}]{}, {}{}{}", spec_.vocabulary, spec_.width, h.bias ? " + b" : "",
                      h.tied ? "the embedding again" : "weights of its own",
                      h.factor != 1 ? fmt::format(", times {:.4g}", h.factor) : "",
                      h.softcap > 0 ? fmt::format(", soft cap {:g}", h.softcap) : ""));
    plain("▼");
    plain("logits");
  }

  const ModelSpec& spec_;
  std::string text_;
};

}  // namespace

std::string draw_picture(const ModelSpec& spec) {
  return Drawing(spec).run();
}

}  // namespace qkv

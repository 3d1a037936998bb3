#include "inspect/report/token_report.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <numeric>

#include "core/host_values.h"
#include "inspect/look/weight_slice.h"
#include "model/weight_list.h"

namespace qkv {
namespace {

using Doubles = std::vector<double>;

Doubles doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

std::vector<float> floats(const Doubles& values) {
  std::vector<float> out;
  for (const double value : values) out.push_back(static_cast<float>(value));
  return out;
}

double farthest(const Doubles& a, std::span<const float> b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(a[i] - static_cast<double>(b[i])));
  }
  return most;
}

constexpr const char* kActivations[] = {"identity", "relu", "gelu", "gelu_tanh", "silu", "tanh", "relu_squared"};

// What the story of a layer of the form x + attention(norm(x)), then x + feed(norm(x)) can be told with. Other forms
// have the numbers of the pass alone.
bool is_plain(const LayerSpec& layer) {
  const AttentionSpec& a = layer.attention;
  return layer.place == NormPlace::before && layer.branch_factor == 1 && !a.latent && !a.temperature &&
         (a.qk_norm == AttentionSpec::QkNorm::none || a.qk_norm == AttentionSpec::QkNorm::per_head) && !layer.cross;
}

class Formulas {
 public:
  Formulas(const Model& model, const Engine& engine, const TokenNumbers& numbers)
      : model_(model),
        spec_(model.spec()),
        numbers_(numbers),
        place_(numbers.head.place()),
        layer_(spec_.main_stack().layers[static_cast<size_t>(place_.layer)]),
        attention_(layer_.attention),
        arena_(engine.device()),
        cx_(engine.context(arena_, Precision::f32())) {}

  Json report() {
    const TokenNumbers& n = numbers_;
    const bool plain = is_plain(layer_);
    const auto width = static_cast<size_t>(attention_.width), value_width = static_cast<size_t>(attention_.value_width);
    const size_t seen = visible();
    Json out{{"token", n.token},
             {"id", n.id},
             {"layer", place_.layer},
             {"head", n.head.head},
             {"name", name_of(spec_, n.head)},
             {"kv_head", kv_head_of(attention_, n.head.head)},
             {"width", spec_.width},
             {"head_width", attention_.width},
             {"value_width", attention_.value_width},
             {"heads", attention_.heads},
             {"kv_heads", attention_.kv_heads},
             {"plain", plain},
             {"x", exact(n.pre)},
             {"scale", scale()},
             {"scores", exact(std::span(n.scores).first(seen))},
             {"pattern", exact(std::span(n.probs).first(seen))},
             {"keys", rows_json(n.all_k, width, seen)},
             {"value_rows", rows_json(n.all_v, value_width, seen)},
             {"z", exact(n.z)},
             {"concat", exact(n.concat)},
             {"out", exact(n.out)},
             {"mid", exact(n.mid)},
             {"post", exact(n.post)}};
    out["q"] = {{"values", exact(n.q)}};
    out["k"] = {{"values", exact(n.k)}};
    out["v"] = {{"values", exact(n.v)}};
    add_embedding(out);
    add_scores(out, seen);
    Doubles normed = doubles(n.pre);
    if (plain) {
      if (layer_.attention_norm) out["norm"] = norm_json("norm_attn", n.pre, normed);
      add_projection(out["q"], "q", normed, n.q);
      add_projection(out["k"], "k", normed, n.k);
      add_projection(out["v"], "v", normed, n.v);
    }
    add_output(out, plain);
    add_feed(out, plain);
    add_final(out);
    out["checks"] = checks_;
    return out;
  }

 private:
  static Json rows_json(std::span<const float> values, size_t width, size_t rows) {
    Json list = Json::array();
    for (size_t r = 0; r < rows; ++r) list.push_back(exact(values.subspan(r * width, width)));
    return list;
  }

  // Keys that the token may see: those after it have no share.
  size_t visible() const { return attention_.causal ? static_cast<size_t>(numbers_.token) + 1 : numbers_.probs.size(); }
  double scale() const { return attention_.scale.value_or(1 / std::sqrt(static_cast<double>(attention_.width))); }

  Doubles vector_of(const std::string& name) {
    const Param* weight = model_.weights().find(name);
    return weight == nullptr ? Doubles() : doubles(host_floats(weight->master(cx_)));
  }

  // x W (+ bias), columns of one head where the matrix has heads.
  Doubles product(const Doubles& x, const WeightChoice& choice) {
    const WeightMatrix matrix = weight_matrix(model_, choice);
    const std::vector<float> w = weight_values(cx_, matrix, {.end_row = matrix.rows, .end_column = matrix.columns});
    const auto columns = static_cast<size_t>(matrix.columns);
    Doubles y(columns, 0.0);
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < columns; ++j) y[j] += x[i] * static_cast<double>(w[i * columns + j]);
    }
    return y;
  }
  Doubles bias_of(const WeightChoice& choice) {
    const WeightMatrix matrix = weight_matrix(model_, choice);
    const Doubles all = vector_of(matrix.name + ".bias");
    if (all.empty()) return {};
    const auto from = all.begin() + matrix.first_column;
    return {from, from + matrix.columns};
  }

  void check(const char* name, double far) { checks_[name] = far; }

  // The norm `name` of x; `normed` is its result.
  Json norm_json(const std::string& name, std::span<const float> x, Doubles& normed) {
    return norm_json(layer_prefix(spec_, place_) + name, layer_.norm, doubles(x), normed);
  }
  Json norm_json(const std::string& name, const NormSpec& spec, const Doubles& x, Doubles& normed) {
    const bool centred = spec.kind == NormSpec::Kind::layer;
    const auto count = static_cast<double>(x.size());
    const double mean = centred ? std::accumulate(x.begin(), x.end(), 0.0) / count : 0;
    double square = 0;
    for (const double value : x) square += (value - mean) * (value - mean) / count;
    const double factor = 1 / std::sqrt(square + spec.eps);
    Doubles weight = vector_of(name), bias = vector_of(name + ".bias");
    for (double& w : weight) w += spec.offset;
    normed.resize(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      normed[i] = (x[i] - mean) * factor * (weight.empty() ? 1 : weight[i]) + (bias.empty() ? 0 : bias[i]);
    }
    Json out{{"kind", centred ? "layer" : "rms"},
             {"eps", spec.eps},
             {"scale", factor},
             {"weight", exact(floats(weight))},
             {"values", exact(floats(normed))}};
    if (centred) out["mean"] = mean;
    if (!bias.empty()) out["bias"] = exact(floats(bias));
    return out;
  }

  // norm W_Q of this head: linear, its own norm, rotation.
  void add_projection(Json& out, const char* matrix, const Doubles& x, std::span<const float> had) {
    const WeightChoice choice{.matrix = matrix, .place = place_, .head = numbers_.head.head};
    Doubles y = product(x, choice);
    const Doubles bias = bias_of(choice);
    for (size_t j = 0; j < bias.size(); ++j) y[j] += bias[j];
    if (!bias.empty()) out["bias"] = exact(floats(bias));
    out["linear"] = exact(floats(y));
    const bool turned = matrix[0] != 'v';
    if (turned && attention_.qk_norm == AttentionSpec::QkNorm::per_head) {
      Doubles normed;
      out["norm"] = norm_json(attention_prefix(spec_, place_) + "." + matrix + "_norm", attention_.norm, y, normed);
      y = normed;
    }
    if (turned && attention_.rope) out["rope"] = rotate(y);
    check(matrix, farthest(y, had));
  }

  Json rotate(Doubles& y) const {
    const RopeSpec& rope = *attention_.rope;
    const ops::RopeTable table =
        ops::rope_table(rope.base, rope.width, std::max<int64_t>(numbers_.token, numbers_.keys - 1) + 1, rope.scaling);
    const auto pairs = static_cast<size_t>(table.pairs), first = static_cast<size_t>(rope.first);
    const size_t row = static_cast<size_t>(numbers_.token) * pairs;
    const std::span cos = std::span(table.cos).subspan(row, pairs), sin = std::span(table.sin).subspan(row, pairs);
    for (size_t i = 0; i < pairs; ++i) {
      double& a = y[first + (rope.interleaved ? 2 * i : i)];
      double& b = y[first + (rope.interleaved ? 2 * i + 1 : i + pairs)];
      const double c = static_cast<double>(cos[i]), s = static_cast<double>(sin[i]), before = a;
      a = before * c - b * s;
      b = b * c + before * s;
    }
    return {{"style", rope.interleaved ? "pairs" : "half"},
            {"first", rope.first},
            {"width", rope.width},
            {"cos", exact(cos)},
            {"sin", exact(sin)}};
  }

  void add_embedding(Json& out) {
    if (numbers_.embedded.empty()) return;
    const WeightMatrix table = weight_matrix(model_, {.matrix = "embed", .place = place_});
    const std::vector<float> token =
        weight_values(cx_, table, {.first_row = numbers_.id, .end_row = numbers_.id + 1, .end_column = table.columns});
    Json embedding{{"id", numbers_.id}, {"token", exact(token)}, {"values", exact(numbers_.embedded)}};
    const StackSpec& stack = spec_.main_stack();
    if (stack.positions.kind == PositionSpec::Kind::learned && !stack.positions.padding) {
      const WeightMatrix places = weight_matrix(model_, {.matrix = "position", .place = place_});
      const int64_t at = numbers_.token + stack.positions.offset;
      embedding["position"] =
          exact(weight_values(cx_, places, {.first_row = at, .end_row = at + 1, .end_column = places.columns}));
    }
    if (stack.embedding_factor != 1) embedding["factor"] = stack.embedding_factor;
    out["embedding"] = std::move(embedding);
  }

  void add_scores(Json& out, size_t seen) {
    const TokenNumbers& n = numbers_;
    const auto width = static_cast<size_t>(attention_.width), value_width = static_cast<size_t>(attention_.value_width);
    Json qk = Json::array();
    Doubles z(value_width, 0.0);
    double most = -INFINITY, sum = 0, far = 0;
    for (size_t j = 0; j < seen; ++j) most = std::max(most, static_cast<double>(n.scores[j]));
    for (size_t j = 0; j < seen; ++j) {
      double dot = 0;
      for (size_t d = 0; d < width; ++d) {
        dot += static_cast<double>(n.q[d]) * static_cast<double>(n.all_k[j * width + d]);
      }
      qk.push_back(exact(static_cast<float>(dot)));
      sum += std::exp(static_cast<double>(n.scores[j]) - most);
      const double share = static_cast<double>(n.probs[j]);
      if (share > 0 && attention_.softcap == 0 && !attention_.relative && attention_.alibi == 0) {
        far = std::max(far, std::abs(dot * scale() - static_cast<double>(n.scores[j])));
      }
      for (size_t e = 0; e < value_width; ++e) z[e] += share * static_cast<double>(n.all_v[j * value_width + e]);
    }
    out["qk"] = std::move(qk);
    out["lse"] = most + std::log(sum);
    check("scores", far);
    check("z", farthest(z, n.z));
    if (attention_.softcap != 0) out["softcap"] = attention_.softcap;
  }

  void add_output(Json& out, bool plain) {
    const WeightChoice whole{.matrix = "o", .place = place_};
    const Doubles bias = bias_of(whole);
    const WeightChoice own{.matrix = "o", .place = place_, .head = numbers_.head.head};
    out["head_out"] = exact(floats(product(doubles(numbers_.z), own)));
    if (!bias.empty()) out["out_bias"] = exact(floats(bias));
    if (!plain) return;
    Doubles y = product(doubles(numbers_.concat), whole);
    for (size_t j = 0; j < bias.size(); ++j) y[j] += bias[j];
    check("out", farthest(y, numbers_.out));
    Doubles sum = doubles(numbers_.pre);
    for (size_t j = 0; j < sum.size(); ++j) sum[j] += static_cast<double>(numbers_.out[j]);
    check("mid", farthest(sum, numbers_.mid));
  }

  void add_feed(Json& out, bool plain) {
    const TokenNumbers& n = numbers_;
    if (n.mlp_out.empty()) return;
    Doubles normed;
    Json feed;
    if (plain) feed["norm"] = norm_json("norm_mlp", n.mid, normed);
    feed["pre"] = exact(n.mlp_pre);
    feed["post"] = exact(n.mlp_post);
    feed["out"] = exact(n.mlp_out);
    feed["gated"] = layer_.feed.gated;
    feed["activation"] = kActivations[static_cast<size_t>(layer_.feed.act.kind)];
    if (plain && !layer_.feed.experts) {
      const WeightChoice first{.matrix = layer_.feed.gated ? "gate" : "up", .place = place_};
      Doubles pre = product(normed, first);
      const Doubles bias = bias_of(first);
      for (size_t j = 0; j < bias.size(); ++j) pre[j] += bias[j];
      check("mlp_pre", farthest(pre, n.mlp_pre));
      if (layer_.feed.gated) feed["up"] = exact(floats(product(normed, {.matrix = "up", .place = place_})));
      const WeightChoice down{.matrix = "down", .place = place_};
      Doubles y = product(doubles(n.mlp_post), down);
      const Doubles down_bias = bias_of(down);
      for (size_t j = 0; j < down_bias.size(); ++j) y[j] += down_bias[j];
      check("mlp_out", farthest(y, n.mlp_out));
    }
    if (plain) {
      Doubles sum = doubles(n.mid);
      for (size_t j = 0; j < sum.size(); ++j) sum[j] += static_cast<double>(n.mlp_out[j]);
      check("post", farthest(sum, n.post));
    }
    if (n.route_ids.empty()) {
      out["mlp"] = std::move(feed);
      return;
    }
    feed["logits"] = exact(n.route_logits);
    feed["ids"] = n.route_ids;
    feed["weights"] = exact(n.route_weights);
    out["experts"] = std::move(feed);
  }

  void add_final(Json& out) {
    if (numbers_.final.empty()) return;
    Json final{{"values", exact(numbers_.final)}};
    if (spec_.main_stack().final_norm) {
      Doubles normed;
      final["norm"] =
          norm_json(stack_prefix(spec_, spec_.main()) + "norm_final", spec_.norm, doubles(numbers_.post), normed);
      check("final", farthest(normed, numbers_.final));
    }
    out["final"] = std::move(final);
  }

  const Model& model_;
  const ModelSpec& spec_;
  const TokenNumbers& numbers_;
  Place place_;
  const LayerSpec& layer_;
  const AttentionSpec& attention_;
  Arena arena_;
  Context cx_;
  Json checks_ = Json::object();
};

}  // namespace

Json exact(float value) {
  if (value == -INFINITY) return nullptr;
  const std::string text = fmt::format("{:.9g}", value);
  double read = 0;
  std::from_chars(text.data(), text.data() + text.size(), read);
  return read;
}

Json exact(std::span<const float> values) {
  Json list = Json::array();
  for (const float value : values) list.push_back(exact(value));
  return list;
}

Json token_report(const Model& model, const Engine& engine, const TokenNumbers& numbers) {
  return Formulas(model, engine, numbers).report();
}

}  // namespace qkv

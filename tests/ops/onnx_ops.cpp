#include "onnx_ops.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "ops/ops.h"

namespace qkv::test {
namespace {

using Outputs = std::map<std::string, Numbers>;
using Stage = AttentionPatternArgs::Stage;

constexpr double kNever = std::numeric_limits<double>::quiet_NaN();  // fills memory that must not be read
constexpr double kHidden = -std::numeric_limits<double>::infinity();

Precision precision_for(const GoldenFile& file) {
  for (const auto& [name, tensor] : file.tensors) {
    if (tensor.dtype == DType::f64) return Precision::f64();
  }
  return Precision::f32();
}

class Vector {
 public:
  Vector(const GoldenFile& file, const OnnxSetting& setting)
      : file_(file),
        setting_(setting),
        attributes_(parse_json(file.metadata.at("attributes"), "attributes")),
        pass_({.kernels = setting.kernels, .precision = precision_for(file), .threads = setting.threads}) {}

  Outputs attention();
  Outputs layer_norm();
  Outputs rms_norm();
  Outputs rotary();
  Outputs softmax();
  Outputs gelu();
  Outputs swish();
  Outputs swiglu();
  Outputs tensor_scatter();

 private:
  struct Cache {
    Tensor slots;  // [all slots, G, D]
    int64_t page = 0, keys = 0, batch = 0;
    std::vector<int32_t> table;  // [batch, pages of one]

    int64_t pages_of_one() const { return (keys + page - 1) / page; }
    int32_t slot(int64_t b, int64_t j) const {
      return static_cast<int32_t>(table[static_cast<size_t>(b * pages_of_one() + j / page)] * page + j % page);
    }
  };

  bool has(const std::string& name) const { return file_.has("input." + name); }
  const Golden& in(const std::string& name) const { return file_.at("input." + name); }
  bool wants(const std::string& name) const { return file_.has("output." + name); }
  template <class T>
  T attribute(const char* name, T otherwise) const {
    return attributes_.value(name, otherwise);
  }
  int axis_of(const Shape& shape) const {
    const int axis = attribute("axis", -1);
    return axis < 0 ? axis + shape.rank() : axis;
  }

  // In the file's dtype, then cast: half precision enters as it is stored.
  Tensor tensor(const std::string& name) {
    const Golden& g = in(name);
    return ops::cast(pass_.cx, pass_.input(g.values, g.shape, g.dtype), pass_.cx.precision.exact);
  }
  Tensor contiguous(const Tensor& t) { return ops::cast(pass_.cx, t, t.dtype()); }
  // [B, H, T, D] or [B, T, H D]  ->  [B, T, H, D]
  Tensor by_rows(const std::string& name, const char* heads) {
    const Tensor t = tensor(name);
    return t.rank() == 4 ? contiguous(t.transposed(1, 2)) : ops::split_heads(t, attribute(heads, int64_t{1}));
  }
  Param& flat_param(const std::string& name) { return pass_.param(name, in(name).values, {in(name).shape.count()}); }

  Cache make_cache(int64_t batch, int64_t keys, const Shape& head_shape);
  void write(const Cache& cache, const Tensor& x, int64_t first);
  Cache fill_cache(const std::string& now, const std::string& past);
  Numbers contents(const Cache& cache);
  Rows segments(int64_t batch, int64_t length, const Cache& cache);
  Tensor mask(int64_t length, int64_t keys);

  const GoldenFile& file_;
  OnnxSetting setting_;
  Json attributes_;
  Pass pass_;
};

// --- attention -------------------------------------------------------------------------------------------------------

Vector::Cache Vector::make_cache(int64_t batch, int64_t keys, const Shape& head_shape) {
  constexpr int64_t kPage = 4;
  Cache cache{.page = setting_.pages ? kPage : keys, .keys = keys, .batch = batch};
  const int64_t pages = batch * cache.pages_of_one();
  for (int64_t p = 0; p < pages; ++p) {  // pages in reverse order, so that ignoring the table fails
    cache.table.push_back(static_cast<int32_t>(setting_.pages ? pages - 1 - p : p));
  }
  const Shape shape{pages * cache.page, head_shape[0], head_shape[1]};
  cache.slots = pass_.input(Numbers(static_cast<size_t>(shape.count()), kNever), shape);
  return cache;
}

// x [B, T, G, D] becomes keys first, first + 1, ... of every sequence.
void Vector::write(const Cache& cache, const Tensor& x, int64_t first) {
  std::vector<int32_t> slots;
  for (int64_t b = 0; b < x.dim(0); ++b) {
    for (int64_t t = 0; t < x.dim(1); ++t) slots.push_back(cache.slot(b, first + t));
  }
  ops::scatter_rows(pass_.cx, cache.slots, x.flatten_to(3), pass_.cx.upload(slots));
}

Vector::Cache Vector::fill_cache(const std::string& now, const std::string& past) {
  const Tensor x = by_rows(now, "kv_num_heads");
  const int64_t before = has(past) ? in(past).shape[2] : 0;
  const Cache cache = make_cache(x.dim(0), before + x.dim(1), {x.dim(2), x.dim(3)});
  if (has(past)) write(cache, contiguous(tensor(past).transposed(1, 2)), 0);
  write(cache, x, before);
  return cache;
}

Numbers Vector::contents(const Cache& cache) {  // [B, G, S, D]
  const Numbers slots = to_host(cache.slots);
  const int64_t heads = cache.slots.dim(1), width = cache.slots.dim(2);
  Numbers out;
  for (int64_t b = 0; b < cache.batch; ++b) {
    for (int64_t g = 0; g < heads; ++g) {
      for (int64_t j = 0; j < cache.keys; ++j) {
        const auto at = slots.begin() + (cache.slot(b, j) * heads + g) * width;
        out.insert(out.end(), at, at + width);
      }
    }
  }
  return out;
}

Rows Vector::segments(int64_t batch, int64_t length, const Cache& cache) {
  const int64_t before = has("past_key") ? in("past_key").shape[2] : 0;
  std::vector<Segment> list;
  for (int64_t b = 0; b < batch; ++b) {
    int64_t keys = cache.keys, position = before;
    if (has("nonpad_kv_seqlen")) {
      keys = static_cast<int64_t>(in("nonpad_kv_seqlen").values[static_cast<size_t>(b)]);
      position = keys - length;
    }
    list.push_back({.request = static_cast<int32_t>(b),
                    .first_row = static_cast<int32_t>(b * length),
                    .rows = static_cast<int32_t>(length),
                    .first_key = static_cast<int32_t>(setting_.pages ? 0 : b * cache.keys),
                    .keys = static_cast<int32_t>(keys),
                    .position = static_cast<int32_t>(position)});
  }
  return Rows::make(pass_.cx, std::move(list), batch * length, setting_.pages ? Rows::kPaged : batch * cache.keys);
}

Tensor Vector::mask(int64_t length, int64_t keys) {  // as numbers to add, [B or 1, H or 1, T, S]
  const Golden& g = in("attn_mask");
  const int rank = g.shape.rank();
  const int64_t outer = rank > 3 ? g.shape[0] : 1, heads = rank > 2 ? g.shape[-3] : 1, width = g.shape[-1];
  Numbers full;
  for (int64_t row = 0; row < outer * heads * length; ++row) {
    for (int64_t j = 0; j < keys; ++j) {
      const double given = j < width ? g.values[static_cast<size_t>(row * width + j)] : kHidden;
      full.push_back(g.dtype != DType::i8 || j >= width ? given : given != 0 ? 0 : kHidden);
    }
  }
  return pass_.input(full, {outer, heads, length, keys});
}

Outputs Vector::attention() {
  Context& cx = pass_.cx;
  const Tensor q = by_rows("Q", "q_num_heads");  // [B, T, H, D]
  const Cache keys = fill_cache("K", "past_key"), values = fill_cache("V", "past_value");
  const Rows rows = segments(q.dim(0), q.dim(1), keys);
  ops::AttentionOptions options{.softcap = attribute("softcap", 0.0), .causal = attribute("is_causal", 0) != 0};
  if (attributes_.contains("scale")) options.scale = attribute("scale", 0.0);
  if (has("attn_mask")) options.mask = mask(q.dim(1), keys.keys);
  Tensor k = keys.slots, v = values.slots;
  if (setting_.pages) {
    options.table = pass_.indices(keys.table, {keys.batch, keys.pages_of_one()});
    k = k.view({k.dim(0) / keys.page, keys.page, k.dim(1), k.dim(2)});
    v = v.view({v.dim(0) / keys.page, keys.page, v.dim(1), v.dim(2)});
  }

  const auto attended = ops::attention(cx, q, k, v, rows, options);
  const Tensor z = attended.z.view({q.dim(0), q.dim(1), q.dim(2), attended.z.dim(2)});
  Outputs out{{"Y", to_host(in("Q").shape.rank() == 4 ? z.transposed(1, 2) : z)}};
  if (wants("present_key")) out["present_key"] = contents(keys);
  if (wants("present_value")) out["present_value"] = contents(values);
  if (wants("qk_matmul_output")) {
    const auto stage = static_cast<Stage>(attribute("qk_matmul_output_mode", 0));
    const Tensor pattern =
        ops::attention_pattern(cx, q.flatten_to(3), k, attended.lse, rows, options, {.stage = stage});
    out["qk_matmul_output"] = to_host(pattern.view({q.dim(0), q.dim(1), q.dim(2), rows.longest_keys}).transposed(1, 2));
  }
  return out;
}

// --- the others ------------------------------------------------------------------------------------------------------

Outputs Vector::layer_norm() {
  const Tensor all = tensor("X");
  const int64_t rows = [&] {
    int64_t n = 1;
    for (int axis = 0; axis < axis_of(all.shape()); ++axis) n *= all.dim(axis);
    return n;
  }();
  const Tensor x = all.view({rows, all.count() / rows});
  const Param &w = flat_param("W"), &b = flat_param("B");
  const double eps = attribute("epsilon", 1e-5);
  const Tensor y = ops::layer_norm(pass_.cx, x, {.weight = &w, .bias = &b, .eps = eps});

  // The op keeps the mean and 1 / deviation for its backward and does not hand them out: its kernel shows them.
  const Tensor mean = pass_.zeros({rows}, x.dtype()), rstd = pass_.zeros({rows}, x.dtype());
  pass_.cx.kernels.layer_norm(
      pass_.cx.exec,
      {.y = contiguous(x), .mean = mean, .rstd = rstd, .x = x, .w = w.master(), .b = b.master(), .eps = eps});
  return {{"Y", to_host(y)}, {"Mean", to_host(mean)}, {"InvStdDev", to_host(rstd)}};
}

Outputs Vector::rms_norm() {
  const Tensor x = tensor("X");
  const Param& w = flat_param("W");
  const Tensor y = ops::rms_norm(pass_.cx, x.view({x.count() / w.shape().count(), w.shape().count()}),
                                 {.weight = &w, .eps = attribute("epsilon", 1e-5)});
  return {{"Y", to_host(y)}};
}

Outputs Vector::rotary() {
  const Tensor x = by_rows("input", "num_heads");
  std::vector<int32_t> positions;
  for (int64_t n = 0; n < x.dim(0) * x.dim(1); ++n) {  // without ids, each row has its own table row
    positions.push_back(static_cast<int32_t>(has("position_ids") ? in("position_ids").values[static_cast<size_t>(n)]
                                                                 : static_cast<double>(n)));
  }
  const Tensor y = ops::rotary(pass_.cx, x, pass_.cx.upload(positions),
                               {.cos = tensor("cos_cache").flatten_to(2),
                                .sin = tensor("sin_cache").flatten_to(2),
                                .interleaved = attribute("interleaved", 0) != 0});
  return {{"output", to_host(in("input").shape.rank() == 4 ? y.transposed(1, 2) : y)}};
}

Outputs Vector::softmax() {
  const Tensor x = tensor("x");
  const int axis = axis_of(x.shape());
  return {{"y", to_host(ops::softmax(pass_.cx, contiguous(x.transposed(axis, -1))).transposed(axis, -1))}};
}

Outputs Vector::gelu() {
  const bool tanh = attribute<std::string>("approximate", "none") == "tanh";
  return {{"y", to_host(ops::activation(pass_.cx, tensor("x"), tanh ? ops::act::gelu_tanh : ops::act::gelu_erf))}};
}

Outputs Vector::swish() {
  return {{"y", to_host(ops::activation(pass_.cx, tensor("x"), {Activation::Kind::silu, attribute("alpha", 1.0F)}))}};
}

Outputs Vector::swiglu() {
  const Gating form{{Activation::Kind::silu, attribute("alpha", 1.0F)}};
  return {{"y", to_host(ops::gated(pass_.cx, tensor("a"), tensor("b"), form))}};
}

Outputs Vector::tensor_scatter() {                     // [B, ..., S, D]
  const auto rows_of = [&](const std::string& name) {  // -> [B, S, G, D]
    const Tensor t = tensor(name);
    return t.rank() == 4 ? contiguous(t.transposed(1, 2)) : t.view({t.dim(0), t.dim(1), 1, t.dim(2)});
  };
  const Tensor cache = rows_of("past_cache"), update = rows_of("update");
  const bool circular = attribute<std::string>("mode", "linear") == "circular";
  std::vector<int32_t> slots;
  for (int64_t b = 0; b < update.dim(0); ++b) {
    const auto first = static_cast<int64_t>(in("write_indices").values[static_cast<size_t>(b)]);
    for (int64_t t = 0; t < update.dim(1); ++t) {
      const int64_t at = circular ? (first + t) % cache.dim(1) : first + t;
      slots.push_back(static_cast<int32_t>(b * cache.dim(1) + at));
    }
  }
  ops::scatter_rows(pass_.cx, cache.flatten_to(3), update.flatten_to(3), pass_.cx.upload(slots));
  return {{"present_cache", to_host(cache.transposed(1, 2))}};
}

}  // namespace

std::map<std::string, Numbers> run_onnx(const GoldenFile& file, const OnnxSetting& setting) {
  static const std::map<std::string, Outputs (Vector::*)()> kOperators{
      {"Attention", &Vector::attention},
      {"FlexAttention", &Vector::attention},
      {"Gelu", &Vector::gelu},
      {"LayerNormalization", &Vector::layer_norm},
      {"RMSNormalization", &Vector::rms_norm},
      {"RotaryEmbedding", &Vector::rotary},
      {"Softmax", &Vector::softmax},
      {"SwiGLU", &Vector::swiglu},
      {"Swish", &Vector::swish},
      {"TensorScatter", &Vector::tensor_scatter},
  };
  const std::string& op = file.metadata.at("op");
  const auto found = kOperators.find(op);
  QKV_CHECK(found != kOperators.end(), "onnx: no way to run '", op, "'");
  return (Vector(file, setting).*found->second)();
}

}  // namespace qkv::test

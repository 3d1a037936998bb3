#include "inspect/cut/cut_model.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/heads/out_projection.h"
#include "io/floats.h"
#include "model/checkpoint/convert.h"
#include "model/weight_list.h"

namespace qkv {
namespace {

using Indices = std::vector<int64_t>;

// Selects units of a weight along one axis, in this order. A unit is a head's rows or columns, or an expert.
struct Selection {
  std::string from;
  int axis = 0;
  int64_t unit = 1;
  Indices units;
};

// What is left of one attention.
struct Left {
  Indices heads, kv_heads;      // original numbers of those that stay
  std::vector<int32_t> kv_map;  // new key/value head of each remaining head
};

Left left_of(const ModelSpec& spec, Place place, const std::vector<HeadId>& cut) {
  const AttentionSpec& a = attention_at(spec, place);
  Left left;
  for (int64_t h = 0; h < a.heads; ++h) {
    const HeadId head{place.stack, place.layer, static_cast<int16_t>(h)};
    if (std::find(cut.begin(), cut.end(), head) != cut.end()) continue;
    left.heads.push_back(h);
    left.kv_heads.push_back(kv_head_of(a, h));
  }
  QKV_CHECK(!left.heads.empty(), name_of(spec, place), " would be left without a head: all ", a.heads, " are to be cut",
            Hint("leave one head of every attention"));
  const Indices used = left.kv_heads;
  std::sort(left.kv_heads.begin(), left.kv_heads.end());
  left.kv_heads.erase(std::unique(left.kv_heads.begin(), left.kv_heads.end()), left.kv_heads.end());
  for (const int64_t g : used) {
    const auto at = std::lower_bound(left.kv_heads.begin(), left.kv_heads.end(), g);
    left.kv_map.push_back(static_cast<int32_t>(at - left.kv_heads.begin()));
  }
  return left;
}

// Those that stay, then all others: for a QK norm that spans all heads.
Indices with_the_others(Indices stay, int64_t count) {
  Indices all = stay;
  for (int64_t i = 0; i < count; ++i) {
    if (std::find(stay.begin(), stay.end(), i) == stay.end()) all.push_back(i);
  }
  return all;
}

class Selections {
 public:
  explicit Selections(const ModelSpec& spec) : spec_(spec) {}

  void attention(Place place, const Left& left) {
    const AttentionSpec& a = attention_at(spec_, place);
    const std::string name = attention_prefix(spec_, place);
    const bool whole = a.qk_norm == AttentionSpec::QkNorm::whole;
    const Indices q = whole ? with_the_others(left.heads, a.projected_heads()) : left.heads,
                  k = whole ? with_the_others(left.kv_heads, a.projected_kv_heads()) : left.kv_heads;
    for (const std::string ending : {"", ".bias"}) {
      const auto rows = [&](const char* which, int64_t unit, const Indices& units) {
        add(name + which + ending, {.unit = unit, .units = units});
      };
      rows(".q", a.width, q);
      rows(".k", a.width, k);
      rows(".v", a.value_width, left.kv_heads);
      if (whole) rows(".q_norm", a.width, q);
      if (whole) rows(".k_norm", a.width, k);
      if (a.latent) rows(".q_b", a.width, left.heads);
      if (a.latent) rows(".kv_b", a.latent->nope_width + a.value_width, left.kv_heads);
    }
    add(name + ".o", {.axis = 1, .unit = a.value_width, .units = left.heads});
    add(name + ".sinks", {.units = left.heads});
    if (!a.relative) return;
    const std::string own = name + ".relative";
    const std::string shared = stack_prefix(spec_, place.stack) + "relative";
    add(own, {.from = a.relative->in_each_layer ? own : shared, .units = left.heads});
  }

  void experts(int16_t layer, const Indices& stay) {
    const std::string name = layer_prefix(spec_, {spec_.main(), layer}) + "mlp.";
    for (const char* which : {"router", "router.correction", "experts.gate", "experts.up", "experts.down"}) {
      for (const char* ending : {"", ".bias"}) add(name + which + ending, {.units = stay});
    }
  }

  const Selection* find(const std::string& weight) const {
    const auto at = all_.find(weight);
    return at == all_.end() ? nullptr : &at->second;
  }

 private:
  void add(const std::string& weight, Selection selection) {
    if (selection.from.empty()) selection.from = weight;
    all_.emplace(weight, std::move(selection));
  }

  const ModelSpec& spec_;
  std::map<std::string, Selection> all_;
};

// The raw bytes of the selected units.
std::vector<std::byte> selected(const Param& from, const Selection& s) {
  const Tensor master = from.master();
  const int64_t size = size_of(from.format().dtype), along = from.shape()[s.axis];
  const int64_t outer = s.axis == 0 ? 1 : from.shape()[0], step = master.count() / outer * size;
  const int64_t unit = step / along * s.unit;
  std::vector<std::byte> whole(static_cast<size_t>(outer * step)), some;
  master.device().download(whole.data(), master.data(), std::ssize(whole));
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t u : s.units) {
      const auto at = whole.begin() + o * step + u * unit;
      some.insert(some.end(), at, at + unit);
    }
  }
  from.release_master();
  return some;
}

// The bias of W_O plus the mean outputs of the removed heads.
std::vector<float> bias_with_means(const Weights& whole, const OutProjection& out, const std::vector<HeadId>& heads,
                                   const HeadOutputs& outputs) {
  std::vector<float> bias = host_floats(whole.at(out.bias()).master());
  const std::vector<float> matrix = host_floats(whole.at(out.weight()).master());
  for (const HeadId& head : heads) {
    const std::span<const float> mean = outputs.mean(head);
    for (size_t c = 0; c < bias.size(); ++c) {
      const std::span<const float> row = out.of_head(matrix, static_cast<int64_t>(c), head.head);
      bias[c] += std::inner_product(mean.begin(), mean.end(), row.begin(), 0.0F);
    }
  }
  return bias;
}

const char* stack_key(Stack stack) {
  return stack == Stack::encoder ? "encoder" : stack == Stack::cross ? "cross" : "decoder";
}

}  // namespace

SmallerModel cut_out(const Checkpoint& whole, Device& device, const Cut& cut, const HeadOutputs* outputs) {
  const ModelSpec& spec = whole.spec;
  QKV_CHECK(!cut.heads.empty() || !cut.experts.empty(), "nothing is to be cut", Hint("name heads or experts"));
  QKV_CHECK(cut.ablation != Ablation::resample, "a resampled head cannot be removed from the weights",
            Hint("cut by zero or by mean"));
  SmallerModel made{.config = whole.config};
  Selections selections(spec);
  for (const LayerSpec& layer : spec.main_stack().layers) {
    QKV_CHECK(cut.heads.empty() || layer.attention.alibi == 0, "the heads of a ", spec.family,
              " cannot be cut: each has its own ALiBi slope, by its number",
              Hint("study the heads without removing them: leave --out away"));
  }
  if (!cut.heads.empty() || whole.config.contains(kHeadsKey)) {
    Json maps = Json::object();
    for (const Place place : all_attentions(spec)) {
      const Left left = left_of(spec, place, cut.heads);
      maps[stack_key(place.stack)].push_back(left.kv_map);
      selections.attention(place, left);
    }
    made.config[kHeadsKey] = maps;
  }
  if (!cut.experts.empty()) {
    const CutProbe checked(spec, {.experts = cut.experts});
    Json counts = Json::array();
    for (size_t i = 0; i < spec.main_stack().layers.size(); ++i) {
      Indices stay;
      for (const ExpertId& e : all_experts(spec)) {
        const bool gone = std::find(cut.experts.begin(), cut.experts.end(), e) != cut.experts.end();
        if (e.layer == static_cast<int16_t>(i) && !gone) stay.push_back(e.expert);
      }
      counts.push_back(stay.size());
      if (!stay.empty()) selections.experts(static_cast<int16_t>(i), stay);
    }
    made.config[kExpertsKey] = counts;
  }
  made.spec = read_spec(Config(made.config, "config.json"));

  const auto from = std::make_shared<const Weights>(whole.weights(device));
  std::map<std::string, std::vector<HeadId>> means;  // by the bias that takes them, of one attention each
  for (const HeadId& head : cut.heads) {
    if (cut.ablation == Ablation::zero) break;
    QKV_ASSERT(outputs != nullptr, "a cut by mean without the measured outputs");
    QKV_CHECK(attention_at(spec, head.place()).out_bias, "W_O of a ", spec.family,
              " has no bias to add the mean output of a head to", Hint("cut by zero"));
    means[OutProjection(spec, head.place()).bias()].push_back(head);
  }
  Weights unchanged = whole.weights(device);
  std::map<std::string_view, Param*> whole_by_name;
  for (auto& [name, weight] : unchanged) whole_by_name[name] = &weight;
  for (const WeightSpec& weight : weight_list(made.spec)) {
    if (const auto mean = means.find(weight.name); mean != means.end()) {
      const OutProjection out(spec, mean->second.front().place());
      const std::vector<float> bias = bias_with_means(*from, out, mean->second, *outputs);
      const auto fill = [bias](const Tensor& to) {
        std::vector<std::byte> bytes(static_cast<size_t>(to.count() * size_of(to.dtype())));
        encode_floats(stored_name(to.dtype()), bias, bytes);
        to.device().upload(to.data(), bytes.data(), std::ssize(bytes));
      };
      made.weights.add(Param(weight.name, device, from->at(weight.name).format(), weight.shape, {.fill = fill}));
    } else if (const Selection* selection = selections.find(weight.name); selection != nullptr) {
      const auto fill = [from, taken = *selection](const Tensor& to) {
        const std::vector<std::byte> bytes = selected(from->at(taken.from), taken);
        QKV_ASSERT(std::ssize(bytes) == to.count() * size_of(to.dtype()), "of '", taken.from, "' ", bytes.size(),
                   " bytes are left for ", to);
        to.device().upload(to.data(), bytes.data(), std::ssize(bytes));
      };
      made.weights.add(Param(weight.name, device, from->at(selection->from).format(), weight.shape, {.fill = fill}));
    } else {
      made.weights.add(std::move(*whole_by_name.at(weight.name)));
    }
  }
  return made;
}

std::vector<std::string> write_cut_model(const std::filesystem::path& folder, const SmallerModel& model,
                                         const std::filesystem::path& from) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool from_folder = fs::is_directory(from, ignored);
  write_hugging_face(folder, model.config, model.weights, hugging_face_names(model.spec),
                     {.dtype = from_folder ? std::string() : std::string(stored_name(model.spec.dtype)),
                      .copied = from_folder ? companion_files(from) : std::vector<fs::path>{}});
  std::vector<std::string> notes{
      "Hugging Face cannot load it: the number of heads per layer is in config keys of qkv's own"};
  if (!from_folder) notes.push_back("the GGUF's tokenizer is not written: put tokenizer.json of the original into it");
  return notes;
}

}  // namespace qkv

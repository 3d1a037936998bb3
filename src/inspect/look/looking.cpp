#include "inspect/look/looking.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/heads/head_writes.h"
#include "inspect/texts/edited_reading.h"

namespace qkv {
namespace {

constexpr int64_t kPatternCells = int64_t{1} << 27;  // most cells of one layer's patterns
constexpr int64_t kFewestRows = 64;

// Around a token: three quarters of the rows before it, where its keys are.
KeptRows rows_around(int64_t token, int64_t rows, int64_t most) {
  const int64_t count = std::min(rows, most);
  return {.first = std::clamp<int64_t>(token - count * 3 / 4, 0, rows - count), .count = count};
}

std::vector<float> norms_of_rows(std::span<const float> x, size_t width) {
  std::vector<float> norms;
  for (size_t at = 0; at + width <= x.size(); at += width) {
    norms.push_back(static_cast<float>(norm_of(x.subspan(at, width))));
  }
  return norms;
}

template <class T>
void append(std::vector<T>& to, std::span<const T> more) {
  to.insert(to.end(), more.begin(), more.end());
}

class LookProbe : public ReadingProbe {
 public:
  LookProbe(const Model& model, Looked& seen, int64_t most) : model_(model), seen_(seen) {
    const ModelSpec& spec = model.spec();
    has_source_ = spec.has_source();
    const int64_t rows = std::ssize(seen.text.ids), sources = std::ssize(seen.text.source);
    seen.streams.resize(spec.main_stack().layers.size() + 1);
    seen.layers.resize(spec.main_stack().layers.size());
    for (const Place place : all_attentions(spec)) {
      const AttentionSpec& attention = attention_at(spec, place);
      const bool across = place.stack == Stack::cross, reads = of_source(place);
      seen.attentions.push_back({.place = place,
                                 .rows = reads ? KeptRows{0, std::min(sources, most)} : seen.rows,
                                 .queries = reads ? sources : rows,
                                 .keys = reads || across ? sources : rows,
                                 .heads = attention.heads,
                                 .kv_heads = attention.kv_heads,
                                 .width = attention.width,
                                 .value_width = attention.value_width,
                                 .entropy = std::vector<double>(static_cast<size_t>(attention.heads), 0.0)});
    }
  }

  void begin(Context&, const PassTexts& pass) override {
    first_ = pass.rows.front().position;
    count_ = std::ssize(pass.rows);
  }

  Ask ask(Place place, Site site) const override {
    const bool main = !of_source(place);
    switch (site) {
      case Site::attn_k:
      case Site::attn_v:
        return Ask::read;
      case Site::attn_q:
      case Site::attn_z:
      case Site::attn_lse:
      case Site::attn_out:
        return local(place).count > 0 ? Ask::read : Ask::none;
      case Site::attn_probs:
        return local(place).count > 0 ? Ask::stats | Ask::rows : Ask::stats;
      case Site::attn_scores:
        return main && token_here() ? Ask::rows : Ask::none;
      case Site::embed:
      case Site::resid_mid:
      case Site::resid_post:
      case Site::mlp_out:
        return main && local(place).count > 0 ? Ask::read : Ask::none;
      case Site::resid_pre:
      case Site::mlp_post:
        return main && token_here() ? Ask::read : Ask::none;
      case Site::route_ids:
      case Site::route_weights:
        return main && (token_here() || local(place).count > 0) ? Ask::read : Ask::none;
      default:
        return Ask::none;
    }
  }

  std::vector<int32_t> rows_wanted(Place place) const override {
    const KeptRows rows = local(place);
    std::vector<int32_t> wanted;
    for (int64_t r = 0; r < rows.count; ++r) wanted.push_back(static_cast<int32_t>(rows.first + r));
    return wanted;
  }

  StatsWanted stats_wanted(Place) const override { return {.offsets = {1}}; }

  void visit_stats(Context&, const Tap& tap, const AttentionStats& stats) override {
    SeenAttention& to = attention(tap.place);
    const std::vector<float> entropy = host_floats(stats.entropy);
    for (size_t i = 0; i < entropy.size(); ++i) {
      to.entropy[i % to.entropy.size()] += static_cast<double>(entropy[i]) / static_cast<double>(to.queries);
    }
    const int64_t counted = to.queries - SeenAttention::kFirstCounted;
    if (counted <= 0) return;
    const int64_t position = of_source(tap.place) ? 0 : first_;
    const auto add = [&](const Tensor& values, std::vector<double>& sums) {
      sums.resize(to.entropy.size());
      const std::vector<float> all = host_floats(values);
      for (size_t i = 0; i < all.size(); ++i) {
        const int64_t row = position + static_cast<int64_t>(i / sums.size());
        if (row < SeenAttention::kFirstCounted) continue;
        sums[i % sums.size()] += static_cast<double>(all[i]) / static_cast<double>(counted);
      }
    };
    add(stats.first, to.first);
    add(stats.at_offset, to.previous);
    add(stats.distance, to.distance);
    add(stats.highest, to.highest);
  }

  void visit(Context& cx, const Tap& tap, Tensor& x) override {
    const auto layer = static_cast<size_t>(tap.place.layer);
    switch (tap.site) {
      case Site::embed:
        return append<float>(seen_.streams[0], kept(tap.place, x));
      case Site::resid_pre:
        seen_.layers[layer].pre_at = at_token(x);
        return;
      case Site::resid_mid:
        return visit_stream(tap.place, x, seen_.layers[layer].mid_norms, seen_.layers[layer].mid_at);
      case Site::mlp_out:  // a shared expert's comes first, then the sum: the last one counts
        pending_.clear();
        return visit_stream(tap.place, x, pending_, seen_.layers[layer].mlp_at);
      case Site::resid_post:
        append<float>(seen_.layers[layer].mlp_norms, pending_);
        append<float>(seen_.streams[layer + 1], kept(tap.place, x));
        return visit_stream(tap.place, x, seen_.layers[layer].post_norms, seen_.layers[layer].post_at);
      case Site::mlp_post:
        seen_.layers[layer].inner_at = at_token(x);
        return;
      case Site::route_ids: {
        const std::vector<int32_t> ids = host_ints(x);
        const KeptRows rows = local(tap.place);
        if (token_here()) seen_.layers[layer].experts_at = row_of<int32_t>(ids, x.dim(0));
        append<int32_t>(seen_.layers[layer].experts,
                        std::span(ids).subspan(static_cast<size_t>(rows.first * x.dim(1)),
                                               static_cast<size_t>(rows.count * x.dim(1))));
        return;
      }
      case Site::route_weights:
        if (token_here()) seen_.layers[layer].expert_weights_at = at_token(x);
        return append<float>(seen_.layers[layer].expert_weights, kept(tap.place, x));
      default:
        return visit_attention(cx, tap, x);
    }
  }

 private:
  void visit_stream(Place place, const Tensor& x, std::vector<float>& norms, std::vector<float>& at) {
    append<float>(norms, norms_of_rows(kept(place, x), static_cast<size_t>(x.cols())));
    if (token_here()) at = at_token(x);
  }

  void visit_attention(Context& cx, const Tap& tap, const Tensor& x) {
    SeenAttention& to = attention(tap.place);
    const bool here = !of_source(tap.place) && token_here();
    switch (tap.site) {
      case Site::attn_q:
        if (here) to.q_at = at_token(x);
        if (seen_.whole) to.q = host_floats(x);
        return;
      case Site::attn_k:
        return append<float>(to.k, host_floats(x));
      case Site::attn_v: {
        const std::vector<float> v = host_floats(x);
        append<float>(to.value_norm, writes(cx, tap.place).lengths(cx, v, x.dim(1)));
        if (seen_.whole) to.v = v;
        return;
      }
      case Site::attn_z: {
        const std::vector<float> z = kept(tap.place, x);
        append<float>(to.z_norm, norms_of_rows(z, static_cast<size_t>(to.value_width)));
        append<float>(to.out_norm, writes(cx, tap.place).lengths(cx, z, x.dim(1)));
        if (here) to.z_at = at_token(x);
        if (seen_.whole) to.z = z;
        return;
      }
      case Site::attn_lse:
        return append<float>(to.lse, kept(tap.place, x));
      case Site::attn_out:
        append<float>(to.out_norms, norms_of_rows(kept(tap.place, x), static_cast<size_t>(x.cols())));
        if (here) to.out_at = at_token(x);
        return;
      case Site::attn_scores: {
        const std::vector<float> all = host_floats(x);
        return keep_token_row(to, all, x.dim(2), -INFINITY, to.scores_at);
      }
      case Site::attn_probs: {
        std::vector<float> all = host_floats(x);
        add_top(to, all, static_cast<size_t>(x.dim(2)));
        if (here) keep_token_row(to, all, x.dim(2), 0, to.probs_at);
        if (seen_.whole) to.pattern = std::move(all);
        return;
      }
      default:
        QKV_ASSERT(false, "nobody asked for ", name_of(tap.site));
    }
  }

  // Takes the token's row [H, keys] from all [rows wanted, H, S]; keys after this pass get `beyond`.
  void keep_token_row(const SeenAttention& to, std::span<const float> all, int64_t reached, float beyond,
                      std::vector<float>& at) const {
    const int64_t row = seen_.token - first_ - local(to.place).first;
    at.assign(static_cast<size_t>(to.heads * to.keys), beyond);
    for (int64_t h = 0; h < to.heads; ++h) {
      std::copy_n(all.begin() + (row * to.heads + h) * reached, reached, at.begin() + h * to.keys);
    }
  }

  static void add_top(SeenAttention& to, std::span<const float> pattern, size_t keys) {
    std::vector<TopKey> row(keys);
    for (size_t at = 0; at + keys <= pattern.size(); at += keys) {
      for (size_t j = 0; j < keys; ++j) row[j] = {static_cast<int32_t>(j), pattern[at + j]};
      const auto end = row.begin() + static_cast<std::ptrdiff_t>(std::min(SeenAttention::kTop, keys));
      std::partial_sort(row.begin(), end, row.end(), [](const TopKey& a, const TopKey& b) {
        return a.weight != b.weight ? a.weight > b.weight : a.key < b.key;
      });
      for (size_t i = 0; i < SeenAttention::kTop; ++i) {
        to.top.push_back(i < keys && row[i].weight > 0 ? row[i] : TopKey{});
      }
    }
  }

  // The kept rows of this pass, relative to its first.
  KeptRows local(Place place) const {
    if (of_source(place)) return attention(place).rows;
    const int64_t begin = std::max(seen_.rows.first, first_),
                  end = std::min(seen_.rows.first + seen_.rows.count, first_ + count_);
    return {.first = begin - first_, .count = std::max<int64_t>(end - begin, 0)};
  }
  std::vector<float> kept(Place place, const Tensor& x) const {
    const KeptRows rows = local(place);
    return host_floats(x.slice(0, rows.first, rows.count));
  }
  std::vector<float> at_token(const Tensor& x) const { return host_floats(x.slice(0, seen_.token - first_, 1)); }
  template <class T>
  std::vector<T> row_of(const std::vector<T>& all, int64_t rows) const {
    const auto width = static_cast<std::ptrdiff_t>(all.size()) / static_cast<std::ptrdiff_t>(rows);
    const auto begin = all.begin() + width * (seen_.token - first_);
    return {begin, begin + width};
  }

  bool of_source(Place place) const { return has_source_ && place.stack == Stack::encoder; }
  bool token_here() const { return seen_.token >= first_ && seen_.token < first_ + count_; }
  SeenAttention& attention(Place place) const {
    const auto number = &seen_.at(place) - seen_.attentions.data();
    return seen_.attentions[static_cast<size_t>(number)];
  }
  const HeadWrites& writes(Context& cx, Place place) {
    const bool same = writes_ && writes_->place().stack == place.stack && writes_->place().layer == place.layer;
    if (!same) writes_.emplace(cx, model_, place);
    return *writes_;
  }

  const Model& model_;
  Looked& seen_;
  bool has_source_ = false;
  int64_t first_ = 0, count_ = 0;     // rows of this pass, of the main stack
  std::vector<float> pending_;        // norms of mlp.out until the layer is done
  std::optional<HeadWrites> writes_;  // of the current attention
};

void check(const ModelSpec& spec, const TokenText& text, int64_t token) {
  const bool has_source = spec.has_source();
  QKV_CHECK(!text.ids.empty() && has_source == !text.source.empty(), "a ", spec.family,
            has_source ? " reads a source" : " reads a text", " but ", text.ids.size(), " tokens and a source of ",
            text.source.size(), " were given",
            Hint(has_source ? "give the source, and what is written as the target" : "give a text that is not empty"));
  const int64_t rows = std::ssize(text.ids), most = std::max(rows, std::ssize(text.source));
  QKV_CHECK(spec.context == 0 || most <= spec.context, "the text has ", most, " tokens but this ", spec.family,
            " was made for ", spec.context, Hint("look at a part of it"));
  QKV_CHECK(token >= -1 && token < rows, "no token ", token, ": the text has tokens 0 to ", rows - 1,
            Hint("tokens are counted from 0; qkv tokenize shows them"));
}

}  // namespace

std::span<const TopKey> SeenAttention::top_of(int64_t row, int64_t head) const {
  return std::span(top).subspan(static_cast<size_t>((row - rows.first) * heads + head) * kTop, kTop);
}

float SeenAttention::weight(int64_t row, int64_t head, int64_t key) const {
  return pattern[static_cast<size_t>(((row - rows.first) * heads + head) * keys + key)];
}

const SeenAttention& Looked::at(Place place) const {
  for (const SeenAttention& a : attentions) {
    if (a.place.stack == place.stack && a.place.layer == place.layer) return a;
  }
  QKV_ASSERT(false, "no attention at layer ", place.layer);
}

double norm_of(std::span<const float> vector) {
  double sum = 0;
  for (const float x : vector) sum += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(sum);
}

Looked look_at(const Model& model, const Engine& engine, const TokenText& text, const LookOptions& options) {
  const ModelSpec& spec = model.spec();
  check(spec, text, options.token);
  const int64_t rows = std::ssize(text.ids), longest = std::max(rows, std::ssize(text.source));
  int64_t heads = 1;
  for (const Place place : all_attentions(spec)) heads = std::max(heads, attention_at(spec, place).heads);
  const int64_t most =
      std::min({options.whole, options.rows, std::max(kPatternCells / (heads * longest), kFewestRows)});
  Looked seen{.text = text,
              .token = options.token < 0 ? rows - 1 : options.token,
              .whole = longest <= most,
              .width = spec.width};
  seen.rows = rows_around(seen.token, rows, most);
  LookProbe probe(model, seen, most);
  Reader reader(model, engine, {.precision = options.precision, .rows = options.rows});
  if (options.edit != nullptr) {
    EditedReading edited(*options.edit, probe);
    reader.look({&text, 1}, edited);
  } else {
    reader.look({&text, 1}, probe);
  }
  return seen;
}

}  // namespace qkv

#include "inspect/heads/twins.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/heads/out_projection.h"
#include "model/weight_list.h"

namespace qkv {
namespace {

constexpr double kAlike = 0.1;
constexpr int64_t kFirstRow = 2;  // rows before it have too few keys to differ

// A matrix of a few rows, in double.
struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<double> values;

  Matrix(int64_t r, int64_t c) : rows(r), cols(c), values(static_cast<size_t>(r * c)) {}
  double& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * cols + c)]; }
  double at(int64_t r, int64_t c) const { return values[static_cast<size_t>(r * cols + c)]; }
};

Matrix product_with_transposed(const Matrix& a, const Matrix& b) {  // a b'
  Matrix made(a.rows, b.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.rows; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < a.cols; ++k) sum += a.at(i, k) * b.at(j, k);
      made.at(i, j) = sum;
    }
  }
  return made;
}

double dot(const Matrix& a, const Matrix& b) {
  double sum = 0;
  for (size_t i = 0; i < a.values.size(); ++i) sum += a.values[i] * b.values[i];
  return sum;
}

// What all maps of one text say, and what the heads bring there.
class MapsProbe : public ReadingProbe {
 public:
  void begin(Context&, const PassTexts&) override { maps.clear(); }
  Ask ask(Place, Site site) const override {
    return site == Site::attn_probs ? Ask::pattern : site == Site::attn_z ? Ask::read : Ask::none;
  }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    const std::vector<float> values = host_floats(x);  // [N, H, S] or [N, H, E]
    const int64_t heads = x.dim(1), width = x.dim(2);
    for (int64_t h = 0; h < heads; ++h) {
      const HeadId head{tap.place.stack, tap.place.layer, static_cast<int16_t>(h)};
      std::vector<float>& into = tap.site == Site::attn_z ? brought[head] : maps[head];
      for (int64_t r = tap.site == Site::attn_z ? 0 : kFirstRow; r < x.dim(0); ++r) {
        const auto at = values.begin() + (r * heads + h) * width;
        into.insert(into.end(), at, at + width);
      }
    }
  }

  std::map<HeadId, std::vector<float>> maps;     // of the last text: rows from kFirstRow on
  std::map<HeadId, std::vector<float>> brought;  // of all texts, [n, E]
};

// Sums JS of every pair of heads of one kind, text after text.
class Distances {
 public:
  explicit Distances(std::vector<HeadId> heads) : heads_(std::move(heads)), sums_(heads_.size() * heads_.size()) {}

  // Maps [rows, keys] of one text.
  void add(const std::map<HeadId, std::vector<float>>& maps, int64_t keys) {
    std::vector<std::vector<float>> smooth;
    std::vector<double> entropies;
    for (const HeadId& head : heads_) {
      smooth.push_back(maps.at(head));
      double entropy = 0;
      for (float& a : smooth.back()) {
        a = 0.999F * a + 0.001F / static_cast<float>(keys);
        entropy -= static_cast<double>(a * std::log2(a));
      }
      entropies.push_back(entropy);
    }
    rows_ += std::ssize(smooth.front()) / keys;
    for (size_t i = 0; i < heads_.size(); ++i) {
      for (size_t j = i + 1; j < heads_.size(); ++j) {
        // JS = H(M) - (H(A) + H(B)) / 2: one logarithm an entry
        double between = 0;
        for (size_t k = 0; k < smooth[i].size(); ++k) {
          const float m = (smooth[i][k] + smooth[j][k]) / 2;
          between -= static_cast<double>(m * std::log2(m));
        }
        sums_[i * heads_.size() + j] += std::max(between - (entropies[i] + entropies[j]) / 2, 0.0);
      }
    }
  }

  double distance(size_t i, size_t j) const {
    if (rows_ == 0 || i == j) return 0;
    return std::sqrt(sums_[std::min(i, j) * heads_.size() + std::max(i, j)] / static_cast<double>(rows_));
  }
  const std::vector<HeadId>& heads() const { return heads_; }
  int64_t rows() const { return rows_; }

  // Average linkage: the two nearest groups join while the mean distance between them is small.
  std::vector<std::vector<HeadId>> clusters() const {
    std::vector<std::vector<size_t>> groups;
    for (size_t i = 0; i < heads_.size(); ++i) groups.push_back({i});
    while (groups.size() > 1) {
      size_t first = 0, second = 0;
      double nearest = kAlike;
      for (size_t a = 0; a < groups.size(); ++a) {
        for (size_t b = a + 1; b < groups.size(); ++b) {
          double sum = 0;
          for (const size_t i : groups[a]) {
            for (const size_t j : groups[b]) sum += distance(i, j);
          }
          const double mean = sum / static_cast<double>(groups[a].size() * groups[b].size());
          if (mean >= nearest) continue;
          nearest = mean;
          first = a;
          second = b;
        }
      }
      if (second == 0) break;
      groups[first].insert(groups[first].end(), groups[second].begin(), groups[second].end());
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(second));
    }
    std::vector<std::vector<HeadId>> named;
    for (const std::vector<size_t>& group : groups) {
      if (group.size() < 2) continue;
      named.emplace_back();
      for (const size_t i : group) named.back().push_back(heads_[i]);
      std::sort(named.back().begin(), named.back().end());
    }
    return named;
  }

 private:
  std::vector<HeadId> heads_;
  std::vector<double> sums_;
  int64_t rows_ = 0;
};

// The weights of heads, as small matrices.
class HeadWeights {
 public:
  explicit HeadWeights(const Model& model) : model_(model) {}

  // W_O^h transposed, [E, C].
  Matrix out(const HeadId& head) {
    const OutProjection out(model_.spec(), head.place());
    const std::vector<float>& all = numbers(out.weight());
    Matrix made(out.value_width(), model_.spec().width);
    for (int64_t c = 0; c < made.cols; ++c) {
      const std::span<const float> row = out.of_head(all, c, head.head);
      for (int64_t e = 0; e < made.rows; ++e) made.at(e, c) = static_cast<double>(row[static_cast<size_t>(e)]);
    }
    return made;
  }
  // Rows [E, C] of one head of W_Q, W_K or W_V.
  std::optional<Matrix> rows(const HeadId& head, const std::string& which) {
    const AttentionSpec& a = attention_at(model_.spec(), head.place());
    if (a.latent) return std::nullopt;
    const int64_t unit = which == ".v" ? a.value_width : a.width;
    const int64_t at = which == ".q" ? head.head : kv_head_of(a, head.head);
    const std::vector<float>& all = numbers(name(head) + which);
    Matrix made(unit, model_.spec().width);
    for (size_t i = 0; i < made.values.size(); ++i) {
      made.values[i] = static_cast<double>(all[static_cast<size_t>(at) * made.values.size() + i]);
    }
    return made;
  }

 private:
  std::string name(const HeadId& head) const { return attention_prefix(model_.spec(), head.place()); }
  const std::vector<float>& numbers(const std::string& weight) {
    const auto [at, fresh] = read_.try_emplace(weight);
    if (fresh) at->second = host_floats(model_.weights().at(weight).master());
    return at->second;
  }

  const Model& model_;
  std::map<std::string, std::vector<float>> read_;
};

Matrix centred(const std::vector<float>& z, int64_t width) {  // transposed: [E, n]
  const int64_t n = std::ssize(z) / width;
  Matrix made(width, n);
  for (int64_t e = 0; e < width; ++e) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += made.at(e, i) = static_cast<double>(z[static_cast<size_t>(i * width + e)]);
    for (int64_t i = 0; i < n; ++i) made.at(e, i) -= sum / static_cast<double>(n);
  }
  return made;
}

// |Y'X|^2 = tr(S G_y S' G_x) with S = z_x' z_y and G = W_O W_O' of each head: nothing larger than [E, E] is made.
double squared(const Matrix& s, const Matrix& gx, const Matrix& gy) {
  return dot(product_with_transposed(gx, product_with_transposed(gy, s)), s);
}

double cka(const std::map<HeadId, std::vector<float>>& brought, HeadWeights& weights, const HeadId& a,
           const HeadId& b) {
  const Matrix oa = weights.out(a), ob = weights.out(b);
  const Matrix ga = product_with_transposed(oa, oa), gb = product_with_transposed(ob, ob);
  const Matrix za = centred(brought.at(a), oa.rows), zb = centred(brought.at(b), ob.rows);
  const double across = squared(product_with_transposed(za, zb), ga, gb);
  const double within =
      squared(product_with_transposed(za, za), ga, ga) * squared(product_with_transposed(zb, zb), gb, gb);
  return within > 0 ? across / std::sqrt(within) : 0;
}

// cos of P1' R1 and P2' R2, from products no larger than [E, E].
std::optional<double> cosine(const std::optional<Matrix>& p1, const std::optional<Matrix>& r1,
                             const std::optional<Matrix>& p2, const std::optional<Matrix>& r2) {
  if (!p1 || !r1 || !p2 || !r2) return std::nullopt;
  const auto inner = [](const Matrix& pa, const Matrix& ra, const Matrix& pb, const Matrix& rb) {
    return dot(product_with_transposed(pa, pb), product_with_transposed(ra, rb));
  };
  const double norms = inner(*p1, *r1, *p1, *r1) * inner(*p2, *r2, *p2, *r2);
  return norms > 0 ? inner(*p1, *r1, *p2, *r2) / std::sqrt(norms) : 0;
}

// Losses with some heads cut, each list of heads read once.
class CutLosses {
 public:
  CutLosses(Reader& reader, std::span<const TokenText> texts, Ablation ablation)
      : reader_(reader),
        texts_(texts),
        ablation_(ablation),
        outputs_(ablation == Ablation::zero ? nullptr : measure_outputs(reader, texts, ablation)) {}

  const std::vector<TextSum>& without(const std::vector<HeadId>& heads) {
    const auto [at, fresh] = read_.try_emplace(heads);
    if (fresh) {
      CutProbe probe(reader_.model().spec(), {.heads = heads, .ablation = ablation_}, outputs_);
      at->second = loss_sums(reader_, texts_, &probe);
    }
    return at->second;
  }
  Estimate synergy(const HeadId& a, const HeadId& b) {
    std::vector<TextSum> sums = without({a, b});
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i].sum += without({})[i].sum - without({a})[i].sum - without({b})[i].sum;
    }
    return estimate(sums);
  }

 private:
  Reader& reader_;
  std::span<const TokenText> texts_;
  Ablation ablation_;
  std::shared_ptr<const HeadOutputs> outputs_;
  std::map<std::vector<HeadId>, std::vector<TextSum>> read_;
};

}  // namespace

Twins find_twins(Reader& reader, std::span<const TokenText> texts, const TwinOptions& options) {
  const ModelSpec& spec = reader.model().spec();
  std::vector<Distances> kinds;
  for (const Stack stack : {Stack::encoder, Stack::decoder, Stack::cross}) {
    std::vector<HeadId> heads = all_heads(spec);
    std::erase_if(heads, [&](const HeadId& h) { return h.stack != stack; });
    if (heads.size() > 1) kinds.emplace_back(std::move(heads));
  }
  QKV_CHECK(!kinds.empty(), "a ", spec.family, " of one head has no two that could be alike",
            Hint("nothing to compare"));

  MapsProbe probe;
  int64_t rows = 0;
  for (const TokenText& text : texts) {
    TokenText shown = text;
    const auto fit = [&](std::vector<int32_t>& ids) {
      ids.resize(std::min(ids.size(), static_cast<size_t>(options.map_length)));
    };
    fit(shown.ids);
    fit(shown.source);
    shown.targets.clear();
    if (std::ssize(shown.ids) <= kFirstRow || (!shown.source.empty() && std::ssize(shown.source) <= kFirstRow))
      continue;
    if (rows > 0 && rows + std::ssize(shown.ids) > options.map_rows) break;
    rows += std::ssize(shown.ids);
    reader.look({&shown, 1}, probe);
    for (Distances& kind : kinds) {
      const Stack stack = kind.heads().front().stack;
      kind.add(probe.maps, std::ssize(stack == Stack::decoder || shown.source.empty() ? shown.ids : shown.source));
    }
  }
  QKV_CHECK(rows > 0, "no text has more than ", kFirstRow, " tokens: maps of fewer are all alike",
            Hint("give longer texts"));

  Twins found{.rows = kinds.front().rows()};
  std::vector<TwinPair> all;
  for (const Distances& kind : kinds) {
    const std::vector<HeadId>& heads = kind.heads();
    for (size_t i = 0; i < heads.size(); ++i) {
      for (size_t j = i + 1; j < heads.size(); ++j) {
        all.push_back({.a = heads[i], .b = heads[j], .distance = kind.distance(i, j), .rows = kind.rows()});
      }
    }
    for (std::vector<HeadId>& group : kind.clusters()) found.clusters.push_back(std::move(group));
  }
  found.compared = std::ssize(all);
  found.alike = std::count_if(all.begin(), all.end(), [](const TwinPair& p) { return p.distance < kAlike; });
  std::stable_sort(all.begin(), all.end(),
                   [](const TwinPair& a, const TwinPair& b) { return a.distance < b.distance; });
  CutLosses losses(reader, texts, options.ablation);
  HeadWeights weights(reader.model());
  for (TwinPair& pair : all) {
    if (std::ssize(found.closest) == options.pairs) break;
    pair.cka = cka(probe.brought, weights, pair.a, pair.b);
    pair.qk_cosine = cosine(weights.rows(pair.a, ".q"), weights.rows(pair.a, ".k"), weights.rows(pair.b, ".q"),
                            weights.rows(pair.b, ".k"));
    pair.ov_cosine =
        cosine(weights.out(pair.a), weights.rows(pair.a, ".v"), weights.out(pair.b), weights.rows(pair.b, ".v"));
    pair.synergy = losses.synergy(pair.a, pair.b);
    found.closest.push_back(pair);
    if (options.finished && !options.finished(found.closest.size())) break;
  }
  return found;
}

}  // namespace qkv

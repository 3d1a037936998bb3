#include "inspect/look/token_numbers.h"

#include <cmath>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/texts/edited_reading.h"

namespace qkv {
namespace {

class NumbersProbe : public ReadingProbe {
 public:
  NumbersProbe(const ModelSpec& spec, TokenNumbers& to)
      : to_(to), attention_(attention_at(spec, to.head.place())), last_(last_layer(spec) == to.head.layer) {}

  void begin(Context&, const PassTexts& pass) override {
    first_ = pass.rows.front().position;
    here_ = to_.token >= first_ && to_.token < first_ + std::ssize(pass.rows);
  }

  Ask ask(Place place, Site site) const override {
    const bool mine = place.stack == to_.head.stack && place.layer == to_.head.layer;
    switch (site) {
      case Site::attn_k:
      case Site::attn_v:
        return mine && first_ <= to_.token ? Ask::read : Ask::none;
      case Site::attn_scores:
      case Site::attn_probs:
        return mine && here_ ? Ask::rows : Ask::none;
      case Site::embed:
        return here_ && to_.head.layer == 0 && place.stack == to_.head.stack ? Ask::read : Ask::none;
      case Site::final:
      case Site::logits:
        return here_ && last_ && place.stack == to_.head.stack ? Ask::read : Ask::none;
      case Site::attn_lse:
        return Ask::none;
      default:
        return mine && here_ ? Ask::read : Ask::none;
    }
  }

  std::vector<int32_t> rows_wanted(Place) const override { return {static_cast<int32_t>(to_.token - first_)}; }

  void visit(Context&, const Tap& tap, Tensor& x) override {
    switch (tap.site) {
      case Site::attn_k:
        return keep_keys(x, to_.all_k, to_.k);
      case Site::attn_v:
        return keep_keys(x, to_.all_v, to_.v);
      case Site::attn_scores:
        to_.scores = of_head(host_floats(x), to_.head.head, x.dim(2));
        return;
      case Site::attn_probs:
        to_.probs = of_head(host_floats(x), to_.head.head, x.dim(2));
        to_.keys = x.dim(2);
        return;
      case Site::route_ids:
        to_.route_ids = host_ints(x.slice(0, to_.token - first_, 1));
        return;
      default:
        break;
    }
    std::vector<float> row = host_floats(x.slice(0, to_.token - first_, 1));
    switch (tap.site) {
      case Site::embed:
        to_.embedded = row;
        return;
      case Site::resid_pre:
        to_.pre = row;
        return;
      case Site::resid_mid:
        to_.mid = row;
        return;
      case Site::resid_post:
        to_.post = row;
        return;
      case Site::attn_q:
        to_.q = of_head(row, to_.head.head, x.dim(2));
        return;
      case Site::attn_z:
        to_.z = of_head(row, to_.head.head, x.dim(2));
        to_.concat = row;
        return;
      case Site::attn_out:
        to_.out = row;
        return;
      case Site::mlp_pre:
        to_.mlp_pre = row;
        return;
      case Site::mlp_post:
        to_.mlp_post = row;
        return;
      case Site::mlp_out:
        to_.mlp_out = row;
        return;
      case Site::route_logits:
        to_.route_logits = row;
        return;
      case Site::route_weights:
        to_.route_weights = row;
        return;
      case Site::final:
        to_.final = row;
        return;
      case Site::logits:
        to_.logits = row;
        return;
      default:
        QKV_ASSERT(false, "nobody asked for ", name_of(tap.site));
    }
  }

 private:
  static int64_t last_layer(const ModelSpec& spec) { return std::ssize(spec.main_stack().layers) - 1; }

  static std::vector<float> of_head(std::span<const float> all, int64_t head, int64_t width) {
    const auto part = all.subspan(static_cast<size_t>(head * width), static_cast<size_t>(width));
    return {part.begin(), part.end()};
  }

  // One key/value head's rows of this pass; the token's own among them.
  void keep_keys(const Tensor& x, std::vector<float>& all, std::vector<float>& own) const {
    const std::vector<float> values = host_floats(x);
    const int64_t rows = x.dim(0), groups = x.dim(1), width = x.dim(2);
    const int64_t group = kv_head_of(attention_, to_.head.head);
    for (int64_t r = 0; r < rows; ++r) {
      const auto part =
          std::span(values).subspan(static_cast<size_t>((r * groups + group) * width), static_cast<size_t>(width));
      all.insert(all.end(), part.begin(), part.end());
      if (first_ + r == to_.token) own.assign(part.begin(), part.end());
    }
  }

  TokenNumbers& to_;
  const AttentionSpec& attention_;
  bool last_, here_ = false;
  int64_t first_ = 0;
};

}  // namespace

TokenNumbers token_numbers(const Model& model, const Engine& engine, const TokenText& text, int64_t token, HeadId head,
                           const TokenNumbersOptions& options) {
  const ModelSpec& spec = model.spec();
  QKV_CHECK(head.stack == spec.main(), name_of(spec, head), " is not a head of the main stack",
            Hint("the story of a token is that of the stack that writes: L0H0"));
  QKV_CHECK(token >= 0 && token < std::ssize(text.ids), "no token ", token, ": the text has tokens 0 to ",
            std::ssize(text.ids) - 1, Hint("tokens are counted from 0"));
  TokenNumbers numbers{.head = head, .token = token, .id = text.ids[static_cast<size_t>(token)]};
  NumbersProbe probe(spec, numbers);
  Reader reader(model, engine, {.precision = options.precision});
  if (options.edit != nullptr) {
    EditedReading edited(*options.edit, probe);
    reader.look({&text, 1}, edited);
  } else {
    reader.look({&text, 1}, probe);
  }
  return numbers;
}

}  // namespace qkv

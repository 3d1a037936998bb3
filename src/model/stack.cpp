#include "model/stack.h"

#include "base/between_layers.h"
#include "core/host_values.h"
#include "core/recompute.h"
#include "model/weight_list.h"

namespace qkv {

ModelStack::ModelStack(const ModelSpec& spec, Stack which, const Weights& weights, Ropes& ropes)
    : spec_(which == Stack::encoder ? spec.encoder : spec.decoder), which_(which) {
  const std::string prefix = stack_prefix(spec, which);
  tokens_ = weights.find(prefix + "embed");
  if (tokens_ == nullptr) tokens_ = weights.find("embed");  // shared by both stacks
  QKV_ASSERT(tokens_ != nullptr || spec.vocabulary == 0, "the ", name_of(spec.kind), " model has no embedding");
  positions_ = weights.find(prefix + "positions");
  types_ = weights.find(prefix + "types");
  if (spec_.positions.kind == PositionSpec::Kind::sinusoidal) {
    sinusoids_.emplace(spec.width, spec_.positions.order, spec_.positions.offset);
  }
  if (spec_.embedding_norm) embedding_norm_.emplace(spec.norm, weights, prefix + "norm_embed");
  if (spec_.final_norm) final_norm_.emplace(spec.norm, weights, prefix + "norm_final");
  for (size_t i = 0; i < spec_.layers.size(); ++i) {
    const Place place{which, static_cast<int16_t>(i)};
    const Attention::Names names{prefix + "layers." + std::to_string(i) + ".", prefix + "relative"};
    layers_.push_back(Layer::make(spec_.layers[i], place, weights, names, ropes));
  }
}

std::vector<size_t> ModelStack::padding_rows(const Context& cx, const Tensor& ids) const {
  std::vector<size_t> found;
  if (!spec_.positions.padding || cx.arena.planning()) return found;
  const std::vector<int32_t> all = host_ints(ids);
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r] == *spec_.positions.padding) found.push_back(r);
  }
  return found;
}

// The row of the position table for each row.
Tensor ModelStack::position_ids(Context& cx, const Tensor& ids, const Rows& rows) const {
  if (spec_.positions.offset == 0 && !spec_.positions.padding) return rows.positions;
  std::vector<int32_t> at(static_cast<size_t>(rows.rows), static_cast<int32_t>(spec_.positions.offset));
  for (const Segment& s : rows.list) {
    for (int32_t r = 0; r < s.rows; ++r) at[static_cast<size_t>(s.first_row + r)] += s.position + r;
  }
  for (const size_t r : padding_rows(cx, ids)) at[r] = static_cast<int32_t>(spec_.positions.offset) - 1;
  return cx.upload(at);
}

Tensor ModelStack::embed(Context& cx, const Tensor& ids, const Rows& rows) const {
  const ops::Lookup token{.ids = ids, .table = tokens_, .factor = spec_.embedding_factor};
  Tensor x;
  if (positions_ != nullptr) {
    const int64_t have = positions_->shape()[0] - spec_.positions.offset, need = positions_used(rows);
    QKV_CHECK(need <= have, "a sequence of ", need, " tokens is too long: this model has ", have, " positions",
              Hint("shorten the text, or use a model with a longer context"));
    const ops::Lookup position{.ids = position_ids(cx, ids, rows), .table = positions_};
    if (types_ != nullptr) {  // all tokens have type 0: one text, not a pair
      const std::vector<int32_t> first(static_cast<size_t>(rows.rows), 0);
      x = ops::embedding(cx, {token, {.ids = cx.upload(first), .table = types_}, position});
    } else {
      x = ops::embedding(cx, {token, position});
    }
  } else if (sinusoids_) {
    x = ops::embedding(cx, {token, sinusoids_->lookup(cx, rows, padding_rows(cx, ids))});
  } else {
    x = ops::embedding(cx, {token});
  }
  if (embedding_norm_) x = embedding_norm_->forward(cx, x, cx.precision.exact);
  const Place place{which_, 0};
  x = ops::dropout(cx, x, {.p = spec_.embedding_dropout, .place = place, .site = Site::embed});
  cx.tap(place, Site::embed, x, &rows);
  return x;
}

Tensor ModelStack::run_layers(Context& cx, Tensor x, const Pass& pass) const {
  if (cx.tape != nullptr) {
    for (const auto& layer : layers_) {
      if (cx.recompute_layers && pass.memory == nullptr) {  // the encoder's output needs a gradient too
        x = recompute(cx, x, [&layer, rows = pass.rows](Context& in, const Tensor& kept) {
          Tensor h = kept;
          if (in.tape == nullptr) {  // a layer may overwrite its input
            h = in.constant(kept.shape(), kept.dtype());
            in.kernels.copy(in.exec, {.y = h, .x = kept});
          }
          return layer->forward(in, h, {.rows = rows});
        });
      } else {
        x = layer->forward(cx, x, pass);
      }
    }
    return x;
  }
  // Without a tape only the stream survives a layer; the rest of its memory is reused.
  const Tensor stream = cx.constant(x.shape(), x.dtype());
  const auto keep = [&](const Tensor& left) {
    if (left.data() != stream.data()) cx.kernels.copy(cx.exec, {.y = stream, .x = left});
  };
  keep(x);  // the caller's x is not overwritten
  const Arena::Mark done = cx.arena.mark();
  for (const auto& layer : layers_) {
    if (!cx.arena.planning()) call_between_layers();
    keep(layer->forward(cx, stream, pass));
    cx.arena.rewind(done);
  }
  return stream;
}

Tensor ModelStack::forward(Context& cx, const Tensor& ids, const Pass& pass) const {
  return forward_vectors(cx, embed(cx, ids, pass.rows), pass);
}

Tensor ModelStack::forward_vectors(Context& cx, const Tensor& vectors, const Pass& pass) const {
  Tensor x = final_norm(cx, run_layers(cx, vectors, pass));
  cx.tap({which_, 0}, Site::final, x, &pass.rows);
  return x;
}

Tensor ModelStack::final_norm(Context& cx, const Tensor& stream) const {
  return final_norm_ ? final_norm_->forward(cx, stream) : stream;
}

void ModelStack::cache_source(Context& cx, const Tensor& states, const KvPages& pages) const {
  const Arena::Mark done = cx.arena.mark();
  for (const auto& layer : layers_) {
    layer->cache_source(cx, states, pages);
    cx.arena.rewind(done);
  }
}

Head::Head(const ModelSpec& spec, const Weights& weights)
    : spec_(spec.head), place_{spec.main(), 0}, bias_(weights.find("head.bias")) {
  if (!spec_.tied) {
    weight_ = &weights.at("head");
  } else {
    weight_ = weights.find("embed");
    if (weight_ == nullptr) weight_ = &weights.at("dec.embed");
  }
  if (spec_.transform) {
    dense_.emplace(weights, "head.dense");
    norm_.emplace(spec.norm, weights, "head.norm");
  }
}

Tensor Head::before_logits(Context& cx, const Tensor& states) const {
  Tensor h = states;
  if (dense_) h = norm_->forward(cx, ops::activation(cx, dense_->forward(cx, h), spec_.act));
  if (spec_.factor != 1) h = ops::scale(cx, h, spec_.factor);
  return as_operand(cx, h);
}

Tensor Head::read_out(Context& cx, const Tensor& states) const {
  const Tensor logits =
      ops::linear(cx, before_logits(cx, states), *weight_, {.bias = bias_, .out = cx.precision.exact});
  if (spec_.softcap <= 0) return logits;
  return ops::activation(cx, logits, ops::act::softcap(static_cast<float>(spec_.softcap)));
}

Tensor Head::forward(Context& cx, const Tensor& states) const {
  Tensor logits = read_out(cx, states);
  cx.tap(place_, Site::logits, logits);
  return logits;
}

}  // namespace qkv

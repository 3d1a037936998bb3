// Importance of heads: by gradient (Michel et al. 2019), by ablating each alone, and a random order as the control.
//
//   I_h = E_x | sum_i z_i . dL(x)/dz_i |, absolute value per text, divided by the l2 norm over the layer's heads
#pragma once

#include "inspect/cut/ablation.h"

namespace qkv {

struct HeadImportance {
  HeadId head;
  Estimate raw;           // gradient: I_h; ablation: change of the loss
  double importance = 0;  // sort key: I_h over its layer's l2 norm, or the change of the loss
};

// One entry per head of all_heads(). `cut`: what is already cut; those heads have importance 0.
std::vector<HeadImportance> gradient_importance(Reader& reader, std::span<const TokenText> texts,
                                                CutProbe* cut = nullptr, const Reader::Finished& finished = {});

// By ablating each head alone: one pass over the texts per head. `finished` is told how many heads are done.
std::vector<HeadImportance> ablation_importance(Reader& reader, std::span<const TokenText> texts, Ablation ablation,
                                                std::shared_ptr<const HeadOutputs> outputs,
                                                const Reader::Finished& finished = {});

enum class Order : uint8_t { gradient, ablation, random };
const char* name_of(Order order);

// Heads in the order they are cut, least important first. The last head of every attention is never cut and not listed.
std::vector<HeadId> cut_order(std::span<const HeadImportance> heads);
std::vector<HeadId> random_order(const ModelSpec& spec, uint64_t seed);

struct CurvePoint {
  int64_t heads = 0;  // cut so far
  double kept = 1;    // share of all heads
  Estimate delta;     // change of the loss against the whole model
};
struct PruningCurve {
  Order order = Order::random;
  std::vector<HeadId> cut;         // in the order they were cut
  std::vector<CurvePoint> points;  // every 10 %, starting with the whole model
};

struct CurveOptions {
  Ablation ablation = Ablation::mean;
  std::shared_ptr<const HeadOutputs> outputs;
  std::vector<HeadId> known = {};  // a given order; not for Order::gradient, which is measured again at every point
  double lowest = 0;               // share of heads kept at the end; at least one head per attention stays
  uint64_t seed = 0;               // for the random order
  Reader::Finished finished = {};  // told how many points are done
};
// Gradient importance is measured again at every point, on the model pruned so far.
PruningCurve pruning_curve(Reader& reader, std::span<const TokenText> texts, Order order, const CurveOptions& options);

}  // namespace qkv

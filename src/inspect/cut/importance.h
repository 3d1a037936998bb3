// Which heads matter: by gradient (Michel et al. 2019), by cutting each alone, and in random order as the control.
//
//   I_h = E_x | sum_i z_i . dL(x)/dz_i |, the absolute value text by text, normalised by the l2 norm over the layer
#pragma once

#include "inspect/cut/ablation.h"

namespace qkv {

struct HeadImportance {
  HeadId head;
  Estimate raw;           // by gradient: I_h; by cutting: delta loss
  double importance = 0;  // what orders heads: I_h over its layer's l2 norm, or delta loss
};

// One for each of all_heads(), in their order. `cut`: what is already cut; its heads have importance 0.
std::vector<HeadImportance> gradient_importance(Reader& reader, std::span<const TokenText> texts,
                                                CutProbe* cut = nullptr, const Reader::Finished& finished = {});

// The same by cutting each head alone: one pass over the texts a head. `finished` is told how many heads are done.
std::vector<HeadImportance> ablation_importance(Reader& reader, std::span<const TokenText> texts, Ablation ablation,
                                                std::shared_ptr<const HeadOutputs> outputs,
                                                const Reader::Finished& finished = {});

enum class Order : uint8_t { gradient, ablation, random };
const char* name_of(Order order);

// The heads to cut first, least important first. One head of every attention is always left: it comes in no order.
std::vector<HeadId> cut_order(std::span<const HeadImportance> heads);
std::vector<HeadId> random_order(const ModelSpec& spec, uint64_t seed);

struct CurvePoint {
  int64_t heads = 0;  // cut so far
  double kept = 1;    // share of all heads
  Estimate delta;     // loss against the whole model
};
struct PruningCurve {
  Order order = Order::random;
  std::vector<HeadId> cut;         // in the order they went
  std::vector<CurvePoint> points;  // every 10 %, from the whole model on
};

struct CurveOptions {
  Ablation ablation = Ablation::mean;
  std::shared_ptr<const HeadOutputs> outputs;
  std::vector<HeadId> known = {};  // the order, if somebody has it: not by gradient, which changes on the way
  double lowest = 0;               // share of heads kept at the end; no less than one head of every attention is left
  uint64_t seed = 0;               // of the random order
  Reader::Finished finished = {};  // told how many points are done
};
// Gradient importance is measured again at every point, on the model as it is cut by then.
PruningCurve pruning_curve(Reader& reader, std::span<const TokenText> texts, Order order, const CurveOptions& options);

}  // namespace qkv

// Expert routing, layer by layer: load, balance and specialisation.
//
//   f_e      share of tokens routed to expert e; sums to k
//   P_e      mean probability the router gives it
//   balance  E sum_e f_e P_e; equals k if all experts are used equally
//   entropy  of the router's distribution, per token, divided by ln E
//   specialisation  MI(expert; token class) in bits, compared with shuffled classes
#pragma once

#include "inspect/report/estimate.h"
#include "inspect/texts/reading.h"

namespace qkv {

struct ExpertUse {
  Estimate load;                      // f_e
  double probability = 0;             // P_e
  std::vector<double> together = {};  // share of this expert's tokens also routed to each other expert; 0 for itself
  std::vector<int64_t> classes = {};  // number of its tokens in each class
};

struct LayerRouting {
  int layer = 0;
  int64_t experts = 0, visited = 0;  // E, k
  int64_t tokens = 0;
  std::vector<ExpertUse> of_expert;
  double balance = 0;
  Estimate entropy;      // in [0, 1]
  Estimate information;  // MI(expert; class), bits; n counts (token, expert) pairs
  double by_chance = 0;  // the same with shuffled classes
};

struct RoutingOptions {
  std::vector<int32_t> class_of;  // class of every token id, less than `classes`
  int32_t classes = 1;
  Reader::Finished finished = {};
};
void check_experts(const ModelSpec& spec);  // an Error if no layer of the main stack has any
// For the main stack's layers that have experts.
std::vector<LayerRouting> measure_routing(Reader& reader, std::span<const TokenText> texts,
                                          const RoutingOptions& options);

}  // namespace qkv

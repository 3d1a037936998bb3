// Which tokens experts get, layer by layer.
//
//   f_e  share of tokens that visit expert e (they sum to k)      P_e  mean probability the router gives it
//   balance = E sum_e f_e P_e: k if all are used alike            entropy of P over ln E, token by token
//   specialisation = MI(expert; class of the token) in bits, beside what shuffled classes give
#pragma once

#include "inspect/report/estimate.h"
#include "inspect/texts/reading.h"

namespace qkv {

struct ExpertUse {
  Estimate load;                      // f_e
  double probability = 0;             // P_e
  std::vector<double> together = {};  // share of this expert's tokens that visit each other expert too; 0 for itself
  std::vector<int64_t> classes = {};  // its tokens of each class
};

struct LayerRouting {
  int layer = 0;
  int64_t experts = 0, visited = 0;  // E, k
  int64_t tokens = 0;
  std::vector<ExpertUse> of_expert;
  double balance = 0;
  Estimate entropy;      // in [0, 1]
  Estimate information;  // MI(expert; class), bits; n counts visits
  double by_chance = 0;  // the same with classes shuffled over tokens
};

struct RoutingOptions {
  std::vector<int32_t> class_of;  // class of every token id, below `classes`
  int32_t classes = 1;
  Reader::Finished finished = {};
};
void check_experts(const ModelSpec& spec);  // an Error if no layer of the main stack has any
// Of the main stack's layers that have experts.
std::vector<LayerRouting> measure_routing(Reader& reader, std::span<const TokenText> texts,
                                          const RoutingOptions& options);

}  // namespace qkv

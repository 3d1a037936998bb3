// Duplicate heads: similar attention maps, correlated outputs, similar weights, and an ablation that costs more for
// both together than for each alone.
//
//   d    = sqrt(mean_i JS_i),  JS_i = (KL(A1_i || M) + KL(A2_i || M)) / 2 in bits,  M = (A1 + A2) / 2,
//          with maps smoothed as 0.999 A + 0.001 / T
//   CKA  = |Y'X|^2 / (|X'X| |Y'Y|),  X and Y the centred outputs of the two heads
//   syn  = dL_12 - dL_1 - dL_2,  above 0: each backs the other up
//
// Duplicates have d < 0.1, CKA > 0.9 and syn > 0.
#pragma once

#include <optional>

#include "inspect/cut/ablation.h"

namespace qkv {

struct TwinPair {
  HeadId a, b;
  double distance = 0;  // d, in [0, 1]
  int64_t rows = 0;     // of the maps compared
  double cka = 0;
  std::optional<double> qk_cosine, ov_cosine;  // of W_QK and W_OV; absent for latent attention
  Estimate synergy;                            // nats per token

  bool duplicate() const { return distance < 0.1 && cka > 0.9 && synergy.mean > 0; }
};

struct Twins {
  int64_t compared = 0;                       // pairs of heads
  int64_t alike = 0;                          // pairs with d < 0.1
  int64_t rows = 0;                           // of every map
  std::vector<TwinPair> closest;              // closest first, at most TwinOptions::pairs
  std::vector<std::vector<HeadId>> clusters;  // of two or more heads with a mean distance below 0.1
};

struct TwinOptions {
  int64_t pairs = 10;       // closest pairs, measured beyond their maps
  int64_t map_rows = 2000;  // most rows of maps compared, in whole texts
  int64_t map_length = 64;  // tokens per text whose map is compared
  Ablation ablation = Ablation::mean;
  Reader::Finished finished = {};  // told how many of the pairs are done
};
// Heads are compared with those of the same kind: encoder, decoder, cross.
Twins find_twins(Reader& reader, std::span<const TokenText> texts, const TwinOptions& options);

}  // namespace qkv

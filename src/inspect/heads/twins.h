// Heads that do the same: maps that look alike, outputs that move together, weights that point the same way, and a
// model that misses the second only once the first is gone.
//
//   JS_i = (KL(A1_i || M) + KL(A2_i || M)) / 2 in bits, M their mean, maps smoothed 0.999 A + 0.001 / T;  d =
//   sqrt(mean) CKA  = |Y'X|^2 / (|X'X| |Y'Y|), X and Y what the two heads write, centred syn  = dL_12 - dL_1 - dL_2:
//   above 0 each backs the other up
// Duplicates: d < 0.1, CKA > 0.9 and syn > 0.
#pragma once

#include <optional>

#include "inspect/cut/ablation.h"

namespace qkv {

struct TwinPair {
  HeadId a, b;
  double distance = 0;  // d, in [0, 1]
  int64_t rows = 0;     // that were compared
  double cka = 0;
  std::optional<double> qk_cosine, ov_cosine;  // of W_QK and W_OV; latent attention has no such matrices
  Estimate synergy;                            // nats a token

  bool duplicate() const { return distance < 0.1 && cka > 0.9 && synergy.mean > 0; }
};

struct Twins {
  int64_t compared = 0;                       // pairs of heads
  int64_t alike = 0;                          // of them with d < 0.1
  int64_t rows = 0;                           // of every map
  std::vector<TwinPair> closest;              // closest first, as many as were asked for
  std::vector<std::vector<HeadId>> clusters;  // of two heads and more whose mean distance is below 0.1
};

struct TwinOptions {
  int64_t pairs = 10;       // the closest, which are looked at beyond their maps
  int64_t map_rows = 2000;  // of maps, at most: whole texts, so long as they fit
  int64_t map_length = 64;  // tokens of a text whose map is compared
  Ablation ablation = Ablation::mean;
  Reader::Finished finished = {};  // told how many of the pairs are done
};
// Heads are compared with those of the same kind: encoder, decoder, cross.
Twins find_twins(Reader& reader, std::span<const TokenText> texts, const TwinOptions& options);

}  // namespace qkv

// One pass over one text with its internals: attention patterns, q, k, v and z of each head, and the residual stream
// after every layer.
//
// All rows of a text of up to LookOptions::whole tokens are kept; of a longer text that many rows around the token of
// interest, so that only the keys grow with its length.
#pragma once

#include <span>
#include <vector>

#include "inspect/heads/head_id.h"
#include "inspect/texts/reading.h"

namespace qkv {

struct LookOptions {
  Precision precision = Precision::f32();
  int64_t token = -1;            // kept in full detail; -1: the last one
  int64_t whole = 512;           // most rows to keep
  int64_t rows = 1024;           // of a pass; a decoder reads longer texts in chunks
  ReadingProbe* edit = nullptr;  // its edits come first, as a CutProbe's: what is seen is the edited pass
};

struct TopKey {
  int32_t key = -1;
  float weight = 0;
};

// Rows [first, first + count) of a text.
struct KeptRows {
  int64_t first = 0, count = 0;
  bool has(int64_t row) const { return row >= first && row < first + count; }
};

// One attention. Numbers of kept rows are [R, H] or [R, H, ..], R rows from rows.first.
struct SeenAttention {
  static constexpr size_t kTop = 8;
  static constexpr int64_t kFirstCounted = 2;

  Place place;
  KeptRows rows;                       // of the queries
  int64_t queries = 0, keys = 0;       // of the text
  int64_t heads = 0, kv_heads = 0;     // H, G
  int64_t width = 0, value_width = 0;  // D, E
  std::vector<float> k;                // [keys, G, D]
  std::vector<float> q, v, z, lse;     // [R, H, D], [keys, G, E], [R, H, E], [R, H]; of texts kept whole
  std::vector<float> pattern;          // [R, H, keys], of texts kept whole
  std::vector<TopKey> top;             // [R, H, kTop], heaviest first; key -1: no more
  std::vector<double> entropy;         // [H]: mean over all rows, in nats
  // [H]: means over the rows from kFirstCounted on, which have keys to choose from; empty where there are none.
  std::vector<double> first, previous, distance, highest;
  std::vector<float> z_norm, out_norm;  // [R, H]: |z_i|, |z_i W_O^h|
  std::vector<float> value_norm;        // [keys, H]: |v_j W_O^h|
  std::vector<float> out_norms;         // [R]: norm of attn.out

  // Of the token of interest; empty in the encoder of an encoder-decoder.
  std::vector<float> q_at, z_at, out_at;   // [H, D], [H, E], [C]
  std::vector<float> scores_at, probs_at;  // [H, keys]: before and after the softmax

  std::span<const TopKey> top_of(int64_t row, int64_t head) const;
  float weight(int64_t row, int64_t head, int64_t key) const;  // attention weight; of texts kept whole
};

// One layer of the main stack: norms of the kept rows, and vectors of the token of interest.
struct SeenLayer {
  std::vector<float> mid_norms, mlp_norms, post_norms;  // [R]: resid.mid, mlp.out, resid.post
  std::vector<float> pre_at, mid_at, mlp_at, post_at;   // [C]
  std::vector<float> inner_at;                          // [F]: mlp.post; empty in layers of experts
  std::vector<int32_t> experts_at;                      // its experts and their weights
  std::vector<float> expert_weights_at;
  std::vector<int32_t> experts;       // [R, k]: of the kept rows
  std::vector<float> expert_weights;  // [R, k]
};

struct Looked {
  TokenText text;
  int64_t token = 0;
  bool whole = true;                        // every row of both stacks is kept
  KeptRows rows;                            // of the main stack
  int64_t width = 0;                        // C
  std::vector<std::vector<float>> streams;  // [R, C]: the embedding, then resid.post of each layer
  std::vector<SeenLayer> layers;
  std::vector<SeenAttention> attentions;  // as all_attentions() lists them

  const SeenAttention& at(Place place) const;
};

// An Error if the text is empty or longer than the model's context, or the token does not exist.
Looked look_at(const Model& model, const Engine& engine, const TokenText& text, const LookOptions& options = {});

double norm_of(std::span<const float> vector);

}  // namespace qkv

// One pass over one text, and all that is seen on the way: who looks at whom, what each head asks, finds and brings,
// and the stream after every layer.
//
// A text of up to LookOptions::whole tokens is kept whole. Of a longer one that many rows around the token asked for
// are, so that memory grows with its length by the keys alone.
#pragma once

#include <span>
#include <vector>

#include "inspect/heads/head_id.h"
#include "inspect/texts/reading.h"

namespace qkv {

struct LookOptions {
  Precision precision = Precision::f32();
  int64_t token = -1;   // whose way is kept in full; -1: the last one
  int64_t whole = 512;  // rows that are kept, at most
  int64_t rows = 1024;  // of a pass: a decoder reads a longer text in stretches
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

  Place place;
  KeptRows rows;                        // of the queries
  int64_t queries = 0, keys = 0;        // of the text
  int64_t heads = 0, kv_heads = 0;      // H, G
  int64_t width = 0, value_width = 0;   // D, E
  std::vector<float> k;                 // [keys, G, D]
  std::vector<float> q, v, z, lse;      // [R, H, D], [keys, G, E], [R, H, E], [R, H]; of texts kept whole
  std::vector<float> pattern;           // [R, H, keys], of texts kept whole
  std::vector<TopKey> top;              // [R, H, kTop], heaviest first; key -1: no more
  std::vector<double> entropy;          // [H]: mean over all rows, in nats
  std::vector<float> z_norm, out_norm;  // [R, H]: |z_i|, |z_i W_O^h|
  std::vector<float> value_norm;        // [keys, H]: |v_j W_O^h|
  std::vector<float> out_norms;         // [R]: of what all heads bring together, W_O and its bias included

  // Of the token asked for; empty in the encoder of an encoder-decoder, whose rows are other tokens.
  std::vector<float> q_at, z_at, out_at;   // [H, D], [H, E], [C]
  std::vector<float> scores_at, probs_at;  // [H, keys]: what enters the softmax and what leaves it

  std::span<const TopKey> top_of(int64_t row, int64_t head) const;
  float weight(int64_t row, int64_t head, int64_t key) const;  // A of a text kept whole
};

// One layer of the stack that speaks: norms of the kept rows, and the numbers of the token asked for.
struct SeenLayer {
  std::vector<float> mid_norms, mlp_norms, post_norms;  // [R]: resid.mid, mlp.out, resid.post
  std::vector<float> pre_at, mid_at, mlp_at, post_at;   // [C]
  std::vector<float> inner_at;                          // [F]: mlp.post; empty where experts do it
  std::vector<int32_t> experts_at;                      // that the token visited, with
  std::vector<float> expert_weights_at;
};

struct Looked {
  TokenText text;
  int64_t token = 0;
  bool whole = true;                        // every row of both stacks is kept
  KeptRows rows;                            // of the stack that speaks
  int64_t width = 0;                        // C
  std::vector<std::vector<float>> streams;  // [R, C]: the embedding, then resid.post of each layer
  std::vector<SeenLayer> layers;
  std::vector<SeenAttention> attentions;  // as all_attentions() lists them

  const SeenAttention& at(Place place) const;
};

// An Error if the text is empty or longer than the model's context, or the token is not there.
Looked look_at(const Model& model, const Engine& engine, const TokenText& text, const LookOptions& options = {});

double norm_of(std::span<const float> vector);

}  // namespace qkv

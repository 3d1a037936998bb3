// The sequence and position of each row of a pass.
//
// A pass works on N rows. Consecutive rows of one sequence form a segment, and a segment says which keys its rows
// attend to. Batches, padding, packed documents, cached prefixes and cross-attention are all lists of segments; there
// is no mask matrix:
//
//   batch of B x T        B segments of T rows and T keys
//   padded batch          segments shorter than T; the padded rows belong to none and come out as zeros
//   packed documents      one segment per document
//   decoding              1 row, `keys` = everything written so far, `position` = keys - 1
//   cross-attention       rows of the decoder, keys of the encoder
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace qkv {

class Context;

struct Segment {
  int32_t request = 0;    // whose rows these are; taps report it
  int32_t first_row = 0;  // rows [first_row, first_row + rows)
  int32_t rows = 0;
  int32_t first_key = 0;  // keys [first_key, first_key + keys); with pages, keys 0 .. keys - 1 of the page table
  int32_t keys = 0;
  int32_t position = 0;  // of the first row among the keys: row r sees keys j <= position + r if causal
};
static_assert(sizeof(Segment) == 6 * sizeof(int32_t));  // kernels read the list as i32 [n, 6]

struct Rows {
  static constexpr int64_t kPaged = -1;  // keys are found through a page table
  std::vector<Segment> list;
  Tensor segments;           // i32 [n, 6], `list` on the device
  Tensor positions;          // i32 [N], position of each row in its sequence; 0 for rows of no segment
  int64_t rows = 0;          // N
  int64_t keys = 0;          // rows of k and v these segments index, or kPaged
  int64_t longest_keys = 0;  // S: the most keys any segment has
  int64_t longest_rows = 0;  // the most rows
  bool packed = false;       // segments follow each other in rows and in keys, and leave none over
  // The final length of each segment's sequence; empty: its length now. Rotary angles that depend on the length
  // (longrope) use it, so that the result does not depend on how a sequence is split into passes.
  std::vector<int32_t> reach;

  // Checked against `rows` and `keys`; device tensors are taken from cx's arena.
  static Rows make(Context& cx, std::vector<Segment> list, int64_t rows, int64_t keys);
  static Rows batch(Context& cx, int64_t batch, int64_t length);
  static Rows ragged(Context& cx, std::span<const int32_t> lengths);  // packed documents, one after the other
  static Rows padded(Context& cx, std::span<const int32_t> lengths,
                     int64_t length);                                     // each at the start of `length` rows
  static Rows cross(Context& cx, const Rows& queries, const Rows& keys);  // cross-attention, segment by segment
};

}  // namespace qkv

// Every number of one token in one layer and head, as the pass had them: what the formulas of the page start from and
// lead to. Of the main stack's own attention.
#pragma once

#include "inspect/look/looking.h"

namespace qkv {

struct TokenNumbers {
  HeadId head;
  int64_t token = 0, id = 0;
  int64_t keys = 0;                                // S: of the text up to the end of the pass that has the token
  std::vector<float> embedded;                     // [C]: the input of layer 0; empty in other layers
  std::vector<float> pre, mid, post;               // [C]: residual stream
  std::vector<float> q, k, v;                      // [D], [D], [E]: of this token
  std::vector<float> all_k, all_v;                 // [S, D], [S, E]: of all keys
  std::vector<float> scores, probs;                // [S]
  std::vector<float> z, concat, out;               // [E], [H E], [C]
  std::vector<float> mlp_pre, mlp_post;            // [F]; of experts [k, F]
  std::vector<float> mlp_out;                      // [C]
  std::vector<float> route_logits, route_weights;  // [experts], [k]
  std::vector<int32_t> route_ids;                  // [k]
  std::vector<float> final, logits;                // [C], [V]; of the last layer
};

struct TokenNumbersOptions {
  Precision precision = Precision::f32();
  ReadingProbe* edit = nullptr;
};
// An Error if the head is not of the main stack's own attention, or there is no such token.
TokenNumbers token_numbers(const Model& model, const Engine& engine, const TokenText& text, int64_t token, HeadId head,
                           const TokenNumbersOptions& options = {});

}  // namespace qkv

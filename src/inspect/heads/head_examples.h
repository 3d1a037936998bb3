// Where one head looks, in examples from strong to weak: rows of many texts, ordered by their largest weight on a key
// that is not the first, and some of each tenth. The strongest rows alone would make any head look clear.
#pragma once

#include "inspect/heads/head_id.h"
#include "inspect/look/head_maps.h"

namespace qkv {

struct HeadExample {
  int32_t decile = 10;              // 10: of the tenth with the strongest rows
  size_t text = 0;                  // of the texts
  int64_t row = 0, key = -1;        // the token that looks, and the one it looks at most
  double strength = 0;              // the weight of that key
  std::vector<float> weights = {};  // of all keys
};

struct HeadExamples {
  int64_t rows = 0;                   // that were ordered
  std::vector<double> deciles;        // the least strength of each tenth, weakest tenth first
  std::vector<HeadExample> examples;  // strongest first
};

struct ExampleOptions {
  Precision precision = Precision::f32();
  int64_t each = 2;   // of a tenth
  int64_t first = 2;  // rows before this one have too little to choose from
};

// One pass over each text. An Error for attentions whose maps cannot be worked out again (head_maps.h).
HeadExamples head_examples(const Model& model, const Engine& engine, std::span<const TokenText> texts,
                           const HeadId& head, const ExampleOptions& options = {});

}  // namespace qkv

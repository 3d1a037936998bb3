// The ops a Transformer spends its time in, at the sizes of a GPT-2 124 M, through the public ops and the best kernels.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/engine.h"

namespace qkv::bench {

enum class Bound { f32_products, bf16_products, int8_products, memory };

// Another library, measured in the same rounds.
struct Beside {
  std::string name;
  std::function<double()> run;
  std::function<std::string()> check;  // may be empty: returns how the two results differ, or nothing
};

// One op at one size, with its data. Each call returns the seconds of its timed part.
struct Work {
  std::string size;   // printed
  double amount = 0;  // operations or bytes of one call
  std::function<double()> ours;
  std::vector<Beside> beside;
  std::function<std::string()> note;  // may be empty: an extra remark, called after the rounds
};

struct HotOp {
  std::string name;
  std::string dtype;  // or the format of the weight
  Bound bound;
  int64_t full;   // the real size: rows, tokens or parameters
  int64_t first;  // the first size to try; grows until a call takes long enough
  int power;      // cost grows with this power of the size: 2 for attention
  std::function<Work(int64_t size)> make;

  std::string title() const { return name + " " + dtype; }
};

std::vector<HotOp> hot_ops(const Engine& engine);
void add_block_ops(std::vector<HotOp>& list, const Engine& engine);  // products with q8, q4 and GGUF weights
void add_ends(std::vector<HotOp>& list, const Engine& engine);       // the head, the optimisers

bool plenty_of_memory();  // for weights of a gibibyte

}  // namespace qkv::bench

// The minimum cost of a pass: the bytes it reads and the operations of its products.
//
//   bytes        every weight once, in its compute format; of experts the part that evenly routed rows use; of the
//                embedding only the rows looked up; keys and values of every position a row sees, as stored
//   operations   two per weight and row (the head only for rows with logits), and two per element of the keys and
//                values a row sees, for every head
#pragma once

#include "infer/runner.h"

namespace qkv::bench {

struct Cost {
  double bytes = 0, operations = 0;
  Cost operator+(const Cost& o) const { return {bytes + o.bytes, operations + o.operations}; }
};

class PassCost {
 public:
  PassCost(const Model& model, const RunOptions& options);

  Cost weights(int64_t rows, int64_t rows_of_logits) const;
  // Of a row that sees so many keys, including itself.
  Cost attention(int64_t keys) const;
  // Whether most products are integer sums (quantised weights).
  bool integers() const { return integers_; }

 private:
  struct Experts {
    double bytes = 0, numbers = 0;  // of all of them
    double chosen = 0;              // the share one row uses
  };

  RunOptions options_;
  std::vector<LayerSpec> layers_;
  double bytes_ = 0, row_bytes_ = 0, numbers_ = 0, head_numbers_ = 0;
  std::vector<Experts> experts_;
  bool integers_ = false;
};

}  // namespace qkv::bench

// Numbers of a report as JSON: few digits where there are many, bytes where a colour is all that is wanted.
#pragma once

#include <span>
#include <vector>

#include "base/json.h"

namespace qkv {

// Five digits. null: the score of a key that is not seen.
Json brief(double value);
Json brief(std::span<const float> values);

// A weight as a colour: 255 sqrt(weight), so that small ones are visible too.
char map_byte(double weight);

// A map that was pooled: cells [rows, columns] of `pooled` tokens a side.
struct PooledShape {
  int64_t rows = 0, columns = 0, pooled = 1;
};
Json thumb_json(std::span<const double> cells, const PooledShape& shape);

}  // namespace qkv

// What rows of the op table are made of, and the rows that have a file of their own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "op_cases.h"

namespace qkv::test::op_table {

using Cases = std::vector<OpCase>;
using Outputs = std::vector<Tensor>;

inline OpInput rows(std::string name, Shape one) {
  return {.name = std::move(name), .kind = OpInput::Kind::rows, .shape = one};
}
inline OpInput fixed(std::string name, Shape shape) {
  return {.name = std::move(name), .kind = OpInput::Kind::fixed, .shape = shape};
}
inline OpInput weight(std::string name, Shape shape) {
  return {.name = std::move(name), .kind = OpInput::Kind::weight, .shape = shape};
}
inline OpInput ids(std::string name, Shape one, int32_t limit) {
  return {.name = std::move(name), .kind = OpInput::Kind::ids, .shape = one, .limit = limit};
}

inline std::string named(const char* base, const char* variant) {
  return std::string(base) + "_" + variant;
}

void add_rotary(Cases& all);
void add_attention(Cases& all);

}  // namespace qkv::test::op_table

// (d) of the op table: the bits of rows that were computed apart are those of the same rows of a larger pass.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "op_cases.h"

namespace qkv::test {

inline void expect_same_rows(const std::string& what, const Numbers& part, const Numbers& all, size_t first_element) {
  ASSERT_LE(first_element + part.size(), all.size()) << what;
  for (size_t i = 0; i < part.size(); ++i) {
    ASSERT_EQ(part[i], all[first_element + i]) << what << ", element " << i;
  }
}

inline bool per_row(const OpCase& op, const std::string& input) {
  for (const OpInput& in : op.inputs) {
    if (in.name == input) return in.kind == OpInput::Kind::rows;
  }
  return false;
}

// Rows [first_row, first_row + rows) of `all`.
inline void expect_same_rows(const OpCase& op, const std::string& what, const OpResult& part, int64_t first_row,
                             int64_t rows, const OpResult& all) {
  const auto offset = [&](const Numbers& numbers) {
    return numbers.size() / static_cast<size_t>(rows) * static_cast<size_t>(first_row);
  };
  for (size_t i = 0; i < part.outputs.size(); ++i) {
    expect_same_rows(what + " output", part.outputs[i], all.outputs[i], offset(part.outputs[i]));
  }
  for (const auto& [name, gradient] : part.gradients) {
    if (per_row(op, name)) expect_same_rows(what + " d " + name, gradient, all.gradients.at(name), offset(gradient));
  }
}

}  // namespace qkv::test

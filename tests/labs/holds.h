// Whether a rule of a lab holds if its number is this in all seeds.
#pragma once

#include <gtest/gtest.h>

#include "kernels/tables.h"
#include "labs/labs.h"

namespace qkv::test {

inline const LabContext& lab_context() {
  static const Engine engine(kernels::best_table(), {.threads = 1});
  static const LabContext lab{.engine = engine};
  return lab;
}

inline bool holds(const Lab& lab, const std::string& number, double value) {
  for (const LabRule& rule : lab.rules) {
    if (rule.number != number) continue;
    const std::vector<LabRow> rows{over_seeds(number, {value, value, value})};
    return judge(rows, {&rule, 1}).front().held;
  }
  ADD_FAILURE() << "no rule is about " << number;
  return false;
}

}  // namespace qkv::test

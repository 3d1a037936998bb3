// The steps that the compilation of a schema may take, and a check whether its result is still wanted.
//
// Its algorithms may do many times the work of reading their input. They call spend() as they go: beyond the limit it
// throws OutOfBudget. A step is some ten nanoseconds of work: one state, one edge, one comparison.
#pragma once

#include <cstddef>
#include <functional>

#include "base/error.h"

namespace qkv {

class OutOfBudget : public Error {
 public:
  using Error::Error;
};

class Budget {
 public:
  // `check` is called with the steps so far, every kCheckInterval of them; it throws to end the work.
  using Check = std::function<void(size_t used)>;
  explicit Budget(size_t max_steps, Check check = {});

  void spend(size_t steps) {
    used_ += steps;
    if (used_ >= next_check_) check_limit();
  }
  size_t used() const { return used_; }

 private:
  static constexpr size_t kCheckInterval = 100'000;  // about a millisecond
  void check_limit();

  size_t max_steps_;
  size_t used_ = 0, next_check_;
  Check check_;
};

}  // namespace qkv

#include "infer/grammar/budget.h"

#include <algorithm>
#include <utility>

namespace qkv {

Budget::Budget(size_t max_steps, Check check)
    : max_steps_(max_steps), next_check_(std::min(kCheckInterval, max_steps + 1)), check_(std::move(check)) {}

void Budget::check_limit() {
  if (check_) check_(used_);
  if (used_ > max_steps_) {
    throw OutOfBudget(Error::Kind::input,
                      "compiling the schema takes more than " + std::to_string(max_steps_) + " steps",
                      "make it smaller: fewer branches that combine, shorter enums, simpler patterns", QKV_HERE);
  }
  next_check_ = std::min(used_ + kCheckInterval, max_steps_ + 1);
}

}  // namespace qkv

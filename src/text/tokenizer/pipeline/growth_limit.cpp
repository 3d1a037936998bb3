#include "text/tokenizer/pipeline/growth_limit.h"

#include "base/error.h"

namespace qkv {

void GrowthLimit::fail(const char* step) const {
  QKV_FAIL(what_, ": ", step, " makes more than ", input_ * kPerByte + kConstant, " ", unit_, " of a text of ", input_,
           Hint("no real tokenizer does: the file is damaged or made to do harm"));
}

void check_steps(size_t steps, std::string_view kind) {
  QKV_CHECK(steps <= kMostSteps, "a ", kind, " of ", steps, " steps, but at most ", kMostSteps, " are followed",
            Hint("no tokenizer needs so many; the file is damaged"));
}

}  // namespace qkv

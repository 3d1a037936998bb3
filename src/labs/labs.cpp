#include "labs/labs.h"

#include <array>

namespace qkv {

std::span<const Lab* const> all_labs() {
  static const std::array<const Lab*, 17> all{&labs::induction(),
                                              &labs::sixteen_heads(),
                                              &labs::seats(),
                                              &labs::thinking_aloud(),
                                              &labs::reading_writing(),
                                              &labs::causality(),
                                              &labs::scale(),
                                              &labs::one_head(),
                                              &labs::three_matrices(),
                                              &labs::fixed_qkv(),
                                              &labs::question_first(),
                                              &labs::phases(),
                                              &labs::experts(),
                                              &labs::embedding_walk(),
                                              &labs::two_it(),
                                              &labs::analogy(),
                                              &labs::facts()};
  return all;
}

}  // namespace qkv

// What qkv patch and the library share: both texts read, every site patched.
#pragma once

#include <qkv/patch.h>
#include <qkv/text.h>

#include <functional>

#include "inspect/report/patch_report.h"
#include "open/open_model.h"

namespace qkv::v1 {

// Of what the model answers with; null if there is none.
const qkv::Tokenizer* answering_tokenizer(const OpenModel& model);

struct PatchWork {
  PatchOptions options = {};
  std::function<void(int64_t done, int64_t of)> progress = {};  // may throw to end it
};
// An Error if both have the same answer, or nothing is lost between them.
PatchFindings find_patches(const OpenModel& model, const Text& clean, const Text& corrupt, const PatchWork& work);

}  // namespace qkv::v1

// Activation patching: the model reads a corrupt text, but at one place it gets what it had there in a clean one. How much
// of the clean answer comes back says what that place carries.
//
//   m = logit(answer) - logit(wrong)        restored = (m(patched) - m(corrupt)) / (m(clean) - m(corrupt))
//
// 0: as if nothing had been patched, 1: the clean answer.
#pragma once

#include <qkv/export.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace qkv::QKV_INLINE v1 {

struct PatchOptions {
  int64_t token = -1;                  // after which one the answer is read; -1: the last
  std::optional<int32_t> answer = {};  // none: the top guess after the clean text
  std::optional<int32_t> wrong = {};   // none: the top guess after the corrupt text
  std::string heads = {};              // patched position by position too: "L1H2,L3"
};

// One kind of place, layer by position; or single heads at all positions at once, layer by head.
struct PatchMap {
  std::string site;               // "resid.pre", "attn.out", "mlp.out", "attn.z"
  std::string stack;              // "decoder", "encoder", "cross"
  std::string across;             // what the columns are: "tokens", "source", "heads"
  std::vector<std::string> rows;  // L0, L1, ...; of heads by position L1H2
  int64_t columns = 0;
  std::vector<double> restored = {};  // [rows, columns]; NaN where a layer has no such head
};

struct Patched {
  std::vector<int32_t> clean_ids, corrupt_ids;  // of the text, or of the target
  int64_t token = 0;
  int32_t answer = 0, wrong = 0;
  double clean = 0, corrupt = 0;  // m of both texts
  std::vector<PatchMap> maps;

  std::string json;                  // the report, as qkv patch --json
  QKV_API std::string html() const;  // a page that opens offline, as qkv patch --html
};

}  // namespace qkv::QKV_INLINEv1

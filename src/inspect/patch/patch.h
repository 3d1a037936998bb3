// Activation patching: two texts of the same length, clean and corrupt, that have different answers. The model reads the
// corrupt one, but at one site it gets what it had there in the clean one. How much of the clean answer comes back says
// what that site carries.
//
//   m = logit(answer) - logit(wrong)        r = (m(patched) - m(corrupt)) / (m(clean) - m(corrupt))
//
// 0: as if nothing had been patched, 1: the clean answer. Patches are edits of a probe; many of them share a pass, each on
// a copy of the corrupt text.
#pragma once

#include <functional>
#include <map>
#include <tuple>

#include "inspect/heads/head_id.h"
#include "inspect/texts/reading.h"

namespace qkv {

// What is taken from the clean text: a tap whose rows are those of the text.
struct PatchSite {
  Place place;
  Site site = Site::resid_pre;
  int16_t head = -1;      // of attn.z; -1: all of them
  int32_t position = -1;  // of the stack's own text; -1: all of them
};
using Patch = std::vector<PatchSite>;  // patched together

// m with the corrupt text, the clean one, and after each patch.
struct PatchOutcome {
  double clean = 0, corrupt = 0;
  std::vector<double> patched;
  double restored(size_t i) const { return (patched[i] - corrupt) / (clean - corrupt); }
};

class Patcher {
 public:
  using Logits = std::vector<float>;

  // Reads both. An Error if they differ in length or in nothing, or have no row `row`. Row -1: the last one.
  Patcher(Reader& reader, TokenText clean, TokenText corrupt, int64_t row = -1);

  const TokenText& clean() const { return texts_[0]; }
  const TokenText& corrupt() const { return texts_[1]; }
  int64_t row() const { return row_; }
  const Logits& clean_logits() const { return logits_[0]; }
  const Logits& corrupt_logits() const { return logits_[1]; }

  // The logits of the row after each patch. `finished` is told how many are done.
  void each(std::span<const Patch> patches,
            const std::function<void(size_t patch, std::span<const float> logits)>& take,
            const Reader::Finished& finished = {});
  // An Error if answer and wrong are the same, or if m is the same for both texts: then nothing can come back.
  PatchOutcome outcome(std::span<const Patch> patches, int32_t answer, int32_t wrong,
                       const Reader::Finished& finished = {});

 private:
  using Key = std::tuple<Stack, int16_t, Site>;
  class Values;
  class Probe;
  void read_clean(std::span<const Patch> patches);

  Reader& reader_;
  std::array<TokenText, 2> texts_;  // clean, corrupt
  int64_t row_;
  std::array<Logits, 2> logits_;
  std::map<Key, std::vector<float>> values_;  // of the clean text, [rows, width], as far as they were asked for
};

// Which patches of a model are tried: one map for each kind of site and stack, a row for each layer (or head).
struct PatchMap {
  Site site = Site::resid_pre;
  Stack stack = Stack::decoder;
  enum class Across : uint8_t { tokens, source, heads } across = Across::tokens;  // what the columns are
  std::vector<std::string> rows;                                                  // L0, L1, ... or L2H1
  int64_t columns = 0;
  std::vector<double> restored = {};  // [rows, columns]; NaN where there is no such head

  double at(size_t row, int64_t column) const {
    return restored[row * static_cast<size_t>(columns) + static_cast<size_t>(column)];
  }
};

struct PatchPlan {
  std::vector<PatchMap> maps;
  std::vector<Patch> patches;                      // of all maps
  std::vector<std::pair<size_t, size_t>> targets;  // for each patch: its map and its cell
};
// Residual stream before each layer, attention's output and the feed-forward's by position; single heads over all
// positions at once; those of `by_position` also position by position.
PatchPlan patch_plan(const ModelSpec& spec, const TokenText& text, std::span<const HeadId> by_position = {});
// Fills in what came back.
std::vector<PatchMap> filled(PatchPlan plan, const PatchOutcome& outcome);

}  // namespace qkv

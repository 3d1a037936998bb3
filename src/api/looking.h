// The inside of qkv::Looked (include/qkv/look.h): what qkv look draws and writes.
#pragma once

#include <qkv/look.h>

#include <functional>
#include <memory>
#include <optional>

#include "inspect/cut/ablation.h"
#include "inspect/report/look_report.h"
#include "open/open_model.h"

namespace qkv::v1 {

struct Looked::Impl {
  Impl(const OpenModel& model, qkv::Looked seen, Ladder ladder, bool with_tokenizer);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Its own, so that it outlives the model.
  const ModelSpec spec;
  const std::optional<qkv::Tokenizer> tokenizer;
  LookedAt at;
  std::vector<float> logits;  // [R, V]
  std::vector<std::vector<Rung>> rungs;
  LookHeading heading;
};

struct LookWork {
  int64_t token = -1;
  const qkv::Cut* cut = nullptr;  // what `edit` leaves out
  ReadingProbe* edit = nullptr;
  bool logits = true;
  std::function<void(int64_t done, int64_t of)> climbing = {};  // rows of the ladder
};
// Tokens of given ids are shown as numbers where the model has no tokenizer.
std::shared_ptr<Looked::Impl> look_inside(const OpenModel& model, const Text& given, const LookWork& work);

}  // namespace qkv::v1

// The inside of qkv::Looked (include/qkv/look.h): what qkv look draws and writes.
#pragma once

#include <qkv/look.h>

#include <functional>
#include <memory>
#include <optional>

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
  const std::string model;  // its name
  LookedAt at;
  std::vector<float> logits;  // [R, V]
  std::vector<std::vector<Rung>> rungs;
  std::string title;  // the text
};

struct LookWork {
  int64_t token = -1;
  ReadingProbe* edit = nullptr;
  bool logits = true;
  bool with_tokenizer = true;  // false: tokens are shown as numbers where the model has none
  std::function<void(int64_t done, int64_t of)> climbing = {};  // rows of the ladder
};
std::shared_ptr<Looked::Impl> look_inside(const OpenModel& model, const TokenText& text, const LookWork& work);

}  // namespace qkv::v1

// Computes again what a reference recorded of a model, and says how far apart the two are.
#pragma once

#include <filesystem>
#include <optional>

#include "core/engine.h"
#include "model/checkpoint/checkpoint.h"

namespace qkv {

struct VerifyLine {
  enum class Verdict : uint8_t { good, bad, shown } verdict = Verdict::bad;
  std::string name;  // as recorded
  std::string shape;
  std::optional<double> nmse, worst;  // worst in standard deviations of the recorded tensor
  std::optional<double> kl;           // of logits in bf16, the mean over rows
  std::string note;                   // what else is to say: tokens that agree, KL, routing that changed
};

struct VerifyReport {
  std::vector<VerifyLine> lines;
  bool good() const;
  int64_t count(VerifyLine::Verdict verdict) const;
};

// `folder` holds io.safetensors beside the model; texts in it are left to verify/verify_tokens.h. f32 is held to every recorded number, bf16 to its logits.
//
// A recording in f32 is rounded too. Where its worst difference from us is too large, the pass is done again in double:
// what lies between that and the recording is the recording's own, and is not held against us.
VerifyReport verify_model(const Checkpoint& checkpoint, const Engine& engine, Precision precision,
                          const std::filesystem::path& folder);

}  // namespace qkv

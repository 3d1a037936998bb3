// Recomputes the activations a reference recorded for a model and reports how far apart the two are.
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
  std::optional<double> nmse, worst;  // worst: in standard deviations of the recorded tensor
  std::optional<double> kl;           // of bf16 logits, mean over rows
  int64_t missed = 0;                 // of bf16 logits: rows with a clear first guess that have another
  std::string note;                   // tokens that agree, KL, changed routing
};

struct VerifyReport {
  std::vector<VerifyLine> lines;
  bool good() const;
  int64_t count(VerifyLine::Verdict verdict) const;
};

// `folder` holds io.safetensors; generated texts in it are checked by verify/verify_tokens.h. In f32 every recorded
// tensor must match, in bf16 only the logits. BF16_ON_GPU.json beside the folder may say how far the reference's own bf16
// logits are from its f32, as {"folder": NMSE}; the bound is never below 1.5 times that. Where rounding the weights to
// bf16 alone, computed in double, already breaks a bound, the bound is 1.5 times what that costs.
//
// The f32 recording has rounding errors of its own. Where the worst difference is too large, the pass is repeated in
// double, and the recording's distance from double is added to the bound.
VerifyReport verify_model(const Checkpoint& checkpoint, const Engine& engine, Precision precision,
                          const std::filesystem::path& folder);

}  // namespace qkv

// Ablation of heads (output replaced) and experts (never chosen), as probe edits on the same fused passes.
//
//   z^h <- 0                                             zero
//   z^h <- E[z^h] over the texts                         mean
//   z^h <- z^h of another text at the same position      resample
//
// Effect: change of loss, KL(p || p cut), share of rows whose top guess stays; paired over texts.
#pragma once

#include <map>
#include <memory>

#include "inspect/heads/head_id.h"
#include "inspect/report/estimate.h"
#include "inspect/texts/reading.h"

namespace qkv {

enum class Ablation : uint8_t { zero, mean, resample };
const char* name_of(Ablation ablation);

// An expert is named L1E3: expert 3 of layer 1.
struct ExpertId {
  int16_t layer = 0, expert = 0;
  auto operator<=>(const ExpertId&) const = default;
};
std::string name_of(const ExpertId& expert);
std::vector<ExpertId> all_experts(const ModelSpec& spec);  // of the main stack; empty if it has none
// "L1E3,L1E5". The Error lists what exists. Sorted, without duplicates.
std::vector<ExpertId> parse_experts(const ModelSpec& spec, std::string_view text);

struct Cut {
  std::vector<HeadId> heads = {};
  std::vector<ExpertId> experts = {};
  Ablation ablation = Ablation::mean;  // for heads
};

// Outputs z of all heads on some texts, the replacements for an ablation. Measured once, shared by all cuts.
class HeadOutputs {
 public:
  std::span<const float> mean(const HeadId& head) const;  // [E]
  // z at the same position of another text, chosen deterministically; positions wrap around if that text is shorter.
  std::span<const float> elsewhere(const HeadId& head, int64_t text, int64_t position) const;
  bool keeps_rows() const { return keeps_rows_; }

 private:
  friend class OutputsProbe;
  struct OfAttention {
    int64_t heads = 0, width = 0;
    std::vector<float> mean;                // [H, E]
    std::vector<std::vector<float>> texts;  // [rows, H, E] of each text, if kept
  };
  const OfAttention& at(const HeadId& head) const;

  std::map<std::pair<Stack, int16_t>, OfAttention> all_;
  bool keeps_rows_ = false;
};
// For Ablation::resample the outputs of all rows are kept, otherwise only the mean.
std::shared_ptr<const HeadOutputs> measure_outputs(Reader& reader, std::span<const TokenText> texts, Ablation ablation,
                                                   const Reader::Finished& finished = {});

// The probe that applies a cut. In a Reader all three ablations work; as RunOptions::probe only zero and mean. Under a
// tape no gradient flows through what was cut.
class CutProbe : public ReadingProbe {
 public:
  // An Error if a layer keeps fewer experts than a token needs. Ablation::zero needs no outputs.
  CutProbe(const ModelSpec& spec, Cut cut, std::shared_ptr<const HeadOutputs> outputs = nullptr);

  const Cut& cut() const { return cut_; }

  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place place, Site site) const override;
  void visit(Context& cx, const Tap& tap, Tensor& x) override;

 private:
  void replace(Context& cx, const Tap& tap, const Tensor& column, const HeadId& head) const;

  Cut cut_;
  std::shared_ptr<const HeadOutputs> outputs_;
  std::map<std::pair<Stack, int16_t>, std::vector<int16_t>> heads_, experts_;
  Stack main_;
};

// Sums of losses per text, as paired_difference() takes them.
std::vector<TextSum> loss_sums(Reader& reader, std::span<const TokenText> texts, ReadingProbe* probe = nullptr,
                               const Reader::Finished& finished = {});

struct CutEffect {
  Estimate before, after;  // mean loss, nats per token
  Estimate delta;          // after - before, paired
  Estimate kl;             // KL(p || p cut), nats per token
  Estimate same_guess;     // share of rows whose top guess stays
};
// The effect of a probe that edits, usually a CutProbe.
CutEffect effect_of(Reader& reader, std::span<const TokenText> texts, ReadingProbe& probe,
                    const Reader::Finished& finished = {});

// For encoders: hides about `share` of the tokens of each text, at least one, never one of `kept` (special tokens), and
// makes them the targets. The choice depends only on the text's number and ids.
struct HidingOptions {
  int32_t mask = -1;
  double share = 0.15;
  std::vector<int32_t> kept = {};
};
std::vector<TokenText> with_hidden_tokens(std::span<const TokenText> texts, const HidingOptions& options);

}  // namespace qkv

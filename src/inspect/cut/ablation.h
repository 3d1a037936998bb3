// What happens without it: heads whose output is replaced and experts nobody is sent to, on the same fused passes.
//
//   z^h <- 0 (zero), E[z^h] over the texts (mean), z^h of another text at the same position (resample)
//   delta loss, KL(p || p cut), share of rows whose first guess stays: by the paired bootstrap over texts
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
std::vector<ExpertId> all_experts(const ModelSpec& spec);  // of the main stack; none where it has no experts
// "L1E3,L1E5". An Error says what exists. In order, each once.
std::vector<ExpertId> parse_experts(const ModelSpec& spec, std::string_view text);

struct Cut {
  std::vector<HeadId> heads = {};
  std::vector<ExpertId> experts = {};
  Ablation ablation = Ablation::mean;  // of heads
};

// What heads bring on texts: what replaces them. Made by one pass over the texts, and shared by all cuts on them.
class HeadOutputs {
 public:
  std::span<const float> mean(const HeadId& head) const;  // [E]
  // z of a row of another text than this, the same for the same row; where that text is shorter it begins again.
  std::span<const float> elsewhere(const HeadId& head, int64_t text, int64_t position) const;
  bool keeps_rows() const { return keeps_rows_; }

 private:
  friend class OutputsProbe;
  struct OfAttention {
    int64_t heads = 0, width = 0;
    std::vector<float> mean;                // [H, E]
    std::vector<std::vector<float>> texts;  // [rows, H, E] of each text, if they are kept
  };
  const OfAttention& at(const HeadId& head) const;

  std::map<std::pair<Stack, int16_t>, OfAttention> all_;
  bool keeps_rows_ = false;
};
// For Ablation::resample every row's output is kept, otherwise its mean alone.
std::shared_ptr<const HeadOutputs> measure_outputs(Reader& reader, std::span<const TokenText> texts, Ablation ablation,
                                                   const Reader::Finished& finished = {});

// The cut itself. In a Reader it does all three; as RunOptions::probe, where no texts are known, zero and mean.
// Under a tape the gradient does not go through what was cut.
class CutProbe : public ReadingProbe {
 public:
  // An Error if a layer is left with fewer experts than a token visits. Ablation::zero needs no outputs.
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

// Losses as sums, text by text: what paired_difference takes.
std::vector<TextSum> loss_sums(Reader& reader, std::span<const TokenText> texts, ReadingProbe* probe = nullptr,
                               const Reader::Finished& finished = {});

struct CutEffect {
  Estimate before, after;  // mean loss, nats a token
  Estimate delta;          // after - before, paired
  Estimate kl;             // KL(p || p cut), nats a token
  Estimate same_guess;     // share of rows whose most likely token stays
};
// Of a probe that edits: a CutProbe, or one that does more.
CutEffect effect_of(Reader& reader, std::span<const TokenText> texts, ReadingProbe& probe,
                    const Reader::Finished& finished = {});

// An encoder alone predicts what is hidden: about `share` of the tokens of each text, one at least, never one of
// `kept` (special tokens). Which ones depends on the text's number and ids alone.
struct HidingOptions {
  int32_t mask = -1;
  double share = 0.15;
  std::vector<int32_t> kept = {};
};
std::vector<TokenText> with_hidden_tokens(std::span<const TokenText> texts, const HidingOptions& options);

}  // namespace qkv

#include "infer/verify_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "infer/beam.h"
#include "infer/next_logits.h"
#include "infer/sampling.h"
#include "io/safetensors.h"
#include "io/stored_type.h"
#include "model/recorded.h"

namespace qkv {
namespace {

using Verdict = VerifyLine::Verdict;
using Ids = std::vector<int32_t>;

// How many tokens recordings write at most, and the ways they write them.
constexpr int64_t kTranslated = 24, kGreedy = 32, kBeam = 16;

struct Way {
  std::string_view name;
  int64_t beams;  // 1: greedy
  double length_penalty;
};
constexpr Way kWays[] = {{"generate_greedy", 1, 1}, {"generate_beam4", 4, 1}, {"generate_beam4_lp2", 4, 2}};

class TokenVerifier {
 public:
  TokenVerifier(const Model& model, const Engine& engine, Precision precision, const Safetensors& io)
      : model_(model), engine_(engine), precision_(precision), io_(io) {}

  VerifyLine line(const StoredTensor& right) const {
    VerifyLine line{.verdict = Verdict::bad, .name = right.name, .shape = shape_text(right.shape)};
    const auto named = [&](const Way& way) { return way.name == right.name; };
    const auto way = std::find_if(std::begin(kWays), std::end(kWays), named);
    const ModelSpec& spec = model_.spec();
    const bool translates = spec.kind == ModelSpec::Kind::encoder_decoder;
    if (way == std::end(kWays) ||
        (translates ? !spec.tokens.decoder_start : spec.kind != ModelSpec::Kind::decoder_only)) {
      line.note = "recorded, but this model writes no such text";
      return line;
    }
    try {
      compare(line, *way, recorded_ids(right));
    } catch (const Error& error) {  // logits that are no numbers
      line.note = error.message();
    }
    return line;
  }

 private:
  // The recording is of other numbers, and nothing is held to it.
  bool quantized() const {
    const auto blocks = [](const auto& weight) { return !weight.second.format().plain(); };
    return std::any_of(model_.weights().begin(), model_.weights().end(), blocks);
  }

  void compare(VerifyLine& line, const Way& way, const Ids& values) const {
    const bool translates = model_.spec().kind == ModelSpec::Kind::encoder_decoder;
    const Ids got = translates ? translations(way, values.size()) : continuation(way);
    if (got == values) {
      line.verdict = Verdict::good;
      line.note = fmt::format("{} tokens identical", values.size());
    } else {
      const auto same = std::mismatch(got.begin(), got.end(), values.begin(), values.end()).first - got.begin();
      line.verdict = precision_.compute == DType::bf16 ? Verdict::shown : Verdict::bad;
      line.note = fmt::format("tokens differ from place {} on", same);
    }
    if (quantized()) line.verdict = Verdict::shown;
  }

  Ids continuation(const Way& way) const {
    const RecordedBatch read = recorded_batch(io_, "input_ids");
    const std::span<const int32_t> prompt = read.row(0);
    return written(way, {prompt.begin(), prompt.end()}, {}, way.beams == 1 ? kGreedy : kBeam);
  }

  Ids translations(const Way& way, size_t recorded) const {
    const TokenIds& tokens = model_.spec().tokens;
    const RecordedBatch read = recorded_batch(io_, "input_ids");
    const size_t length = recorded / static_cast<size_t>(read.batch);  // of each; shorter ones are filled up
    int32_t filler = tokens.pad.value_or(0);
    if (way.beams > 1 && filler == 0 && !tokens.eos.empty()) filler = tokens.eos[0];  // transformers takes 0 for no id
    Ids all;
    for (int64_t b = 0; b < read.batch; ++b) {
      Ids ids = written(way, {*tokens.decoder_start}, read.row(b), kTranslated);
      ids.resize(std::max(ids.size(), length), filler);
      all.insert(all.end(), ids.begin(), ids.end());
    }
    return all;
  }

  Ids written(const Way& way, const Ids& prompt, std::span<const int32_t> source, int64_t new_tokens) const {
    const TokenIds& tokens = model_.spec().tokens;
    const auto most = static_cast<int64_t>(prompt.size()) + new_tokens;
    const std::optional<int32_t> forced = source.empty() ? std::nullopt : tokens.forced_eos;
    if (way.beams == 1) return written_greedily(prompt, source, {.max_length = most, .forced_eos = forced});
    BeamSearch search({.beams = way.beams,
                       .length_penalty = way.length_penalty,
                       .max_length = most,
                       .eos = tokens.eos,
                       .forced_eos = forced},
                      prompt);
    while (!search.done()) {
      std::vector<Ids> texts;
      for (const BeamSearch::Live& beam : search.live()) texts.push_back(beam.ids);
      search.advance(next_logits(model_, engine_, precision_, texts, source));
    }
    return search.best().at(0).ids;
  }

  struct End {
    int64_t max_length;
    std::optional<int32_t> forced_eos;
  };
  Ids written_greedily(Ids ids, std::span<const int32_t> source, End end) const {
    const std::vector<int32_t>& eos = model_.spec().tokens.eos;
    while (static_cast<int64_t>(ids.size()) < end.max_length) {
      const bool last = static_cast<int64_t>(ids.size()) + 1 == end.max_length;
      const std::vector<float> logits = next_logits(model_, engine_, precision_, {&ids, 1}, source);
      ids.push_back(last && end.forced_eos ? *end.forced_eos
                                           : choose({.temperature = 0}, {.logits = logits, .history = ids}).id);
      if (std::find(eos.begin(), eos.end(), ids.back()) != eos.end()) break;
    }
    return ids;
  }

  const Model& model_;
  const Engine& engine_;
  Precision precision_;
  const Safetensors& io_;
};

}  // namespace

void verify_tokens(VerifyReport& report, const Checkpoint& checkpoint, const Engine& engine, Precision precision,
                   const std::filesystem::path& folder) {
  const Safetensors io = Safetensors::open(folder / "io.safetensors");
  const std::unique_ptr<Model> model = checkpoint.model(engine.device());
  for (const StoredTensor& entry : io.entries()) {
    if (is_recorded_text(entry)) report.lines.push_back(TokenVerifier(*model, engine, precision, io).line(entry));
  }
}

}  // namespace qkv

#include "verify/verify_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "infer/beam_runner.h"
#include "infer/session.h"
#include "io/safetensors.h"
#include "io/stored_type.h"
#include "verify/recorded.h"

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
    const bool translates = spec.has_source();
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
    const bool translates = model_.spec().has_source();
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
    return written(way, {{.prompt = {prompt.begin(), prompt.end()}}}, way.beams == 1 ? kGreedy : kBeam).front();
  }

  Ids translations(const Way& way, size_t recorded) const {
    const TokenIds& tokens = model_.spec().tokens;
    const RecordedBatch read = recorded_batch(io_, "input_ids");
    const size_t length = recorded / static_cast<size_t>(read.batch);  // of each; shorter ones are filled up
    int32_t filler = tokens.pad.value_or(0);
    if (way.beams > 1 && filler == 0 && !tokens.eos.empty()) filler = tokens.eos[0];  // transformers takes 0 for no id
    std::vector<BeamRequest> requests;
    for (int64_t b = 0; b < read.batch; ++b) {
      const std::span<const int32_t> source = read.row(b);
      requests.push_back({.prompt = {*tokens.decoder_start}, .source = {source.begin(), source.end()}});
    }
    Ids all;
    for (Ids& ids : written(way, requests, kTranslated)) {
      ids.resize(std::max(ids.size(), length), filler);
      all.insert(all.end(), ids.begin(), ids.end());
    }
    return all;
  }

  // All of them have prompts of the same length.
  std::vector<Ids> written(const Way& way, const std::vector<BeamRequest>& requests, int64_t new_tokens) const {
    const TokenIds& tokens = model_.spec().tokens;
    const int64_t most = std::ssize(requests[0].prompt) + new_tokens;
    const int64_t each = KvCache::whole_pages(most);
    Runner runner(model_, engine_,
                  {.precision = precision_,
                   .cache = precision_.compute,
                   .positions = std::ssize(requests) * way.beams * each,
                   .sources = std::ssize(requests) * KvCache::whole_pages(longest_source(requests))});
    std::vector<Ids> texts;
    if (way.beams == 1) {
      for (const BeamRequest& request : requests) {
        Session session(runner, {.prompt = request.prompt,
                                 .source = request.source,
                                 .sampling = {.temperature = 0},
                                 .max_new = new_tokens});
        while (session.next()) {
        }
        texts.push_back(session.ids());
      }
      return texts;
    }
    const bool translates = model_.spec().has_source();
    for (const BeamRunner::Hypotheses& found :
         beam_search(runner, requests,
                     {.beams = way.beams,
                     .length_penalty = way.length_penalty,
                     .max_length = most,
                     .eos = tokens.eos,
                     .forced_eos = translates ? tokens.forced_eos : std::nullopt})) {
      texts.push_back(found.at(0).ids);
    }
    return texts;
  }

  static int64_t longest_source(const std::vector<BeamRequest>& requests) {
    int64_t longest = 0;
    for (const BeamRequest& request : requests) longest = std::max<int64_t>(longest, std::ssize(request.source));
    return longest;
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

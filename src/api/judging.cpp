#include "api/judging.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "api/generation.h"
#include "api/inside.h"
#include "api/texts.h"
#include "infer/likelihood.h"
#include "infer/text_choices.h"
#include "open/room.h"
#include "server/models/embedding_queue.h"

namespace qkv::v1 {
namespace {

// As qkv eval reads a text: BOS, if there is one, predicts its first token.
TokenText scored(const OpenModel& model, const Text& text) {
  TokenText tokens;
  if (model.spec().has_source() || text.is_ids) {
    tokens = tokens_of(model, text);
    if (model.spec().has_source()) tokens.first = std::ssize(model.target_start());
  } else {
    check_text(model, text);
    if (const std::optional<int32_t> bos = bos_of(model)) tokens.ids = {*bos};
    const std::vector<int32_t> ids =
        model.tokenizer().encode(text.text, {.add_specials = false, .read_specials = false});
    tokens.ids.insert(tokens.ids.end(), ids.begin(), ids.end());
  }
  QKV_CHECK(std::ssize(tokens.ids) > tokens.first, "a text has ", tokens.ids.size(), " tokens, of which none is scored",
            Hint(model.spec().has_source() ? "give a target too" : "give a longer one"));
  return tokens;
}

server::Pooling pooling_of(const OpenModel& model, Pooling pooling) {
  switch (pooling) {
    case Pooling::mean:
      return server::Pooling::mean;
    case Pooling::first:
      return server::Pooling::first;
    case Pooling::last:
      return server::Pooling::last;
    case Pooling::usual:
      break;
  }
  return server::usual_pooling(model.spec());
}

}  // namespace

std::optional<int32_t> bos_of(const OpenModel& model) {
  const std::optional<int32_t> named = model.tokenizer().named().bos;
  const std::optional<int32_t> bos = named ? named : model.spec().tokens.bos;
  return bos && *bos < model.spec().vocabulary ? bos : std::nullopt;
}

RunOptions likelihood_room(const OpenModel& model, int64_t context, std::optional<DType> cache) {
  const ModelSpec& spec = model.spec();
  QKV_CHECK(spec.kind != ModelSpec::Kind::encoder_only, model.path(), " is a ", spec.family,
            ": it sees the tokens after a hole too, so a text has no probability and no perplexity",
            Hint("take a decoder or an encoder-decoder"));
  constexpr int64_t kSentences = 1024;
  return {.cache = cache.value_or(model.precision().compute),
          .positions = std::max(usable_context(model, context), kSentences)};
}

Likelihood Model::likelihood(const Text& text) const {
  return likelihood(std::vector<Text>{text}).front();
}

std::vector<Likelihood> Model::likelihood(const std::vector<Text>& texts) const {
  const auto open = impl().open();
  const RunOptions room = likelihood_room(*open, impl().options().context, impl().cache());
  std::vector<TokenText> tokens;
  for (const Text& text : texts) tokens.push_back(scored(*open, text));
  const Impl::Turn turn(impl());
  Runner runner = open->runner(room);
  std::vector<std::vector<double>> found = log_probabilities(runner, tokens);
  std::vector<Likelihood> out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const double total = std::accumulate(found[i].begin(), found[i].end(), 0.0);
    const double perplexity = std::exp(-total / static_cast<double>(found[i].size()));
    out.push_back({.ids = std::move(tokens[i].ids),
                   .log_p = std::move(found[i]),
                   .first = tokens[i].first,
                   .total = total,
                   .perplexity = perplexity});
  }
  return out;
}

std::vector<std::vector<float>> Model::embed(const std::vector<Text>& texts, Pooling pooling) const {
  const auto open = impl().open();
  server::EmbeddingQueue::Job job{.texts = {}, .pooling = pooling_of(*open, pooling), .on_end = {}};
  for (const Text& text : texts) {
    TokenText tokens = tokens_of(*open, text);
    job.texts.push_back(std::move(open->spec().has_source() ? tokens.source : tokens.ids));
  }
  if (texts.empty()) return {};
  const Impl::Turn turn(impl());
  server::EmbeddingQueue queue(*open, usable_context(*open, impl().options().context), texts.size());
  server::Vectors made;
  std::exception_ptr failure;
  job.on_end = [&](server::Vectors vectors, std::exception_ptr failed) {
    made = std::move(vectors);
    failure = failed;
  };
  queue.submit(std::move(job));
  while (queue.step()) {
  }
  if (failure) std::rethrow_exception(failure);
  return made;
}

BeamTranslator::BeamTranslator(const OpenModel& model, const Options& options)
    : model_(model),
      context_(usable_context(model, options.context)),
      rows_(options.rows),
      beams_(checked_beams(model, options, context_)),
      runner_(model.runner(room(options))) {}

BeamOptions BeamTranslator::checked_beams(const OpenModel& model, const Options& options, int64_t context) {
  QKV_CHECK(model.spec().has_source(), model.path(), " is a ", model.spec().family, ", which is ",
            qkv::name_of(model.spec().kind), " and translates nothing",
            Hint("take an encoder-decoder such as Marian, BART or T5; or ask a decoder with  qkv run"));
  QKV_CHECK(!options.beams.max_new || *options.beams.max_new < context, "--max-new is ", *options.beams.max_new,
            " but a text has at most ", context, " tokens, its start included",
            Hint("use --max-new ", context - 1, " or less"));
  QKV_CHECK(options.rows >= 1, "a pass of ", options.rows, " rows", Hint("1 or more"));
  BeamOptions beams = beam_options(model.defaults(), options.beams, {.context = context, .has_source = true});
  BeamSearch checked(beams, model.target_start());  // throws if an option is out of its range
  return beams;
}

RunOptions BeamTranslator::room(const Options& options) const {
  constexpr int64_t kUsualSource = 256;
  const int64_t texts = std::max<int64_t>(options.rows / beams_.beams, 1);
  return {.cache = options.cache.value_or(model_.precision().compute),
          .positions = texts * beams_.beams * KvCache::whole_pages(beams_.max_length),
          .sources = std::max(KvCache::whole_pages(context_), texts * kUsualSource),
          .chunk = std::max(options.rows, beams_.beams)};
}

std::vector<BeamRunner::Hypotheses> BeamTranslator::translate(std::span<const std::vector<int32_t>> sources,
                                                              const std::function<bool(int64_t done)>& go_on) {
  std::vector<size_t> order;  // long ones first, so that those of a pass end together
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });
  std::vector<BeamRequest> requests;
  for (const size_t i : order) requests.push_back({.prompt = model_.target_start(), .source = sources[i]});
  BeamRunner run(runner_, requests, beams_, rows_);
  while (run.step()) {
    if (go_on && !go_on(run.finished())) break;
  }
  std::vector<BeamRunner::Hypotheses> found(sources.size());
  for (size_t n = 0; n < order.size(); ++n) found[order[n]] = std::move(run.results()[n]);
  return found;
}

// On one line, whatever the model wrote.
std::string BeamTranslator::text_of(const BeamSearch::Hypothesis& hypothesis) const {
  std::string text = model_.tokenizer().decode(std::span(hypothesis.ids).subspan(1), {.skip_specials = true});
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

std::vector<std::vector<Translation>> Model::translate(const std::vector<std::string>& texts,
                                                       const TranslateOptions& options) const {
  const auto open = impl().open();
  const Impl::Turn turn(impl());
  BeamTranslator translator(*open, {.beams = {.beams = options.beams,
                                              .max_new = options.max_new,
                                              .length_penalty = options.length_penalty,
                                              .n_best = options.n},
                                    .rows = options.rows,
                                    .context = impl().options().context,
                                    .cache = impl().cache()});
  std::vector<std::vector<int32_t>> sources;
  for (const std::string& text : texts) {
    std::vector<int32_t>& source = sources.emplace_back();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    source = tokens_of(*open, options.prefix + text).source;
    QKV_CHECK(std::ssize(source) <= translator.context(), "text ", sources.size() - 1, " has ", source.size(),
              " tokens but this model reads ", translator.context(), Hint("cut it into sentences"));
  }
  const auto found = translator.translate(
      sources, [&](int64_t done) { return !options.go_on || options.go_on(static_cast<size_t>(done)); });
  std::vector<std::vector<Translation>> out;
  for (const BeamRunner::Hypotheses& hypotheses : found) {
    std::vector<Translation>& all = out.emplace_back();
    for (const BeamSearch::Hypothesis& h : hypotheses) {
      all.push_back({.text = translator.text_of(h), .score = h.score, .ids = h.ids});
    }
  }
  return out;
}

std::vector<Generated> Model::search(const Text& prompt, const SearchOptions& options) const {
  const auto open = impl().open();
  SessionOptions session;
  set_prompt(*open, prompt, session);
  const int64_t context = usable_context(*open, impl().options().context);
  const auto length = std::ssize(session.prompt);
  const BeamOptions beams =
      beam_options(open->defaults(),
                   {.beams = options.beams,
                    .max_new = options.max_new,
                    .no_repeat_ngram = options.no_repeat_ngram,
                    .length_penalty = options.length_penalty,
                    .repetition_penalty = options.repetition_penalty,
                    .n_best = options.n},
                   {.prompt = length, .context = context, .has_source = open->spec().has_source()});
  const Impl::Turn turn(impl());
  Runner runner = open->runner(room_for_texts(
      *open, {.texts = std::max<int64_t>(2 * options.beams, 1), .context = context, .dtype = impl().cache()}));
  const BeamRequest request{.prompt = session.prompt, .source = session.source};
  BeamRunner run(runner, {&request, 1}, beams);
  while (run.step()) {
    if (options.go_on && !options.go_on()) return {};
  }
  std::vector<Generated> out;
  for (const BeamSearch::Hypothesis& found : run.results().front()) {
    Generated made{.text = {}, .ended = Ended::stopped, .prompt_tokens = length};
    const std::span<const int32_t> written = std::span(found.ids).subspan(static_cast<size_t>(length));
    for (const int32_t id : written) made.tokens.push_back({.id = id});
    if (open->has_tokenizer()) made.text = open->tokenizer().decode(written, {.skip_specials = true});
    out.push_back(std::move(made));
  }
  return out;
}

}  // namespace qkv::v1

#include "api/generation.h"

#include <algorithm>

#include "api/texts.h"
#include "infer/grammar/json_schema.h"
#include "infer/text_choices.h"
#include "open/room.h"

namespace qkv::v1 {
namespace {

// One thread at a time.
class InUse {
 public:
  explicit InUse(std::atomic<bool>& flag) : flag_(flag) {
    if (flag_.exchange(true)) {
      throw BusyError(Error::Kind::input, "another thread is waiting for the same text",
                      "start one Generation for each thread; cancel() alone is for any", QKV_HERE);
    }
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() { flag_ = false; }

 private:
  std::atomic<bool>& flag_;
};

Token outer(const Choice& choice) {
  return {.id = choice.id, .logprob = choice.logprob, .most_likely = choice.alternatives};
}

void finish(Generated& so_far, const WrittenText& written) {
  so_far.ended = written.ended;
  so_far.stop = written.stop;
  so_far.error = written.error;
  so_far.hint = written.hint;
  so_far.prompt_tokens = written.prompt_tokens;
  so_far.cached_tokens = written.cached_tokens;
  so_far.read_seconds = written.prefill_seconds;
  so_far.write_seconds = written.decode_seconds;
}

// The scheduler keeps no text alive that nobody waits for.
void connect(TextRequest& request, const std::shared_ptr<Generation::Impl>& to) {
  const std::weak_ptr<Generation::Impl> weak = to;
  request.on_token = [weak](const Choice& choice) {
    if (const auto impl = weak.lock()) {
      const std::lock_guard lock(impl->mutex);
      impl->news.tokens.push_back(outer(choice));
      impl->so_far.tokens.push_back(impl->news.tokens.back());
    }
  };
  request.on_text = [weak](std::string_view text) {
    const auto impl = weak.lock();
    if (!impl) return false;
    const std::lock_guard lock(impl->mutex);
    impl->news.text += text;
    impl->so_far.text += text;
    return true;
  };
  request.on_end = [weak](const WrittenText& written) {
    if (const auto impl = weak.lock()) {
      const std::lock_guard lock(impl->mutex);
      finish(impl->so_far, written);
    }
  };
}

std::shared_ptr<Generation::Impl> submitted(const std::shared_ptr<Model::Impl>& model, TextRequest request) {
  const auto open = model->open();
  request.options.context = usable_context(*open, model->options().context);
  auto made = std::make_shared<Generation::Impl>(model);
  connect(request, made);
  made->ticket = model->submit(std::move(request), open->has_tokenizer());
  return made;
}

}  // namespace

TextRequest request_of(const OpenModel& model, const GenerateOptions& options, std::string_view schema_from) {
  const TextChoices chosen{.temperature = options.temperature,
                           .top_p = options.top_p,
                           .min_p = options.min_p,
                           .typical_p = options.typical_p,
                           .repetition_penalty = options.repetition_penalty,
                           .presence_penalty = options.presence_penalty,
                           .frequency_penalty = options.frequency_penalty,
                           .top_k = options.top_k,
                           .no_repeat_ngram = options.no_repeat_ngram,
                           .max_new = options.max_new,
                           .logit_bias = options.logit_bias,
                           .stop = options.stop,
                           .seed = options.seed,
                           .draft = options.draft};
  QKV_CHECK(!options.max_new || *options.max_new >= 1, "max_new is ", *options.max_new,
            Hint("1 or more; leave it out to write until the context is full"));
  TextRequest request = text_request(chosen, model.defaults());
  request.options.sampling.alternatives = options.logprobs;
  if (!options.json_schema.empty()) {
    const grammar::GrammarPtr grammar = grammar::schema_grammar(options.json_schema, schema_from);
    request.options.constraint =
        std::make_shared<const grammar::TokenMasks>(grammar, grammar::token_trie_of(model.tokenizer()));
  }
  return request;
}

void set_prompt(const OpenModel& model, const Text& prompt, SessionOptions& to) {
  if (model.spec().has_source()) {
    TokenText text = tokens_of(model, prompt);
    to.source = std::move(text.source);
    to.prompt = std::move(text.ids);
  } else if (prompt.is_ids) {
    to.prompt = tokens_of(model, prompt).ids;
  } else {
    check_text(model, prompt);
    to.prompt = prompt_ids(model.tokenizer(), model.spec(), prompt.text);
  }
}

bool Generation::Impl::has_news() const {
  const std::lock_guard lock(mutex);
  return !news.text.empty() || !news.tokens.empty() || so_far.ended != Ended::not_yet;
}

Piece Generation::Impl::take() {
  const std::lock_guard lock(mutex);
  return std::exchange(news, {});
}

Generation Model::start(const Text& prompt, const GenerateOptions& options) const {
  const std::shared_ptr<const OpenModel> open = impl().open();
  TextRequest request = request_of(*open, options);
  set_prompt(*open, prompt, request.options);
  QKV_CHECK(open->has_tokenizer() || options.stop.empty(), "there are stop strings but the model has no tokenizer",
            Hint("leave them out: texts are looked for where a tokenizer makes them"));
  return Generation(submitted(impl_, std::move(request)));
}

Generation start_request(const Model& model, TextRequest request) {
  return Generation(submitted(model.impl().shared_from_this(), std::move(request)));
}

Generation::~Generation() {
  if (impl_ && !ended()) cancel();
}

Generation::Impl& Generation::impl() const {
  if (!impl_) {
    throw ClosedError(Error::Kind::input, "this text was moved to another variable", "use that one", QKV_HERE);
  }
  return *impl_;
}

std::optional<Piece> Generation::next() {
  Impl& one = impl();
  const InUse use(one.in_use);
  if (!one.has_news()) one.model->step_unless([&] { return one.has_news(); });
  Piece piece = one.take();
  if (piece.text.empty() && piece.tokens.empty() && ended()) return std::nullopt;
  return piece;
}

Generated Generation::wait() {
  while (next()) {
  }
  return result();
}

Generated Generation::result() const {
  const std::lock_guard lock(impl().mutex);
  return impl().so_far;
}

bool Generation::ended() const {
  const std::lock_guard lock(impl().mutex);
  return impl().so_far.ended != Ended::not_yet;
}

void Generation::cancel() const {
  impl().model->cancel(impl().ticket);
}

Generated Model::generate(const Text& prompt, const GenerateOptions& options, const OnText& on_text) const {
  Generation text = start(prompt, options);
  bool wanted = true;
  while (const std::optional<Piece> piece = text.next()) {
    if (!wanted || piece->text.empty() || !on_text) continue;
    wanted = on_text(piece->text);
    if (!wanted) text.cancel();
  }
  Generated made = text.result();
  QKV_CHECK(made.ended != Ended::failed, "writing failed: ", made.error, Hint(made.hint));
  return made;
}

std::vector<Generated> Model::generate(const std::vector<Text>& prompts, const GenerateOptions& options) const {
  std::vector<Generation> texts;
  for (const Text& prompt : prompts) texts.push_back(start(prompt, options));
  std::vector<Generated> made;
  for (Generation& text : texts) made.push_back(text.wait());
  return made;
}

}  // namespace qkv::v1

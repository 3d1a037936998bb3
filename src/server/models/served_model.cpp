#include "server/models/served_model.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"

namespace qkv::server {
namespace {

constexpr int64_t kMostBeams = 8;

// A pass of whole texts: long enough for what is usually turned into vectors, and no memory for more.
int64_t embedding_rows(const ModelSpec& spec, int64_t context) {
  constexpr int64_t kDecoder = 2048, kEncoder = 8192;
  return std::min(context, spec.kind == ModelSpec::Kind::encoder_only ? kEncoder : kDecoder);
}

int64_t served_context(const OpenModel& model, int64_t asked) {
  const int64_t own = model.spec().context;
  return usable_context(model, own > 0 ? std::min(asked, own) : asked);
}

// Who may look sees the numbers of the passes that write: they are those of qkv look.
OpenOptions served_options(OpenOptions options, const LookRules& look) {
  options.looks = look.allowed;
  return options;
}

}  // namespace

ServedModel::ServedModel(std::string name, const std::string& path, const OpenOptions& options, const ServeRoom& room)
    : name_(std::move(name)),
      room_(room),
      model_(path, served_options(options, room.look)),
      context_(served_context(model_, room.context)),
      created_(std::time(nullptr)),
      template_(ChatTemplate::load(path)),
      embeddings_(model_, embedding_rows(model_.spec(), context_), 2048),
      attributions_(model_, room.slots + room.queue) {
  // What every request needs: an Error now rather than with the first.
  model_.tokenizer();
  model_.defaults();
  if (model_.spec().has_source()) model_.target_start();
}

grammar::TokenTriePtr ServedModel::token_trie() const {
  if (const auto* error = std::get_if<Error>(&trie_)) throw *error;
  return std::get<grammar::TokenTriePtr>(trie_);
}

BeamChoices ServedModel::beam_limits() const {
  return {.beams = kMostBeams, .max_new = context_ - 1};
}

RunOptions ServedModel::run_options() const {
  RunOptions options = room_for_texts(model_, {.texts = room_.slots, .context = context_, .dtype = room_.cache});
  if (model_.spec().has_source()) {
    constexpr int64_t kUsualSource = 256, kUsualBeams = 4, kUsualLength = 256;
    const int64_t page = KvCache::whole_pages(std::min(context_, kUsualLength));
    const int64_t one = kMostBeams * KvCache::whole_pages(context_);  // the largest that may be asked for
    options.positions = std::max(one, room_.slots * kUsualBeams * page);
    options.sources = std::max(KvCache::whole_pages(context_), room_.slots * kUsualSource);
  }
  options.precision = model_.precision();
  return options;
}

int64_t ServedModel::need() const {
  if (model_.spec().kind != ModelSpec::Kind::encoder_only) {
    return Runner::need(model_.model(), model_.engine(), run_options()).total() + embeddings_.bytes();
  }
  int64_t weights = 0;
  for (const auto& [name, weight] : model_.model().weights()) {
    weights += bytes_in_pass(weight, model_.precision().compute);
  }
  return weights + embeddings_.bytes();
}

void ServedModel::load() {
  const ModelSpec& spec = model_.spec();
  if (spec.kind == ModelSpec::Kind::decoder_only) {
    try {
      trie_ = grammar::token_trie_of(model_.tokenizer());
    } catch (const Error& error) {
      trie_ = error;
    }
  }
  if (spec.kind != ModelSpec::Kind::encoder_only) {
    runner_.emplace(model_.model(), model_.engine(), run_options());
    if (spec.has_source()) {
      const BeamRequest first{.prompt = model_.target_start(), .source = {0}};
      beam_search(*runner_, {&first, 1}, {.beams = 1, .max_length = 2});
      translations_.emplace(model_, *runner_, static_cast<size_t>(room_.queue) * 16);
    } else {
      Session(*runner_, {.prompt = {0}, .max_new = 1}).next();
      scheduler_.emplace(
          *runner_,
          Scheduler::Options{.most_active = room_.slots, .most_waiting = room_.queue, .most_kept = room_.slots * 4});
    }
  }
  embeddings_.submit({.texts = {{0}}, .on_end = [](const Vectors&, const std::exception_ptr& failed) {
                        if (failed) std::rethrow_exception(failed);
                      }});
  embeddings_.step();
}

Scheduler& ServedModel::scheduler() const {
  QKV_CHECK(scheduler_.has_value(), "the model ", name_, " is a ", model_.spec().family,
            model_.spec().has_source() ? ", which translates" : ", which writes no text",
            Hint(model_.spec().has_source() ? "ask /v1/translate" : "ask /v1/embeddings"));
  return *scheduler_;
}

TranslateQueue& ServedModel::translations() const {
  QKV_CHECK(translations_.has_value(), "the model ", name_, " is a ", model_.spec().family,
            ", which translates nothing", Hint("take an encoder-decoder such as Marian, BART or T5"));
  return *translations_;
}

bool ServedModel::step() {
  const bool wrote = scheduler_ && scheduler_->step();
  const bool translated = translations_ && translations_->step();
  const bool embedded = embeddings_.step();
  const bool attributed = attributions_.step();
  return wrote || translated || embedded || attributed;
}

Scheduler::Counts ServedModel::counts() const {
  return scheduler_ ? scheduler_->counts() : Scheduler::Counts{};
}

}  // namespace qkv::server

#include "common/inspected.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "common/loaded.h"
#include "kernels/tables.h"
#include "text/documents.h"
#include "text/unicode/utf8.h"
#include "world/world.h"

namespace qkv::app {
namespace {

constexpr size_t kLargestFile = size_t{1} << 30;

// The first `limit` tokens of a text, in windows that begin as the model's texts do.
class Windows {
 public:
  Windows(const TextOptions& options, std::vector<InspectedText>& into) : options_(options), into_(into) {}

  bool full() const { return tokens_ >= options_.tokens; }
  void add(InspectedText text) {
    if (text.seen.ids.size() < 2) return;
    tokens_ += std::ssize(text.seen.ids);
    into_.push_back(std::move(text));
  }

 private:
  const TextOptions& options_;
  std::vector<InspectedText>& into_;
  int64_t tokens_ = 0;
};

}  // namespace

void add_inspect_options(Command command, InspectOptions& options) {
  command.add_option("MODEL", options.model, "A Hugging Face folder or a GGUF file").required();
  command.add_option("--dtype", options.dtype, "What it computes in; auto: f32 if all weights are f32, otherwise bf16")
      .one_of({"auto", "f32", "bf16"})
      .show_default();
  command.add_threads(options.threads);
}

void add_text_options(Command command, TextOptions& options) {
  command
      .add_option(
          "--data FILE", options.data,
          "A text file (for a model that translates: lines of source<TAB>target), or the built-in stories: world, "
          "world:zh, world:pairs")
      .known({"world", "world:zh", "world:pairs"})
      .required();
  command.add_option("--tokens", options.tokens, "Most tokens to read")
      .between(int64_t{2}, int64_t{1} << 40)
      .show_default();
  command.add_option("--window", options.length, "Tokens of one text at most; longer ones are cut")
      .between(int64_t{2}, int64_t{1} << 30)
      .show_default();
}

Inspected::Inspected(const InspectOptions& options, BlockWeights blocks)
    : path_(options.model),
      checkpoint_(Checkpoint::open(options.model)),
      engine_(kernels::best_table(), {.threads = options.threads}),
      model_(checkpoint_.model(engine_.device(), blocks)),
      precision_(precision_of(options.dtype, *model_)) {
  for (auto& [name, weight] : model_->weights()) weight.trainable = false;  // who walks back wants what is inside
}

bool Inspected::has_tokenizer() {
  try {
    tokenizer();
  } catch (const Error&) {
    return false;
  }
  return true;
}

const Tokenizer& Inspected::tokenizer() {
  if (!tokenizer_) tokenizer_ = Tokenizer::load(path_).whole_texts();
  return *tokenizer_;
}

SeenText Inspected::read(const std::string& text, const std::string& target) {
  if (!spec().has_source()) return {.ids = tokenizer().encode(text)};
  SeenText seen{.source = tokenizer().encode(text)};
  QKV_CHECK(spec().tokens.decoder_start.has_value(), path_, " does not say which token a target starts with",
            Hint("config.json should have decoder_start_token_id"));
  seen.ids.push_back(*spec().tokens.decoder_start);
  if (target.empty()) return seen;
  const std::vector<int32_t> more = tokenizer().encode(target);
  seen.ids.insert(seen.ids.end(), more.begin(), more.end());
  return seen;
}

std::vector<InspectedText> Inspected::texts(const TextOptions& options) {
  std::vector<InspectedText> found;
  Windows windows(options, found);
  const bool translates = spec().has_source();
  const int64_t most = std::min(options.length, spec().context > 0 ? spec().context : options.length);
  const auto pair = [&](const std::string& source, const std::string& target) {
    InspectedText made{.seen = read(source, target), .text = source, .target = target};
    if (std::ssize(made.seen.ids) <= most && std::ssize(made.seen.source) <= most) windows.add(std::move(made));
  };
  if (options.data.starts_with("world")) {
    const World world(kWorldSeed);
    const bool pairs = options.data == "world:pairs", chinese = options.data == "world:zh";
    QKV_CHECK(options.data == "world" || chinese || pairs, "no data ", options.data,
              Hint("the built-in world is world (English), world:zh or world:pairs"));
    QKV_CHECK(pairs == translates, "a ", spec().family, translates ? " translates" : " reads texts alone", ", but ",
              options.data, " was given", Hint(translates ? "use world:pairs" : "use world or world:zh"));
    for (uint64_t i = kFirstStory; !windows.full(); ++i) {
      if (translates) {  // Chinese to English, as the recipe world-translate reads them
        const Story story = world.story(i);
        for (size_t s = 0; s < story.english.sentences.size() && !windows.full(); ++s) {
          const auto part = [&](const Telling& t) {
            return t.text.substr(t.sentences[s].begin, t.sentences[s].end - t.sentences[s].begin);
          };
          pair(part(story.chinese), part(story.english));
        }
        continue;
      }
      std::string text = world.text(i, chinese ? Language::chinese : Language::english);
      SeenText seen = read(text);
      if (std::ssize(seen.ids) > most) seen.ids.resize(static_cast<size_t>(most));
      windows.add({.seen = std::move(seen), .text = std::move(text)});
    }
  } else if (translates) {
    DocumentReader reader({options.data}, {.format = DataFormat::tsv});
    for (Document document; !windows.full() && reader.next(document);) pair(document.text, document.target);
  } else {
    const std::string text = read_file(options.data, kLargestFile);
    QKV_CHECK(is_utf8(text), options.data, " is not UTF-8", Hint("convert it, for example with  iconv"));
    const std::vector<int32_t> empty = tokenizer().encode("");  // what stands around every text
    const std::vector<int32_t> ids = tokenizer().encode(text, {.add_specials = false, .read_specials = false});
    const bool leads = spec().kind == ModelSpec::Kind::encoder_only ? empty.size() == 2 : !empty.empty();
    const size_t around = leads ? (spec().kind == ModelSpec::Kind::encoder_only ? 2 : 1) : 0;
    const size_t step = static_cast<size_t>(std::max<int64_t>(most - static_cast<int64_t>(around), 1));
    for (size_t at = 0; at < ids.size() && !windows.full(); at += step) {
      const std::span<const int32_t> part = std::span(ids).subspan(at, std::min(step, ids.size() - at));
      InspectedText made{.text = tokenizer().decode(part)};
      if (around > 0) made.seen.ids.push_back(empty.front());
      made.seen.ids.insert(made.seen.ids.end(), part.begin(), part.end());
      if (around > 1) made.seen.ids.push_back(empty.back());
      windows.add(std::move(made));
    }
  }
  QKV_CHECK(!found.empty(), options.data, " has no text of two tokens or more", Hint("give a longer one"));
  return found;
}

std::vector<SeenText> seen(const std::vector<InspectedText>& texts) {
  std::vector<SeenText> all;
  for (const InspectedText& text : texts) all.push_back(text.seen);
  return all;
}

}  // namespace qkv::app

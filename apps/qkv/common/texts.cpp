#include "common/texts.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "common/token_ids.h"
#include "data/text_windows.h"
#include "inspect/cut/ablation.h"
#include "text/documents.h"
#include "text/unicode/utf8.h"

namespace qkv::app {
namespace {

bool is_world(std::string_view data) {
  return data == "world" || data.starts_with("world:");
}

void add_file(const OpenModel& model, const std::string& data, CollectedTexts& to) {
  const std::string text = read_text(data, kLargestTextFile);
  QKV_CHECK(is_utf8(text), data, " is not UTF-8", Hint("convert it, for example with  iconv"));
  const Tokenizer& tokenizer = model.tokenizer();
  const std::vector<int32_t> ids = tokenizer.encode(text, {.add_specials = false, .read_specials = false});
  // Special tokens around an empty text are those around every text.
  const std::vector<int32_t> specials = tokenizer.encode("");
  WindowOptions windows{.length = to.longest()};
  if (model.spec().kind != ModelSpec::Kind::encoder_only) {
    if (!specials.empty()) windows.before = {specials.front()};
  } else if (specials.size() == 2) {
    windows.before = {specials.front()};
    windows.after = {specials.back()};
  }
  // Windows need room for one token at least.
  const int64_t around = std::ssize(windows.before) + std::ssize(windows.after);
  windows.length = std::max(windows.length, around + 1);
  for (TokenText& window : cut_into_windows(ids, windows)) {
    if (to.full()) return;
    window.text = tokenizer.decode(
        std::span(window.ids).subspan(windows.before.size(), window.ids.size() - static_cast<size_t>(around)));
    to.add(std::move(window));
  }
}

// A text of token ids in each line; for a model that translates source<TAB>target. Longer lines are cut.
void add_ids(const OpenModel& model, const std::string& data, CollectedTexts& to) {
  const std::string content = read_file(data, kLargestTextFile);
  size_t number = 0;
  for (size_t at = 0; at < content.size() && !to.full();) {
    const size_t end = std::min(content.find('\n', at), content.size());
    const std::string line = content.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \r\t,") == std::string::npos) continue;
    const bool pairs = model.spec().has_source();
    const size_t tab = pairs ? line.find('\t') : line.size();
    try {
      QKV_CHECK(tab != std::string::npos, "there is no tab between a source and a target",
                Hint("give pairs, source<TAB>target"));
      TokenText text = given_tokens(
          model, {.text = line.substr(0, tab), .target = line.substr(std::min(tab + 1, line.size())), .ids = true});
      if (pairs) {
        to.add_pair(std::move(text));
        continue;
      }
      for (TokenText& window : cut_into_windows(text.ids, {.length = to.longest()})) to.add(std::move(window));
    } catch (const Error& error) {
      throw Error(error.kind(), data + " line " + std::to_string(number) + ": " + error.message(), error.hint(),
                  error.where());
    }
  }
}

}  // namespace

void add_text_options(Command command, TextOptions& options) {
  command
      .add_option(
          "--data FILE", options.data,
          "A text file (for a model that translates: lines of source<TAB>target), or the built-in stories: world, "
          "world:zh, world:pairs, or with a kind of story, as world:echo")
      .known({"world", "world:zh", "world:pairs"})
      .required();
  command.add_option("--tokens", options.tokens, "Most tokens to read")
      .between(int64_t{2}, int64_t{1} << 40)
      .show_default();
  command.add_option("--window", options.length, "Tokens of one text at most; longer ones are cut")
      .between(int64_t{2}, int64_t{1} << 30)
      .show_default();
}

std::vector<TokenText> read_texts(const OpenModel& model, const TextOptions& options) {
  CollectedTexts texts(model.spec(), {.tokens = options.tokens, .length = options.length});
  if (options.ids) {
    add_ids(model, options.data, texts);
  } else if (is_world(options.data)) {
    add_world(model, options.data, texts);
  } else if (model.spec().has_source()) {
    DocumentReader reader({options.data}, {.format = DataFormat::tsv});
    for (Document document; !texts.full() && reader.next(document);) {
      texts.add_pair(model.encode(document.text, document.target));
    }
  } else {
    add_file(model, options.data, texts);
  }
  std::vector<TokenText> found = texts.take();
  QKV_CHECK(!found.empty(), options.data, " has no text of two tokens or more", Hint("give a longer one"));
  return found;
}

std::vector<TokenText> read_scored_texts(const OpenModel& model, const TextOptions& options) {
  std::vector<TokenText> texts = read_texts(model, options);
  if (model.spec().kind != ModelSpec::Kind::encoder_only) return texts;
  const Tokenizer& tokenizer = model.tokenizer();
  HidingOptions hiding{.mask = tokenizer.named().mask.value_or(-1)};
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.has(id) && tokenizer.is_special(id)) hiding.kept.push_back(id);
  }
  return with_hidden_tokens(texts, hiding);
}

}  // namespace qkv::app

#include "api/texts.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "data/text_windows.h"
#include "inspect/cut/ablation.h"
#include "open/world_texts.h"
#include "text/documents.h"
#include "text/unicode/utf8.h"

namespace qkv::v1 {
namespace {

bool is_world(std::string_view data) {
  return data == "world" || data.starts_with("world:");
}

void add_file(const OpenModel& model, const std::string& data, CollectedTexts& to) {
  const std::string text = read_text(data, kLargestTextFile);
  QKV_CHECK(is_utf8(text), data, " is not UTF-8", Hint("convert it, for example with  iconv"));
  const qkv::Tokenizer& tokenizer = model.tokenizer();
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

// Longer lines are cut.
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
      TokenText text = tokens_of(
          model, Text::pair(parse_ids(line.substr(0, tab)), parse_ids(line.substr(std::min(tab + 1, line.size())))));
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

void check_ids(const OpenModel& model, const std::vector<int32_t>& ids, int64_t vocabulary) {
  for (size_t i = 0; i < ids.size(); ++i) {
    QKV_CHECK(ids[i] >= 0 && ids[i] < vocabulary, "token ", i, " has the id ", ids[i], " but ", model.path(),
              " knows ids from 0 to ", vocabulary - 1, Hint("qkv tokenize MODEL --ids TEXT prints those of a text"));
  }
}

std::string joined(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

std::vector<TokenText> found_texts(CollectedTexts& texts, const std::string& where) {
  std::vector<TokenText> found = texts.take();
  QKV_CHECK(!found.empty(), where, " has no text of two tokens or more", Hint("give a longer one"));
  return found;
}

}  // namespace

std::vector<int32_t> parse_ids(std::string_view text) {
  std::vector<int32_t> ids;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    while (at < end && (*at == ' ' || *at == ',' || *at == '\n' || *at == '\r' || *at == '\t')) ++at;
    if (at == end) return ids;
    int32_t id = 0;
    const auto read = std::from_chars(at, end, id);
    QKV_CHECK(read.ec == std::errc(), "with --ids the text is token ids, but there is ",
              printable(std::string_view(at, end)), Hint("for example  --ids \"1 403 407\""));
    ids.push_back(id);
    at = read.ptr;
  }
}

std::string title_of(const Text& given) {
  return given.is_ids ? joined(given.ids) : given.text;
}

std::string target_title_of(const Text& given) {
  return given.is_ids ? joined(given.target_ids) : given.target;
}

void add_text(CommandLine& line, const Text& given) {
  line.argument(title_of(given));
  if (const std::string target = target_title_of(given); !target.empty()) line.option("--target", target);
  if (given.is_ids) line.flag("--ids");
}

void check_text(const OpenModel& model, const Text& given) {
  const ModelSpec& spec = model.spec();
  QKV_CHECK(spec.has_source() || (given.target.empty() && given.target_ids.empty()), "there is a target, but a ",
            spec.family, " continues its text",
            Hint("leave it out: only models that translate have a source and a target"));
  QKV_CHECK(given.is_ids || (is_utf8(given.text) && is_utf8(given.target)), "the text is not UTF-8",
            Hint("convert it, for example with  iconv"));
}

TokenText tokens_of(const OpenModel& model, const Text& given) {
  check_text(model, given);
  const ModelSpec& spec = model.spec();
  if (!given.is_ids) return model.encode(given.text, given.target);
  if (!spec.has_source()) {
    check_ids(model, given.ids, spec.vocabulary);
    return {.ids = given.ids, .text = given.text};
  }
  check_ids(model, given.ids, spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary);
  check_ids(model, given.target_ids, spec.vocabulary);
  TokenText made{.ids = model.target_start(), .source = given.ids, .text = given.text, .target_text = given.target};
  made.ids.insert(made.ids.end(), given.target_ids.begin(), given.target_ids.end());
  return made;
}

const char* usual_data(const ModelSpec& spec) {
  return spec.has_source() ? "world:pairs" : "world";
}

std::vector<TokenText> texts_of_ids(const OpenModel& model, const Data& data) {
  CollectedTexts texts(model.spec(), {.tokens = data.tokens, .length = data.window});
  add_ids(model, data.name, texts);
  return found_texts(texts, data.name);
}

std::vector<TokenText> texts_of(const OpenModel& model, const Data& data) {
  QKV_CHECK(data.tokens >= 2 && data.window >= 2, "tokens is ", data.tokens, " and window ", data.window,
            Hint("a text has two tokens or more"));
  if (data.name.empty()) {
    std::vector<TokenText> given;
    for (const Text& text : data.texts) given.push_back(tokens_of(model, text));
    QKV_CHECK(!given.empty(), "no texts were given", Hint("give some, the name of a file, or world"));
    return given;
  }
  CollectedTexts texts(model.spec(), {.tokens = data.tokens, .length = data.window});
  if (is_world(data.name)) {
    add_world(model, data.name, texts);
  } else if (model.spec().has_source()) {
    DocumentReader reader({data.name}, {.format = DataFormat::tsv});
    for (Document document; !texts.full() && reader.next(document);) {
      texts.add_pair(model.encode(document.text, document.target));
    }
  } else {
    add_file(model, data.name, texts);
  }
  return found_texts(texts, data.name);
}

std::vector<TokenText> scored_texts(const OpenModel& model, std::vector<TokenText> texts) {
  if (model.spec().kind != ModelSpec::Kind::encoder_only) return texts;
  const qkv::Tokenizer& tokenizer = model.tokenizer();
  HidingOptions hiding{.mask = tokenizer.named().mask.value_or(-1)};
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.has(id) && tokenizer.is_special(id)) hiding.kept.push_back(id);
  }
  return with_hidden_tokens(texts, hiding);
}

}  // namespace qkv::v1

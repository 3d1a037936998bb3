#include "text/tokenizer/training/tokenizer_training.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/progress.h"
#include "base/seeded_hash.h"
#include "text/documents.h"
#include "text/tokenizer/models/byte_alphabet.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson added_tokens(const std::vector<std::string>& specials) {
  OrderedJson added = OrderedJson::array();
  for (size_t id = 0; id < specials.size(); ++id) {
    added.push_back({{"id", id},
                     {"content", specials[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  return added;
}

struct ByteLevelJson {
  bool add_prefix_space, use_regex;

  OrderedJson json() const {
    return {{"type", "ByteLevel"},
            {"add_prefix_space", add_prefix_space},
            {"trim_offsets", true},
            {"use_regex", use_regex}};
  }
};

OrderedJson pre_tokenizer(Pattern pattern) {
  // GPT-2's regular expression is built into ByteLevel.
  if (pattern == Pattern::gpt2) return ByteLevelJson{.add_prefix_space = false, .use_regex = true}.json();
  OrderedJson steps = OrderedJson::array();
  for (const std::string_view regex : pattern_regexes(pattern)) {
    steps.push_back({{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}});
  }
  steps.push_back(ByteLevelJson{.add_prefix_space = false, .use_regex = false}.json());
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

struct TokenizerFile {
  OrderedJson added, pre_tokenizer, decoder, model;

  std::string text() const {
    const OrderedJson file{{"version", "1.0"},          {"truncation", nullptr}, {"padding", nullptr},
                           {"added_tokens", added},     {"normalizer", nullptr}, {"pre_tokenizer", pre_tokenizer},
                           {"post_processor", nullptr}, {"decoder", decoder},    {"model", model}};
    return file.dump(2) + '\n';
  }
};

void check_names(const std::vector<std::string>& names) {
  std::unordered_set<std::string_view, SeededHash> seen;
  for (const std::string& name : names) {
    QKV_CHECK(seen.insert(name).second, "the token ", printable(name), " would stand twice in the vocabulary",
              Hint("give the special token another name"));
  }
}

void check(const TokenizerTraining& training) {
  QKV_CHECK(!training.files.empty(), "there are no files to train on", Hint("name some text files"));
  QKV_CHECK(training.kind == TokenizerKind::bpe || !training.pattern, "a tokenizer that is not BPE has no pattern",
            Hint("leave it out, or train a BPE tokenizer"));
  QKV_CHECK(training.kind != TokenizerKind::characters || training.max_token_length == 0, "max_token_length is ",
            training.max_token_length, " but every token of a tokenizer of characters is one",
            Hint("leave it out, or train a BPE or unigram tokenizer"));
  for (const std::string& special : training.specials) {
    QKV_CHECK(!special.empty() && is_utf8(special), "the special token ", printable(special), " is not text",
              Hint("it must be UTF-8 and have a character"));
  }
  check_names(training.specials);
  QKV_CHECK(
      training.begin.empty() || std::count(training.specials.begin(), training.specials.end(), training.begin) > 0,
      "the token ", printable(training.begin), " is to stand before every text but is not a special token",
      Hint("add it to the special tokens"));
}

// Puts a special token before every text.
std::string with_begin(const std::string& file, const std::string& begin) {
  OrderedJson json = OrderedJson::parse(file);
  OrderedJson id;
  for (const OrderedJson& added : json["added_tokens"]) {
    if (added["content"] == begin) id = added["id"];
  }
  const auto text = [&](const char* which, int type) {
    return OrderedJson::array(
        {{{"SpecialToken", {{"id", begin}, {"type_id", type}}}}, {{"Sequence", {{"id", which}, {"type_id", type}}}}});
  };
  OrderedJson pair = text("A", 0);
  for (const OrderedJson& part : text("B", 1)) pair.push_back(part);
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", text("A", 0)},
      {"pair", std::move(pair)},
      {"special_tokens",
       {{begin, {{"id", begin}, {"ids", OrderedJson::array({id})}, {"tokens", OrderedJson::array({begin})}}}}}};
  return json.dump(2) + '\n';
}

int64_t total_size(const std::vector<std::filesystem::path>& files) {
  int64_t total = 0;
  for (const std::filesystem::path& file : files) {
    std::error_code failed;
    const auto size = std::filesystem::file_size(file, failed);
    if (failed) return 0;  // unknown: a pipe
    total += static_cast<int64_t>(size);
  }
  return total;
}

// <unk> first, unless it is one of the specials.
std::vector<std::string> with_unknown(std::vector<std::string> specials) {
  if (std::find(specials.begin(), specials.end(), kUnknownToken) == specials.end()) {
    specials.insert(specials.begin(), kUnknownToken);
  }
  return specials;
}

void train_bpe_into(TrainedTokenizer& out, const TokenizerTraining& training, WordCounts words) {
  Progress progress("merging", static_cast<int64_t>(training.vocab));
  const size_t given = training.specials.size() + 256;  // tokens that are not merges
  const auto on_merge = [&](size_t merges) { progress.update(static_cast<int64_t>(given + merges)); };
  const BpeModel model = train_bpe(std::move(words), {.vocab = training.vocab,
                                                      .specials = training.specials,
                                                      .max_token_length = training.max_token_length,
                                                      .on_merge = on_merge});
  progress.finish();
  out.vocab = model.tokens.size();
  out.json = bpe_tokenizer_json(model, training.pattern.value_or(Pattern::gpt2));
}

void train_unigram_into(TrainedTokenizer& out, const TokenizerTraining& training, const WordCounts& words,
                        ThreadPool& pool) {
  const size_t specials = with_unknown(training.specials).size();
  QKV_CHECK(training.vocab > specials, "a vocabulary of ", training.vocab, " tokens has no room beside its ", specials,
            " special tokens", Hint("ask for more"));
  Progress progress("pruning", 0);
  int64_t round = 0;
  const TrainedUnigram model =
      train_unigram(words,
                    {.pieces = training.vocab - specials,
                     .max_token_length = training.max_token_length,
                     .on_round = [&](size_t pieces) { progress.update(++round, std::to_string(pieces) + " pieces"); }},
                    pool);
  progress.finish();
  out.vocab = model.pieces.size() + specials;
  out.stray_bytes = model.stray_bytes;
  out.json = unigram_tokenizer_json(model, training.specials);
}

TrainedTokenizer train_characters(const TokenizerTraining& training) {
  TrainedTokenizer out;
  std::set<std::string> seen;  // UTF-8 sorts like code points
  DocumentReader reader({training.files.begin(), training.files.end()}, {.cut = DocumentCut::line});
  seen.insert("\n");
  for (Document line; reader.next(line);) {
    const std::string_view text = line.text;
    for (size_t at = 0; at < text.size();) {
      const size_t size = utf8_length(text.substr(at));
      seen.emplace(text.substr(at, size));
      at += size;
    }
  }
  out.bytes = reader.bytes_read();
  out.json = character_tokenizer_json({seen.begin(), seen.end()}, training.specials);
  out.distinct_words = seen.size();
  out.vocab = seen.size() + with_unknown(training.specials).size();
  return out;
}

TrainedTokenizer train_words(const TokenizerTraining& training, ThreadPool& pool) {
  TrainedTokenizer out;
  WordCounter counter({.pattern = training.pattern.value_or(Pattern::gpt2), .specials = training.specials}, pool);
  Progress progress("counting words", total_size(training.files));
  for (const std::filesystem::path& file : training.files) {
    counter.add_file(file, [&](size_t bytes) {
      out.bytes += bytes;
      progress.update(static_cast<int64_t>(out.bytes));
    });
  }
  progress.finish();
  WordCounts words = counter.take();
  out.distinct_words = words.size();
  QKV_CHECK(out.distinct_words != 0, "the files hold no text: ", out.bytes, " bytes, no words",
            Hint("name files with text in them"));
  if (training.kind == TokenizerKind::bpe) {
    train_bpe_into(out, training, std::move(words));
  } else {
    // Every text begins with a space then, also where no text has one, as in Chinese.
    const auto has_space = [](const Word& word) { return word.text.find(' ') != word.text.npos; };
    if (std::ranges::none_of(std::as_const(words).words(), has_space)) words.add(" ");
    train_unigram_into(out, training, words, pool);
  }
  return out;
}

}  // namespace

TrainedTokenizer train_tokenizer(const TokenizerTraining& training, ThreadPool& pool) {
  check(training);
  TrainedTokenizer out =
      training.kind == TokenizerKind::characters ? train_characters(training) : train_words(training, pool);
  if (!training.begin.empty()) out.json = with_begin(out.json, training.begin);
  return out;
}

std::string bpe_tokenizer_json(const BpeModel& model, Pattern pattern) {
  std::vector<std::string> names(model.tokens.begin(), model.tokens.begin() + static_cast<ptrdiff_t>(model.specials));
  const std::vector<std::string> specials = names;
  for (size_t id = model.specials; id < model.tokens.size(); ++id) names.push_back(bytes_to_letters(model.tokens[id]));
  check_names(names);

  OrderedJson::object_t vocab;
  for (size_t id = 0; id < names.size(); ++id) vocab.emplace_back(names[id], id);
  OrderedJson merges = OrderedJson::array();
  for (const auto& [left, right] : model.merges) merges.push_back({names[left], names[right]});
  return TokenizerFile{.added = added_tokens(specials),
                       .pre_tokenizer = pre_tokenizer(pattern),
                       .decoder = ByteLevelJson{.add_prefix_space = true, .use_regex = true}.json(),
                       .model = {{"type", "BPE"},
                                 {"dropout", nullptr},
                                 {"unk_token", nullptr},
                                 {"continuing_subword_prefix", nullptr},
                                 {"end_of_word_suffix", nullptr},
                                 {"fuse_unk", false},
                                 {"byte_fallback", false},
                                 {"ignore_merges", false},
                                 {"vocab", std::move(vocab)},
                                 {"merges", std::move(merges)}}}
      .text();
}

std::string character_tokenizer_json(const std::vector<std::string>& characters,
                                     const std::vector<std::string>& specials) {
  const std::vector<std::string> first = with_unknown(specials);
  std::vector<std::string> names = first;
  names.insert(names.end(), characters.begin(), characters.end());
  check_names(names);
  OrderedJson::object_t vocab;
  for (size_t id = 0; id < names.size(); ++id) vocab.emplace_back(names[id], id);
  return TokenizerFile{.added = added_tokens(first),
                       .pre_tokenizer = nullptr,
                       .decoder = {{"type", "Fuse"}},
                       .model = {{"type", "BPE"},
                                 {"dropout", nullptr},
                                 {"unk_token", kUnknownToken},
                                 {"continuing_subword_prefix", nullptr},
                                 {"end_of_word_suffix", nullptr},
                                 {"fuse_unk", false},
                                 {"byte_fallback", false},
                                 {"ignore_merges", false},
                                 {"vocab", std::move(vocab)},
                                 {"merges", OrderedJson::array()}}}
      .text();
}

std::string unigram_tokenizer_json(const TrainedUnigram& model, const std::vector<std::string>& specials) {
  const std::vector<std::string> first = with_unknown(specials);
  std::vector<std::string> names = first;
  OrderedJson vocab = OrderedJson::array();
  for (const std::string& special : first) vocab.push_back({special, 0.0});
  for (const UnigramPiece& piece : model.pieces) {
    names.push_back(piece.text);
    vocab.push_back({piece.text, piece.score});
  }
  check_names(names);
  // "first": only the start of a text gets a space, not the parts after special tokens, so those decode unchanged.
  const OrderedJson metaspace{
      {"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "first"}, {"split", true}};
  return TokenizerFile{.added = added_tokens(first),
                       .pre_tokenizer = metaspace,
                       .decoder = metaspace,
                       .model = {{"type", "Unigram"},
                                 {"unk_id", std::find(first.begin(), first.end(), kUnknownToken) - first.begin()},
                                 {"vocab", std::move(vocab)},
                                 {"byte_fallback", false}}}
      .text();
}

}  // namespace qkv

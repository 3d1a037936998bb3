// The models of tokenizer.json.
#include <array>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable.h"
#include "text/bpe.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer_json.h"
#include "text/word_models.h"

namespace qkv {
namespace {

// Older files leave the type out; what they have tells it.
std::string model_type(const JsonNode& node) {
  if (const auto type = node.find("type")) return type->string();
  if (node.find("merges")) return "BPE";
  if (node.find("unk_id")) return "Unigram";
  return node.find("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

Vocab read_vocab(const JsonNode& node) {
  QKV_CHECK(node.json().is_object(), node.where(), " is ", node.json().type_name(), " but must be an object",
            Hint("it maps each token to its id"));
  const auto& entries = node.json().get_ref<const Json::object_t&>();
  Vocab vocab;
  vocab.reserve(entries.size(), 8 * entries.size());
  for (const auto& [token, id] : entries) {
    QKV_CHECK(id.is_number_integer(), node.where(), ": the id of token ", printable(token), " is ",
              printable(id.dump()), " but must be a whole number", Hint("the file is damaged"));
    vocab.add(token, id.get<int64_t>(), {.what = node.where(), .tokens = entries.size()});
  }
  return vocab;
}

// "left right", or ["left", "right"] where tokens may have spaces.
Bpe::Merges read_merges(const JsonNode& list) {
  Bpe::Merges merges;
  merges.reserve(list.size());
  for (const Json& entry : list.json()) {
    const auto bad = [&] {
      const size_t i = merges.size();
      QKV_FAIL(list.where(), "[", i, "] is ", printable(entry.dump()), " but must be two tokens",
               Hint("written \"left right\" or [\"left\", \"right\"]"));
    };
    if (entry.is_array()) {
      if (entry.size() != 2 || !entry[0].is_string() || !entry[1].is_string()) bad();
      merges.emplace_back(entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>());
      continue;
    }
    if (!entry.is_string()) bad();
    const std::string_view text = entry.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space == text.npos || text.find(' ', space + 1) != text.npos) bad();
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return merges;
}

TokenModelPtr read_bpe(const JsonNode& node, PreTokenizerReading reading) {
  if (const auto dropout = node.find("dropout")) {
    QKV_CHECK(dropout->number() == 0, dropout->where(), " is ", dropout->number(), " but must be 0 or null",
              Hint("dropout is for training a model; remove it from the file to encode text"));
  }
  return std::make_unique<Bpe>(read_vocab(node.at("vocab")), read_merges(node.at("merges")),
                               BpeOptions{.what = node.where(),
                                          .byte_level = reading.raw_bytes,
                                          .byte_fallback = node.flag_or("byte_fallback", false),
                                          .fuse_unk = node.flag_or("fuse_unk", false),
                                          .ignore_merges = node.flag_or("ignore_merges", false),
                                          .unk_token = node.string_or("unk_token", ""),
                                          .continuing_subword_prefix = node.string_or("continuing_subword_prefix", ""),
                                          .end_of_word_suffix = node.string_or("end_of_word_suffix", "")});
}

TokenModelPtr read_unigram(const JsonNode& node) {
  const JsonNode list = node.at("vocab");
  Unigram::Pieces pieces;
  pieces.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonNode entry = list.at(i);
    QKV_CHECK(entry.size() == 2, entry.where(), " has ", entry.size(), " elements but must be a piece and its score",
              Hint("the file is damaged"));
    pieces.emplace_back(entry.at(size_t{0}).string(), entry.at(size_t{1}).number());
  }
  const int32_t unk = narrow<int32_t>(node.integer_or("unk_id", -1), node.where() + ".unk_id");
  return std::make_unique<UnigramModel>(
      Unigram(std::move(pieces), {.unk_id = unk, .byte_fallback = node.flag_or("byte_fallback", false)}));
}

}  // namespace

bool can_read_bytes(const JsonNode& node) {
  if (model_type(node) != "BPE") return false;
  if (!node.string_or("continuing_subword_prefix", "").empty() || !node.string_or("end_of_word_suffix", "").empty()) {
    return false;
  }
  const JsonNode vocab = node.at("vocab");
  for (int byte = 0; byte < 256; ++byte) {
    if (!vocab.find(byte_letter(static_cast<unsigned char>(byte)))) return false;
  }
  return true;
}

TokenModelPtr read_model(const JsonNode& node, PreTokenizerReading reading) {
  const std::string type = model_type(node);
  if (type == "BPE") return read_bpe(node, reading);
  if (type == "Unigram") return read_unigram(node);
  if (type == "WordPiece") {
    const int64_t longest = node.integer_or("max_input_chars_per_word", 100);
    return std::make_unique<WordPiece>(
        read_vocab(node.at("vocab")),
        WordPieceOptions{
            .what = node.where(),
            .unk_token = node.string_or("unk_token", "[UNK]"),
            .continuing_subword_prefix = node.string_or("continuing_subword_prefix", "##"),
            .max_input_chars_per_word = narrow<size_t>(longest, node.where() + ".max_input_chars_per_word")});
  }
  if (type == "WordLevel") {
    return std::make_unique<WordLevel>(
        read_vocab(node.at("vocab")),
        WordLevelOptions{.what = node.where(), .unk_token = node.string_or("unk_token", "<unk>")});
  }
  constexpr std::array<std::string_view, 4> kKnown{"BPE", "Unigram", "WordPiece", "WordLevel"};
  unknown_type(node, "model", kKnown);
}

}  // namespace qkv

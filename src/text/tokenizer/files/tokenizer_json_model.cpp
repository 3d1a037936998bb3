// The models of tokenizer.json.
#include <array>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable.h"
#include "text/tokenizer/files/tokenizer_json.h"
#include "text/tokenizer/models/bpe.h"
#include "text/tokenizer/models/word_models.h"

namespace qkv {
namespace {

// Older files have no type; it follows from the fields.
std::string model_type(const JsonNode& node, const ModelLists& lists) {
  if (const auto type = node.find("type")) return type->string();
  if (lists.merges.size() > 0) return "BPE";
  if (node.find("unk_id")) return "Unigram";
  return node.find("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

using TapeKind = JsonTape::Kind;

void check_present(const JsonTape& list, const std::string& where, TapeKind first, std::string_view wanted) {
  QKV_CHECK(list.size() > 0 && list.kind(0) == first, where, " is missing or not ", wanted,
            Hint("the file is damaged or not a tokenizer"));
}

Vocab read_vocab(const JsonTape& list, const std::string& where) {
  check_present(list, where, TapeKind::open_object, "an object");
  const size_t tokens = list.size() / 2 - 1;
  Vocab vocab;
  vocab.reserve(tokens, 8 * tokens);
  for (size_t i = 1; i + 1 < list.size(); i += 2) {
    const std::string_view token = list.text(i);
    QKV_CHECK(list.kind(i + 1) == TapeKind::integer, where, ": the id of token ", printable(token),
              " is not a whole number", Hint("the file is damaged"));
    QKV_CHECK(vocab.add(token, list.integer(i + 1), {.what = where, .tokens = tokens}), where, ": the token ",
              printable(token), " appears twice", Hint("keep one of the two"));
  }
  return vocab;
}

// "left right", or ["left", "right"] if tokens may contain spaces.
Bpe::Merges read_merges(const JsonTape& list, const std::string& where) {
  check_present(list, where, TapeKind::open_array, "a list");
  Bpe::Merges merges;
  merges.reserve(list.size() / 4);
  const auto check = [&](bool good) {
    QKV_CHECK(good, where, "[", merges.size(), "] is not two tokens",
              Hint("written \"left right\" or [\"left\", \"right\"]"));
  };
  for (size_t i = 1; i + 1 < list.size();) {
    if (list.kind(i) == TapeKind::open_array) {
      check(i + 4 < list.size() && list.kind(i + 1) == TapeKind::string && list.kind(i + 2) == TapeKind::string &&
            list.kind(i + 3) == TapeKind::close_array);
      merges.emplace_back(list.text(i + 1), list.text(i + 2));
      i += 4;
      continue;
    }
    check(list.kind(i) == TapeKind::string);
    const std::string_view text = list.text(i++);
    const size_t space = text.find(' ');
    check(space != text.npos && text.find(' ', space + 1) == text.npos);
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return merges;
}

LoadedModel read_bpe(const JsonNode& node, const ModelLists& lists) {
  if (const auto dropout = node.find("dropout")) {
    QKV_CHECK(dropout->number() == 0, dropout->where(), " is ", dropout->number(), " but must be 0 or null",
              Hint("dropout is for training a model; remove it from the file to encode text"));
  }
  BpeOptions options{.what = node.where(),
                     .byte_fallback = node.flag_or("byte_fallback", false),
                     .fuse_unk = node.flag_or("fuse_unk", false),
                     .ignore_merges = node.flag_or("ignore_merges", false),
                     .unk_token = node.string_or("unk_token", ""),
                     .continuing_subword_prefix = node.string_or("continuing_subword_prefix", ""),
                     .end_of_word_suffix = node.string_or("end_of_word_suffix", "")};
  Vocab vocab = read_vocab(lists.vocab, node.where() + ".vocab");
  const bool marked = !options.continuing_subword_prefix.empty() || !options.end_of_word_suffix.empty();
  options.byte_level = lists.byte_letters && !marked && Bpe::has_all_bytes(vocab);
  const bool reads_bytes = options.byte_level;
  const Bpe::Merges merges = read_merges(lists.merges, node.where() + ".merges");
  return {std::make_unique<Bpe>(std::move(vocab), merges, std::move(options)), reads_bytes};
}

TokenModelPtr read_unigram(const JsonNode& node, const JsonTape& list) {
  const std::string where = node.where() + ".vocab";
  check_present(list, where, TapeKind::open_array, "a list");
  Unigram::Pieces pieces;
  for (size_t i = 1; i + 1 < list.size(); i += 4) {
    const bool good = i + 4 < list.size() && list.kind(i) == TapeKind::open_array &&
                      list.kind(i + 1) == TapeKind::string &&
                      (list.kind(i + 2) == TapeKind::number || list.kind(i + 2) == TapeKind::integer) &&
                      list.kind(i + 3) == TapeKind::close_array;
    QKV_CHECK(good, where, "[", pieces.size(), "] is not a piece and its score", Hint("the file is damaged"));
    const double score =
        list.kind(i + 2) == TapeKind::number ? list.number(i + 2) : static_cast<double>(list.integer(i + 2));
    pieces.emplace_back(list.text(i + 1), score);
  }
  const int32_t unk = narrow<int32_t>(node.integer_or("unk_id", -1), node.where() + ".unk_id");
  return std::make_unique<UnigramModel>(
      Unigram(std::move(pieces), {.unk_id = unk, .byte_fallback = node.flag_or("byte_fallback", false)}));
}

}  // namespace

LoadedModel read_model(const JsonNode& node, const ModelLists& lists) {
  const std::string type = model_type(node, lists);
  const std::string vocab = node.where() + ".vocab";
  if (type == "BPE") return read_bpe(node, lists);
  if (type == "Unigram") return {read_unigram(node, lists.vocab)};
  if (type == "WordPiece") {
    const int64_t longest = node.integer_or("max_input_chars_per_word", 100);
    return {std::make_unique<WordPiece>(
        read_vocab(lists.vocab, vocab),
        WordPieceOptions{
            .what = node.where(),
            .unk_token = node.string_or("unk_token", "[UNK]"),
            .continuing_subword_prefix = node.string_or("continuing_subword_prefix", "##"),
            .max_input_chars_per_word = narrow<size_t>(longest, node.where() + ".max_input_chars_per_word")})};
  }
  if (type == "WordLevel") {
    return {std::make_unique<WordLevel>(
        read_vocab(lists.vocab, vocab),
        WordLevelOptions{.what = node.where(), .unk_token = node.string_or("unk_token", "<unk>")})};
  }
  constexpr std::array<std::string_view, 4> kKnown{"BPE", "Unigram", "WordPiece", "WordLevel"};
  unknown_type(node, "model", kKnown);
}

}  // namespace qkv

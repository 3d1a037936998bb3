// The models of tokenizer.json.
#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/json_reader.h"
#include "base/printable.h"
#include "text/tokenizer/files/tokenizer_json.h"
#include "text/tokenizer/models/word_models.h"

namespace qkv {
namespace {

// Older files have no type; it follows from the fields.
std::string model_type(const JsonNode& node, const ModelLists& lists) {
  if (const auto type = node.find("type")) return type->string();
  if (lists.has_merges) return "BPE";
  if (node.find("unk_id")) return "Unigram";
  return node.find("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

using JsonKind = JsonReader::Kind;

// A reader of a part that must be there and of this kind. Errors of the text itself name the file.
JsonReader reader_of(JsonText list, const std::string& where, JsonKind kind, std::string_view wanted) {
  JsonReader in(list, where, {.bytes = kLargestTokenizerFile});
  QKV_CHECK(!list.text().empty() && in.kind() == kind, where, " is missing or not ", wanted,
            Hint("the file is damaged or not a tokenizer"));
  return in;
}

// The most bytes the strings of a list can have, if each comes with at least so many others.
size_t most_text(JsonText list, size_t others) {
  return list.text().size() - std::min(list.text().size(), others * list.items());
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
  return {std::make_unique<Bpe>(std::move(vocab), lists.merges, std::move(options)), reads_bytes};
}

TokenModelPtr read_unigram(const JsonNode& node, JsonText list) {
  const std::string where = node.where() + ".vocab";
  JsonReader in = reader_of(list, where, JsonKind::array, "a list");
  Unigram::Pieces pieces;
  pieces.reserve(list.items(), most_text(list, 6));
  const auto check = [&](bool good) {
    QKV_CHECK(good, where, "[", pieces.size(), "] is not a piece and its score", Hint("the file is damaged"));
  };
  std::string spare;
  in.elements([&] {
    check(in.kind() == JsonKind::array);
    std::string_view text;
    size_t read = 0;
    in.elements([&] {
      check(read < 2 && in.kind() == (read == 0 ? JsonKind::string : JsonKind::number));
      if (read++ == 0) {
        text = in.string(spare);
      } else {
        pieces.add(text, in.number().real);
      }
    });
    check(read == 2);
  });
  const int32_t unk = narrow<int32_t>(node.integer_or("unk_id", -1), node.where() + ".unk_id");
  return std::make_unique<UnigramModel>(
      Unigram(std::move(pieces), {.unk_id = unk, .byte_fallback = node.flag_or("byte_fallback", false)}));
}

}  // namespace

Vocab read_vocab(JsonText list, const std::string& where) {
  JsonReader in = reader_of(list, where, JsonKind::object, "an object");
  Vocab vocab;
  vocab.reserve(list.items(), most_text(list, 5));
  in.members([&](std::string_view token) {
    const JsonNumber id = in.kind() == JsonKind::number ? in.number() : JsonNumber{.kind = JsonNumber::Kind::real};
    QKV_CHECK(id.kind == JsonNumber::Kind::integer, where, ": the id of token ", printable(token),
              " is not a whole number", Hint("the file is damaged"));
    QKV_CHECK(vocab.add(token, id.integer, {.what = where, .tokens = list.items()}), where, ": the token ",
              printable(token), " appears twice", Hint("keep one of the two"));
  });
  return vocab;
}

void give_merges(JsonText list, const std::string& where, Bpe::TakeMerge take) {
  JsonReader in = reader_of(list, where, JsonKind::array, "a list");
  uint32_t rank = 0;
  const auto check = [&](bool good) {
    QKV_CHECK(good, where, "[", rank, "] is not two tokens", Hint("written \"left right\" or [\"left\", \"right\"]"));
  };
  std::string spare, second_spare;
  in.elements([&] {
    check(in.kind() == JsonKind::string || in.kind() == JsonKind::array);
    std::string_view left, right;
    if (in.kind() == JsonKind::string) {
      const std::string_view both = in.string(spare);
      const size_t space = both.find(' ');
      check(space != both.npos && both.find(' ', space + 1) == both.npos);
      left = both.substr(0, space);
      right = both.substr(space + 1);
    } else {
      size_t read = 0;
      in.elements([&] {
        check(read < 2 && in.kind() == JsonKind::string);
        (read == 0 ? left : right) = in.string(read == 0 ? spare : second_spare);
        ++read;
      });
      check(read == 2);
    }
    take(left, right, rank);
    ++rank;
  });
}

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

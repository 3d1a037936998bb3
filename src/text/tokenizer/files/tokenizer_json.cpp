#include "text/tokenizer/files/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable.h"
#include "text/tokenizer/files/base64.h"
#include "text/unicode/characters.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

using Names = std::span<const std::string_view>;

// Reads each element of a component's list with `read`.
template <class Ptr, class Read>
std::vector<Ptr> read_list(const JsonNode& list, Read read) {
  std::vector<Ptr> steps;
  for (size_t i = 0; i < list.size(); ++i) steps.push_back(read(list.at(i), i + 1 == list.size()));
  return steps;
}

SplitBehavior read_behavior(const JsonNode& node, std::string_view otherwise) {
  const auto found = node.find("behavior");
  const std::string name = found ? found->string() : std::string(otherwise);
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kAll{{
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous},
  }};
  for (const auto& [known, behavior] : kAll) {
    if (name == known) return behavior;
  }
  QKV_FAIL(node.where(), ": unknown behavior ", printable(name),
           Hint("one of Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous"));
}

std::string one_character(const JsonNode& node) {
  const std::string& text = node.string();
  QKV_CHECK(!text.empty() && first_character(text).size() == text.size(), node.where(), " is ", printable(text),
            " but must be one character", Hint("the file is damaged"));
  return text;
}

PrependScheme read_prepend_scheme(const JsonNode& node) {
  const bool old_flag = node.flag_or("add_prefix_space", true);
  const std::string scheme = node.string_or("prepend_scheme", old_flag ? "always" : "never");
  if (scheme == "always") return PrependScheme::always;
  if (scheme == "first") return PrependScheme::first;
  QKV_CHECK(scheme == "never", node.where(), ": unknown prepend_scheme ", printable(scheme),
            Hint("one of always, first, never"));
  return PrependScheme::never;
}

}  // namespace

std::string type_of(const JsonNode& node) {
  return node.at("type").string();
}

void unknown_type(const JsonNode& node, std::string_view kind, Names known) {
  const std::string type = type_of(node);
  const std::string near = nearest_key(type, known);
  std::string all;
  for (const std::string_view name : known) all += (all.empty() ? "" : ", ") + std::string(name);
  QKV_FAIL(node.where(), ".type: unknown ", kind, " ", printable(type),
           Hint(near.empty() ? "" : "did you mean " + near + "? ", "known are ", all));
}

Matcher read_pattern(const JsonNode& node) {
  if (const auto string = node.find("String")) return Matcher::string(string->string());
  if (const auto regex = node.find("Regex")) return Matcher::regex(regex->string(), regex->where());
  QKV_FAIL(node.where(), " has neither String nor Regex", Hint("the file is damaged or newer than this program"));
}

NormalizerPtr read_normalizer(const JsonNode& node) {
  const std::string type = type_of(node);
  if (type == "NFC") return unicode_normalizer(UnicodeForm::nfc);
  if (type == "NFD") return unicode_normalizer(UnicodeForm::nfd);
  if (type == "NFKC") return unicode_normalizer(UnicodeForm::nfkc);
  if (type == "NFKD") return unicode_normalizer(UnicodeForm::nfkd);
  if (type == "Lowercase") return lowercase_normalizer();
  if (type == "StripAccents") return strip_accents_normalizer();
  if (type == "Nmt") return nmt_normalizer();
  if (type == "Prepend") return prepend_normalizer(node.at("prepend").string());
  if (type == "Replace") return replace_normalizer(read_pattern(node.at("pattern")), node.at("content").string());
  if (type == "Strip") {
    return strip_normalizer({.left = node.flag_or("strip_left", true), .right = node.flag_or("strip_right", true)});
  }
  if (type == "Precompiled") {
    const JsonNode map = node.at("precompiled_charsmap");
    return precompiled_normalizer(Precompiled::parse(decode_base64(map.string(), map.where()), map.where()));
  }
  if (type == "BertNormalizer") {
    const bool lowercase = node.flag_or("lowercase", true);
    return bert_normalizer({.clean_text = node.flag_or("clean_text", true),
                            .handle_chinese_chars = node.flag_or("handle_chinese_chars", true),
                            .strip_accents = node.flag_or("strip_accents", lowercase),
                            .lowercase = lowercase});
  }
  if (type == "Sequence") {
    return normalizer_sequence(read_list<NormalizerPtr>(
        node.at("normalizers"), [](const JsonNode& step, bool) { return read_normalizer(step); }));
  }
  constexpr std::array<std::string_view, 13> kKnown{
      "NFC",     "NFD",     "NFKC",  "NFKD",        "Lowercase",      "StripAccents", "Nmt",
      "Prepend", "Replace", "Strip", "Precompiled", "BertNormalizer", "Sequence"};
  unknown_type(node, "normalizer", kKnown);
}

bool ends_in_byte_level(const JsonNode& node) {
  const std::string type = type_of(node);
  if (type == "ByteLevel") return true;
  if (type != "Sequence") return false;
  const JsonNode steps = node.at("pretokenizers");
  return steps.size() > 0 && ends_in_byte_level(steps.at(steps.size() - 1));
}

PreTokenizerPtr read_pre_tokenizer(const JsonNode& node, PreTokenizerReadOptions options) {
  const std::string type = type_of(node);
  if (type == "ByteLevel") {
    return byte_level_pre_tokenizer({.add_prefix_space = node.flag_or("add_prefix_space", true),
                                     .use_regex = node.flag_or("use_regex", true),
                                     .to_letters = !options.raw_bytes});
  }
  if (type == "Split") {
    return split_pre_tokenizer(read_pattern(node.at("pattern")),
                               {.behavior = read_behavior(node, "Isolated"), .invert = node.flag_or("invert", false)});
  }
  if (type == "Metaspace") {
    return metaspace_pre_tokenizer({.replacement = one_character(node.at("replacement")),
                                    .prepend = read_prepend_scheme(node),
                                    .split = node.flag_or("split", true)});
  }
  if (type == "Whitespace") return words_pre_tokenizer();
  if (type == "WhitespaceSplit") {
    return split_pre_tokenizer(Matcher::characters(is_space), {.behavior = SplitBehavior::removed});
  }
  if (type == "BertPreTokenizer") return bert_pre_tokenizer();
  if (type == "Digits") {
    const bool each = node.flag_or("individual_digits", false);
    return split_pre_tokenizer(Matcher::characters(is_number),
                               {.behavior = each ? SplitBehavior::isolated : SplitBehavior::contiguous});
  }
  if (type == "Punctuation") {
    return split_pre_tokenizer(Matcher::characters(is_punctuation), {.behavior = read_behavior(node, "Isolated")});
  }
  if (type == "CharDelimiterSplit") {
    return split_pre_tokenizer(Matcher::string(one_character(node.at("delimiter"))),
                               {.behavior = SplitBehavior::removed});
  }
  if (type == "Sequence") {
    return pre_tokenizer_sequence(
        read_list<PreTokenizerPtr>(node.at("pretokenizers"), [&](const JsonNode& step, bool last) {
          return read_pre_tokenizer(step, {.raw_bytes = options.raw_bytes && last});
        }));
  }
  constexpr std::array<std::string_view, 10> kKnown{
      "ByteLevel",        "Split",  "Metaspace",   "Whitespace",         "WhitespaceSplit",
      "BertPreTokenizer", "Digits", "Punctuation", "CharDelimiterSplit", "Sequence"};
  unknown_type(node, "pre-tokenizer", kKnown);
}

bool has_byte_fallback(const JsonNode& node) {
  const std::string type = type_of(node);
  if (type == "ByteFallback") return true;
  if (type != "Sequence") return false;
  const JsonNode steps = node.at("decoders");
  for (size_t i = 0; i < steps.size(); ++i) {
    if (has_byte_fallback(steps.at(i))) return true;
  }
  return false;
}

DecoderPtr read_decoder(const JsonNode& node) {
  const std::string type = type_of(node);
  if (type == "ByteLevel") return byte_level_decoder();
  if (type == "ByteFallback") return byte_fallback_decoder();
  if (type == "Fuse") return fuse_decoder();
  if (type == "Replace") return replace_decoder(read_pattern(node.at("pattern")), node.at("content").string());
  if (type == "Strip") {
    return strip_decoder({.content = one_character(node.at("content")),
                          .start = narrow<size_t>(node.integer_or("start", 0), node.where() + ".start"),
                          .stop = narrow<size_t>(node.integer_or("stop", 0), node.where() + ".stop")});
  }
  if (type == "Metaspace") {
    return metaspace_decoder({.replacement = one_character(node.at("replacement")),
                              .drop_first = read_prepend_scheme(node) != PrependScheme::never});
  }
  if (type == "WordPiece") {
    return word_piece_decoder({.prefix = node.string_or("prefix", "##"), .cleanup = node.flag_or("cleanup", true)});
  }
  if (type == "BPEDecoder") return bpe_decoder(node.string_or("suffix", "</w>"));
  if (type == "CTC") {
    return ctc_decoder({.pad_token = node.string_or("pad_token", "<pad>"),
                        .word_delimiter_token = node.string_or("word_delimiter_token", "|"),
                        .cleanup = node.flag_or("cleanup", true)});
  }
  if (type == "Sequence") {
    return decoder_sequence(
        read_list<DecoderPtr>(node.at("decoders"), [](const JsonNode& step, bool) { return read_decoder(step); }));
  }
  constexpr std::array<std::string_view, 10> kKnown{"ByteLevel", "ByteFallback", "Fuse",       "Replace", "Strip",
                                                    "Metaspace", "WordPiece",    "BPEDecoder", "CTC",     "Sequence"};
  unknown_type(node, "decoder", kKnown);
}

}  // namespace qkv

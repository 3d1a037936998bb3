// Vocabularies in GGUF files: tokens, scores, token types, and the name of the algorithm.
#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/printable.h"
#include "io/gguf.h"
#include "text/tokenizer/files/gguf_pre.h"
#include "text/tokenizer/files/tokenizer_files.h"
#include "text/tokenizer/models/bpe.h"
#include "text/tokenizer/models/unknown_runs.h"
#include "text/tokenizer/models/word_models.h"
#include "text/tokenizer/sentencepiece/sentencepiece.h"
#include "text/tokenizer/sentencepiece/sentencepiece_normalizer.h"

namespace qkv {
namespace {

using Type = SentencePieceModel::Type;

constexpr const char* kDamaged = "the file is damaged, or made by a faulty converter";

std::string key(std::string_view name) {
  return "tokenizer.ggml." + std::string(name);
}

// Fields common to all vocabularies.
struct GgufVocab {
  const Gguf& file;
  std::vector<std::string_view> tokens;
  std::vector<Type> types;

  explicit GgufVocab(const Gguf& gguf) : file(gguf), tokens(gguf.texts(key("tokens"))) {
    QKV_CHECK(!tokens.empty(), file.name(), ": ", key("tokens"), " is empty", Hint(kDamaged));
    narrow<int32_t>(tokens.size(), "number of tokens");
    read_types();
  }

  bool flag_or(std::string_view name, bool otherwise) const {
    return file.has(key(name)) ? file.flag(key(name)) : otherwise;
  }

  std::optional<int32_t> id(std::string_view name) const {
    if (!file.has(key(name))) return std::nullopt;
    const int64_t value = file.integer(key(name));
    QKV_CHECK(value >= 0 && value < static_cast<int64_t>(tokens.size()), file.name(), ": ", key(name), " is ", value,
              " but there are ", tokens.size(), " tokens", Hint(kDamaged));
    return static_cast<int32_t>(value);
  }

  NamedTokens named() const {
    NamedTokens out{.bos = id("bos_token_id"),
                    .eos = id("eos_token_id"),
                    .pad = id("padding_token_id"),
                    .unk = id("unknown_token_id"),
                    .sep = id("separator_token_id"),
                    .cls = id("cls_token_id"),
                    .mask = id("mask_token_id")};
    if (!out.sep) out.sep = id("seperator_token_id");  // misspelt like this by llama.cpp for years
    return out;
  }

  std::string_view token(int32_t token_id) const { return tokens[static_cast<size_t>(token_id)]; }

 private:
  void read_types() {
    if (!file.has(key("token_type"))) {
      for (const std::string_view token : tokens)
        types.push_back(byte_of_token(token) >= 0 ? Type::byte : Type::normal);
      for (const auto& [name, type] : {std::pair{"bos_token_id", Type::control},
                                       {"eos_token_id", Type::control},
                                       {"unknown_token_id", Type::unknown}}) {
        if (const auto found = id(name)) types[static_cast<size_t>(*found)] = type;
      }
      return;
    }
    const std::vector<int64_t> numbers = file.integers(key("token_type"));
    QKV_CHECK(numbers.size() == tokens.size(), file.name(), ": ", key("token_type"), " has ", numbers.size(),
              " entries but there are ", tokens.size(), " tokens", Hint(kDamaged));
    for (size_t i = 0; i < numbers.size(); ++i) {
      QKV_CHECK(numbers[i] >= 1 && numbers[i] <= 6, file.name(), ": ", key("token_type"), "[", i, "] is ", numbers[i],
                " but must lie in [1, 6]", Hint(kDamaged));
      types.push_back(static_cast<Type>(numbers[i]));
    }
  }
};

TemplatePiece gguf_special_piece(const GgufVocab& vocab, int32_t id, int32_t type_id = 0) {
  return {
      .kind = TemplatePiece::Kind::special, .type_id = type_id, .ids = {id}, .tokens = {std::string(vocab.token(id))}};
}

struct Around {
  bool bos = false, eos = false;  // defaults if the file does not say
};

void add_template(const GgufVocab& vocab, Around around, TokenizerParts& parts) {
  const TemplatePiece first{.kind = TemplatePiece::Kind::first_text};
  const TemplatePiece second{.kind = TemplatePiece::Kind::second_text, .type_id = 1};
  auto& single = parts.post.single;
  if (vocab.flag_or("add_bos_token", around.bos) && parts.named.bos)
    single.push_back(gguf_special_piece(vocab, *parts.named.bos));
  single.push_back(first);
  if (vocab.flag_or("add_eos_token", around.eos) && parts.named.eos)
    single.push_back(gguf_special_piece(vocab, *parts.named.eos));
  parts.post.pair = single;
  for (TemplatePiece piece : single) {
    piece.kind = piece.kind == TemplatePiece::Kind::first_text ? TemplatePiece::Kind::second_text : piece.kind;
    piece.type_id = 1;
    parts.post.pair.push_back(piece);
  }
}

// Control and user-defined tokens are matched in the unnormalized text.
void add_found_tokens(const GgufVocab& vocab, TokenizerParts& parts) {
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const Type type = vocab.types[i];
    if ((type != Type::control && type != Type::user_defined) || vocab.tokens[i].empty()) continue;
    parts.added.push_back({.id = static_cast<int32_t>(i),
                           .content = std::string(vocab.tokens[i]),
                           .normalized = false,
                           .special = type == Type::control});
  }
}

Vocab plain_vocab(const GgufVocab& vocab) {
  Vocab out;
  out.reserve(vocab.tokens.size(), 16 * vocab.tokens.size());
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    out.add(vocab.tokens[i], static_cast<int64_t>(i), {.what = vocab.file.name(), .tokens = vocab.tokens.size()});
  }
  return out;
}

// How text is cut. Files from before the key mean llama.cpp's default, which is not what their models were trained with.
GgufPre read_pre(const Gguf& file) {
  if (!file.has(key("pre"))) {
    log_line(Log::warn, file.name() + ": is an old file that does not say how text is cut (" + key("pre") +
                            "): llama.cpp's default is used, and some tokens may differ from those of its training; "
                            "convert the model again to be sure");
    return *find_gguf_pre("default");
  }
  const std::string_view name = file.text(key("pre"));
  const auto pre = find_gguf_pre(name);
  if (!pre) {
    const std::string near = nearest_key(name, gguf_pre_names());
    QKV_FAIL(file.name(), ": ", key("pre"), " is ", printable(name), ", a way of cutting text that is not known",
             Hint(near.empty() ? "" : "the nearest known is " + near + ". ",
                  "Put the model's tokenizer.json beside it and use that; docs/gguf.md lists the known names"));
  }
  return *pre;
}

// "gpt2": byte-level BPE.
TokenizerParts bpe_parts(const GgufVocab& vocab) {
  const std::string& what = vocab.file.name();
  const GgufPre pre = read_pre(vocab.file);
  const std::vector<std::string_view> lines = vocab.file.texts(key("merges"));
  const auto give_merges = [&](Bpe::TakeMerge take) {
    for (size_t i = 0; i < lines.size(); ++i) {
      const size_t space = lines[i].find(' ', 1);
      QKV_CHECK(space != std::string_view::npos, what, ": ", key("merges"), "[", i, "] is ", printable(lines[i]),
                " but must be two tokens with a space between", Hint(kDamaged));
      take(lines[i].substr(0, space), lines[i].substr(space + 1), static_cast<uint32_t>(i));
    }
  };
  Vocab tokens = plain_vocab(vocab);
  const bool all_bytes = Bpe::has_all_bytes(tokens);
  TokenizerParts parts{.what = what, .accepts_raw_bytes = true};
  parts.named = vocab.named();
  parts.model = std::make_unique<Bpe>(std::move(tokens), Bpe::Merges{lines.size(), give_merges},
                                      BpeOptions{.what = what, .byte_level = true, .ignore_merges = pre.ignore_merges});
  QKV_CHECK(all_bytes, what, ": not every byte is a token", Hint(kDamaged));
  parts.pre_tokenizer = gguf_pre_tokenizer(pre, what);
  parts.decoder = byte_level_decoder();
  add_found_tokens(vocab, parts);
  add_template(vocab, {.bos = pre.starts_with_bos}, parts);
  return parts;
}

// The one unknown piece of a SentencePiece vocabulary. Converters mark it control, or mark others unknown too, so the
// key decides, and without it what llama.cpp takes: 0, for T5 2.
int32_t unknown_piece(const GgufVocab& vocab, bool unigram) {
  if (const auto named = vocab.id("unknown_token_id")) return *named;
  const auto marked = std::ranges::find(vocab.types, Type::unknown);
  if (marked != vocab.types.end()) return static_cast<int32_t>(marked - vocab.types.begin());
  const auto spelt = std::ranges::find(vocab.tokens, "<unk>");
  if (spelt != vocab.tokens.end()) return static_cast<int32_t>(spelt - vocab.tokens.begin());
  const int32_t usual = unigram ? 2 : 0;
  QKV_CHECK(usual < static_cast<int32_t>(vocab.tokens.size()), vocab.file.name(), ": has no unknown token among its ",
            vocab.tokens.size(), Hint(kDamaged));
  return usual;
}

// "llama" and "t5": SentencePiece's BPE and Unigram.
TokenizerParts sentencepiece_parts(const GgufVocab& vocab, SentencePieceModel::Kind kind) {
  const bool unigram = kind == SentencePieceModel::Kind::unigram;
  const std::vector<float> scores = vocab.file.floats(key("scores"));
  QKV_CHECK(scores.size() == vocab.tokens.size(), vocab.file.name(), ": ", key("scores"), " has ", scores.size(),
            " entries but there are ", vocab.tokens.size(), " tokens", Hint(kDamaged));
  SentencePieceModel model{.name = vocab.file.name(), .kind = kind};
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    model.pieces.push_back({.text = std::string(vocab.tokens[i]), .score = scores[i], .type = vocab.types[i]});
    model.byte_fallback = model.byte_fallback || vocab.types[i] == Type::byte;
  }
  const int32_t unknown = unknown_piece(vocab, unigram);
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    Type& type = model.pieces[i].type;
    if (static_cast<int32_t>(i) == unknown) {
      type = Type::unknown;
    } else if (type == Type::unknown) {
      type = Type::control;
    }
  }
  model.add_dummy_prefix = vocab.flag_or("add_space_prefix", true);
  model.remove_extra_whitespaces = vocab.flag_or("remove_extra_whitespaces", false);
  if (vocab.file.has(key("precompiled_charsmap"))) {
    const std::string map = vocab.file.bytes(key("precompiled_charsmap"));
    if (!map.empty()) model.charsmap = Precompiled::parse(map, vocab.file.name() + ": " + key("precompiled_charsmap"));
  }
  model.check_pieces();
  TokenizerParts parts = parts_of_sentencepiece(std::move(model));
  parts.named = vocab.named();
  parts.named.unk = unknown;
  for (AddedToken& token : parts.added) token.in_text = vocab.types[static_cast<size_t>(token.id)] == Type::control;
  add_template(vocab, {.bos = !unigram, .eos = unigram}, parts);
  return parts;
}

// "bert": WordPiece. Word starts have a U+2581 prefix, continuations have no ##.
TokenizerParts word_piece_parts(const GgufVocab& vocab) {
  const std::string& what = vocab.file.name();
  Vocab tokens;
  tokens.reserve(vocab.tokens.size(), 16 * vocab.tokens.size());
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    std::string token(vocab.tokens[i]);
    if (token.starts_with(kSpaceSymbol)) {
      token.erase(0, kSpaceSymbol.size());
    } else if (vocab.types[i] == Type::normal && !(token.starts_with('[') && token.ends_with(']'))) {
      token.insert(0, "##");
    }
    tokens.add(token, static_cast<int64_t>(i), {.what = what, .tokens = vocab.tokens.size()});
  }
  TokenizerParts parts{.what = what};
  parts.named = vocab.named();
  QKV_CHECK(parts.named.unk && parts.named.cls && parts.named.sep, what, ": names no unknown, cls or separator token",
            Hint(kDamaged));
  const std::string unknown(vocab.token(*parts.named.unk));
  parts.model = std::make_unique<WordPiece>(std::move(tokens), WordPieceOptions{.what = what, .unk_token = unknown});
  parts.normalizer = bert_normalizer({});
  parts.pre_tokenizer = bert_pre_tokenizer();
  parts.decoder = word_piece_decoder({});
  add_found_tokens(vocab, parts);
  const TemplatePiece cls = gguf_special_piece(vocab, *parts.named.cls),
                      sep = gguf_special_piece(vocab, *parts.named.sep);
  const TemplatePiece first{.kind = TemplatePiece::Kind::first_text};
  const TemplatePiece second{.kind = TemplatePiece::Kind::second_text, .type_id = 1};
  parts.post.single = {cls, first, sep};
  parts.post.pair = {cls, first, sep, second, gguf_special_piece(vocab, *parts.named.sep, 1)};
  return parts;
}

}  // namespace

TokenizerParts parts_of_gguf(const Gguf& file) {
  const std::string_view kind = file.text(key("model"));
  const GgufVocab vocab(file);
  if (kind == "gpt2") return bpe_parts(vocab);
  if (kind == "llama") return sentencepiece_parts(vocab, SentencePieceModel::Kind::bpe);
  if (kind == "t5") return sentencepiece_parts(vocab, SentencePieceModel::Kind::unigram);
  if (kind == "bert") return word_piece_parts(vocab);
  QKV_FAIL(file.name(), ": ", key("model"), " is ", printable(kind), " but known are gpt2, llama, t5 and bert",
           Hint("use the model's tokenizer.json"));
}

}  // namespace qkv

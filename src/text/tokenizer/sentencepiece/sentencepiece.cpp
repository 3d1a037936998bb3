#include "text/tokenizer/sentencepiece/sentencepiece.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "text/tokenizer/models/unknown_runs.h"
#include "text/tokenizer/models/word_models.h"
#include "text/tokenizer/sentencepiece/sentencepiece_bpe.h"
#include "text/tokenizer/sentencepiece/sentencepiece_decoder.h"
#include "text/tokenizer/sentencepiece/sentencepiece_normalizer.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

using ModelKind = SentencePieceModel::Kind;
using PieceType = SentencePieceModel::Type;

Unigram make_unigram(const SentencePieceModel& model) {
  Unigram::Pieces pieces;
  Unigram::Options options{
      .unk_id = model.unk_id, .byte_fallback = model.byte_fallback, .rules = Unigram::Rules::sentencepiece};
  for (const auto& piece : model.pieces) {
    pieces.add(piece.text, piece.score);
    options.matching.push_back(piece.type == PieceType::normal         ? Unigram::Matching::normal
                               : piece.type == PieceType::user_defined ? Unigram::Matching::always
                                                                       : Unigram::Matching::never);
  }
  return Unigram(std::move(pieces), std::move(options));
}

// The lookup models: every character, or every word with the space before it, is a token.
class LookupModel final : public TokenModel {
 public:
  LookupModel(const SentencePieceModel& model, Vocab vocab, ByteTrie user_defined)
      : vocab_(std::move(vocab)),
        user_defined_(std::move(user_defined)),
        words_(model.kind == ModelKind::word),
        unk_id_(model.unk_id),
        byte_fallback_(model.byte_fallback) {
    std::vector<std::pair<std::string_view, int32_t>> texts;
    for (int32_t id = 0; id < static_cast<int32_t>(model.pieces.size()); ++id) {
      const auto& piece = model.pieces[static_cast<size_t>(id)];
      if (piece.type == PieceType::byte) bytes_.ids[static_cast<size_t>(byte_of_token(piece.text))] = id;
      const bool is_text =
          piece.type == PieceType::normal || piece.type == PieceType::user_defined || piece.type == PieceType::unused;
      if (is_text) texts.emplace_back(piece.text, id);
    }
    texts_ = ByteTrie(std::move(texts));
  }

  void encode(std::string_view text, PieceTokens& out) const override {
    UnknownRuns runs(text, {.unk_id = unk_id_, .bytes = byte_fallback_ ? &bytes_ : nullptr}, out.ids, out.ends);
    for (size_t at = 0; at < text.size();) {
      const std::string_view first = words_ ? first_word(text.substr(at)) : first_letter(text.substr(at));
      const int32_t id = texts_.find(first);
      at += first.size();
      runs.take(id >= 0 ? id : unk_id_, static_cast<uint32_t>(at));
    }
    runs.finish();
  }
  const Vocab& vocab() const override { return vocab_; }
  int32_t id_shown_as_text() const override { return unk_id_; }

 private:
  static std::string_view first_word(std::string_view text) { return text.substr(0, text.find(kSpaceSymbol, 1)); }
  std::string_view first_letter(std::string_view text) const {
    const auto own = user_defined_.longest(text);
    return text.substr(0, own.length > 0 ? own.length : utf8_length_from_lead(text.front()));
  }

  Vocab vocab_;
  ByteTrie texts_, user_defined_;
  bool words_;
  int32_t unk_id_;
  bool byte_fallback_;
  ByteTokens bytes_;
};

Vocab make_vocab(const SentencePieceModel& model) {
  Vocab vocab;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    vocab.add(model.pieces[id].text, static_cast<int64_t>(id), {.what = model.name, .tokens = model.pieces.size()});
  }
  return vocab;
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string out;
  for (const std::string& piece : pieces) out.append(out.empty() ? "" : " ").append(piece);
  return out;
}

double score_of(const SentencePieceModel& model, const Vocab& vocab, std::string_view pieces) {
  double sum = 0;
  while (!pieces.empty()) {
    const std::string_view piece = pieces.substr(0, pieces.find(' '));
    pieces.remove_prefix(std::min(pieces.size(), piece.size() + 1));
    const int32_t id = vocab.find(piece);
    sum += double{model.pieces[static_cast<size_t>(id >= 0 ? id : model.unk_id)].score};
  }
  return sum;
}

// A Unigram model may have two segmentations of the same score; either is accepted.
void check_self_test(const SentencePieceModel& model, const TokenizerParts& parts) {
  for (const auto& sample : model.self_test) {
    NormalizedText text = NormalizedText::from_original(sample.input, 0);
    parts.normalizer->apply(text);
    std::vector<std::string> pieces;
    const auto take = [&](const TextPiece& piece) {
      PieceTokens tokens;
      parts.model->encode(piece.text, tokens);
      for (size_t i = 0; i < tokens.ids.size(); ++i) {
        const size_t begin = i > 0 ? tokens.ends[i - 1] : 0;
        const bool unknown = tokens.ids[i] == model.unk_id;
        pieces.emplace_back(unknown ? piece.text.substr(begin, tokens.ends[i] - begin)
                                    : parts.model->vocab().token(tokens.ids[i]));
      }
    };
    parts.pre_tokenizer ? parts.pre_tokenizer->split(text.piece(), take) : take(text.piece());
    const std::string got = joined(pieces);
    const Vocab& vocab = parts.model->vocab();
    const bool equal = got == sample.expected ||
                       (model.kind == ModelKind::unigram &&
                        std::abs(score_of(model, vocab, got) - score_of(model, vocab, sample.expected)) < 1e-4);
    QKV_CHECK(equal, model.name, ": its self-test says that ", printable(sample.input), " is ",
              printable(sample.expected), " but it is ", printable(got),
              Hint("the file is damaged, or was made by a newer SentencePiece"));
  }
}

std::optional<int32_t> named(int32_t id) {
  return id >= 0 ? std::optional(id) : std::nullopt;
}

}  // namespace

TokenizerParts parts_of_sentencepiece(SentencePieceModel model) {
  std::vector<std::pair<std::string_view, int32_t>> own;
  TokenizerParts parts{.what = model.name, .normalizer_fixes_utf8 = true, .byte_tokens = model.byte_fallback};
  for (int32_t id = 0; id < static_cast<int32_t>(model.pieces.size()); ++id) {
    const auto& piece = model.pieces[static_cast<size_t>(id)];
    if (piece.type == PieceType::user_defined) own.emplace_back(piece.text, id);
    if (piece.type == PieceType::control || piece.type == PieceType::unknown) {
      parts.added.push_back({.id = id, .content = piece.text, .normalized = false, .special = true, .in_text = false});
    }
  }
  const ByteTrie user_defined(std::move(own));
  parts.normalizer = sentencepiece_normalizer(model, user_defined);
  parts.decoder = sentencepiece_decoder(model);
  if (model.kind == ModelKind::unigram) {
    parts.model = std::make_unique<UnigramModel>(make_unigram(model));
  } else if (model.kind == ModelKind::bpe) {
    SentencePieceBpe bpe = sentencepiece_bpe(model, make_vocab(model), user_defined);
    parts.pre_tokenizer = std::move(bpe.pre_tokenizer);
    parts.model = std::move(bpe.model);
  } else {
    parts.model = std::make_unique<LookupModel>(model, make_vocab(model), user_defined);
  }
  parts.named = {
      .bos = named(model.bos_id), .eos = named(model.eos_id), .pad = named(model.pad_id), .unk = named(model.unk_id)};
  check_self_test(model, parts);
  return parts;
}

TokenizerParts parts_of_sentencepiece_file(const std::filesystem::path& file) {
  return parts_of_sentencepiece(SentencePieceModel::parse(read_file(file, kLargestTokenizerFile), file.string()));
}

}  // namespace qkv

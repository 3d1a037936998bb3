#include "text/sentencepiece.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "text/utf8.h"

namespace qkv {
namespace {

using Kind = SentencePieceModel::Kind;
using Type = SentencePieceModel::Type;

constexpr size_t kLargestFile = size_t{1} << 28;

Unigram make_unigram(const SentencePieceModel& model) {
  Unigram::Pieces pieces;
  Unigram::Options options{
      .unk_id = model.unk_id, .byte_fallback = model.byte_fallback, .rules = Unigram::Rules::sentencepiece};
  for (const auto& piece : model.pieces) {
    pieces.emplace_back(piece.text, piece.score);
    options.parts.push_back(piece.type == Type::normal         ? Unigram::Part::normal
                            : piece.type == Type::user_defined ? Unigram::Part::whole
                                                               : Unigram::Part::never);
  }
  return Unigram(std::move(pieces), std::move(options));
}

// A word model's words: each starts with its space symbol.
size_t first_word(std::string_view text) {
  const size_t next = text.find(kSpaceSymbol, 1);
  return next == std::string_view::npos ? text.size() : next;
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string out;
  for (const std::string& piece : pieces) out.append(out.empty() ? "" : " ").append(piece);
  return out;
}

}  // namespace

SentencePiece::SentencePiece(SentencePieceModel model) : model_(std::move(model)) {
  std::vector<std::pair<std::string_view, int32_t>> own, texts;
  for (int32_t id = 0; id < size(); ++id) {
    if (type(id) == Type::user_defined) own.emplace_back(piece(id), id);
    if (type(id) == Type::normal || type(id) == Type::user_defined || type(id) == Type::unused)
      texts.emplace_back(piece(id), id);
    if (type(id) == Type::byte) bytes_.ids[static_cast<size_t>(byte_of_token(piece(id)))] = id;
  }
  user_defined_ = ByteTrie(std::move(own));
  if (model_.kind == Kind::unigram) {
    unigram_ = make_unigram(model_);
  } else if (model_.kind == Kind::bpe) {
    bpe_.emplace(model_);
  } else {
    texts_ = ByteTrie(std::move(texts));
  }
  check_self_test();
}

SentencePiece SentencePiece::open(const std::filesystem::path& path) {
  return SentencePiece(SentencePieceModel::parse(read_file(path, kLargestFile), path.string()));
}

SentencePiece::Encoded SentencePiece::encode(std::string_view text) const {
  Encoded out{.normalized = normalize(model_, user_defined_, text), .ids = {}, .ends = {}};
  encode_normalized(out.normalized.text, out.ids, out.ends);
  return out;
}

void SentencePiece::encode_normalized(std::string_view text, std::vector<int32_t>& ids,
                                      std::vector<uint32_t>& ends) const {
  if (unigram_) {
    unigram_->encode(text, ids, ends);
    return;
  }
  UnknownRuns runs(text, {.unk_id = model_.unk_id, .bytes = model_.byte_fallback ? &bytes_ : nullptr}, ids, ends);
  if (bpe_) {
    std::vector<SentencePieceBpe::Cut> cuts;
    bpe_->encode(text, user_defined_, cuts);
    for (const auto& cut : cuts) runs.take(cut.id >= 0 ? cut.id : model_.unk_id, cut.end);
  } else {
    for (size_t at = 0; at < text.size();) {
      const std::string_view rest = text.substr(at);
      size_t length = model_.kind == Kind::word ? first_word(rest) : user_defined_.longest(rest).length;
      if (length == 0) length = std::min(utf8_promised(rest.front()), rest.size());
      const int32_t id = texts_.find(rest.substr(0, length));
      at += length;
      runs.take(id >= 0 ? id : model_.unk_id, static_cast<uint32_t>(at));
    }
  }
  runs.finish();
}

std::vector<std::string> SentencePiece::pieces(const Encoded& encoded) const {
  std::vector<std::string> out;
  for (size_t i = 0; i < encoded.ids.size(); ++i) {
    const uint32_t begin = i > 0 ? encoded.ends[i - 1] : 0;
    const bool unknown = encoded.ids[i] == model_.unk_id;
    out.push_back(unknown ? encoded.normalized.text.substr(begin, encoded.ends[i] - begin) : piece(encoded.ids[i]));
  }
  return out;
}

// Unigram models may know two ways of the same score; any of them will do.
void SentencePiece::check_self_test() const {
  for (const auto& sample : model_.self_test) {
    const Encoded encoded = encode(sample.input);
    const std::string got = joined(pieces(encoded));
    if (got == sample.expected) continue;
    double difference = std::numeric_limits<double>::infinity();
    if (unigram_) {
      difference = 0;
      for (const int32_t id : encoded.ids) difference += unigram_->score(id);
      std::string_view rest = sample.expected;
      while (!rest.empty()) {
        const std::string_view piece = rest.substr(0, rest.find(' '));
        rest.remove_prefix(std::min(rest.size(), piece.size() + 1));
        const int32_t id = unigram_->find(piece);
        difference -= unigram_->score(id >= 0 ? id : model_.unk_id);
      }
    }
    QKV_CHECK(std::abs(difference) < 1e-4, model_.name, ": its self-test says that ", printable(sample.input), " is ",
              printable(sample.expected), " but it is ", printable(got),
              Hint("the file is damaged, or was made by a newer SentencePiece"));
  }
}

std::string SentencePiece::decode(std::span<const int32_t> ids) const {
  SentencePieceDecoder decoder(model_);
  std::string out;
  for (const int32_t id : ids) out += decoder.add(id);
  return out + decoder.finish();
}

std::string SentencePieceDecoder::add(int32_t id) {
  const auto size = model_.pieces.size();
  QKV_CHECK(id >= 0 && static_cast<size_t>(id) < size, model_.name, ": id ", id, " but there are ", size, " pieces",
            Hint("ids must come from this model"));
  const SentencePieceModel::Piece& piece = model_.pieces[static_cast<size_t>(id)];
  if (piece.type == Type::byte) {
    bytes_.push_back(static_cast<char>(byte_of_token(piece.text)));
    return take_bytes(true);
  }
  std::string out = take_bytes(false);
  if (took_space_ || has_text_) expects_space_ = false;
  out += text_of(piece);
  has_text_ = has_text_ || !out.empty();
  return out;
}

std::string SentencePieceDecoder::finish() {
  return take_bytes(false);
}

// Whole characters, and U+FFFD for bytes that cannot become part of one.
std::string SentencePieceDecoder::take_bytes(bool more_may_follow) {
  std::string out;
  std::string_view rest = bytes_;
  while (!rest.empty() && !(more_may_follow && is_utf8_prefix(rest))) {
    const size_t length = utf8_length(rest);
    out += length > 0 ? rest.substr(0, length) : kReplacementCharacter;
    rest.remove_prefix(std::max<size_t>(length, 1));
  }
  bytes_ = std::string(rest);
  has_text_ = has_text_ || !out.empty();
  return out;
}

std::string SentencePieceDecoder::text_of(const SentencePieceModel::Piece& piece) {
  took_space_ = false;
  if (piece.type == Type::control) return "";
  if (piece.type == Type::unknown) return model_.unk_surface;
  std::string_view text = piece.text;
  if (expects_space_ && (model_.add_dummy_prefix || model_.remove_extra_whitespaces) &&
      text.starts_with(kSpaceSymbol)) {
    text.remove_prefix(kSpaceSymbol.size());
    // Where extra spaces are removed, all at the front are.
    took_space_ = !model_.remove_extra_whitespaces;
  }
  std::string out;
  while (!text.empty()) {
    const size_t space = text.find(kSpaceSymbol);
    out += text.substr(0, space);
    if (space == std::string_view::npos) break;
    out += ' ';
    text.remove_prefix(space + kSpaceSymbol.size());
  }
  return out;
}

}  // namespace qkv

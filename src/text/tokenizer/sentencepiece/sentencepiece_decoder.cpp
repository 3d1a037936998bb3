#include "text/tokenizer/sentencepiece/sentencepiece_decoder.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/seeded_hash.h"
#include "text/tokenizer/models/unknown_runs.h"
#include "text/tokenizer/pipeline/replace_all.h"
#include "text/tokenizer/sentencepiece/sentencepiece_normalizer.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

using PieceType = SentencePieceModel::Type;

// The parts of a model that decoding needs.
struct SentencePieceDecoding {
  std::unordered_map<std::string, PieceType, SeededHash> types;  // of pieces that are not plain text
  std::string unk_surface;
  bool drops_first_space = true, drops_all_spaces = true;

  PieceType type(const std::string& piece) const {
    const auto found = types.find(piece);
    return found == types.end() ? PieceType::normal : found->second;
  }
};

class SentencePieceRun final : public WholeTokenRun {
 public:
  explicit SentencePieceRun(const SentencePieceDecoding& rules) : rules_(rules) {}
  void finish(Decoder::Sink out) override { give_bytes(More::no, out); }

 private:
  enum class More { may_follow, no };

  void take_token(Decoder::Part token, Decoder::Sink out) override {
    const PieceType type = rules_.type(token.text);
    if (type == PieceType::byte) {
      bytes_ += static_cast<char>(byte_of_token(token.text));
      sources_.push_back(token.source);
      return give_bytes(More::may_follow, out);
    }
    give_bytes(More::no, out);
    if (took_space_ || has_text_) at_front_ = false;
    took_space_ = false;
    if (type == PieceType::control) return;
    if (type == PieceType::unknown) {
      token.text = rules_.unk_surface;
    } else {
      if (at_front_ && rules_.drops_first_space && token.text.starts_with(kSpaceSymbol)) {
        token.text.erase(0, kSpaceSymbol.size());
        took_space_ = !rules_.drops_all_spaces;
      }
      replace_all(token.text, kSpaceSymbol, " ");
    }
    has_text_ = has_text_ || !token.text.empty();
    out(std::move(token));
  }

  // Complete characters, and U+FFFD for bytes that cannot become part of one.
  void give_bytes(More more, Decoder::Sink out) {
    size_t at = 0;
    while (at < bytes_.size()) {
      const std::string_view rest = std::string_view(bytes_).substr(at);
      if (more == More::may_follow && is_utf8_prefix(rest)) break;
      const size_t length = utf8_length(rest);
      if (length == 0) out({.text = std::string(kReplacementCharacter), .source = sources_[at]});
      for (size_t i = 0; i < length; ++i) {
        out({.text = std::string(1, rest[i]), .source = sources_[at + i], .first = i == 0, .last = i + 1 == length});
      }
      at += std::max<size_t>(length, 1);
      has_text_ = true;
    }
    bytes_.erase(0, at);
    sources_.erase(sources_.begin(), sources_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  const SentencePieceDecoding& rules_;
  std::string bytes_;  // of byte pieces: an incomplete character
  std::vector<size_t> sources_;
  bool has_text_ = false;
  bool at_front_ = true;
  bool took_space_ = false;  // the previous piece began with a dropped space
};

class SentencePieceDecoder final : public Decoder {
 public:
  explicit SentencePieceDecoder(SentencePieceDecoding rules) : rules_(std::move(rules)) {}
  std::unique_ptr<Run> start(GrowthLimit*) const override { return std::make_unique<SentencePieceRun>(rules_); }

 private:
  SentencePieceDecoding rules_;
};

}  // namespace

DecoderPtr sentencepiece_decoder(const SentencePieceModel& model) {
  SentencePieceDecoding rules{.types = {},
                              .unk_surface = model.unk_surface,
                              .drops_first_space = model.add_dummy_prefix || model.remove_extra_whitespaces,
                              .drops_all_spaces = model.remove_extra_whitespaces};
  for (const auto& piece : model.pieces) {
    const bool is_text =
        piece.type == PieceType::normal || piece.type == PieceType::user_defined || piece.type == PieceType::unused;
    if (!is_text) rules.types.emplace(piece.text, piece.type);
  }
  return std::make_unique<SentencePieceDecoder>(std::move(rules));
}

}  // namespace qkv

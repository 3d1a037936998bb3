// The parts of a tokenizer at work: texts to ids, tokens to text.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/tokenizer/models/piece_cache.h"
#include "text/tokenizer/tokenizer.h"
#include "text/unicode/characters.h"
#include "text/unicode/utf8.h"

namespace qkv {

inline size_t stray_bytes(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    count += is_stray_byte(c) ? 1U : 0U;
    at += c.bytes;
  }
  return count;
}

inline void replace_stray_bytes(NormalizedText& text) {
  TextRewriter rewrite(text, "the repair of UTF-8");
  while (!rewrite.done()) {
    const Char c = char_at(rewrite.rest());
    is_stray_byte(c) ? rewrite.replace(1, kReplacementCharacter) : rewrite.keep(c.bytes);
  }
  rewrite.commit();
}

// The character index of each byte, then the number of characters.
inline std::vector<uint32_t> characters_of_bytes(std::string_view text) {
  std::vector<uint32_t> characters;
  characters.reserve(text.size() + 1);
  uint32_t number = 0;
  while (!text.empty()) {
    const size_t length = first_character(text).size();
    characters.insert(characters.end(), length, number++);
    text.remove_prefix(length);
  }
  characters.push_back(number);
  return characters;
}

struct Tokenizer::Impl {
  struct Scratch {
    PieceCache cache;
    PieceTokens tokens;
  };

  TokenizerParts parts;
  AddedTokens added;
  int32_t vocab_size = 0;

  explicit Impl(TokenizerParts all)
      : parts(std::move(all)),
        added(std::move(parts.added), parts.normalizer.get(), parts.what),
        vocab_size(parts.model->vocab().size()) {
    if (!parts.decoder) parts.decoder = spaced_decoder();
    for (const AddedToken& token : added.all()) vocab_size = std::max(vocab_size, token.id + 1);
  }

  // --- encoding ------------------------------------------------------------------------------------------------------

  // Says which added tokens of a text the options allow.
  static auto reader(const TextPiece& all, const EncodeOptions& options) {
    return [&all, &options](const AddedToken& token, size_t begin, size_t end) {
      if (token.special && !options.read_specials) return false;
      return !options.may_read || (*options.may_read)(token.id, all.origin[begin].begin, all.origin[end - 1].end);
    };
  }

  // Visits the added tokens found in the text and the pieces for the model, in order.
  template <class OnToken, class OnPiece>
  void walk(const TextPiece& all, const EncodeOptions& options, OnToken on_token, OnPiece on_piece) const {
    const auto may_read = reader(all, options);
    added.split(all.text, AddedTokens::Where::original_text, may_read, [&](AddedTokens::Part part) {
      const TextPiece piece = all.part(part.begin, part.end);
      if (part.id >= 0) return on_token(part.id, piece);
      if (!parts.normalizer || !parts.normalizer->may_change(piece.text)) {
        return walk_normalized(piece, options, on_token, on_piece);
      }
      NormalizedText normalized(piece);
      parts.normalizer->apply(normalized);
      walk_normalized(normalized.piece(), options, on_token, on_piece);
    });
  }

  template <class OnToken, class OnPiece>
  void walk_normalized(const TextPiece& all, const EncodeOptions& options, OnToken& on_token, OnPiece& on_piece) const {
    const auto may_read = reader(all, options);
    added.split(all.text, AddedTokens::Where::normalized_text, may_read, [&](AddedTokens::Part part) {
      const TextPiece piece = all.part(part.begin, part.end);
      if (part.id >= 0) return on_token(part.id, piece);
      if (!parts.pre_tokenizer) return on_piece(piece);
      parts.pre_tokenizer->split(piece, on_piece);
    });
  }

  // Calls on_tokens with parts of the piece and their tokens. The model may have added tokens in its own vocabulary:
  // one that the options refuse is cut behind its first character.
  template <class OnTokens>
  void encode_allowed(const TextPiece& whole, const EncodeOptions& options, PieceTokens& tokens,
                      OnTokens on_tokens) const {
    std::vector<Offset> open{{0, whole.text.size()}};  // the last one is next
    while (!open.empty()) {
      const Offset place = open.back();
      open.pop_back();
      const TextPiece piece = whole.part(place.begin, place.end);
      tokens.clear();
      parts.model->encode(piece.text, tokens);
      std::vector<Offset> cut;
      size_t from = place.begin, begin = 0, end = 0;
      for (size_t i = 0; i < tokens.ids.size(); ++i) {
        if (tokens.ends[i] != end) begin = end;
        end = tokens.ends[i];
        const AddedToken* token = added.find(tokens.ids[i]);
        if (!token || piece.text.substr(begin, end - begin) != token->content) continue;
        const size_t first = begin + first_character(piece.text.substr(begin)).size();
        if (first == piece.text.size() || reader(piece, options)(*token, begin, end)) continue;
        cut.push_back({from, place.begin + first});
        from = place.begin + first;
      }
      if (cut.empty()) {
        on_tokens(piece);
        continue;
      }
      cut.push_back({from, place.end});
      open.insert(open.end(), cut.rbegin(), cut.rend());
    }
  }

  Encoding ids_only(std::string_view text, const EncodeOptions& options) const {
    if (options.may_read) return ids_allowed(text, options);
    Encoding out;
    GrowthLimit limit(parts.what);
    limit.add_input(text.size());
    TextPiece all{.text = text, .limit = &limit};
    NormalizedText repaired(TextPiece{});
    if (!parts.accepts_raw_bytes && (out.replaced_bytes = stray_bytes(text)) > 0 && !parts.normalizer_fixes_utf8) {
      repaired = NormalizedText(all);
      replace_stray_bytes(repaired);
      all = repaired.piece();
    }
    std::unique_ptr<Scratch> scratch = take_scratch();
    out.ids.reserve(all.text.size() / 3);
    walk(
        all, options, [&](int32_t id, const TextPiece&) { out.ids.push_back(id); },
        [&](const TextPiece& piece) { append_ids(piece.text, *scratch, out.ids); });
    give_back(std::move(scratch));
    return out;
  }

  Encoding ids_allowed(std::string_view text, const EncodeOptions& options) const {
    Encoding out;
    GrowthLimit limit(parts.what);
    const NormalizedText all = original(text, limit, out);
    PieceTokens tokens;
    walk(
        all.piece(), options, [&](int32_t id, const TextPiece&) { out.ids.push_back(id); },
        [&](const TextPiece& whole) {
          encode_allowed(whole, options, tokens, [&](const TextPiece&) {
            out.ids.insert(out.ids.end(), tokens.ids.begin(), tokens.ids.end());
          });
        });
    return out;
  }

  // The text with origins and in UTF-8.
  NormalizedText original(std::string_view text, GrowthLimit& limit, Encoding& out) const {
    limit.add_input(text.size());
    NormalizedText all = NormalizedText::from_original(text, 0, &limit);
    if (!parts.accepts_raw_bytes && (out.replaced_bytes = stray_bytes(text)) > 0 && !parts.normalizer_fixes_utf8) {
      replace_stray_bytes(all);
    }
    return all;
  }

  void append_ids(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
    PieceCache::Entry* entry = scratch.cache.entry(piece);
    if (entry && entry->holds(piece)) {
      ids.insert(ids.end(), entry->ids, entry->ids + entry->count);
      return;
    }
    scratch.tokens.clear();
    parts.model->encode(piece, scratch.tokens);
    if (entry) entry->set(piece, scratch.tokens.ids);
    ids.insert(ids.end(), scratch.tokens.ids.begin(), scratch.tokens.ids.end());
  }

  Encoding with_offsets(std::string_view text, const EncodeOptions& options) const {
    Encoding out;
    GrowthLimit limit(parts.what);
    const NormalizedText all = original(text, limit, out);
    PieceTokens tokens;
    walk(
        all.piece(), options,
        [&](int32_t id, const TextPiece& piece) {
          add(out, piece, {.id = id, .begin = 0, .end = piece.text.size(), .as_text = true});
        },
        [&](const TextPiece& whole) {
          const auto add_tokens = [&](const TextPiece& piece) {
            size_t begin = 0, end = 0;
            for (size_t i = 0; i < tokens.ids.size(); ++i) {
              if (tokens.ends[i] != end) begin = end;
              end = tokens.ends[i];
              add(out, piece, {.id = tokens.ids[i], .begin = begin, .end = end});
            }
          };
          if (options.may_read) return encode_allowed(whole, options, tokens, add_tokens);
          tokens.clear();
          parts.model->encode(whole.text, tokens);
          add_tokens(whole);
        });
    if (options.unit == OffsetUnit::characters) {
      const std::vector<uint32_t> characters = characters_of_bytes(text);
      for (Offset& offset : out.offsets) offset = {characters[offset.begin], characters[offset.end]};
    }
    return out;
  }

  struct Found {
    int32_t id;
    size_t begin, end;
    bool as_text = false;  // its text is the matched text, not the vocabulary entry
  };

  void add(Encoding& out, const TextPiece& piece, Found token) const {
    out.ids.push_back(token.id);
    const std::string_view text = piece.text.substr(token.begin, token.end - token.begin);
    const bool as_text = token.as_text || token.id == parts.model->id_shown_as_text();
    out.tokens.emplace_back(as_text ? text : parts.model->vocab().token(token.id));
    out.offsets.push_back(token.begin < token.end
                              ? Offset{piece.origin[token.begin].begin, piece.origin[token.end - 1].end}
                              : Offset{piece.start, piece.start});
  }

  // --- decoding ------------------------------------------------------------------------------------------------------

  std::string_view token(int32_t id) const {
    const AddedToken* added_token = added.find(id);
    if (added_token) return added_token->content;
    QKV_CHECK(parts.model->vocab().has(id), parts.what, ": no token has the id ", id, "; ids lie in [0, ",
              vocab_size - 1, "]", Hint("the ids come from another tokenizer or another model"));
    return parts.model->vocab().token(id);
  }

  bool is_special(int32_t id) const {
    const AddedToken* token = added.find(id);
    return token && token->special;
  }

  // A run of the decoder that may write so much and no more.
  class LimitedRun final : public Decoder::Run {
   public:
    LimitedRun(const Decoder& decoder, std::string_view what) : limit_(what), run_(decoder.start(&limit_)) {}
    void take(Decoder::Part part, Decoder::Sink out) override {
      limit_.add_input(part.text.size());
      run_->take(std::move(part), out);
    }
    void finish(Decoder::Sink out) override { run_->finish(out); }

   private:
    GrowthLimit limit_;
    std::unique_ptr<Decoder::Run> run_;
  };

  std::string decoded(const std::vector<std::string_view>& tokens) const {
    const std::unique_ptr<Decoder::Run> run = std::make_unique<LimitedRun>(*parts.decoder, parts.what);
    std::string text;
    const auto put = [&](const Decoder::Part& part) { text += part.text; };
    for (const std::string_view token : tokens) run->take({.text = std::string(token)}, put);
    run->finish(put);
    return text;
  }

  // --- scratch buffers, one per concurrent call ----------------------------------------------------------------------

  std::unique_ptr<Scratch> take_scratch() const {
    const std::lock_guard lock(mutex);
    if (idle.empty()) return std::make_unique<Scratch>();
    std::unique_ptr<Scratch> scratch = std::move(idle.back());
    idle.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<Scratch> scratch) const {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(scratch));
  }

  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Scratch>> idle;
};

}  // namespace qkv

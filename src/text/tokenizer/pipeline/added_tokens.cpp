#include "text/tokenizer/pipeline/added_tokens.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "text/unicode/characters.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

Char last_char(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && is_utf8_continuation(text[at]) && text.size() - at < 4) --at;
  return char_at(text, at);
}

bool ends_in_word(std::string_view text) {
  return !text.empty() && is_word(last_char(text));
}
bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word(char_at(text));
}

size_t spaces_at_end(std::string_view text) {
  const size_t size = text.size();
  while (!text.empty() && is_space(last_char(text))) text.remove_suffix(last_char(text).bytes);
  return size - text.size();
}

size_t spaces_at_start(std::string_view text) {
  const size_t size = text.size();
  while (!text.empty() && is_space(char_at(text))) text.remove_prefix(char_at(text).bytes);
  return size - text.size();
}

}  // namespace

void AddedTokens::Finder::build(std::vector<ByteTrie::Key> keys) {
  std::erase_if(keys, [](const ByteTrie::Key& key) { return key.first.empty(); });
  for (const auto& [key, index] : keys) starts[static_cast<unsigned char>(key[0])] = true;
  empty = keys.empty();
  trie = ByteTrie(keys);
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer, std::string_view what)
    : tokens_(std::move(tokens)) {
  std::vector<ByteTrie::Key> original, normalized;
  std::deque<std::string> changed;  // by the normalizer
  by_id_.reserve(tokens_.size());
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    const auto index = static_cast<int32_t>(i);
    by_id_.emplace_back(token.id, static_cast<uint32_t>(i));
    if (!token.in_text) continue;
    if (!token.normalized) {
      original.emplace_back(token.content, index);
    } else if (normalizer) {
      GrowthLimit limit(what);
      limit.add_input(token.content.size());
      NormalizedText content(TextPiece{.text = token.content, .limit = &limit});
      normalizer->apply(content);
      normalized.emplace_back(changed.emplace_back(content.text()), index);
    } else {
      normalized.emplace_back(token.content, index);
    }
  }
  std::ranges::sort(by_id_);
  original_.build(std::move(original));
  normalized_.build(std::move(normalized));
  by_content_ =
      ByteTrie(tokens_.size(), [&](size_t i) { return ByteTrie::Key(tokens_[i].content, static_cast<int32_t>(i)); });
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto at = std::ranges::lower_bound(by_id_, std::pair<int32_t, uint32_t>(id, 0));
  return at != by_id_.end() && at->first == id ? &tokens_[at->second] : nullptr;
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const int32_t index = by_content_.find(content);
  return index < 0 ? nullptr : &tokens_[static_cast<size_t>(index)];
}

void AddedTokens::split(std::string_view text, Where where, MayRead may_read, FunctionRef<void(Part)> found) const {
  const Finder& finder = where == Where::original_text ? original_ : normalized_;
  size_t given = 0;  // end of the part reported so far
  for (size_t at = finder.empty ? text.size() : 0; at < text.size();) {
    if (!finder.starts[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const auto token_of = [&](ByteTrie::Match match) -> const AddedToken& {
      return tokens_[static_cast<size_t>(match.value)];
    };
    ByteTrie::Match match = finder.trie.longest(text.substr(at));
    while (match.length > 0 && !may_read(token_of(match), at, at + match.length)) {
      match = finder.trie.longest(text.substr(at, match.length - 1));
    }
    if (match.length == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = token_of(match);
    size_t begin = at, end = at + match.length;
    at = end;
    if (token.single_word && (ends_in_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) continue;
    if (token.lstrip) begin -= spaces_at_end(text.substr(given, begin - given));
    if (token.rstrip) end += spaces_at_start(text.substr(end));
    at = std::max(at, end);
    if (begin > given) found({given, begin, -1});
    found({begin, end, token.id});
    given = end;
  }
  if (given < text.size()) found({given, text.size(), -1});
}

}  // namespace qkv

#include "infer/grammar/token_trie.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "infer/grammar/json_string.h"
#include "text/tokenizer/tokenizer.h"
#include "text/unicode/utf8.h"

namespace qkv::grammar {
TokenTrie::TokenTrie(std::vector<std::string> bytes) : bytes_(std::move(bytes)) {
  constexpr size_t kLongest = 4096;
  for (size_t id = 0; id < bytes_.size(); ++id) {
    if (bytes_[id].empty() || bytes_[id].size() > kLongest) continue;
    order_.push_back(static_cast<int32_t>(id));
    const auto opening =
        std::count_if(bytes_[id].begin(), bytes_[id].end(), [](char c) { return c == '{' || c == '['; });
    most_opening_ = std::max(most_opening_, static_cast<int32_t>(opening));
  }
  std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
    const int compared = bytes_[static_cast<size_t>(a)].compare(bytes_[static_cast<size_t>(b)]);
    return compared != 0 ? compared < 0 : a < b;
  });
  std::vector<int32_t> open;  // nodes from the root to the last token's
  std::string_view before;
  const auto close = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back())
      nodes_[static_cast<size_t>(open.back())].end = static_cast<int32_t>(nodes_.size());
  };
  for (size_t i = 0; i < order_.size(); ++i) {
    const std::string_view text = bytes_[static_cast<size_t>(order_[i])];
    const auto common =
        static_cast<size_t>(std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first - text.begin());
    close(common);
    for (size_t at = common; at < text.size(); ++at) {
      open.push_back(static_cast<int32_t>(nodes_.size()));
      nodes_.push_back({.byte = static_cast<uint8_t>(text[at]),
                        .depth = static_cast<uint16_t>(at + 1),
                        .first = static_cast<int32_t>(i)});
    }
    before = text;
  }
  close(0);
  nodes_.push_back({.end = static_cast<int32_t>(nodes_.size()) + 1, .first = static_cast<int32_t>(order_.size())});
  // For each state of plain text, as bits, whether all from a node down can be read from it.
  const std::vector<Dfa::State>& text = plain_text().states;
  std::vector<uint8_t> good(nodes_.size());
  for (size_t n = nodes_.size() - 1; n-- > 0;) {
    Node& node = nodes_[n];
    uint8_t below = 0xff;  // states from which all children can be read
    for (auto child = n + 1; child < static_cast<size_t>(node.end); child = static_cast<size_t>(nodes_[child].end)) {
      below &= good[child];
      node.characters = std::max(node.characters, nodes_[child].characters);
    }
    for (size_t state = 0; state < text.size(); ++state) {
      const int32_t next = edge_to(text[state].edges, node.byte);
      if (next >= 0 && (below >> next & 1) != 0) good[n] = static_cast<uint8_t>(good[n] | 1U << state);
    }
    node.plain = (good[n] & 1) != 0;
    if ((node.byte & 0xc0) != 0x80) ++node.characters;
  }
}

std::span<const int32_t> TokenTrie::range(int32_t from, int32_t to) const {
  const auto first = static_cast<size_t>(nodes_[static_cast<size_t>(from)].first),
             last = static_cast<size_t>(nodes_[static_cast<size_t>(to)].first);
  return std::span(order_).subspan(first, last - first);
}

std::string_view TokenTrie::path(int32_t node) const {
  const Node& n = nodes_[static_cast<size_t>(node)];
  return bytes(order_[static_cast<size_t>(n.first)]).substr(0, n.depth);
}

TokenTriePtr token_trie_of(const Tokenizer& tokenizer) {
  std::vector<std::string> bytes(static_cast<size_t>(tokenizer.vocab_size()));
  const NamedTokens& named = tokenizer.named();
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const bool has_role = id == named.bos || id == named.eos || id == named.pad || id == named.unk || id == named.sep ||
                          id == named.cls || id == named.mask;
    if (tokenizer.has(id) && !tokenizer.is_special(id) && !has_role)
      bytes[static_cast<size_t>(id)] = tokenizer.bytes_of(id);
  }
  std::array<bool, 256> single{};
  for (const std::string& text : bytes) {
    if (text.size() == 1) single[static_cast<uint8_t>(text[0])] = true;
  }
  for (uint8_t byte = 0x20; byte < 0x7f; ++byte) {
    QKV_CHECK(single[byte], tokenizer.what(), ": no token is the character ", std::string(1, static_cast<char>(byte)),
              " alone, so not every JSON text can be written", Hint("use a model whose tokenizer knows all of ASCII"));
  }
  // A token may end inside a character only if any character can be completed.
  if (!std::all_of(single.begin() + 0x80, single.begin() + 0xc0, [](bool is) { return is; })) {
    for (std::string& text : bytes) {
      if (!is_utf8(text)) text.clear();
    }
  }
  return std::make_shared<const TokenTrie>(std::move(bytes));
}

}  // namespace qkv::grammar

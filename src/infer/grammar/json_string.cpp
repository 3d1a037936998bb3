#include "infer/grammar/json_string.h"

#include <array>
#include <utility>

#include "base/json.h"

namespace qkv::grammar {
namespace {

constexpr std::array<std::pair<uint8_t, uint8_t>, 7> kEscapes{
    {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}}};

uint8_t escape_of(uint8_t byte) {
  for (const auto& [plain, letter] : kEscapes) {
    if (plain == byte) return letter;
  }
  return 0;
}

}  // namespace

Dfa string_contents(Lengths lengths, Budget& budget) {
  // One group of states for each number of characters so far: between characters, then inside one.
  enum Inside : int32_t { between, one_more, after_e0, two_more, after_ed, after_f0, three_more, after_f4, kGroup };
  const size_t last = lengths.most.value_or(lengths.least);
  Dfa dfa;
  for (size_t n = 0; n <= last; ++n) {
    constexpr size_t kGroupSteps = 64;
    budget.spend(kGroupSteps);
    const auto state = [&](Inside inside, size_t count) {
      return static_cast<int32_t>(count) * kGroup + static_cast<int32_t>(inside);
    };
    const auto add = [&](std::vector<ByteEdge> edges) { dfa.states.push_back({std::move(edges), false}); };
    const bool more = n < last || !lengths.most;
    const size_t next = n < last ? n + 1 : n;
    if (more) {
      add({{'\b', '\n', state(between, next)},
           {'\f', '\r', state(between, next)},
           {0x20, 0x7f, state(between, next)},
           {0xc2, 0xdf, state(one_more, next)},
           {0xe0, 0xe0, state(after_e0, next)},
           {0xe1, 0xec, state(two_more, next)},
           {0xed, 0xed, state(after_ed, next)},
           {0xee, 0xef, state(two_more, next)},
           {0xf0, 0xf0, state(after_f0, next)},
           {0xf1, 0xf3, state(three_more, next)},
           {0xf4, 0xf4, state(after_f4, next)}});
    } else {
      add({});
    }
    dfa.states.back().accepts = n >= lengths.least;
    add({{0x80, 0xbf, state(between, n)}});
    add({{0xa0, 0xbf, state(one_more, n)}});
    add({{0x80, 0xbf, state(one_more, n)}});
    add({{0x80, 0x9f, state(one_more, n)}});
    add({{0x90, 0xbf, state(two_more, n)}});
    add({{0x80, 0xbf, state(two_more, n)}});
    add({{0x80, 0x8f, state(two_more, n)}});
  }
  return trimmed(dfa, budget);
}

const Dfa& plain_text() {
  static const Dfa dfa = [] {
    Budget budget(100'000);
    Dfa all = string_contents({}, budget);
    std::vector<ByteEdge>& edges = all.states[0].edges;
    std::erase_if(edges, [](const ByteEdge& edge) { return edge.low < 0x80; });
    const int32_t between = 0;
    edges.insert(edges.begin(), {{0x20, '"' - 1, between}, {'"' + 1, '\\' - 1, between}, {'\\' + 1, 0x7f, between}});
    return all;
  }();
  return dfa;
}

Dfa json_string_ends(const Dfa& contents, Budget& budget) {
  if (contents.empty()) return {};
  const auto count = static_cast<int32_t>(contents.states.size()), end = count;
  Dfa dfa;
  dfa.states.resize(static_cast<size_t>(count) + 1);
  dfa.states[static_cast<size_t>(end)].accepts = true;
  for (int32_t s = 0; s < count; ++s) {
    constexpr size_t kByteTableSteps = 32;  // of its 256 bytes
    budget.spend(kByteTableSteps + contents.states[static_cast<size_t>(s)].edges.size());
    const Dfa::State& from = contents.states[static_cast<size_t>(s)];
    std::array<int32_t, 256> to;
    to.fill(-1);
    for (const ByteEdge& edge : from.edges) {
      for (int byte = edge.low; byte <= edge.high; ++byte) to[static_cast<size_t>(byte)] = edge.to;
    }
    std::array<int32_t, 256> letters;
    letters.fill(-1);
    bool escapes = false;
    for (const auto& [plain, letter] : kEscapes) {
      letters[letter] = std::exchange(to[plain], -1);
      escapes = escapes || letters[letter] >= 0;
    }
    if (from.accepts) to['"'] = end;
    const auto set_edges = [&](size_t state, const std::array<int32_t, 256>& table) {
      std::vector<ByteEdge>& edges = dfa.states[state].edges;
      for (size_t byte = 0; byte < 256; ++byte) {
        if (table[byte] < 0) continue;
        const auto b = static_cast<uint8_t>(byte);
        if (!edges.empty() && edges.back().to == table[byte] && edges.back().high + 1 == b) {
          edges.back().high = b;
        } else {
          edges.push_back({b, b, table[byte]});
        }
      }
    };
    if (escapes) {
      to['\\'] = static_cast<int32_t>(dfa.states.size());
      dfa.states.emplace_back();
      set_edges(dfa.states.size() - 1, letters);
    }
    set_edges(static_cast<size_t>(s), to);
  }
  return trimmed(dfa, budget);
}

Dfa json_strings(const Dfa& contents, Budget& budget) {
  const Dfa ends = json_string_ends(contents, budget);
  if (ends.empty()) return {};
  Dfa dfa;
  dfa.states.push_back({{{'"', '"', 1}}, false});
  for (Dfa::State state : ends.states) {
    for (ByteEdge& edge : state.edges) ++edge.to;
    dfa.states.push_back(std::move(state));
  }
  return dfa;
}

std::string json_string(std::string_view contents) {
  std::string out = "\"";
  for (const char c : contents) {
    const auto byte = static_cast<uint8_t>(c);
    if (const uint8_t letter = escape_of(byte); letter != 0) {
      out += '\\';
      out += static_cast<char>(letter);
    } else if (byte < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace qkv::grammar

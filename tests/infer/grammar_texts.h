// Texts and grammars, for tests.
#pragma once

#include <string_view>

#include "infer/grammar/parse_state.h"

namespace qkv::test {

// Whether the text is one of the grammar's.
inline bool accepts(const grammar::Grammar& grammar, std::string_view text) {
  const grammar::Parser parser(grammar);
  grammar::ParseStore store;
  grammar::Ways ways, next;
  parser.start(store, ways);
  for (const char c : text) {
    next.clear();
    parser.step(store, ways.frames, static_cast<uint8_t>(c), next);
    std::swap(ways, next);
  }
  return ways.complete;
}

}  // namespace qkv::test

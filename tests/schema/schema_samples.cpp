// schema_samples TOKENIZER COUNT: texts that a model with random logits writes under a schema.
//
// Each line of standard input is a JSON Schema; each line of output is a list of COUNT texts, null for one that did not
// end in time, or {"error": ...} for a schema that is refused. schema_check.py makes the schemas and judges the texts.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "infer/grammar/constraint.h"
#include "infer/grammar/json_schema.h"
#include "infer/sampling.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {
namespace {

constexpr int kPatience = 40, kMostTokens = 1000;

// Logits of a model that knows nothing, but after a while wants to come to an end.
std::vector<float> random_logits(const grammar::TokenTrie& trie, int32_t end, uint64_t seed, int step) {
  std::vector<float> logits(trie.vocabulary());
  const PhiloxKey key = fold({.seed = seed, .site = 1});
  const int late = std::max(step - kPatience, 0);
  for (size_t id = 0; id < logits.size(); ++id) {
    logits[id] = static_cast<float>(2 * normal(key, static_cast<uint64_t>(step), id));
    const std::string_view bytes = trie.bytes(static_cast<int32_t>(id));
    const bool closes = static_cast<int32_t>(id) == end || bytes == "\"" || bytes == "}" || bytes == "]";
    if (closes) logits[id] += 0.5F * static_cast<float>(std::min(late, 60));
  }
  return logits;
}

Json sample(const std::shared_ptr<const grammar::TokenMasks>& masks, int32_t end, const Tokenizer& tokenizer,
            uint64_t seed) {
  Constraint constraint(masks, {end});
  const Sampling sampling{.temperature = 1.5, .seed = seed};
  std::vector<int32_t> ids;
  for (int step = 0; step < kMostTokens; ++step) {
    const std::vector<float> logits = random_logits(masks->trie(), end, seed, step);
    const Choice choice = choose(sampling, {.logits = logits, .history = ids, .allowed = &constraint.allowed()});
    constraint.accept(choice.id);
    if (choice.id == end) return tokenizer.decode(ids);
    ids.push_back(choice.id);
  }
  return nullptr;
}

int samples(const char* path, int count) {
  const Tokenizer tokenizer = Tokenizer::load(path);
  const grammar::TokenTriePtr trie = grammar::token_trie_of(tokenizer);
  const int32_t end = tokenizer.named().eos.value_or(0);
  std::string line;
  for (uint64_t number = 0; std::getline(std::cin, line); ++number) {
    Json out = Json::array();
    try {
      const auto masks = std::make_shared<const grammar::TokenMasks>(grammar::schema_grammar(line, "schema"), trie);
      for (int n = 0; n < count; ++n)
        out.push_back(sample(masks, end, tokenizer, number * 1000 + static_cast<uint64_t>(n)));
    } catch (const Error& error) {
      out = Json{{"error", error.what()}};
    }
    std::cout << out.dump() << '\n' << std::flush;
  }
  return 0;
}

}  // namespace
}  // namespace qkv

int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "usage: schema_samples TOKENIZER COUNT < schemas\n";
    return 2;
  }
  return qkv::samples(arguments[1], std::atoi(arguments[2]));
}

// Sessions under a constraint: greedy and sampled, alone and in a batch, with and without guesses.
#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "infer/grammar/json_schema.h"
#include "infer/grammar_texts.h"
#include "infer/scheduler.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"

namespace qkv {
namespace {

class ConstrainedSession : public testing::Test {
 protected:
  static constexpr int32_t kEnd = 2;
  static constexpr const char* kSchema =
      R"({"type":"array","items":{"anyOf":[{"type":"integer","minimum":-3,"maximum":4021},{"enum":[true,"a","ab"]},
          {"type":"object","additionalProperties":{"type":"null"},"maxProperties":2}]},"minItems":3,"maxItems":6})";

  // Pieces for the ids of a small model; those without one never appear.
  static grammar::TokenTriePtr pieces(int64_t vocabulary) {
    const std::vector<std::string> some{"[",       "]",  ",",  " ", "0",     "1", "2", "3",  "4", "40",   "-",
                                        "true",    "\"", "a",  "b", "\"a\"", "{", "}", "{}", ":", "null", "{\"",
                                        "\":null", "]]", "],", "n", "u",     "l", "t", "r",  "e", "ue"};
    std::vector<std::string> bytes(static_cast<size_t>(vocabulary));
    for (size_t i = 0; i < some.size(); ++i) bytes[5 + i] = some[i];
    return std::make_shared<const grammar::TokenTrie>(std::move(bytes));
  }

  std::string text_of(const Session& session) const {
    std::string text;
    for (size_t i = static_cast<size_t>(session.prompt_length()); i < session.ids().size(); ++i) {
      if (session.ids()[i] != kEnd) text += trie_->bytes(session.ids()[i]);
    }
    return text;
  }

  SessionOptions request(uint64_t seed) const {
    SessionOptions options{
        .prompt = {1, 7, static_cast<int32_t>(8 + seed % 20)}, .max_new = 300, .eos = std::vector{kEnd}};
    options.sampling.temperature = seed % 3 == 0 ? 0 : 1.5;
    if (seed % 4 == 1) options.sampling.top_k = 5;
    if (seed % 4 == 2) options.sampling.top_p = 0.8;
    if (seed % 5 == 3) options.sampling.no_repeat_ngram = 2;
    if (seed % 5 == 4) options.sampling.repetition_penalty = 1.3;
    options.sampling.seed = seed;
    options.constraint = masks_;
    return options;
  }

  Checkpoint checkpoint_ = Checkpoint::open(test::golden("llama"));
  std::unique_ptr<Model> model_ = checkpoint_.model();
  Engine engine_{kernels::best_table(), {.threads = 2}};
  Runner runner_{*model_, engine_, {.precision = Precision::f32(), .cache = DType::f32, .positions = 8192}};
  grammar::GrammarPtr grammar_ = grammar::schema_grammar(kSchema, "schema");
  grammar::TokenTriePtr trie_ = pieces(model_->spec().vocabulary);
  std::shared_ptr<const grammar::TokenMasks> masks_ = std::make_shared<const grammar::TokenMasks>(grammar_, trie_);
};

TEST_F(ConstrainedSession, TextsSatisfyTheSchemaAndDoNotDependOnTheBatch) {
  std::vector<std::vector<int32_t>> alone;
  int whole = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Session session(runner_, request(seed));
    while (session.next()) {
    }
    const std::string text = text_of(session);
    if (session.ended() == Ended::stopped) {
      EXPECT_TRUE(test::accepts(*grammar_, text)) << text;
      EXPECT_EQ(session.ids().back(), kEnd);
      ++whole;
    } else {
      // Keys may be long: then it is cut, and still the beginning of a value.
      EXPECT_EQ(session.error(), "");
    }
    alone.push_back(session.ids());
  }
  EXPECT_GT(whole, 12);
  for (const int64_t draft : {0, 4}) {
    Scheduler scheduler(runner_, {.most_active = 7});
    std::vector<std::vector<int32_t>> together(alone.size());
    for (uint64_t seed = 0; seed < alone.size(); ++seed) {
      SessionOptions options = request(seed);
      options.draft = draft;
      scheduler.submit(
          {.options = std::move(options), .on_end = [&together, seed](const Session& s) { together[seed] = s.ids(); }});
    }
    scheduler.run();
    EXPECT_EQ(together, alone) << "draft " << draft;
    EXPECT_TRUE(draft == 0 || scheduler.counts().guessed_right > 0);
  }
}

TEST_F(ConstrainedSession, AForkGoesOnFromWhereTheTextStands) {
  Session session(runner_, request(1));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(session.next());
  Session fork = session.fork(request(2).sampling);
  while (fork.next()) {
  }
  while (session.next()) {
  }
  EXPECT_TRUE(fork.ended() != Ended::stopped || test::accepts(*grammar_, text_of(fork))) << text_of(fork);
  EXPECT_EQ(fork.error(), "");
  EXPECT_EQ(session.error(), "");
  Session again(runner_, request(1));
  while (again.next()) {
  }
  EXPECT_EQ(again.ids(), session.ids()) << "the fork left its own state alone";
}

TEST_F(ConstrainedSession, EndsByItselfWithoutEndTokensAndIsCutAtMaxNew) {
  SessionOptions options = request(0);
  options.eos = std::vector<int32_t>{};
  options.constraint =
      std::make_shared<const grammar::TokenMasks>(grammar::schema_grammar(R"({"enum":[401,true]})", "s"), trie_);
  Session session(runner_, options);
  while (session.next()) {
  }
  EXPECT_EQ(session.ended(), Ended::stopped);
  EXPECT_TRUE(text_of(session) == "401" || text_of(session) == "true") << text_of(session);
  options = request(0);
  options.max_new = 2;
  Session cut(runner_, options);
  while (cut.next()) {
  }
  EXPECT_EQ(cut.ended(), Ended::length);
}

TEST_F(ConstrainedSession, LogProbabilitiesAreThoseOfTheModel) {
  SessionOptions options = request(0);
  options.sampling.alternatives = 3;
  Session session(runner_, options);
  const Choice held = *session.next();
  options.constraint.reset();
  Session free(runner_, options);
  const Choice any = *free.next();
  EXPECT_EQ(held.alternatives, any.alternatives);
  EXPECT_NE(held.id, any.id) << "the constraint must matter in this test";
  EXPECT_LT(held.logprob, any.logprob);
}

// The rule against repeats gives way where it would leave nothing.
TEST_F(ConstrainedSession, NoRepeatNgramNeverLeavesNothing) {
  SessionOptions options = request(0);
  options.sampling.no_repeat_ngram = 1;
  options.constraint =
      std::make_shared<const grammar::TokenMasks>(grammar::schema_grammar(R"({"enum":["aaaaaaaa"]})", "s"), trie_);
  Session session(runner_, options);
  while (session.next()) {
  }
  EXPECT_EQ(session.error(), "");
  EXPECT_EQ(text_of(session), "\"aaaaaaaa\"");
}

TEST_F(ConstrainedSession, AVocabularyOfAnotherModelIsAnError) {
  std::vector<std::string> bytes(static_cast<size_t>(model_->spec().vocabulary) + 1);
  bytes.back() = "1";
  SessionOptions options = request(0);
  options.constraint = std::make_shared<const grammar::TokenMasks>(
      grammar::schema_grammar(R"({"const":1})", "s"), std::make_shared<const grammar::TokenTrie>(std::move(bytes)));
  Session session(runner_, options);
  expect_error([&] { session.next(); }, {"none of the allowed tokens"});
}

}  // namespace
}  // namespace qkv

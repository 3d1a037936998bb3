// Keys of a recipe by other names, and --set with another kind of tokenizer.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "train/recipe.h"

namespace qkv {
namespace recipe_names_test {

Json some_keys() {
  return {{"model", {{"model_type", "gpt2"}}},
          {"tokenizer", {{"train", "bpe"}, {"vocab", 400}, {"pattern", "qwen2"}, {"max_token_length", 12}}},
          {"data", {{"files", {"a.txt"}}}},
          {"steps", 3}};
}

std::string hint_of(const std::string& assignment) {
  Json json = some_keys();
  set_value(json, assignment);
  const std::optional<Error> error = error_of([&] { read_recipe(json, "test"); });
  return error ? error->hint() : "none";
}

TEST(RecipeNames, OfOtherProgramsLeadToOurs) {
  EXPECT_EQ(hint_of("lr=0.001"), "did you mean 'schedule.peak'?");
  EXPECT_EQ(hint_of("schedule.lr=0.001"), "did you mean 'schedule.peak'?");
  EXPECT_EQ(hint_of("weight_decay=0.1"), "did you mean 'optimizer.decay'?");
  EXPECT_EQ(hint_of("max_steps=10"), "did you mean 'steps'?");
  EXPECT_EQ(hint_of("hidden_size=10"), "did you mean 'model.hidden_size'?");
  EXPECT_EQ(hint_of("optimiser.decay=0.1"), "did you mean 'optimizer'?");
}

TEST(RecipeNames, EveryObjectRefusesWhatItDoesNotKnow) {
  for (const auto& [assignment, meant] : {std::pair{"tokenizer.vocabb=3", "vocab"},
                                          {"data.validaton=0.1", "validation"},
                                          {"optimizer.deccay=0.1", "decay"},
                                          {"schedule.peek=0.1", "peak"},
                                          {"loss.smothing=0.1", "smoothing"},
                                          {"evaluate.evry=3", "every"},
                                          {"checkpoint.kep=3", "keep"}}) {
    EXPECT_EQ(hint_of(assignment), std::string("did you mean '") + meant + "'?") << assignment;
  }
}

// A recipe of BPE becomes one of characters with nothing but --set tokenizer.train=char.
TEST(RecipeNames, AnotherTokenizerLeavesTheKeysOfTheFirst) {
  const auto changed = [](std::vector<std::string> set) {
    return read_recipe(changed_recipe(some_keys(), {.set = std::move(set)}), "test").tokenizer;
  };
  Recipe::TokenizerSource tokenizer = changed({"tokenizer.train=char"});
  EXPECT_EQ(tokenizer.train, "char");
  EXPECT_EQ(tokenizer.vocab, 0);
  EXPECT_EQ(tokenizer.max_token_length, 0);
  EXPECT_EQ(tokenizer.pattern, "gpt2");
  tokenizer = changed({"tokenizer.train=unigram"});
  EXPECT_EQ(tokenizer.vocab, 400);
  EXPECT_EQ(tokenizer.max_token_length, 12);
  EXPECT_EQ(tokenizer.pattern, "gpt2");
  tokenizer = changed({"tokenizer.train=char", "tokenizer.vocab=70"});  // refused when it is prepared
  EXPECT_EQ(tokenizer.vocab, 70);
  EXPECT_EQ(changed({"tokenizer.train=bpe"}).pattern, "qwen2");
  const Json from = changed_recipe(some_keys(), {.from = "some/model", .set = {"steps=2"}});
  EXPECT_EQ(read_recipe(from, "test").tokenizer.load, "some/model");
}

TEST(RecipeNames, TooLongIsOfPairsAndConversations) {
  Json json = some_keys();
  json["data"]["too_long"] = "cut";
  expect_error([&] { read_recipe(json, "test"); }, {"data.too_long", "cut into windows"});
  json["data"]["format"] = "tsv";
  json["objective"] = "translate";
  EXPECT_TRUE(read_recipe(to_json(read_recipe(json, "test")), "again").data.cut_long);
  json["data"]["too_long"] = "skip";
  EXPECT_FALSE(to_json(read_recipe(json, "test"))["data"].contains("too_long"));  // runs of older versions go on
}

}  // namespace recipe_names_test
}  // namespace qkv

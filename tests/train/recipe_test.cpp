// Recipes: --set, where a run starts from, paths.
#include "train/recipe.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace qkv {
namespace {

Json some_keys() {
  return {{"model", {{"model_type", "gpt2"}}},
          {"tokenizer", {{"train", "char"}}},
          {"data", {{"files", {"a.txt", "/b.txt"}}}},
          {"steps", 3}};
}

TEST(SetValue, IsJsonWhereItLooksLikeItAndElseText) {
  Json recipe;
  for (const char* assignment : {"a.b=3", "a.c=x y", "a.d=[1, 2]", "a.e=true", "a.f="}) set_value(recipe, assignment);
  EXPECT_EQ(recipe, (Json{{"a", {{"b", 3}, {"c", "x y"}, {"d", {1, 2}}, {"e", true}, {"f", ""}}}}));
  for (const char* broken : {"x=[1, 2", "x={a}", "x=\"y"}) {
    expect_error([&] { set_value(recipe, broken); }, {"--set x", "not valid JSON"});
  }
  expect_error([&] { set_value(recipe, "=3"); }, {"no value"});
  expect_error([&] { set_value(recipe, "a.b.c=3"); }, {"no object"});
}

// Nested as deep as a recipe's file may be, and no deeper: reading, writing and freeing it recurse.
TEST(SetValue, HasADepth) {
  const auto deep = [](size_t parts, size_t brackets) {
    std::string text = "a";
    for (size_t i = 1; i < parts; ++i) text += ".a";
    return text + '=' + std::string(brackets, '[') + std::string(brackets, ']');
  };
  Json recipe;
  expect_error([&] { set_value(recipe, deep(64'000, 0)); }, {"64000 parts", "64 levels"});
  expect_error([&] { set_value(recipe, deep(1, 100'000)); }, {"--set a", "63 levels deep"});
  set_value(recipe, deep(40, 24));
  EXPECT_EQ(parse_json(recipe.dump(), "again"), recipe);
  expect_error([&] { set_value(recipe, deep(40, 25)); }, {"24 levels deep"});
}

TEST(Recipe, StartsFromAModelThatStandsAlone) {
  Json json = some_keys();
  json["model"] = {{"from", "some/model"}};
  expect_error([&] { read_recipe(json, "test"); }, {"some/model", "tokenizer is another"});
  json.erase("tokenizer");
  const Recipe recipe = read_recipe(json, "test");
  EXPECT_EQ(recipe.from(), "some/model");
  EXPECT_EQ(recipe.tokenizer.load, "some/model");
  EXPECT_EQ(read_recipe(to_json(recipe), "again").from(), "some/model");
  json["model"]["hidden_size"] = 8;
  expect_error([&] { read_recipe(json, "test"); }, {"model.from", "1 other"});
  json["model"] = {{"from", 3}};
  expect_error([&] { read_recipe(json, "test"); }, {"model.from", "3"});
  EXPECT_EQ(read_recipe(some_keys(), "test").from(), "");
}

TEST(Recipe, RemembersFullPathsAndWhetherItIsWatched) {
  Json json = some_keys();
  json["watch"] = true;
  const Recipe recipe = with_full_paths(read_recipe(json, "test"));
  EXPECT_EQ(recipe.data.files, (std::vector<std::string>{std::filesystem::current_path() / "a.txt", "/b.txt"}));
  EXPECT_TRUE(read_recipe(to_json(recipe), "again").watch);
  EXPECT_FALSE(read_recipe(some_keys(), "test").watch);
}

TEST(ChangedRecipe, takes_other_data_than_the_world) {
  Json json = some_keys();
  json["data"] = {{"world", "en"}, {"stories", 100}, {"validation", 0.1}};
  const Recipe other = read_recipe(changed_recipe(json, {.files = {"a.txt"}}), "test");
  EXPECT_EQ(other.data.files, std::vector<std::string>{"a.txt"});
  EXPECT_EQ(other.data.world, "");
  EXPECT_EQ(other.data.stories, 0);
  EXPECT_EQ(other.data.validation, 0.1);
  EXPECT_TRUE(other.data.tail);
  json["objective"] = "translate";
  json["data"] = {{"world", "pairs"}, {"stories", 100}};
  const Recipe pairs = read_recipe(changed_recipe(json, {.files = {"a.tsv"}}), "test");
  EXPECT_EQ(pairs.data.format, "tsv");
  EXPECT_FALSE(pairs.data.tail);  // it would cut a pair in two
}

// What is enough of a million stories would be nothing of a file.
TEST(ChangedRecipe, holds_out_enough_of_a_file_in_place_of_the_world) {
  Json json = some_keys();
  const auto held_out = [&](std::vector<std::string> set) {
    return read_recipe(changed_recipe(json, {.files = {"a.txt"}, .set = std::move(set)}), "test").data.validation;
  };
  json["data"] = {{"world", "both"}, {"validation", 0.002}};
  EXPECT_EQ(held_out({}), 0.05);
  EXPECT_EQ(held_out({"data.validation=0.01"}), 0.01);
  json["data"]["validation"] = 0;
  EXPECT_EQ(held_out({}), 0);
  json["data"] = {{"files", {"b.txt"}}, {"validation", 0.002}};
  EXPECT_EQ(held_out({}), 0.002);
}

TEST(ChangedRecipe, shrinks_its_schedule_with_its_steps) {
  Json json = some_keys();
  json["steps"] = 400;
  json["schedule"] = {{"kind", "stable_decay"}, {"warmup", 40}, {"decay", 150}};
  const auto schedule = [&](const std::vector<std::string>& set) {
    const Schedule s = read_recipe(changed_recipe(json, {.set = set}), "test").schedule;
    return std::array<int64_t, 3>{s.steps, s.warmup, s.decay};
  };
  EXPECT_EQ(schedule({}), (std::array<int64_t, 3>{400, 40, 150}));
  EXPECT_EQ(schedule({"steps=20"}), (std::array<int64_t, 3>{20, 2, 8}));
  EXPECT_EQ(schedule({"steps=1"}), (std::array<int64_t, 3>{1, 1, 0}));
  EXPECT_EQ(schedule({"steps=4000"}), (std::array<int64_t, 3>{4000, 40, 150}));  // more steps: as written
  EXPECT_EQ(schedule({"schedule.warmup=10", "steps=20"}), (std::array<int64_t, 3>{20, 10, 8}));
  expect_error([&] { schedule({"steps=20", "schedule.warmup=30"}); }, {"schedule.warmup is 30", "20 steps"});
}

TEST(Recipes, have_a_micro_batch_for_each_rank_unless_they_say) {
  Json json = some_keys();
  json["sequence"] = 64;
  json["batch_tokens"] = 512;
  json.erase("micro_batches");
  EXPECT_EQ(read_recipe(json, "test").micro_batches, 1);
  EXPECT_EQ(read_recipe(json, "test", 4).micro_batches, 4);
  EXPECT_EQ(read_recipe(json, "test", 3).micro_batches, 1);  // ranks of that number are refused
  expect_error([&] { read_recipe(json, "test", 16); }, {"16 micro-batches of whole windows of 64"});
  json["micro_batches"] = 2;
  EXPECT_EQ(read_recipe(json, "test", 4).micro_batches, 2);
}

}  // namespace
}  // namespace qkv

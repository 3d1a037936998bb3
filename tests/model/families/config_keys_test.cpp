// Keys of a config that its family does not read: those transformers writes are accepted, misspelt ones are not.
#include "model/families/config_keys.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/file.h"
#include "model/families/family.h"
#include "model/families/presets.h"
#include "support/pass.h"

namespace qkv {
namespace {

Json small_qwen() {
  return {{"model_type", "qwen2"},        {"hidden_size", 32},        {"intermediate_size", 64},
          {"num_hidden_layers", 2},       {"num_attention_heads", 4}, {"num_key_value_heads", 2},
          {"max_position_embeddings", 64}};
}

void expect_refused(const Json& json, std::initializer_list<std::string_view> parts, std::string_view hint) {
  const auto check = [&] { check_keys_of_new_model(json, "model"); };
  expect_error(check, parts);
  const std::optional<Error> error = error_of(check);
  ASSERT_TRUE(error.has_value());
  EXPECT_NE(error->hint().find(hint), std::string::npos) << error->what();
}

TEST(ConfigKeys, WhatTransformersWritesIsAccepted) {
  size_t families = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::golden(""))) {
    const std::filesystem::path file = entry.path() / "config.json";
    if (!std::filesystem::exists(file)) continue;
    EXPECT_FALSE(error_of([&] { check_keys_of_new_model(parse_json(read_file(file, 1 << 24), "config"), "model"); }))
        << file << ": " << error_of([&] {
                             check_keys_of_new_model(parse_json(read_file(file, 1 << 24), "config"), "model");
                           })->message();
    ++families;
  }
  EXPECT_GE(families, all_families().size() - 1);  // all but `transformer`, which is not of that library
  for (const std::string_view name : preset_names()) check_keys_of_new_model(preset_config(std::string(name)), "model");
}

TEST(ConfigKeys, MisspeltOnesNameTheNearest) {
  Json json = small_qwen();
  json["num_hidden_layer"] = 8;
  expect_refused(json, {"'num_hidden_layer'", "with the value '8'", "'qwen2' does not read"},
                 "did you mean 'num_hidden_layers'");
  json = small_qwen();
  json["hiden_size"] = 512;
  expect_refused(json, {"'hiden_size'"}, "did you mean 'hidden_size'");
  json.erase("hidden_size");
  expect_refused(json, {"'hidden_size' is missing"}, "is it 'hiden_size'?");
  json = small_qwen();
  json["n_layer"] = 8;  // another family's name
  expect_refused(json, {"'n_layer'"}, "did you mean 'num_hidden_layers'");
  json = small_qwen();
  json["wings"] = 2;
  expect_refused(json, {"'wings'"}, "leave it out");
}

TEST(ConfigKeys, ObjectsInsideAreCheckedToo) {
  Json json = small_qwen();
  json["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2}};
  check_keys_of_new_model(json, "model");
  json["rope_scaling"]["fcator"] = 4;
  expect_refused(json, {"model.rope_scaling has the key 'fcator'"}, "did you mean 'factor'");
}

TEST(ConfigKeys, AValueThatWouldChangeTheModelIsRefused) {
  Json json = parse_json(read_file(test::golden("bart") / "config.json", 1 << 24), "bart");
  json["encoder_layerdrop"] = 0.1;
  expect_refused(json, {"model.encoder_layerdrop is '0.1' but only 0"}, "");
  json["encoder_layerdrop"] = 0;
  json["num_hidden_layers"] = json["encoder_layers"];
  check_keys_of_new_model(json, "model");
  json["num_hidden_layers"] = 7;
  expect_refused(json, {"model.num_hidden_layers is '7' but encoder_layers"}, "");
  json = small_qwen();
  json["sliding_window"] = 16;
  expect_refused(json, {"sliding_window is '16'", "'use_sliding_window'"}, "");
  json["use_sliding_window"] = false;
  check_keys_of_new_model(json, "model");
}

}  // namespace
}  // namespace qkv

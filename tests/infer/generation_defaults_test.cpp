// What is read from configs as public models have them.
#include "infer/generation_defaults.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/temp_folder.h"
#include "support/pass.h"

namespace qkv {
namespace {

using Early = BeamOptions::Early;

GenerationDefaults read(const char* config, const char* generation = nullptr, int64_t vocabulary = 70000) {
  std::optional<Config> own;
  if (generation != nullptr) own.emplace(parse_json(generation, "g"), "generation_config.json");
  return read_generation_defaults(Config(parse_json(config, "c"), "config.json"), own, vocabulary);
}

// As opus-mt-en-de has it.
TEST(GenerationDefaults, OfAMarianModel) {
  const GenerationDefaults d = read(R"({"pad_token_id": 9})", R"({
    "bad_words_ids": [[58100]], "bos_token_id": 0, "decoder_start_token_id": 58100, "eos_token_id": 0,
    "forced_eos_token_id": 0, "max_length": 512, "num_beams": 6, "pad_token_id": 58100, "transformers_version": "4.32"})");
  EXPECT_EQ(d.num_beams, 6);
  EXPECT_EQ(d.max_length, 512);
  EXPECT_EQ(d.banned, std::vector<int32_t>{58100});
  EXPECT_EQ(d.tokens.decoder_start, 58100);
  EXPECT_EQ(d.tokens.forced_eos, 0);
  EXPECT_EQ(d.tokens.pad, 58100);
  EXPECT_EQ(d.tokens.eos, std::vector<int32_t>{0});
  EXPECT_EQ(d.early, Early::no);
  EXPECT_EQ(d.length_penalty, 1);
  EXPECT_FALSE(d.forced_bos || d.max_new_tokens || d.temperature || d.top_k || d.do_sample);
}

// As Qwen2.5-Instruct has it: its config knows one end, this file two.
TEST(GenerationDefaults, OfAChatModel) {
  const GenerationDefaults d = read(R"({"eos_token_id": 5, "temperature": 0.1, "forced_eos_token_id": 5})", R"({
    "bos_token_id": 3, "pad_token_id": 3, "do_sample": true, "eos_token_id": [5, 3], "repetition_penalty": 1.05,
    "temperature": 0.7, "top_p": 0.8, "top_k": 20, "min_p": null, "max_new_tokens": 2048})");
  EXPECT_TRUE(d.do_sample);
  EXPECT_EQ(d.temperature, 0.7);
  EXPECT_EQ(d.top_p, 0.8);
  EXPECT_EQ(d.top_k, 20);
  EXPECT_EQ(d.repetition_penalty, 1.05);
  EXPECT_EQ(d.max_new_tokens, 2048);
  EXPECT_EQ(d.tokens.eos, (std::vector<int32_t>{5, 3}));
  EXPECT_FALSE(d.tokens.forced_eos);  // the newer file says everything
  EXPECT_FALSE(d.min_p || d.max_length);
}

// As bart-large-cnn has it, in the days before there was a second file.
TEST(GenerationDefaults, OfAnOlderConfig) {
  const GenerationDefaults d = read(R"({
    "decoder_start_token_id": 2, "eos_token_id": 2, "forced_bos_token_id": 0, "forced_eos_token_id": 2,
    "early_stopping": true, "length_penalty": 2.0, "no_repeat_ngram_size": 3, "num_beams": 4, "d_model": 1024,
    "suppress_tokens": [11, 7], "bad_words_ids": [[7], [2]]})");
  EXPECT_EQ(d.early, Early::yes);
  EXPECT_EQ(d.length_penalty, 2);
  EXPECT_EQ(d.no_repeat_ngram, 3);
  EXPECT_EQ(d.num_beams, 4);
  EXPECT_EQ(d.forced_bos, 0);
  EXPECT_EQ(d.banned, (std::vector<int32_t>{7, 11}));  // the end stays possible
  EXPECT_EQ(read(R"({"early_stopping": "never"})").early, Early::never);
}

TEST(GenerationDefaults, TokensComeFromTheConfigWhereTheFileIsSilent) {
  const GenerationDefaults d = read(R"({"eos_token_id": 5, "decoder_start_token_id": 6, "num_beams": 3})", "{}");
  EXPECT_EQ(d.tokens.eos, std::vector<int32_t>{5});
  EXPECT_EQ(d.tokens.decoder_start, 6);
  EXPECT_EQ(d.num_beams, 1);
}

TEST(GenerationDefaults, MalformedFieldsAreErrorsThatNameThem) {
  const struct {
    const char* json;
    const char* message;
  } cases[] = {
      {R"({"temperature": -1})", "'temperature' is -1 but must be from 0 to 100"},
      {R"({"temperature": "hot"})", "'temperature' is '\"hot\"' but must be a number"},
      {R"({"top_p": 1.5})", "'top_p' is 1.5"},
      {R"({"top_k": -1})", "'top_k' is -1"},
      {R"({"top_k": 2.5})", "'top_k' is '2.5' but must be a whole number"},
      {R"({"num_beams": 0})", "'num_beams' is 0"},
      {R"({"do_sample": 1})", "'do_sample' is '1' but must be true or false"},
      {R"({"early_stopping": "maybe"})", "'early_stopping' is"},
      {R"({"max_new_tokens": 0})", "'max_new_tokens' is 0"},
      {R"({"bad_words_ids": [58100]})", "must be a list of lists of ids"},
      {R"({"bad_words_ids": [["x"]]})", "must be a list of lists of ids"},
      {R"({"bad_words_ids": [[1, 2]]})", "'bad_words_ids' bans a word of 2 tokens"},
      {R"({"bad_words_ids": [[70000]]})", "'bad_words_ids' holds 70000 but the model knows ids from 0 to 69999"},
      {R"({"suppress_tokens": [-1]})", "'suppress_tokens' holds -1"},
      {R"({"forced_bos_token_id": 70000})", "'forced_bos_token_id' holds 70000"},
      {R"({"eos_token_id": [-4]})", "'eos_token_id' holds -4"},
  };
  for (const auto& c : cases) {
    expect_error([&] { read("{}", c.json); }, {c.message});
    expect_error([&] { read("{}", c.json); }, {"generation_config.json"});
    expect_error([&] { read(c.json); }, {"config.json"});
  }
}

// Every field that a beam search has comes from the file, and what the user chose goes before it.
TEST(GenerationDefaults, MakeABeamSearch) {
  const GenerationDefaults d = read("{}", R"({
    "num_beams": 6, "length_penalty": 0.5, "early_stopping": "never", "eos_token_id": [3, 4], "forced_eos_token_id": 4,
    "forced_bos_token_id": 5, "bad_words_ids": [[8]], "suppress_tokens": [7], "no_repeat_ngram_size": 2,
    "repetition_penalty": 1.5, "max_length": 40, "decoder_start_token_id": 0})");
  const BeamOptions as_said = beam_options(d, {}, {.context = 100, .has_source = true});
  EXPECT_EQ(as_said.beams, 6);
  EXPECT_EQ(as_said.n_best, 1);
  EXPECT_EQ(as_said.length_penalty, 0.5);
  EXPECT_EQ(as_said.early, Early::never);
  EXPECT_EQ(as_said.max_length, 40);
  EXPECT_EQ(as_said.eos, (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(as_said.forced_eos, 4);
  EXPECT_EQ(as_said.forced_bos, 5);
  EXPECT_EQ(as_said.banned, (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(as_said.no_repeat_ngram, 2);
  EXPECT_EQ(as_said.repetition_penalty, 1.5);

  const BeamOptions chosen = beam_options(
      d, {.beams = 3, .max_new = 10, .no_repeat_ngram = 0, .length_penalty = 2, .repetition_penalty = 1, .n_best = 2},
      {.prompt = 5, .context = 100});
  EXPECT_EQ(chosen.beams, 3);
  EXPECT_EQ(chosen.n_best, 2);
  EXPECT_EQ(chosen.length_penalty, 2);
  EXPECT_EQ(chosen.max_length, 15);
  EXPECT_EQ(chosen.no_repeat_ngram, 0);
  EXPECT_EQ(chosen.repetition_penalty, 1);
  EXPECT_EQ(beam_options(d, {.beams = 1}, {.context = 100}).early, Early::yes) << "one beam is greedy";
}

TEST(GenerationDefaults, LimitABeamSearchToTheContext) {
  const GenerationDefaults silent = read("{}"), limited = read("{}", R"({"max_new_tokens": 30, "max_length": 7})");
  const BeamStart target{.context = 300, .has_source = true}, text{.prompt = 9, .context = 300};
  EXPECT_EQ(beam_options(silent, {}, target).beams, 4);
  EXPECT_EQ(beam_options(silent, {}, target).max_length, 256);
  EXPECT_EQ(beam_options(silent, {}, {.context = 20, .has_source = true}).max_length, 20);
  EXPECT_EQ(beam_options(silent, {}, text).max_length, 300);
  EXPECT_EQ(beam_options(limited, {}, target).max_length, 31);
  EXPECT_EQ(beam_options(limited, {}, text).max_length, 39);
  EXPECT_EQ(beam_options(limited, {.max_new = int64_t{1} << 40}, text).max_length, 300);
}

TEST(GenerationDefaults, AreFoundBesideTheModel) {
  const GenerationDefaults d = generation_defaults(test::golden("marian"), Json::object(), 1000);
  EXPECT_EQ(d.tokens.forced_eos, 2);
  const TempFolder folder;
  const Json config = {{"num_beams", 3}};
  EXPECT_EQ(generation_defaults(folder.path(), config, 10).num_beams, 3);
  EXPECT_EQ(generation_defaults(folder.path() / "model.gguf", config, 10).num_beams, 3);
  folder.write("generation_config.json", "[1]");
  expect_error([&] { generation_defaults(folder.path(), config, 10); }, {"must be an object"});
}

}  // namespace
}  // namespace qkv

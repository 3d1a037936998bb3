// What of a run's data is held out, and what is left out because it is too long.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temp_folder.h"
#include "support/pass.h"
#include "text/tokenizer/tokenizer.h"
#include "train/data.h"
#include "train/prepare.h"

namespace qkv {
namespace left_out_test {

namespace fs = std::filesystem;

class RunData : public testing::Test {
 protected:
  struct Opened {
    std::unique_ptr<TrainData> data;
    std::string said;  // on stderr
    Tokenizer tokenizer;
  };
  Opened open(const Json& json) {
    const Recipe recipe = read_recipe(json, "test");
    const fs::path folder = temp_.path() / ("prepared-" + std::to_string(++runs_));
    testing::internal::CaptureStderr();
    try {
      prepare_run(recipe, folder, pool_);
    } catch (...) {
      testing::internal::GetCapturedStderr();
      throw;
    }
    std::string said = testing::internal::GetCapturedStderr();
    Tokenizer tokenizer = Tokenizer::load(folder / "tokenizer").without_truncation();
    auto data = TrainData::open(
        recipe, folder, {.start = tokenizer.named().pad.value_or(0), .vocabulary = tokenizer.vocab_size()}, kContext);
    return {std::move(data), std::move(said), std::move(tokenizer)};
  }

  static constexpr int64_t kContext = 24;
  static Json pairs(const fs::path& file) {
    return {{"objective", "translate"},
            {"model", parse_json(R"({"model_type": "marian", "d_model": 16, "encoder_layers": 1, "decoder_layers": 1,
                                     "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 16,
                                     "decoder_ffn_dim": 16, "max_position_embeddings": 24})",
                                 "model")},
            {"tokenizer", {{"train", "char"}}},
            {"data", {{"files", {file.string()}}, {"format", "tsv"}, {"validation", 0}}},
            {"sequence", kContext},
            {"batch_tokens", 64},
            {"steps", 10}};
  }
  Json chats(const fs::path& file) {
    const fs::path model = temp_.path() / "model";
    if (!fs::exists(model)) {
      fs::create_directories(model);
      fs::copy_file(test::golden("tokenizers/qwen2/tokenizer.json"), model / "tokenizer.json");
      std::ofstream(model / "tokenizer_config.json")
          << Json{{"eos_token", "<|im_end|>"},
                  {"chat_template",
                   "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
                   "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"}}
                 .dump();
    }
    return {{"objective", "chat"},
            {"model",
             {{"model_type", "llama"},
              {"hidden_size", 16},
              {"intermediate_size", 16},
              {"num_hidden_layers", 1},
              {"num_attention_heads", 2}}},
            {"tokenizer", {{"load", model.string()}}},
            {"data", {{"files", {file.string()}}, {"validation", 0.25}}},
            {"sequence", kContext},
            {"batch_tokens", 64},
            {"steps", 1}};
  }
  static std::string chat_line(const std::string& answer) {
    return Json{{"messages", {{{"role", "user"}, {"content", "q"}}, {{"role", "assistant"}, {"content", answer}}}}}
               .dump() +
           "\n";
  }
  // The answers of a list of batches.
  static std::multiset<std::string> answers(const Opened& run, bool held_out) {
    std::multiset<std::string> all;
    const int64_t count = held_out ? run.data->validation_batches() : 64;
    std::set<std::vector<int32_t>> seen;
    for (int64_t i = 0; i < count; ++i) {
      const TrainBatch batch = held_out ? run.data->validation_batch(i) : run.data->micro_batch(i, 0);
      if (!seen.insert(batch.ids).second) continue;  // another epoch
      std::string text;
      for (const int32_t id : batch.targets) {
        if (id != TrainBatch::kIgnored) {
          text += run.tokenizer.decode({&id, 1}, {.skip_specials = true});
        } else if (!text.empty()) {
          all.insert(std::exchange(text, ""));
        }
      }
      if (!text.empty()) all.insert(text);
    }
    return all;
  }
  // Sources and targets of all pairs of some batches.
  static std::set<std::pair<std::string, std::string>> sides(const Opened& run, bool held_out) {
    std::set<std::pair<std::string, std::string>> all;
    const int64_t count = held_out ? run.data->validation_batches() : 64;
    for (int64_t i = 0; i < count; ++i) {
      const TrainBatch batch = held_out ? run.data->validation_batch(i) : run.data->micro_batch(i, 0);
      size_t at = 0, source_at = 0;
      const auto text = [&](const std::vector<int32_t>& ids, size_t first, size_t length) {
        return run.tokenizer.decode(std::span(ids).subspan(first, length), {.skip_specials = true});
      };
      for (size_t n = 0; n < batch.lengths.size(); ++n) {
        const auto length = static_cast<size_t>(batch.lengths[n]),
                   source = static_cast<size_t>(batch.source_lengths[n]);
        all.emplace(text(batch.source_ids, source_at, source), text(batch.targets, at, length));
        at += length;
        source_at += source;
      }
    }
    return all;
  }

  TempFolder temp_;
  ThreadPool pool_{1};
  int runs_ = 0;
};

const std::string kLong(40, 'x'), kHalf(22, 'y');

TEST_F(RunData, PairsThatAreTooLongAreLeftOutAndNamed) {
  const fs::path file = temp_.write("pairs.tsv", "a\tb\n\nc\t" + kLong + "\n" + kLong + "\td\ne\tf\n");
  const Opened run = open(pairs(file));
  EXPECT_EQ(sides(run, false), (std::set<std::pair<std::string, std::string>>{{"a", "b"}, {"e", "f"}}));
  EXPECT_NE(run.said.find("2 of 4 pairs are too long and left out"), std::string::npos) << run.said;
  EXPECT_NE(run.said.find(file.string() + ", line 3 with 2 and 41 tokens"), std::string::npos) << run.said;
  EXPECT_NE(run.said.find("23 tokens on a side, 64 in a micro-batch"), std::string::npos) << run.said;
}

TEST_F(RunData, PairsAreCutWhereTheRecipeSaysSo) {
  const fs::path file = temp_.write("pairs.tsv", "a\tb\nc\t" + kLong + "\n");
  Json recipe = pairs(file);
  recipe["data"]["too_long"] = "cut";
  const Opened run = open(recipe);
  const std::string kept(22, 'x');  // and the end token
  EXPECT_EQ(sides(run, false), (std::set<std::pair<std::string, std::string>>{{"a", "b"}, {"c", kept}}));
  EXPECT_NE(run.said.find("1 of 2 pairs are too long and cut"), std::string::npos) << run.said;
  EXPECT_NE(run.said.find(", line 2 with 2 and 41 tokens"), std::string::npos) << run.said;
  recipe["data"]["too_long"] = "cute";
  expect_error([&] { read_recipe(recipe, "test"); }, {"too_long", "'cute'", "skip, cut"});
}

// Either side fits into the model, both together do not fit into a micro-batch.
TEST_F(RunData, PairsFitIntoAMicroBatch) {
  const fs::path file = temp_.write("pairs.tsv", "a\tb\n" + kHalf + "\t" + kHalf + "\n");
  Json recipe = pairs(file);
  recipe["batch_tokens"] = 40;
  Opened run = open(recipe);
  EXPECT_EQ(sides(run, false), (std::set<std::pair<std::string, std::string>>{{"a", "b"}}));
  EXPECT_NE(run.said.find(", line 2 with 23 and 23 tokens"), std::string::npos) << run.said;
  recipe["data"]["too_long"] = "cut";
  run = open(recipe);
  const std::string kept(19, 'y');
  EXPECT_EQ(sides(run, false), (std::set<std::pair<std::string, std::string>>{{"a", "b"}, {kept, kept}}));
  recipe = pairs(temp_.write("long.tsv", "a\t" + kLong + "\n"));
  expect_error([&] { open(recipe); }, {"no pairs to train on", "1 too long"});
}

TEST_F(RunData, HeldOutFilesTakeThePlaceOfTheTail) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "abcdefgh";
  const fs::path file = temp_.write("text.txt", text), other = temp_.write("other.txt", std::string(100, 'a'));
  Json recipe{{"model",
               {{"model_type", "llama"},
                {"hidden_size", 16},
                {"intermediate_size", 16},
                {"num_hidden_layers", 1},
                {"num_attention_heads", 2}}},
              {"tokenizer", {{"train", "char"}}},
              {"data", {{"files", {file.string()}}, {"document", "file"}, {"validation", 0.1}, {"tail", true}}},
              {"sequence", 16},
              {"batch_tokens", 64},
              {"steps", 3}};
  Opened run = open(recipe);
  EXPECT_EQ(run.data->validation_tokens, 161U);  // and the end token
  EXPECT_EQ(run.data->train_tokens, 1441U);
  recipe["data"]["validation_files"] = {other.string()};
  run = open(recipe);
  EXPECT_EQ(run.data->validation_tokens, 101U);
  EXPECT_EQ(run.data->train_tokens, 1601U);
  recipe["data"] = {{"world", "en"}, {"stories", 40}, {"validation_files", {other.string()}}};
  run = open(recipe);
  EXPECT_EQ(run.data->validation_tokens, 101U);
  recipe["data"]["validation_files"] = {"none.txt"};
  expect_error([&] { open(recipe); }, {"none.txt: there is no such file"});
}

TEST_F(RunData, TheTailOfPairsIsWholeLines) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += std::string(1, static_cast<char>('a' + i)) + "\tz\n";
  Json recipe = pairs(temp_.write("pairs.tsv", text));
  recipe["data"]["tail"] = true;
  recipe["data"]["validation"] = 0.1;
  const Opened run = open(recipe);
  EXPECT_EQ(sides(run, true), (std::set<std::pair<std::string, std::string>>{{"s", "z"}, {"t", "z"}}));
  EXPECT_EQ(sides(run, false).size(), 18U);
}

TEST_F(RunData, ChatsAreHeldOutByAHashOfThem) {
  std::vector<std::string> lines;
  for (int i = 0; i < 40; ++i) lines.push_back(chat_line("n" + std::to_string(i)));
  const auto written = [&](const char* name) {
    std::string text;
    for (const std::string& line : lines) text += line;
    return temp_.write(name, text);
  };
  const Opened run = open(chats(written("chats.jsonl")));
  const std::multiset<std::string> held_out = answers(run, true);
  EXPECT_GT(held_out.size(), 3U);
  EXPECT_LT(held_out.size(), 20U);
  EXPECT_EQ(held_out.size() + answers(run, false).size(), 40U);

  // Neither the order nor copies nor spaces move a conversation to the other side.
  std::reverse(lines.begin(), lines.end());
  for (std::string& line : lines) line.insert(1, "  ");
  lines.insert(lines.end(), lines.begin(), lines.begin() + 5);
  const Opened other = open(chats(written("reversed.jsonl")));
  const std::multiset<std::string> again = answers(other, true), trained = answers(other, false);
  EXPECT_EQ(std::set<std::string>(again.begin(), again.end()), std::set<std::string>(held_out.begin(), held_out.end()));
  for (const std::string& answer : again) EXPECT_FALSE(trained.contains(answer)) << answer;
  // Bits per byte are of the text of answers: two or three characters, the end mark and a line break.
  EXPECT_GT(run.data->bytes_per_token, 1.0);
  EXPECT_LT(run.data->bytes_per_token, 8.0);
}

TEST_F(RunData, ChatsHaveHeldOutFilesAndLimits) {
  const fs::path file = temp_.write("chats.jsonl", chat_line("one") + chat_line("two") + chat_line(kLong + kLong));
  const fs::path other = temp_.write("other.jsonl", chat_line("ten"));
  Json recipe = chats(file);
  recipe["data"]["validation_files"] = {other.string()};
  Opened run = open(recipe);
  EXPECT_EQ(answers(run, true), (std::multiset<std::string>{"ten\n"}));
  EXPECT_EQ(answers(run, false), (std::multiset<std::string>{"one\n", "two\n"}));
  EXPECT_NE(run.said.find("1 of 3 conversations are too long and left out, over 24 tokens"), std::string::npos)
      << run.said;
  EXPECT_NE(run.said.find("chats.jsonl, line 3"), std::string::npos) << run.said;
  recipe["data"]["too_long"] = "cut";
  run = open(recipe);
  EXPECT_EQ(answers(run, false).size(), 3U);
  EXPECT_NE(run.said.find("1 of 3 conversations are too long and cut"), std::string::npos) << run.said;
}

TEST_F(RunData, ChatsOfAnOlderVersionAreNamed) {
  const Recipe recipe = read_recipe(chats(temp_.write("chats.jsonl", chat_line("one"))), "test");
  temp_.write("old/data/chats.jsonl", chat_line("one"));
  expect_error([&] { TrainData::open(recipe, temp_.path() / "old", {}, kContext); }, {"chats.jsonl", "older version"});
}

TEST_F(RunData, AShortTokenizerSaysSo) {
  Json recipe = pairs(temp_.write("pairs.tsv", "ab ab\tcd\n"));
  recipe["tokenizer"] = {{"train", "bpe"}, {"vocab", 5000}};
  recipe["batch_tokens"] = 256;
  const Opened run = open(recipe);
  EXPECT_NE(run.said.find("tokens, not 5000: the text has no more to offer"), std::string::npos) << run.said;
  recipe["tokenizer"] = {{"train", "char"}, {"vocab", 5000}};
  expect_error([&] { open(recipe); }, {"tokenizer.vocab is 5000", "characters"});
  recipe["tokenizer"] = {{"train", "unigram"}, {"vocab", 40}, {"pattern", "qwen2"}};
  expect_error([&] { open(recipe); }, {"tokenizer.pattern is 'qwen2'", "unigram"});
}

TEST_F(RunData, KeysOfTheModelAreReadBeforeAnythingIsPrepared) {
  Json recipe = pairs(temp_.write("pairs.tsv", "a\tb\n"));
  recipe["model"]["encoder_layer"] = 3;
  expect_error([&] { open(recipe); }, {"model has the key 'encoder_layer'", "'marian' does not read"});
  EXPECT_FALSE(fs::exists(temp_.path() / "prepared-1"));
}

}  // namespace left_out_test
}  // namespace qkv

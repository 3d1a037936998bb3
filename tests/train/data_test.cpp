// Training batches from a recipe's texts: masking, targets, pairs and conversations.
#include "train/data.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temp_folder.h"
#include "data/chats.h"
#include "data/dataset.h"
#include "support/pass.h"
#include "text/tokenizer/tokenizer.h"
#include "train/prepare.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

// The config of a golden model without what a recipe fills in.
Json small_model(const std::string& family) {
  Json config = parse_json(read_file(test::golden(family) / "config.json", 1 << 20), family);
  for (const char* key : {"vocab_size", "decoder_vocab_size", "max_position_embeddings", "eos_token_id", "bos_token_id",
                          "pad_token_id", "decoder_start_token_id", "forced_eos_token_id", "architectures"}) {
    config.erase(key);
  }
  return config;
}

class Prepared : public testing::Test {
 protected:
  TempFolder temp_;
  ThreadPool pool_{1};

  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(temp_.path() / name, std::ios::binary) << text;
    return temp_.path() / name;
  }
  std::unique_ptr<TrainData> open(const Json& json) {
    recipe_ = read_recipe(json, "test");
    const fs::path folder = temp_.path() / "prepared";
    prepare_run(recipe_, folder, pool_);
    tokenizer_ = Tokenizer::load(folder / "tokenizer").without_truncation();
    return TrainData::open(recipe_, folder,
                           {.start = tokenizer_->named().pad.value_or(0),
                            .mask = tokenizer_->named().mask.value_or(-1),
                            .vocabulary = tokenizer_->vocab_size()},
                           recipe_.sequence);
  }

  Recipe recipe_;
  std::optional<Tokenizer> tokenizer_;
};

TEST_F(Prepared, MaskedBatchesHideAShareAndAskForItAlone) {
  const auto data = open({{"objective", "masked"},
                          {"model", small_model("bert")},
                          {"tokenizer", {{"train", "bpe"}, {"vocab", 400}}},
                          {"data", {{"world", "both"}, {"stories", 200}}},
                          {"sequence", 64},
                          {"batch_tokens", 4096},
                          {"steps", 10}});
  const int32_t mask = *tokenizer_->named().mask;
  int64_t rows = 0, chosen = 0, hidden = 0, kept = 0;
  for (int64_t step = 0; step < 4; ++step) {
    const TrainBatch batch = data->micro_batch(step, 0);
    ASSERT_EQ(batch.ids.size(), batch.targets.size());
    int64_t counted = 0;
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      if (batch.targets[i] == TrainBatch::kIgnored) {
        EXPECT_NE(batch.ids[i], mask) << "hidden but not asked for";
        continue;
      }
      ++counted;
      EXPECT_NE(batch.targets[i], mask);
      hidden += batch.ids[i] == mask ? 1 : 0;
      kept += batch.ids[i] == batch.targets[i] ? 1 : 0;
    }
    EXPECT_EQ(batch.counted, counted);
    chosen += counted;
    rows += static_cast<int64_t>(batch.ids.size());
  }
  // BERT's numbers: 15 % are chosen, 80 % of them hidden, 10 % left as they are.
  const auto share = [](int64_t part, int64_t of) { return static_cast<double>(part) / static_cast<double>(of); };
  EXPECT_NEAR(share(chosen, rows), 0.15, 0.015);
  EXPECT_NEAR(share(hidden, chosen), 0.8, 0.04);
  EXPECT_NEAR(share(kept, chosen), 0.1, 0.03);
  // A function of the step, and validation hides the same tokens each time.
  EXPECT_EQ(data->micro_batch(2, 0).ids, data->micro_batch(2, 0).ids);
  EXPECT_NE(data->micro_batch(2, 0).targets, data->micro_batch(3, 0).targets);
  EXPECT_EQ(data->validation_batch(0).targets, data->validation_batch(0).targets);
}

TEST_F(Prepared, PairsShowTheTargetOnePlaceLate) {
  const fs::path file = write("pairs.tsv", "one two\t一 二\nthree\t三\nfour five six\t四 五 六\nseven\t七\n");
  Json recipe{{"objective", "translate"},
              {"model", small_model("marian")},
              {"tokenizer", {{"train", "bpe"}, {"vocab", 300}}},
              {"data", {{"files", {file.string()}}, {"format", "tsv"}, {"validation", 0.0}}},
              {"sequence", 64},
              {"batch_tokens", 256},
              {"steps", 10}};
  const auto data = open(recipe);
  const TrainBatch batch = data->micro_batch(0, 0);
  std::set<std::pair<std::string, std::string>> seen;
  size_t at = 0, source_at = 0;
  for (size_t i = 0; i < batch.lengths.size(); ++i) {
    const auto length = static_cast<size_t>(batch.lengths[i]), source = static_cast<size_t>(batch.source_lengths[i]);
    const std::span<const int32_t> target = std::span(batch.targets).subspan(at, length);
    EXPECT_EQ(batch.ids[at], *tokenizer_->named().pad);  // the first token of a decoder's input
    for (size_t t = 1; t < length; ++t) EXPECT_EQ(batch.ids[at + t], target[t - 1]);
    EXPECT_EQ(target.back(), *tokenizer_->named().eos);
    const auto text = [&](std::span<const int32_t> ids) { return tokenizer_->decode(ids, {.skip_specials = true}); };
    seen.emplace(text(std::span(batch.source_ids).subspan(source_at, source)), text(target));
    at += length;
    source_at += source;
  }
  EXPECT_TRUE(seen.contains({"four five six", "四 五 六"}));
  EXPECT_EQ(seen.size(), 4U);
  EXPECT_EQ(batch.counted, static_cast<int64_t>(batch.targets.size()));
}

TEST_F(Prepared, PairsAreReadBothWays) {
  const fs::path file = write("pairs.tsv", "one two\t一 二\nthree\t三\nfour five six\t四 五 六\nseven\t七\n");
  Json recipe{{"objective", "translate"},
              {"model", small_model("marian")},
              {"tokenizer", {{"train", "bpe"}, {"vocab", 300}}},
              {"data", {{"files", {file.string()}}, {"format", "tsv"}, {"validation", 0.0}, {"both_ways", true}}},
              {"sequence", 64},
              {"batch_tokens", 256},
              {"steps", 10}};
  const auto data = open(recipe);
  std::map<std::pair<std::string, std::string>, int> seen;
  for (int64_t step = 0; step < 40; ++step) {
    const TrainBatch batch = data->micro_batch(step, 0);
    EXPECT_EQ(batch.ids, data->micro_batch(step, 0).ids);
    size_t at = 0, source_at = 0;
    for (size_t i = 0; i < batch.lengths.size(); ++i) {
      const auto length = static_cast<size_t>(batch.lengths[i]), source = static_cast<size_t>(batch.source_lengths[i]);
      const auto text = [&](std::span<const int32_t> ids) { return tokenizer_->decode(ids, {.skip_specials = true}); };
      ++seen[{text(std::span(batch.source_ids).subspan(source_at, source)),
              text(std::span(batch.targets).subspan(at, length))}];
      at += length;
      source_at += source;
    }
  }
  EXPECT_EQ(seen.size(), 8U);
  for (const auto& [pair, times] : seen) EXPECT_GT(times, 8) << pair.first;  // about half of 40
  EXPECT_TRUE(seen.contains({"四 五 六", "four five six"}));
  recipe["data"]["reversed"] = true;
  expect_error([&] { read_recipe(recipe, "test"); }, {"both_ways", "reversed"});
}

// A model folder with a tokenizer that has a chat template.
fs::path chat_model(const fs::path& folder) {
  fs::create_directories(folder);
  fs::copy_file(test::golden("tokenizers/qwen2/tokenizer.json"), folder / "tokenizer.json");
  const Json config{{"eos_token", "<|im_end|>"},
                    {"chat_template",
                     "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
                     "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"}};
  std::ofstream(folder / "tokenizer_config.json") << config.dump();
  std::ofstream(folder / "config.json") << R"({"model_type": "llama"})";
  return folder;
}

TEST_F(Prepared, ChatsAskForAnswersAlone) {
  const fs::path model = chat_model(temp_.path() / "model");
  const fs::path file =
      write("chats.jsonl",
            R"({"messages": [{"role": "user", "content": "你好"}, {"role": "assistant", "content": "早上好！"},)"
            R"( {"role": "user", "content": "bye"}, {"role": "assistant", "content": "See you."}]})"
            "\n\n"
            R"({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1+1?"},)"
            R"( {"role": "assistant", "content": "2"}]})"
            "\n");
  const Json recipe{{"objective", "chat"},
                    {"model", small_model("llama")},
                    {"tokenizer", {{"load", model.string()}}},
                    {"data", {{"files", {file.string()}}, {"validation", 0.0}}},
                    {"sequence", 256},
                    {"batch_tokens", 512},
                    {"steps", 1}};
  const auto data = open(recipe);
  const TrainBatch batch = data->micro_batch(0, 0);
  ASSERT_EQ(batch.lengths.size(), 2U);
  std::vector<std::string> answers(1);
  for (const int32_t target : batch.targets) {
    if (target != TrainBatch::kIgnored) {
      answers.back() += tokenizer_->decode(std::span(&target, 1));
    } else if (!answers.back().empty()) {
      answers.emplace_back();
    }
  }
  if (answers.back().empty()) answers.pop_back();
  const std::string end = "<|im_end|>\n";
  EXPECT_EQ(answers, (std::vector<std::string>{"早上好！" + end, "See you." + end, "2" + end}));
}

TEST_F(Prepared, ChatsThatMakeNoSenseAreNamedByTheirLine) {
  const fs::path model = chat_model(temp_.path() / "model");
  const ChatTemplate how = *ChatTemplate::load(model);
  const Tokenizer tokenizer = Tokenizer::load(model);
  const auto read = [&](const std::string& line) {
    Chat chat;
    ChatReader({write("bad.jsonl", "\n" + line + "\n")}, how, tokenizer).next(chat);
  };
  expect_error([&] { read("{"); }, {"line 2"});
  expect_error([&] { read(R"({"messages": []})"); }, {"line 2"});
  expect_error([&] { read(R"({"messages": [{"role": "user"}]})"); }, {"line 2"});
  expect_error([&] { read(R"({"messages": [{"role": "user", "content": "alone"}]})"); }, {"line 2"});
}

// Micro-batches of a step share its number, so what is dropped is told apart by the row alone.
TEST_F(Prepared, RowsOfAStepHaveNumbersOfTheirOwn) {
  const fs::path model = chat_model(temp_.path() / "model");
  std::string lines;
  for (int i = 0; i < 12; ++i) {
    lines += R"({"messages": [{"role": "user", "content": "how much is )" + std::to_string(i) +
             R"(?"}, {"role": "assistant", "content": "as much as it was"}]})"
             "\n";
  }
  const auto data = open({{"objective", "chat"},
                          {"model", small_model("llama")},
                          {"tokenizer", {{"load", model.string()}}},
                          {"data", {{"files", {write("chats.jsonl", lines).string()}}, {"validation", 0.0}}},
                          {"sequence", 64},
                          {"batch_tokens", 512},
                          {"micro_batches", 4},
                          {"steps", 3}});
  for (int64_t step = 0; step < 3; ++step) {
    int64_t end = -1;
    for (int64_t micro = 0; micro < 4; ++micro) {
      const TrainBatch batch = data->micro_batch(step, micro);
      EXPECT_GE(batch.first_row, std::max<int64_t>(end, 0)) << "step " << step << ", micro-batch " << micro;
      end = batch.first_row + std::ssize(batch.ids);
    }
  }
}

// Bits per byte are of the held-out text, whose tokens may be longer or shorter than those that are trained on.
TEST_F(Prepared, BytesOfATokenAreThoseOfTheHeldOutText) {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    text += i % 3 == 0 ? "一二三四五六七八九十\n\n" : "plain words of English, number " + std::to_string(i) + "\n\n";
  }
  const auto data = open({{"objective", "causal"},
                          {"model", small_model("llama")},
                          {"tokenizer", {{"train", "bpe"}, {"vocab", 300}}},
                          {"data", {{"files", {write("text", text).string()}}, {"validation", 0.2}}},
                          {"sequence", 16},
                          {"batch_tokens", 64},
                          {"steps", 1}});
  const PackedDataset packed(temp_.path() / "prepared" / "data" / "train");
  const auto each = [&](Split split) {
    return static_cast<double>(packed.of(split).text_bytes()) / static_cast<double>(packed.of(split).tokens());
  };
  ASSERT_GT(std::abs(each(Split::validation) - each(Split::train)), 1e-3);
  EXPECT_DOUBLE_EQ(data->bytes_per_token, each(Split::validation));
}

}  // namespace
}  // namespace qkv

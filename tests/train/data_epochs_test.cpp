// What changes from step to step and from epoch to epoch though the texts stay the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/file.h"
#include "base/temp_folder.h"
#include "support/pass.h"
#include "text/tokenizer/tokenizer.h"
#include "train/data.h"
#include "train/prepare.h"

namespace qkv {
namespace data_epochs_test {

namespace fs = std::filesystem;

class Epochs : public testing::Test {
 protected:
  std::unique_ptr<TrainData> open(const Json& json) {
    const Recipe recipe = read_recipe(json, "test");
    const fs::path folder = temp_.path() / "prepared";
    prepare_run(recipe, folder, pool_);
    const Tokenizer tokenizer = Tokenizer::load(folder / "tokenizer").without_truncation();
    return TrainData::open(recipe, folder,
                           {.mask = tokenizer.named().mask.value_or(-1), .vocabulary = tokenizer.vocab_size()},
                           recipe.sequence);
  }

  TempFolder temp_;
  ThreadPool pool_{1};
};

TEST_F(Epochs, OfChatsHaveOrdersOfTheirOwn) {
  const fs::path model = temp_.path() / "model";
  fs::create_directories(model);
  fs::copy_file(test::golden("tokenizers/qwen2/tokenizer.json"), model / "tokenizer.json");
  std::ofstream(model / "tokenizer_config.json")
      << Json{{"chat_template", "{% for m in messages %}{{ m.role }}\n{{ m.content }}\n{% endfor %}"}}.dump();
  std::ofstream(model / "config.json") << R"({"model_type": "llama"})";
  {
    std::ofstream chats(temp_.path() / "chats.jsonl");
    for (const char* word : {"one", "two", "three"}) {  // of a batch each
      const std::string text(30, word[0]);
      chats << Json{{"messages", {{{"role", "user"}, {"content", text}}, {{"role", "assistant"}, {"content", word}}}}}
                   .dump()
            << "\n";
    }
  }
  const auto data = open({{"objective", "chat"},
                          {"model",
                           {{"model_type", "llama"},
                            {"hidden_size", 32},
                            {"intermediate_size", 64},
                            {"num_hidden_layers", 1},
                            {"num_attention_heads", 4}}},
                          {"tokenizer", {{"load", model.string()}}},
                          {"data", {{"files", {(temp_.path() / "chats.jsonl").string()}}, {"validation", 0.0}}},
                          {"sequence", 64},
                          {"batch_tokens", 64},
                          {"steps", 30}});
  std::set<std::vector<std::vector<int32_t>>> orders;
  std::set<std::vector<int32_t>> batches;
  for (int64_t epoch = 0; epoch < 10; ++epoch) {
    std::vector<std::vector<int32_t>> order;
    for (int64_t n = 0; n < 3; ++n) order.push_back(data->micro_batch(3 * epoch + n, 0).ids);
    const std::set<std::vector<int32_t>> of_epoch(order.begin(), order.end());
    if (batches.empty()) batches = of_epoch;
    ASSERT_EQ(of_epoch.size(), 3U) << "the chats do not make three batches";
    EXPECT_EQ(of_epoch, batches) << "epoch " << epoch << " has other batches";
    orders.insert(std::move(order));
  }
  EXPECT_GE(orders.size(), 4U) << "of the six orders of three batches, in ten epochs";
}

TEST_F(Epochs, HideOtherPositionsInEveryStep) {
  Json model = parse_json(read_file(test::golden("bert") / "config.json", 1 << 20), "bert");
  for (const char* key : {"vocab_size", "max_position_embeddings", "pad_token_id", "architectures"}) model.erase(key);
  const auto data = open({{"objective", "masked"},
                          {"model", model},
                          {"tokenizer", {{"train", "bpe"}, {"vocab", 300}}},
                          {"data", {{"world", "en"}, {"stories", 40}}},
                          {"sequence", 32},
                          {"batch_tokens", 512},
                          {"micro_batches", 2},
                          {"steps", 4}});
  std::set<std::vector<size_t>> seen;
  for (int64_t step = 0; step < 4; ++step) {
    for (int64_t micro = 0; micro < 2; ++micro) {
      const TrainBatch batch = data->micro_batch(step, micro);
      std::vector<size_t> positions;
      for (size_t i = 0; i < batch.targets.size(); ++i) {
        if (batch.targets[i] != TrainBatch::kIgnored) positions.push_back(i);
      }
      ASSERT_GT(positions.size(), 10U);
      EXPECT_TRUE(seen.insert(positions).second)
          << "micro-batch " << micro << " of step " << step << " hides the positions of another one";
    }
  }
}

}  // namespace data_epochs_test
}  // namespace qkv

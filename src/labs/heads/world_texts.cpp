#include "labs/heads/world_texts.h"

#include <map>

#include "data/text_windows.h"
#include "labs/small_model.h"
#include "text/tokenizer/training/bpe_trainer.h"
#include "text/tokenizer/training/tokenizer_training.h"
#include "world/draw.h"
#include "world/world.h"

namespace qkv {
namespace {

constexpr uint64_t kLabWorldSeed = 2017;

}  // namespace

WorldTexts::WorldTexts(int64_t stories) {
  const World world(kLabWorldSeed);
  const int64_t held = std::max<int64_t>(20, stories / 10);
  std::vector<std::string> texts;
  for (int64_t i = 0; i < stories + held; ++i) {
    texts.push_back(world.text(static_cast<uint64_t>(i), Language::english) + "\n\n");
  }
  ThreadPool pool(1);
  WordCounter counter({}, pool);
  for (int64_t i = 0; i < std::min<int64_t>(stories, 1000); ++i) {
    counter.add_text(texts[static_cast<size_t>(i)]);
    counter.end_document();
  }
  const BpeModel model = train_bpe(counter.take(), {.vocab = kVocabulary, .specials = {}, .on_merge = {}});
  const Tokenizer tokenizer = Tokenizer::from_json(bpe_tokenizer_json(model, Pattern::gpt2), "the lab's tokenizer");
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<int32_t>& to = std::cmp_less(i, stories) ? train_ : held_out_;
    const std::vector<int32_t> ids = tokenizer.encode(texts[i]);
    to.insert(to.end(), ids.begin(), ids.end());
  }
}

const WorldTexts& WorldTexts::of(int64_t stories) {
  static std::map<int64_t, WorldTexts> made;
  return made.try_emplace(stories, stories).first->second;
}

TrainBatch WorldTexts::batch(uint64_t seed, int64_t step, int64_t texts, int64_t length) const {
  world::Draw draw(seed, static_cast<uint64_t>(step), 1);
  TrainBatch batch;
  const auto window = static_cast<size_t>(length) + 1;
  for (int64_t i = 0; i < texts; ++i) {
    const size_t first = draw.below(static_cast<uint32_t>(train_.size() - window));
    add_text(batch, std::span(train_).subspan(first, window));
  }
  return batch;
}

std::vector<TokenText> WorldTexts::held_out(int64_t texts, int64_t length) const {
  const int64_t window = length + 1, whole = std::min(texts, std::ssize(held_out_) / window);
  return cut_into_windows(std::span(held_out_).first(static_cast<size_t>(whole * window)), {.length = window});
}

}  // namespace qkv

#include "train/data.h"

#include <algorithm>

#include "base/error.h"
#include "base/permutation.h"
#include "base/philox.h"
#include "data/chats.h"

namespace qkv {
namespace {

// Token shards for training and validation. Without a validation folder, validation is a split of the training data.
struct Sides {
  explicit Sides(const std::filesystem::path& folder)
      : train(folder / "train"),
        own(std::filesystem::exists(folder / "validation")
                ? std::optional<PackedDataset>(std::in_place, folder / "validation")
                : std::nullopt) {}
  const PackedSplit& training() const { return train.of(Split::train); }
  const PackedSplit& validation() const { return own ? own->of(Split::train) : train.of(Split::validation); }

  PackedDataset train;
  std::optional<PackedDataset> own;
};

void describe(TrainData& data, const Sides& sides) {
  data.train_tokens = sides.training().tokens();
  data.validation_tokens = sides.validation().tokens();
  data.bytes_per_token = static_cast<double>(sides.validation().text_bytes()) /
                         static_cast<double>(std::max<uint64_t>(data.validation_tokens, 1));
}

// Windows of text; the target is the next token, or for masked models the hidden token.
class Windows : public TrainData {
 public:
  Windows(const Recipe& recipe, const std::filesystem::path& folder, const TokenRoles& roles)
      : recipe_(recipe),
        roles_(roles),
        sides_(folder),
        rows_(recipe.batch_tokens / recipe.micro_batches / recipe.sequence),
        train_(sides_.training(), {.length = recipe.sequence, .seed = recipe.seed}),
        validation_(sides_.validation(), {.length = recipe.sequence, .seed = 0}) {
    describe(*this, sides_);
    QKV_CHECK(train_tokens >= static_cast<uint64_t>(recipe.sequence), "the data have ", train_tokens,
              " tokens to train on but a window is ", recipe.sequence, Hint("give more text, or a shorter sequence"));
  }

  TrainBatch micro_batch(int64_t step, int64_t micro) const override {
    const int64_t first = (step * recipe_.micro_batches + micro) * rows_;
    TrainBatch made = batch_of(train_.batch(static_cast<uint64_t>(first), rows_));
    made.first_row = first * recipe_.sequence;
    if (recipe_.objective == Recipe::Objective::masked) hide(made, recipe_.seed);
    return made;
  }

  int64_t validation_batches() const override {
    return (static_cast<int64_t>(validation_.per_epoch()) + rows_ - 1) / rows_;
  }
  TrainBatch validation_batch(int64_t i) const override {
    const int64_t rows = std::min(rows_, static_cast<int64_t>(validation_.per_epoch()) - i * rows_);
    TrainBatch made = batch_of(validation_.batch(static_cast<uint64_t>(i * rows_), rows));
    made.first_row = i * rows_ * recipe_.sequence;
    if (recipe_.objective == Recipe::Objective::masked) hide(made, 0);
    return made;
  }

 private:
  static TrainBatch batch_of(TextBatch text) {
    TrainBatch made{.ids = std::move(text.tokens), .targets = std::move(text.targets)};
    for (const int32_t length : text.lengths) {
      if (length > 0) made.lengths.push_back(length);
    }
    made.counted = text.counted;
    return made;
  }

  // BERT: of the chosen tokens 80 % become the mask, 10 % a random token, 10 % stay.
  void hide(TrainBatch& batch, uint64_t seed) const {
    const PhiloxKey key = fold({.seed = seed, .site = 1});
    batch.counted = 0;
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      const PhiloxCounter draw = random_block(key, static_cast<uint64_t>(batch.first_row) + i, 0);
      const bool chosen = static_cast<double>(uniform01(draw[0])) < recipe_.masking;
      batch.targets[i] = chosen ? batch.ids[i] : TrainBatch::kIgnored;
      if (!chosen) continue;
      ++batch.counted;
      const float kind = uniform01(draw[1]);
      if (kind < 0.8F) {
        batch.ids[i] = roles_.mask;
      } else if (kind < 0.9F) {
        batch.ids[i] = static_cast<int32_t>(draw[2] % static_cast<uint64_t>(roles_.vocabulary));
      }
    }
  }

  const Recipe recipe_;
  TokenRoles roles_;
  Sides sides_;
  int64_t rows_;
  TextSamples train_, validation_;
};

// Pairs of a source and a target text.
class Pairs : public TrainData {
 public:
  Pairs(const Recipe& recipe, const std::filesystem::path& folder, const TokenRoles& roles, int64_t context)
      : recipe_(recipe),
        roles_(roles),
        sides_(folder),
        train_(sides_.training(), {.tokens = recipe.batch_tokens / recipe.micro_batches, .seed = recipe.seed}) {
    if (sides_.validation().documents() > 0) {
      validation_.emplace(sides_.validation(),
                          PairOrder{.tokens = recipe.batch_tokens / recipe.micro_batches, .seed = 0});
    }
    describe(*this, sides_);
    QKV_CHECK(train_tokens > 0, "the data have no pairs to train on",
              Hint("give some, or a smaller share for validation"));
    for (const PackedSplit* split : {&sides_.training(), &sides_.validation()}) {
      for (uint64_t entry = 0; context > 0 && entry < split->entries(); ++entry) {
        QKV_CHECK(split->length(entry) < static_cast<uint64_t>(context), "the prepared pair number ", entry / 2 + 1,
                  " has a side of ", split->length(entry), " tokens but the model's context is ", context,
                  Hint("start the run anew: pairs that are too long are left out, or cut with data.too_long=cut"));
      }
    }
  }

  TrainBatch micro_batch(int64_t step, int64_t micro) const override {
    const int64_t k = step * recipe_.micro_batches + micro;
    TrainBatch made = batch_of(train_.batch(static_cast<uint64_t>(k)), static_cast<uint64_t>(k));
    made.first_row = k * recipe_.batch_tokens;  // an upper bound of a batch's rows
    return made;
  }
  int64_t validation_batches() const override {
    return validation_ ? static_cast<int64_t>(validation_->per_epoch()) : 0;
  }
  TrainBatch validation_batch(int64_t i) const override {
    return batch_of(validation_->batch(static_cast<uint64_t>(i)), std::nullopt);
  }

 private:
  static constexpr uint32_t kDirectionSite = 0x77617973;  // "ways"

  // `turned(i)`: the target of pair i of the batch is read and its source is written.
  template <class Turned>
  static PairBatch with_sides_swapped(const PairBatch& pairs, const Turned& turned) {
    PairBatch made{.pairs = pairs.pairs};
    const auto move = [](std::vector<int32_t>& to, std::vector<int32_t>& lengths, const std::vector<int32_t>& from,
                         size_t at, int32_t length) {
      const auto begin = from.begin() + static_cast<ptrdiff_t>(at);
      to.insert(to.end(), begin, begin + length);
      lengths.push_back(length);
    };
    size_t source = 0, target = 0;
    for (size_t i = 0; i < pairs.source_lengths.size(); ++i) {
      const bool swapped = turned(i);
      const int32_t read = pairs.source_lengths[i], written = pairs.target_lengths[i];
      move(swapped ? made.targets : made.sources, swapped ? made.target_lengths : made.source_lengths, pairs.sources,
           source, read);
      move(swapped ? made.sources : made.targets, swapped ? made.source_lengths : made.target_lengths, pairs.targets,
           target, written);
      source += static_cast<size_t>(read);
      target += static_cast<size_t>(written);
    }
    return made;
  }

  // `batch`: of the training, by number. Validation has none: there every second pair is turned, so that its loss can be compared.
  PairBatch directed(const PairBatch& pairs, std::optional<uint64_t> batch) const {
    if (!recipe_.data.both_ways) {
      return with_sides_swapped(pairs, [&](size_t) { return recipe_.data.reversed; });
    }
    const PhiloxKey key = fold({.seed = recipe_.seed, .step = batch.value_or(0), .site = kDirectionSite});
    return with_sides_swapped(pairs, [&](size_t i) {
      return batch ? (random_u32(key, 0, pairs.pairs[i]) & 1) == 1 : pairs.pairs[i] % 2 == 1;
    });
  }

  TrainBatch batch_of(const PairBatch& read, std::optional<uint64_t> batch) const {
    PairBatch pairs = directed(read, batch);
    TrainBatch made{.targets = pairs.targets,
                    .lengths = pairs.target_lengths,
                    .source_ids = std::move(pairs.sources),
                    .source_lengths = std::move(pairs.source_lengths)};
    made.counted = static_cast<int64_t>(made.targets.size());
    size_t at = 0;
    for (const int32_t length : made.lengths) {  // decoder input: the targets shifted right
      made.ids.push_back(roles_.start);
      made.ids.insert(made.ids.end(), made.targets.begin() + static_cast<int64_t>(at),
                      made.targets.begin() + static_cast<int64_t>(at) + length - 1);
      at += static_cast<size_t>(length);
    }
    return made;
  }

  const Recipe recipe_;
  TokenRoles roles_;
  Sides sides_;
  PairBatches train_;
  std::optional<PairBatches> validation_;
};

// An older version kept conversations as they were.
const std::filesystem::path& checked_chats(const std::filesystem::path& folder) {
  QKV_CHECK(!std::filesystem::exists(folder / "chats.jsonl"), (folder / "chats.jsonl").string(),
            ": an older version prepared this run, and this one keeps conversations as tokens",
            Hint("go on with that version; or remove the run's folder prepared and resume with --from-scratch"));
  return folder;
}

// Conversations, put into micro-batches once; the order of the batches changes every epoch.
class Chats : public TrainData {
 public:
  Chats(const Recipe& recipe, const std::filesystem::path& folder)
      : recipe_(recipe), budget_(recipe.batch_tokens / recipe.micro_batches) {
    const Sides sides(checked_chats(folder));
    QKV_CHECK(recipe.sequence <= budget_, "a conversation may have ", recipe.sequence, " tokens but a micro-batch has ",
              budget_, Hint("raise batch_tokens, or lower sequence"));
    for (const auto& [split, batches, tokens] : {std::tuple{&sides.training(), &train_, &train_tokens},
                                                 {&sides.validation(), &validation_, &validation_tokens}}) {
      *tokens = split->tokens();
      for (uint64_t n = 0; n < split->documents(); ++n) add(*batches, chat_at(*split, n));
    }
    int64_t answers = 0;
    for (const TrainBatch& batch : validation_) answers += batch.counted;
    bytes_per_token =
        static_cast<double>(sides.validation().text_bytes()) / static_cast<double>(std::max<int64_t>(answers, 1));
  }

  TrainBatch micro_batch(int64_t step, int64_t micro) const override {
    const auto k = static_cast<uint64_t>(step * recipe_.micro_batches + micro);
    const uint64_t epoch = k / train_.size();
    const Permutation order(train_.size(), fold({.seed = recipe_.seed, .step = epoch, .site = 2}));
    TrainBatch batch = train_[order(k % train_.size())];
    batch.first_row = static_cast<int64_t>(k) * budget_;
    return batch;
  }
  int64_t validation_batches() const override { return static_cast<int64_t>(validation_.size()); }
  TrainBatch validation_batch(int64_t i) const override { return validation_[static_cast<size_t>(i)]; }

 private:
  void add(std::vector<TrainBatch>& batches, const Chat& chat) const {
    QKV_CHECK(std::ssize(chat.ids) <= recipe_.sequence, "a prepared conversation has ", chat.ids.size(),
              " tokens but the recipe's sequence is ", recipe_.sequence,
              Hint("sequence may not become shorter than when the run was prepared"));
    if (batches.empty() || static_cast<int64_t>(batches.back().ids.size() + chat.ids.size()) > budget_) {
      batches.emplace_back();
    }
    TrainBatch& batch = batches.back();
    batch.lengths.push_back(static_cast<int32_t>(chat.ids.size()));
    for (size_t i = 0; i < chat.ids.size(); ++i) {
      const bool answers = i + 1 < chat.ids.size() && chat.answer[i + 1];
      batch.ids.push_back(chat.ids[i]);
      batch.targets.push_back(answers ? chat.ids[i + 1] : TrainBatch::kIgnored);
      batch.counted += answers ? 1 : 0;
    }
  }

  const Recipe recipe_;
  int64_t budget_;
  std::vector<TrainBatch> train_, validation_;
};

}  // namespace

std::unique_ptr<TrainData> TrainData::open(const Recipe& recipe, const std::filesystem::path& prepared,
                                           const TokenRoles& roles, int64_t context) {
  const std::filesystem::path folder = prepared / "data";
  if (recipe.objective == Recipe::Objective::translate) return std::make_unique<Pairs>(recipe, folder, roles, context);
  QKV_CHECK(context == 0 || recipe.sequence <= context, "a sequence of ", recipe.sequence,
            " tokens is longer than the model's context of ", context,
            Hint("shorten it, or raise max_position_embeddings"));
  if (recipe.objective == Recipe::Objective::chat) return std::make_unique<Chats>(recipe, folder);
  QKV_CHECK(recipe.objective != Recipe::Objective::masked || roles.mask >= 0,
            "a masked model needs a mask token, but its tokenizer of ", roles.vocabulary, " tokens has none",
            Hint("name a mask_token in tokenizer_config.json"));
  return std::make_unique<Windows>(recipe, folder, roles);
}

}  // namespace qkv

#include "labs/steps/records_task.h"

#include <algorithm>

#include "world/draw.h"

namespace qkv {
namespace {

Json records_config(Architecture architecture) {
  constexpr int64_t kWidth = 32, kHeads = 8;
  if (architecture == Architecture::decoder_only) {
    return config_of({.vocabulary = RecordsTask::kVocabulary,
                      .width = kWidth,
                      .layers = 2,
                      .heads = kHeads,
                      .context = 16,
                      .init = 0.1});
  }
  return {{"model_type", "transformer"},
          {"vocab_size", RecordsTask::kVocabulary},
          {"d_model", kWidth},
          {"encoder_layers", 1},
          {"decoder_layers", 1},
          {"num_attention_heads", kHeads},
          {"intermediate_size", 3 * kWidth},  // as many weights as the gated one of width 2 kWidth
          {"max_position_embeddings", 16},
          {"norm_first", true},
          {"tie_word_embeddings", false},
          {"dropout", 0.0}};
}

}  // namespace

bool RecordsTask::belongs(int32_t question, int32_t item) const {
  if (table == Table::match) return item == question;
  return (world::Draw(seed, static_cast<uint64_t>(question * kItems + item), 15).next() & 1) == 1;
}

void RecordsTask::add(TrainBatch& batch, int32_t question, std::span<const int32_t> records, int32_t answer) const {
  const bool first = order == Order::question_first;
  if (first) batch.ids.push_back(kFirstQuestion + question);
  batch.ids.insert(batch.ids.end(), records.begin(), records.end());
  if (!first) batch.ids.push_back(kFirstQuestion + question);
  batch.ids.push_back(kMark);
  batch.targets.insert(batch.targets.end(), records.size() + 1, TrainBatch::kIgnored);
  batch.targets.push_back(answer);
  batch.lengths.push_back(static_cast<int32_t>(records.size()) + 2);
  ++batch.counted;
}

void RecordsTask::add_lists(TrainBatch& batch, int64_t step, int64_t count) const {
  world::Draw draw(seed, static_cast<uint64_t>(step), 16);
  for (int64_t i = 0; i < count; ++i) {
    const auto question = static_cast<int32_t>(draw.below(kQuestions));
    const uint32_t place = draw.below(kRecords);
    int32_t answer = 0;
    std::vector<int32_t> records;
    while (records.size() < kRecords) {
      const auto item = static_cast<int32_t>(draw.below(kItems));
      const bool asked = records.size() == place;
      if (belongs(question, item) != asked) continue;
      const auto colour = static_cast<int32_t>(draw.below(kColours));
      if (asked) answer = colour;
      records.push_back(item * kColours + colour);
    }
    add(batch, question, records, answer);
  }
}

void RecordsTask::add_pairs(TrainBatch& batch, int64_t step, int64_t count) const {
  world::Draw draw(seed, static_cast<uint64_t>(step), 24);
  for (int64_t i = 0; i < count; ++i) {
    const auto question = static_cast<int32_t>(draw.below(kQuestions)), item = static_cast<int32_t>(draw.below(kItems));
    const int32_t record = item * kColours + static_cast<int32_t>(draw.below(kColours));
    add(batch, question, {&record, 1}, belongs(question, item) ? kYes : kNo);
  }
}

TrainBatch marks_apart(const TrainBatch& whole) {
  TrainBatch batch;
  batch.counted = whole.counted;
  for (const int32_t length : whole.lengths) batch.source_lengths.push_back(length - 1);
  for (size_t row = 0; row < whole.ids.size(); ++row) {
    if (whole.ids[row] != RecordsTask::kMark) {
      batch.source_ids.push_back(whole.ids[row]);
      continue;
    }
    batch.ids.push_back(RecordsTask::kMark);
    batch.targets.push_back(whole.targets[row]);
    batch.lengths.push_back(1);
  }
  return batch;
}

RecordsRead learn_records(const LabContext& lab, const RecordsTask& task, Architecture architecture, int64_t steps) {
  const bool decoder = architecture == Architecture::decoder_only;
  const auto given = [&](const TrainBatch& batch) { return decoder ? batch : marks_apart(batch); };
  const auto model = fresh_model(lab, records_config(architecture), task.seed);
  train_model(lab, *model,
              {.label = std::string(decoder ? "decoder" : "encoder-decoder") +
                        (task.order == RecordsTask::Order::question_first ? ", question first" : ", question last"),
               .steps = steps,
               .lr = 1e-2,
               .batch = [&](int64_t step) {
                 TrainBatch batch;
                 task.add_lists(batch, step, 96);
                 task.add_pairs(batch, step, 128);
                 return given(batch);
               }});
  TrainBatch lists, pairs;
  task.add_lists(lists, -1, lab.sized(1000, 20));
  task.add_pairs(pairs, -1, lab.sized(1000, 20));
  return {share_right(lab.engine, *model, given(lists)), share_right(lab.engine, *model, given(pairs))};
}

}  // namespace qkv

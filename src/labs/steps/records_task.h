// Six records and a question: one record answers it, and a table says which belong to which questions.
#pragma once

#include "labs/small_model.h"

namespace qkv {

// A record is one token, an item with a colour. Exactly one item of a text belongs to its question; its colour is asked for.
struct RecordsTask {
  static constexpr int32_t kItems = 16, kQuestions = 16, kColours = 8, kRecords = 6;
  static constexpr int32_t kFirstQuestion = kItems * kColours, kMark = kFirstQuestion + kQuestions;
  static constexpr int32_t kNo = kColours, kYes = kNo + 1;  // answers are the tokens 0 to 9, targets alone
  static constexpr int64_t kVocabulary = kMark + 1;

  enum class Table : uint8_t {
    random,  // half of the items belong to a question, drawn at random: no product of two short vectors tells which
    match,   // one item belongs to each question: a search
  };
  enum class Order : uint8_t { question_first, question_last };

  Table table = Table::random;
  Order order = Order::question_first;
  uint64_t seed = 0;  // of the table too

  bool belongs(int32_t question, int32_t item) const;
  // The last token of a text is a mark, whose target is the answer.
  void add_lists(TrainBatch& batch, int64_t step, int64_t count) const;  // question and six records: which colour?
  void add_pairs(TrainBatch& batch, int64_t step, int64_t count) const;  // question and one record: does it belong?

 private:
  void add(TrainBatch& batch, int32_t question, std::span<const int32_t> records, int32_t answer) const;
};

enum class Architecture : uint8_t { decoder_only, encoder_decoder };
// For an encoder-decoder the encoder reads all but the mark.
TrainBatch marks_apart(const TrainBatch& whole);

struct RecordsRead {
  double lists = 0, pairs = 0;  // share of right answers
};
RecordsRead learn_records(const LabContext& lab, const RecordsTask& task, Architecture architecture, int64_t steps);

}  // namespace qkv

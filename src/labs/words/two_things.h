// Two things lie on the table, and 它 (it) is one of them: which one, another word of the sentence says.
#pragma once

#include "labs/words/vectors.h"
#include "labs/words/word_list.h"

namespace qkv {

// before: 小明 渴 了 ， 桌 上 有 书 和 柠檬茶 ， 他 拿 起 了 它 。    (thirsty: it is the lemon tea)
// after:  桌 上 有 书 和 柠檬茶 ， 小明 拿 起 了 它 ， 很 解渴 。    (it quenches thirst)
class TwoThings {
 public:
  static constexpr int32_t kKinds = 4, kOfKind = 6, kThings = kKinds * kOfKind;  // to drink, to read, to eat, to wear

  enum class Told : uint8_t { before, after };  // where the word stands that tells, seen from 它
  explicit TwoThings(Told told);

  struct Case {
    int32_t first = 0, second = 0;  // things of two kinds
    bool first_meant = false;
    uint32_t words = 0;  // chooses the person and the word that tells
  };
  struct Text {
    std::vector<int32_t> ids;
    size_t it = 0;      // where 它 stands
    int32_t meant = 0;  // the thing
  };
  Text text(const Case& c) const;
  int64_t vocabulary() const { return words_.size(); }

  // A fifth of all pairs of things are never together in a text of training, in either order.
  static bool held_out(int32_t first, int32_t second);
  // Target at 它 and at the last word: the thing that is meant.
  TrainBatch texts(uint64_t seed, int64_t step, int64_t count) const;
  // Texts of those pairs, both orders. Twins follow one another: the same but for what is meant.
  std::vector<Text> twins() const;

 private:
  Told told_;
  WordList words_;
  std::vector<int32_t> things_, tells_, people_;
  std::vector<int32_t> on_the_table_, takes_it_;
  int32_t and_, comma_, stop_, done_, he_, very_;
};

struct ItRead {
  double at_it = 0, at_end = 0;  // share of twins of which both are right, read at 它 and at the last word
  std::vector<double> alike;     // cosine of the two vectors of 它 in twins, by depth, 0 being the embedding
};
enum class Sight : uint8_t { back, both_ways };  // a decoder; an encoder
// Two layers of width 64 after training.
ItRead learn_it(const LabContext& lab, TwoThings::Told told, Sight sight, int64_t steps, uint64_t seed);

}  // namespace qkv

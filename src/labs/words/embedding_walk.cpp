// What happens to the vector of one token, over training and over layers: 小 in 大小, 小心 and 小明.
#include <algorithm>

#include "core/host_values.h"
#include "inspect/watch/movie.h"
#include "labs/labs.h"
#include "labs/words/three_words.h"

namespace qkv::labs {
namespace {

std::vector<float> embedding_row(const Model& model, int32_t token) {
  const std::vector<float> all = host_floats(model.weights().at("embed").master());
  const auto first = all.begin() + token * model.spec().width;
  return {first, first + model.spec().width};
}

SeedNumbers measure_embedding_walk(const LabContext& lab, uint64_t seed) {
  const ThreeWords task;
  const WordsSchool school{.steps = lab.sized(200), .texts = lab.sized(50, 8)};
  const WordsExam exam = words_exam(task, seed, school.texts);
  std::vector<std::vector<float>> rows;  // of 小, over training
  std::vector<double> steps;
  SeedNumbers out;
  const std::vector<WordsRead> walk = learn_words(lab, task, exam, school, seed, [&](const Model& model, int64_t done) {
    rows.push_back(embedding_row(model, task.character()));
    steps.push_back(static_cast<double>(done));
  });
  WordsSchool shuffled = school;
  shuffled.shuffled = true;
  const WordsRead control = learn_words(lab, task, exam, shuffled, seed, {}).back();
  const WordsRead &start = walk.front(), &end = walk.back();
  out.add_share("embedding: share that the word explains", end.explained.front());
  out.add_share("first layer: share that the word explains", end.explained[1]);
  out.add_share("last layer: share that the word explains", end.explained.back());
  out.add_share("last layer: the word read off the vector, in other texts", end.right.back());
  out.add_share("control: untrained: last layer: share that the word explains", start.explained.back());
  out.add_share("control: trained on shuffled characters: last layer: share that the word explains",
                control.explained.back());
  out.add("cosine of the embedding's row, before and after training", cosine(rows.front(), rows.back()),
          LabRange::share_difference());
  SeedNumbers::Curve moved{"step", "cosine of the embedding's row with its end", ""};
  for (size_t i = 0; i < rows.size(); ++i) moved.points.push_back({steps[i], cosine(rows[i], rows.back())});
  out.curves = {moved};
  for (size_t depth = 0; depth < end.explained.size(); ++depth) {
    SeedNumbers::Curve curve{"step", "share that the word explains",
                             depth == 0 ? "embedding" : "layer " + std::to_string(depth)};
    for (size_t i = 0; i < walk.size(); ++i) curve.points.push_back({steps[i], walk[i].explained[depth]});
    out.curves.push_back(curve);
  }
  return out;
}

}  // namespace

const Lab& embedding_walk() {
  static const Lab lab{
      .name = "embedding-walk",
      .claim =
          "A token has one vector in the embedding, the same in every text; in the layers above its context makes\n"
          "other vectors of it: 小 in 大小 (size), 小心 (take care) and 小明 (a name) becomes three.",
      .claim_zh =
          "一个词元在嵌入里只有一个向量，在哪段文字里都一样；到了上面的层，上下文把它变成不同的向量："
          "大小、小心、小明里的“小”变成三个。",
      .how =
          "Chinese sentences of six forms, two for each word, a token for each character; four of them are a text.\n"
          "A decoder of three layers, width 64, learns to continue them, 200 steps of 24 texts. Measured at every 小\n"
          "of 50 other texts: the share of the vectors' variance that lies between the means of the three words, and\n"
          "how often the vector is nearest to the mean of its own word, the means taken from 50 texts more (guessing:\n"
          "a third). Controls that must fail: the model before training, and one trained on the same texts with their\n"
          "characters in random order.",
      .seeds = 12,
      .rules = {{"embedding: share that the word explains", LabRule::Side::below, 0.001, "one row for all"},
                {"last layer: share that the word explains", LabRule::Side::above, 0.5, "most of what differs"},
                {"last layer: the word read off the vector, in other texts", LabRule::Side::above, 0.9,
                 "the three do not overlap"},
                {"control: untrained: last layer: share that the word explains", LabRule::Side::below, 0.2,
                 "context alone must not be enough"},
                {"control: trained on shuffled characters: last layer: share that the word explains",
                 LabRule::Side::below, 0.4, "training alone must not be enough"}},
      .found =
          {.seen =
               {"The word explains {embedding: share that the word explains%} of what differs in the embedding of 小 "
                "and {last layer: share that the word explains%} after the last layer, where {last layer: the word "
                "read off the vector, in other texts%} of the vectors tell their word; before training it is "
                "{control: untrained: last layer: share that the word explains%}, after training on shuffled "
                "characters {control: trained on shuffled characters: last layer: share that the word explains%}.",
                "“小”的向量有多少差别来自它所在的词：嵌入里 {embedding: share that the word "
                "explains%}，最后一层之后 {last layer: share that the word explains%}，那里 {last layer: the word read "
                "off the vector, in other texts%} 的向量说得出自己属于哪个词；训练之前只有 {control: untrained: last "
                "layer: share that the word explains%}，用打乱的字训练也只有 {control: trained on shuffled characters: "
                "last layer: share that the word explains%}。"},
           .mixed =
               {"The word explains {embedding: share that the word explains%} of what differs in the embedding of 小, "
                "{first layer: share that the word explains%} after the first and {last layer: share that the word "
                "explains%} after the last layer; untrained {control: untrained: last layer: share that the word "
                "explains%}, on shuffled characters {control: trained on shuffled characters: last layer: share that "
                "the word explains%}.",
                "“小”的向量有多少差别来自它所在的词：嵌入里 {embedding: share that the word explains%}，第一层之后 "
                "{first layer: share that the word explains%}，最后一层之后 {last layer: share that the word "
                "explains%}；训练之前 {control: untrained: last layer: share that the word explains%}，用打乱的字训练 "
                "{control: trained on shuffled characters: last layer: share that the word explains%}。"},
           .not_seen = {"The vector of 小 did not tell its word, or the controls told it as well.",
                        "“小”的向量说不出自己属于哪个词，或者对照也一样说得出。"}},
      .measure = measure_embedding_walk};
  return lab;
}

}  // namespace qkv::labs

#include "labs/words/two_things.h"

#include <algorithm>

#include "inspect/watch/movie.h"
#include "world/draw.h"

namespace qkv {
namespace {

Json it_config(Sight sight, int64_t vocabulary) {
  if (sight == Sight::back) {
    return config_of({.vocabulary = vocabulary, .width = 64, .layers = 2, .heads = 4, .context = 32, .init = 0.05});
  }
  return {{"model_type", "bert"},          {"vocab_size", vocabulary},    {"hidden_size", 64},
          {"intermediate_size", 192},      {"num_hidden_layers", 2},      {"num_attention_heads", 4},
          {"max_position_embeddings", 32}, {"hidden_dropout_prob", 0.0},  {"attention_probs_dropout_prob", 0.0},
          {"initializer_range", 0.05},     {"tie_word_embeddings", false}};
}

void add_asked(TrainBatch& batch, const TwoThings::Text& text, std::initializer_list<size_t> asked) {
  for (size_t row = 0; row < text.ids.size(); ++row) {
    const bool counts = std::find(asked.begin(), asked.end(), row) != asked.end();
    batch.targets.push_back(counts ? text.meant : TrainBatch::kIgnored);
    batch.counted += counts ? 1 : 0;
  }
  batch.ids.insert(batch.ids.end(), text.ids.begin(), text.ids.end());
  batch.lengths.push_back(static_cast<int32_t>(text.ids.size()));
}

}  // namespace

TwoThings::TwoThings(Told told) : told_(told) {
  things_ = words_.add_all(
      "柠檬茶 咖啡 牛奶 果汁 豆浆 可乐 书 报纸 小说 杂志 词典 画册 面包 苹果 饺子 蛋糕 米饭 橘子 毛衣 外套 围巾 手套 "
      "棉鞋 帽子");
  tells_ = words_.add_all(told == Told::before ? "渴 口干 闷 无聊 饿 嘴馋 冷 发抖"
                                               : "好喝 解渴 好看 有趣 好吃 管饱 暖和 合身");
  people_ = words_.add_all("小明 小红 小刚 小丽 大伟 阿姨 爷爷 妹妹");
  on_the_table_ = words_.add_all("桌 上 有");
  takes_it_ = words_.add_all("拿 起 了 它");
  and_ = words_.add("和");
  comma_ = words_.add("，");
  stop_ = words_.add("。");
  done_ = words_.add("了");
  he_ = words_.add("他");
  very_ = words_.add("很");
}

TwoThings::Text TwoThings::text(const Case& c) const {
  const auto meant = static_cast<size_t>(c.first_meant ? c.first : c.second);
  const int32_t tells = tells_[meant / kOfKind * 2 + c.words % 2], person = people_[c.words / 2 % people_.size()];
  const bool before = told_ == Told::before;
  Text out{.ids = {}, .it = 0, .meant = things_[meant]};
  const auto put = [&](std::span<const int32_t> words) { out.ids.insert(out.ids.end(), words.begin(), words.end()); };
  if (before) put(std::vector{person, tells, done_, comma_});
  put(on_the_table_);
  put(std::vector{things_[static_cast<size_t>(c.first)], and_, things_[static_cast<size_t>(c.second)], comma_,
                  before ? he_ : person});
  put(takes_it_);
  out.it = out.ids.size() - 1;
  if (!before) put(std::vector{comma_, very_, tells});
  out.ids.push_back(stop_);
  return out;
}

bool TwoThings::held_out(int32_t first, int32_t second) {
  const auto pair = static_cast<uint64_t>(std::min(first, second) * kThings + std::max(first, second));
  return world::Draw(0, pair, 19).chance(20);
}

TrainBatch TwoThings::texts(uint64_t seed, int64_t step, int64_t count) const {
  world::Draw draw(seed, static_cast<uint64_t>(step), 20);
  TrainBatch batch;
  while (std::ssize(batch.lengths) < count) {
    const auto first = static_cast<int32_t>(draw.below(kThings)), second = static_cast<int32_t>(draw.below(kThings));
    if (first / kOfKind == second / kOfKind || held_out(first, second)) continue;
    const bool first_meant = draw.chance(50);
    const Text one = text({first, second, first_meant, draw.below(16)});
    add_asked(batch, one, {one.it, one.ids.size() - 1});
  }
  return batch;
}

std::vector<TwoThings::Text> TwoThings::twins() const {
  std::vector<Text> all;
  uint32_t words = 0;
  for (int32_t first = 0; first < kThings; ++first) {
    for (int32_t second = 0; second < kThings; ++second) {
      if (first / kOfKind == second / kOfKind || !held_out(first, second)) continue;
      ++words;
      for (const bool first_meant : {true, false}) all.push_back(text({first, second, first_meant, words}));
    }
  }
  return all;
}

ItRead learn_it(const LabContext& lab, TwoThings::Told told, Sight sight, int64_t steps, uint64_t seed) {
  const TwoThings task(told);
  const auto model = fresh_model(lab, it_config(sight, task.vocabulary()), seed);
  train_model(lab, *model,
              {.label = std::string(sight == Sight::back ? "decoder" : "encoder") +
                        (told == TwoThings::Told::before ? ", told before" : ", told after"),
               .steps = steps,
               .lr = 1e-2,
               .batch = [&](int64_t step) { return task.texts(seed, step, 48); }});

  const std::vector<TwoThings::Text> twins = task.twins();
  TrainBatch exam;
  std::vector<size_t> rows;
  ItRead out;
  for (size_t i = 0; i < twins.size(); i += 2) {
    TrainBatch at_it, at_end;
    for (const TwoThings::Text& text : {twins[i], twins[i + 1]}) {
      rows.push_back(exam.ids.size() + text.it);
      add_asked(exam, text, {text.it});
      add_asked(at_it, text, {text.it});
      add_asked(at_end, text, {text.ids.size() - 1});
    }
    out.at_it += share_right(lab.engine, *model, at_it) == 1 ? 1 : 0;
    out.at_end += share_right(lab.engine, *model, at_end) == 1 ? 1 : 0;
  }
  const double pairs = static_cast<double>(twins.size()) / 2;
  out.at_it /= pairs;
  out.at_end /= pairs;
  for (const Vectors& depth : stream_vectors(lab.engine, *model, exam, rows)) {
    double sum = 0;
    for (size_t i = 0; i < depth.size(); i += 2) sum += cosine(depth[i], depth[i + 1]);
    out.alike.push_back(sum / pairs);
  }
  return out;
}

}  // namespace qkv

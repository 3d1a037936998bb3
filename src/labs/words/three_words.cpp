#include "labs/words/three_words.h"

#include "labs/shuffle.h"
#include "model/families/family.h"

namespace qkv {
namespace {

constexpr int32_t kSentences = 4;  // of a text

WordsExam::Part words_part(const ThreeWords& task, world::Draw draw, int64_t texts) {
  WordsExam::Part part;
  for (int64_t i = 0; i < texts; ++i) {
    const ThreeWords::Text text = task.text(draw, kSentences);
    for (size_t k = 0; k < text.at.size(); ++k) {
      part.rows.push_back(part.batch.ids.size() + text.at[k]);
      part.words.push_back(text.words[k]);
    }
    part.batch.ids.insert(part.batch.ids.end(), text.ids.begin(), text.ids.end());
    part.batch.lengths.push_back(static_cast<int32_t>(text.ids.size()));
  }
  return part;
}

WordsRead read_words(const Engine& engine, const Model& model, const WordsExam& exam) {
  const std::vector<Vectors> known = stream_vectors(engine, model, exam.known.batch, exam.known.rows),
                             asked = stream_vectors(engine, model, exam.asked.batch, exam.asked.rows);
  WordsRead out;
  for (size_t depth = 0; depth < known.size(); ++depth) {
    out.explained.push_back(share_explained(asked[depth], exam.asked.words));
    out.right.push_back(nearest_mean_right({known[depth], exam.known.words}, {asked[depth], exam.asked.words}));
  }
  return out;
}

}  // namespace

ThreeWords::ThreeWords() {
  character_ = list_.add("小");
  constexpr int32_t kSize = 0, kCare = 1, kPerson = 2;
  forms_ = {
      form(kSize, {"这|那|每", "双 鞋|顶 帽|件 衣|条 裤|张 床|扇 门|把 伞|块 布", "的 大 小",
                   "正 好|合 适|不 对|不 同|一 样", "。"}),
      form(kSize, {"比|量|看|选|定", "好|准|清", "大 小", "再|才|就", "买|裁|做|装|用", "。"}),
      form(kCare, {"路|地|桥|楼|山|水|火|冰", "很|太|好|真", "滑|黑|窄|陡|深|烫|薄|险", "，", "请|要|得|你", "小 心",
                   "点|些|走|看", "。"}),
      form(kCare, {"别|不 要|不 能", "急|跑|跳|闹|玩|碰", "，", "小 心", "车|狗|刀|门|火|水", "。"}),
      form(kPerson, {"我|他|你|她", "的", "弟 弟|哥 哥|朋 友|孙 子|邻 居|同 学|徒 弟", "叫", "小 明", "，",
                     "爱|会|想|要", "跑|跳|画|唱|玩|买", "。"}),
      form(kPerson,
           {"昨|今|前", "天", "在|去|从", "家|校|店|园|桥|楼", "看 见|找 到|遇 见", "小 明", "了|吗|吧", "。"}),
  };
}

ThreeWords::Form ThreeWords::form(int32_t word, std::initializer_list<const char*> slots) {
  Form out{.word = word, .slots = {}};
  for (const std::string_view slot : slots) {
    Slot& choices = out.slots.emplace_back();
    for (size_t at = 0; at <= slot.size();) {
      const size_t end = std::min(slot.find('|', at), slot.size());
      choices.push_back(list_.add_all(slot.substr(at, end - at)));
      at = end + 1;
    }
  }
  return out;
}

ThreeWords::Text ThreeWords::text(world::Draw& draw, int32_t sentences) const {
  Text out;
  for (int32_t i = 0; i < sentences; ++i) {
    const Form& form = draw.pick(forms_);
    for (const Slot& slot : form.slots) {
      for (const int32_t id : draw.pick(slot)) {
        if (id == character_) {
          out.at.push_back(out.ids.size());
          out.words.push_back(form.word);
        }
        out.ids.push_back(id);
      }
    }
  }
  return out;
}

WordsExam words_exam(const ThreeWords& task, uint64_t seed, int64_t texts) {
  return {words_part(task, world::Draw(seed, 1, 21), texts), words_part(task, world::Draw(seed, 2, 21), texts)};
}

std::vector<WordsRead> learn_words(const LabContext& lab, const ThreeWords& task, const WordsExam& exam,
                                   const WordsSchool& school, uint64_t seed,
                                   const std::function<void(const Model&, int64_t done)>& on_read) {
  ModelSpec spec =
      read_spec(Config(config_of({.vocabulary = task.vocabulary(), .width = 64, .layers = 3, .heads = 4, .init = 0.05}),
                       "the lab's model"));
  for (LayerSpec& layer : spec.decoder.layers) layer.attention.window = school.alone ? 1 : 0;
  const auto model = fresh_model(lab, std::move(spec), seed);
  std::vector<WordsRead> all;
  train_model(lab, *model,
              {.label = school.shuffled ? "reading shuffled characters" : "reading",
               .steps = school.steps,
               .lr = 5e-3,
               .batch =
                   [&](int64_t step) {
                     world::Draw draw(seed, static_cast<uint64_t>(step), 22);
                     TrainBatch batch;
                     for (int i = 0; i < 24; ++i) {
                       std::vector<int32_t> ids = task.text(draw, kSentences).ids;
                       if (school.shuffled) shuffle(draw, ids);
                       add_text(batch, ids);
                     }
                     return batch;
                   },
               .eval_every = std::max<int64_t>(1, school.steps / 10),
               .on_eval =
                   [&](int64_t done) {
                     all.push_back(read_words(lab.engine, *model, exam));
                     if (on_read) on_read(*model, done);
                   }});
  return all;
}

}  // namespace qkv

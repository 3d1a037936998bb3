#include "world/story_builder.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace qkv::world {
namespace {

constexpr Phrase kTimePhrases[] = {
    {"[obl:tmod nummod:one morning]", "[obl:tmod nmod:一天 早上]"},
    {"[obl on Monday]", "obl:tmod:星期一"},
    {"[obl on Tuesday]", "obl:tmod:星期二"},
    {"[obl on Wednesday]", "obl:tmod:星期三"},
    {"[obl on Thursday]", "obl:tmod:星期四"},
    {"[obl on Friday]", "obl:tmod:星期五"},
    {"[obl on Saturday]", "obl:tmod:星期六"},
    {"[obl on Sunday]", "obl:tmod:星期天"},
    {"[obl after breakfast]", "[obl 早饭 之后]"},
    {"[obl after lunch]", "[obl 午饭 之后]"},
    {"[obl:tmod nummod:one evening]", "[obl:tmod nmod:一天 晚上]"},
    {"[obl:tmod nummod:one afternoon]", "[obl:tmod nmod:一天 下午]"},
    {"[obl on Monday [nmod:tmod morning]]", "[obl:tmod nmod:星期一 早上]"},
    {"[obl on Friday [nmod:tmod evening]]", "[obl:tmod nmod:星期五 晚上]"},
    {"[obl on Sunday [nmod:tmod afternoon]]", "[obl:tmod nmod:星期天 下午]"},
    {"[obl on a amod:rainy day]", "[obl 在 [nummod 一 clf:个] [amod 下雨 的] 日子]"},
    {"[obl on a amod:sunny morning]", "[obl 在 [nummod 一 clf:个] [amod 晴朗 的] 早晨]"},
    {"[obl on a amod:windy afternoon]", "[obl 在 [nummod 一 clf:个] [amod 刮风 的] 下午]"},
    {"[obl on a amod:snowy evening]", "[obl 在 [nummod 一 clf:个] [amod 下雪 的] 晚上]"},
    {"[obl on a amod:foggy morning]", "[obl 在 [nummod 一 clf:个] [amod 有雾 的] 早晨]"},
    {"[obl on a amod:quiet Sunday]", "[obl 在 [nummod 一 clf:个] [amod 安静 的] 星期天]"},
    {"[obl on a amod:cold night]", "[obl 在 [nummod 一 clf:个] [amod 寒冷 的] 夜晚]"},
    {"[obl on a amod:warm evening]", "[obl 在 [nummod 一 clf:个] [amod 温暖 的] 傍晚]"},
    {"[obl on the amod:first day [nmod of spring]]", "[obl 在 [nmod 春天 的] nummod:第一 天]"},
    {"[obl on the amod:first day [nmod of winter]]", "[obl 在 [nmod 冬天 的] nummod:第一 天]"},
    {"[obl on the amod:last day [nmod of summer]]", "[obl 在 [nmod 夏天 的] amod:最后 nummod:一 天]"},
    {"[obl in spring]", "[obl:tmod 春天 里]"},
    {"[obl in autumn]", "[obl:tmod 秋天 里]"},
    {"[obl after dinner]", "[obl 晚饭 之后]"},
    {"[obl case:before breakfast]", "[obl 早饭 之前]"},
    {"[obl at noon]", "obl:tmod:中午"},
    {"[obl at midnight]", "obl:tmod:半夜"},
    {"[obl during the holidays]", "[obl:tmod 假期 里]"},
};

// The first kDays of them name a day without weather.
constexpr size_t kDays = 10;

PhiloxKey choices(uint64_t seed, uint64_t story) {
  return fold({.seed = seed, .step = story, .layer = 1, .site = kDrawSite});
}

// A number that follows from somebody's given name, or family name after a title (FNV-1a).
uint32_t taste(const Entity& who, std::string_view in) {
  uint32_t hash = 2166136261U;
  for (const std::string_view part : {std::string_view(who.name).substr(who.name.rfind(' ') + 1), in}) {
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return hash >> 8;
}

// Said of anything that somebody does.
constexpr Phrase kAdverbials[] = {
    {"[obl:tmod det:that morning]", "[obl:tmod det:那 nmod:天 早上]"},
    {"[obl:tmod det:that afternoon]", "[obl:tmod det:那 nmod:天 下午]"},
    {"[obl:tmod det:that evening]", "[obl:tmod det:那 nmod:天 晚上]"},
    {"[obl:tmod the amod:next day]", "obl:tmod:第二天"},
    {"[obl after a while]", "[obl:tmod 过/V 了 obj:一会儿]"},
    {"[obl in the end]", "advmod:最后"},
    {"[obl at amod:last]", "advmod:终于"},
    {"[obl with a smile]", "[advcl 笑/V 着]"},
    {"[obl with a sigh]", "[advcl 叹/V 着 obj:气]"},
    {"[obl without delay]", "advmod:马上"},
    {"[obl in a hurry]", "advmod:匆匆 地"},
    {"[obl in amod:good spirits]", "advmod:高高兴兴 地"},
    {"[obl by chance]", "advmod:碰巧"},
    {"[obl on purpose]", "advmod:故意"},
    {"[obl as/P usual/J]", "[advmod 像 平常/R 一样]"},
    {"[obl before/P supper]", "[obl 晚饭 之前]"},
    {"[obl after supper]", "[obl 晚饭 之后]"},
    {"[obl during the rain]", "[obl 下雨/N 时]"},
    {"[obl before/P sunrise]", "[obl 日出 之前]"},
    {"[obl after sunset]", "[obl 日落 之后]"},
    {"[obl at nummod:six o'clock]", "obl:tmod:六点钟"},
    {"[obl at nummod:seven o'clock]", "obl:tmod:七点钟"},
    {"[obl at nummod:eight o'clock]", "obl:tmod:八点钟"},
    {"[obl at nummod:nine o'clock]", "obl:tmod:九点钟"},
    {"[obl at nummod:ten o'clock]", "obl:tmod:十点钟"},
    {"[obl at nummod:three o'clock]", "obl:tmod:三点钟"},
    {"[obl at nummod:four o'clock]", "obl:tmod:四点钟"},
    {"[obl at nummod:five o'clock]", "obl:tmod:五点钟"},
};

// How somebody does it, in one word: in English before the verb, so that subject and verb stand apart.
constexpr Phrase kManners[] = {
    {"quietly", "advmod:静静 地"},         {"carefully", "advmod:小心 地"},
    {"politely", "advmod:客气 地"},        {"quickly", "advmod:很快"},
    {"slowly", "advmod:慢慢 地"},          {"suddenly", "advmod:忽然"},
    {"proudly", "advmod:骄傲 地"},         {"advmod:happily", "advmod:开心 地"},
    {"advmod:silently", "advmod:默默 地"}, {"advmod:secretly", "advmod:悄悄 地"},
    {"advmod:calmly", "advmod:平静 地"},   {"advmod:patiently", "advmod:耐心 地"},
    {"advmod:gladly", "advmod:欣然"},      {"advmod:bravely", "advmod:勇敢 地"},
};

// The role that is the subject of a pattern's main clause, if it is one word; a space if there is none.
char subject_role(std::string_view pattern) {
  constexpr std::string_view kSubject = "nsubj:";
  int depth = 0;
  for (size_t i = 0; i + kSubject.size() + 1 < pattern.size(); ++i) {
    depth += pattern[i] == '[' ? 1 : pattern[i] == ']' ? -1 : 0;
    if (depth != 0 || !pattern.substr(i).starts_with(kSubject)) continue;
    const char role = pattern[i + kSubject.size()], next = pattern[i + kSubject.size() + 1];
    return role >= 'A' && role <= 'Z' && (next == ' ' || next == '!') ? role : ' ';
  }
  return ' ';
}

}  // namespace

StoryBuilder::StoryBuilder(uint64_t seed, uint64_t index, Languages languages)
    : draw_(seed, index, 0),
      tense_(draw_.chance(78) ? Tense::past : Tense::present),
      languages_(languages),
      english_(cast_, roles_, tense_, choices(seed, index)),
      chinese_(cast_, roles_, tense_, choices(seed, index)) {
  roles_.entities.fill(-1);
  cast_.reserve(16);
}

void StoryBuilder::bind(char role, Entity entity) {
  cast_.push_back(std::move(entity));
  roles_.entities[index(role)] = static_cast<int>(cast_.size()) - 1;
}

void StoryBuilder::thing(char role, std::span<const Noun> nouns, std::span<const Adjective> qualities) {
  bind(role, {.kind = EntityKind::thing, .noun = &draw_.pick(nouns), .adjective = &draw_.pick(qualities)});
}

void StoryBuilder::things(char role, std::span<const Noun> nouns, int count) {
  bind(role, {.kind = EntityKind::thing, .count = count, .noun = &draw_.pick(nouns)});
}

void StoryBuilder::plain(char role, std::span<const Noun> nouns) {
  things(role, nouns, 1);
}

void StoryBuilder::any_thing(char role) {
  const auto table = [&]() -> std::span<const Noun> {
    switch (draw_.below(13)) {
      case 0:
        return clothes();
      case 1:
        return readables();
      case 2:
        return toys();
      case 3:
        return kitchenware();
      case 4:
        return tools();
      case 12:
        return instruments();
      case 5:
      case 6:
      case 7:
        return keepsakes();
      default:
        return trinkets();
    }
  }();
  const auto qualities = draw_.chance(40) ? colours() : thing_qualities();
  thing(role, table, qualities);
  const std::string_view noun = this->noun(role)->en;
  if (draw_.chance(25) || cast_.back().adjective->en == noun) cast_.back().adjective = nullptr;
}

void StoryBuilder::food(char role) {
  if (draw_.chance(50)) {
    thing(role, baked(), baked_qualities());
  } else {
    thing(role, fruit(), fruit_qualities());
  }
}

void StoryBuilder::pet(char role) {
  const GivenName& name = draw_.pick(pet_names());
  bind(role, {.kind = EntityKind::animal,
              .gender = draw_.chance(50) ? Gender::male : Gender::female,
              .noun = &draw_.pick(pets()),
              .adjective = &draw_.pick(animal_qualities()),
              .name = std::string(name.en),
              .name_zh = std::string(name.zh)});
}

void StoryBuilder::animal(char role, std::span<const Noun> nouns) {
  bind(role, {.kind = EntityKind::animal, .noun = &draw_.pick(nouns), .adjective = &draw_.pick(animal_qualities())});
}

void StoryBuilder::place(char role, std::span<const Spot> table) {
  const auto taken = [&](const Spot& spot) {
    return std::any_of(cast_.begin(), cast_.end(),
                       [&](const Entity& e) { return e.noun != nullptr && e.noun->zh == spot.noun.zh; });
  };
  const Spot* spot = &draw_.pick(table);
  while (taken(*spot)) spot = &draw_.pick(table);
  bind(role, {.kind = EntityKind::place, .noun = &spot->noun, .at = spot->at, .at_zh = spot->at_zh});
}

void StoryBuilder::hiding_place(char role, char thing) {
  const auto small = trinkets();
  const Noun* noun = this->noun(thing);
  const bool tiny = noun >= small.data() && noun < small.data() + small.size();
  place(role, tiny && draw_.chance(60) ? nooks() : spots());
}

void StoryBuilder::country(char country, char capital) {
  const Country& row = draw_.pick(countries());
  bind(country,
       {.kind = EntityKind::name, .name = std::string(row.en), .name_zh = std::string(row.zh), .article = row.article});
  bind(capital, {.kind = EntityKind::name, .name = std::string(row.capital), .name_zh = std::string(row.capital_zh)});
}

void StoryBuilder::number(char role, int64_t value) {
  bind(role, {.kind = EntityKind::number, .value = value});
}

void StoryBuilder::pair(char role, char first, char second) {
  const bool women = gender(first) == Gender::female && gender(second) == Gender::female;
  Entity both{.kind = EntityKind::group, .gender = women ? Gender::female : Gender::male, .count = 2};
  both.members[0] = static_cast<int>(at(first));
  both.members[1] = static_cast<int>(at(second));
  bind(role, std::move(both));
}

void StoryBuilder::phrase(char letter, std::span<const Phrase> phrases) {
  roles_.phrases[static_cast<size_t>(letter - 'a')] = &draw_.pick(phrases);
}

void StoryBuilder::habit(char letter, char of) {
  const auto table = hobbies();
  roles_.phrases[static_cast<size_t>(letter - 'a')] = &table[taste(cast_[at(of)], "habit") % table.size()];
}

void StoryBuilder::favourite(char role, std::span<const Noun> nouns, char of) {
  bind(role, {.kind = EntityKind::thing, .noun = &nouns[taste(cast_[at(of)], nouns.front().en) % nouns.size()]});
}

void StoryBuilder::time() {
  phrase('t', kTimePhrases);
}

void StoryBuilder::day() {
  phrase('t', std::span(kTimePhrases).first(kDays));
}

// Some sentences about what a person does get one, so that the same frame is read with other words in it.
const Phrase* StoryBuilder::adverbial(std::string_view en, std::string_view zh) {
  const char subject = subject_role(en);
  if (subject == ' ' || subject_role(zh) != subject || cast_[at(subject)].kind != EntityKind::person) return nullptr;
  for (const std::string_view other : {"cop:", "be*", "have*", "need*", "like*", "want*", "know*", "love*", "[advcl",
                                       "aux:", "&", ":tmod", "[parataxis", "can*", "do*", "will*", "advmod:"}) {
    if (en.find(other) != std::string_view::npos) return nullptr;
  }
  if (!draw_.chance(70)) return nullptr;
  return draw_.chance(65) ? &draw_.pick(kManners) : &draw_.pick(kAdverbials);
}

void StoryBuilder::say(std::string_view en, std::string_view zh) {
  const Phrase* added = adverbial(en, zh);
  if (languages_.english) {
    english_.update(cast_, roles_);
    english_.sentence(en, added);
  }
  if (languages_.chinese) {
    chinese_.update(cast_, roles_);
    chinese_.sentence(zh, added);
  }
}

void StoryBuilder::say_one_of(std::span<const Line> lines) {
  const Line& line = draw_.pick(lines);
  say(line.en, line.zh);
}

void StoryBuilder::say_one_of(std::initializer_list<Line> lines) {
  say_one_of(std::span(lines.begin(), lines.size()));
}

void StoryBuilder::ask(Line question, Line answer, char role) {
  questions_.push_back({question, answer, roles_.entities[index(role)], roles_});
}

// The answer span is the last explicit mention before the question.
void StoryBuilder::answer(AnnotatedText& annotated, const Question& question, std::string text,
                          size_t asked_sentence) const {
  Answer out{.question = std::move(text)};
  const bool is_number = cast_[static_cast<size_t>(question.entity)].kind == EntityKind::number;
  if (asked_sentence < annotated.sentences.size()) out.asked_at = annotated.sentences[asked_sentence].begin;
  for (const Mention& mention : annotated.mentions) {
    if (is_number || mention.entity != question.entity || mention.kind == MentionKind::pronoun) continue;
    if (mention.sentence < asked_sentence) out.begin = mention.begin, out.end = mention.end;
  }
  for (size_t s = 0; is_number && s < std::min(asked_sentence, annotated.sentences.size()); ++s) {
    for (const StoryWord& word : annotated.sentences[s].words) {
      if (word.entity == question.entity) out.begin = word.begin, out.end = word.end;
    }
  }
  QKV_ASSERT(out.end > out.begin, "the story never says the answer to: ", out.question);
  out.answer = annotated.text.substr(out.begin, out.end - out.begin);
  annotated.answers.push_back(std::move(out));
}

Story StoryBuilder::finish(std::string_view kind) {
  const bool aloud = !questions_.empty() && draw_.chance(50);
  const size_t chosen = questions_.empty() ? 0 : draw_.below(static_cast<uint32_t>(questions_.size()));
  Story story;
  story.kind = kind;
  const auto close = [&](Realiser& realiser, AnnotatedText& annotated, auto pattern) {
    std::vector<std::string> texts;
    for (const Question& q : questions_) {
      realiser.update(cast_, q.roles);
      texts.push_back(realiser.sentence_text(pattern(q.question)));
    }
    const size_t asked = realiser.length();
    if (aloud) {
      realiser.update(cast_, questions_[chosen].roles);
      realiser.sentence(pattern(questions_[chosen].question));
      realiser.sentence(pattern(questions_[chosen].answer));
    }
    annotated = realiser.finish();
    for (size_t i = 0; i < questions_.size(); ++i) answer(annotated, questions_[i], std::move(texts[i]), asked);
  };
  if (languages_.english) close(english_, story.english, [](const Line& line) { return line.en; });
  if (languages_.chinese) close(chinese_, story.chinese, [](const Line& line) { return line.zh; });
  return story;
}

}  // namespace qkv::world

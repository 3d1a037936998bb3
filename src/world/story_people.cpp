// The people of a story, and what can only be copied: made-up names, codes and spells.
#include <algorithm>
#include <numeric>
#include <string>

#include "world/english.h"
#include "world/meanings.h"
#include "world/story_builder.h"

namespace qkv::world {
namespace {

std::span<const GivenName> given_names(Gender gender, bool chinese) {
  if (gender == Gender::male) return chinese ? chinese_boys() : western_boys();
  return chinese ? chinese_girls() : western_girls();
}

// Syllables of made-up names: whoever reads one can only copy it.
struct Syllable {
  std::string_view en, zh;
};
constexpr Syllable kSyllables[] = {
    {"ba", "巴"}, {"bo", "博"}, {"da", "达"}, {"do", "多"}, {"fa", "法"}, {"ga", "加"}, {"ka", "卡"}, {"ko", "科"},
    {"la", "拉"}, {"li", "利"}, {"lo", "洛"}, {"lu", "卢"}, {"ma", "马"}, {"mi", "米"}, {"mo", "莫"}, {"na", "纳"},
    {"ni", "尼"}, {"no", "诺"}, {"pa", "帕"}, {"pi", "皮"}, {"po", "波"}, {"re", "雷"}, {"ri", "里"}, {"ro", "罗"},
    {"ru", "鲁"}, {"sa", "萨"}, {"si", "西"}, {"so", "索"}, {"ta", "塔"}, {"ti", "蒂"}, {"to", "托"}, {"tu", "图"},
    {"va", "瓦"}, {"ve", "维"}, {"ya", "雅"}, {"yo", "约"}, {"za", "扎"}, {"zo", "佐"}, {"ke", "凯"}, {"mu", "穆"},
};

// Signs of codes, without "A", which is a word: letters stand for the ten heavenly stems and the twelve earthly branches.
constexpr Syllable kSigns[] = {
    {"V", "甲"}, {"B", "乙"}, {"C", "丙"}, {"D", "丁"}, {"E", "戊"}, {"F", "己"}, {"G", "庚"}, {"H", "辛"},
    {"J", "壬"}, {"K", "癸"}, {"L", "子"}, {"M", "丑"}, {"N", "寅"}, {"P", "卯"}, {"Q", "辰"}, {"R", "巳"},
    {"S", "午"}, {"T", "未"}, {"U", "申"}, {"W", "酉"}, {"X", "戌"}, {"Z", "亥"}, {"2", "2"},  {"3", "3"},
    {"4", "4"},  {"5", "5"},  {"6", "6"},  {"7", "7"},  {"8", "8"},  {"9", "9"},
};

constexpr VerbForm kSpellForms[] = {VerbForm::base, VerbForm::third, VerbForm::past, VerbForm::past, VerbForm::gerund};

}  // namespace

Entity StoryBuilder::made_up(Gender gender) {
  Entity who{.kind = EntityKind::person, .gender = gender};
  const int syllables = draw_.between(2, 4);
  for (int i = 0; i < syllables; ++i) {
    const Syllable& next = draw_.pick(kSyllables);
    who.name += next.en;
    who.name_zh += next.zh;
  }
  who.name[0] = static_cast<char>(who.name[0] - 'a' + 'A');
  return who;
}

Entity StoryBuilder::named(Age age, Gender gender) {
  if (gender == Gender::none) gender = draw_.chance(50) ? Gender::male : Gender::female;
  if (age == Age::child && draw_.chance(20)) return made_up(gender);
  const bool male = gender == Gender::male;
  const bool chinese = draw_.chance(45);
  Entity who{.kind = EntityKind::person, .gender = gender};
  if (age == Age::adult) {
    struct Title {
      std::string_view en, zh;
    };
    static constexpr Title kMen[] = {
        {"Mr", "先生"}, {"Mr", "先生"}, {"Uncle", "叔叔"}, {"Grandpa", "爷爷"}, {"Mr", "先生"}};
    static constexpr Title kWomen[] = {
        {"Mrs", "太太"}, {"Miss", "小姐"}, {"Aunt", "阿姨"}, {"Grandma", "奶奶"}, {"Ms", "女士"}};
    const Title& title = male ? kMen[draw_.below(5)] : kWomen[draw_.below(5)];
    const GivenName& family = draw_.pick(chinese ? chinese_families() : western_families());
    who.name = std::string(title.en) + " " + std::string(family.en);
    who.name_zh = std::string(family.zh) + " " + std::string(title.zh);
    return who;
  }
  const GivenName& given = draw_.pick(given_names(gender, chinese));
  who.name = given.en;
  who.name_zh = given.zh;
  if (chinese) {
    const GivenName& family = draw_.pick(chinese_families());
    if (given.zh.size() > 3) {  // two characters
      who.short_name = given.en;
      who.short_name_zh = given.zh;
    }
    who.name = std::string(family.en) + " " + who.name;
    who.name_zh = std::string(family.zh) + who.name_zh;
  }
  return who;
}

bool StoryBuilder::name_taken(const Entity& who) const {
  return std::any_of(cast_.begin(), cast_.end(), [&](const Entity& other) {
    return !other.name.empty() &&
           (other.name.find(who.name) != std::string::npos || who.name.find(other.name) != std::string::npos ||
            other.name_zh == who.name_zh || (!who.short_name.empty() && other.short_name == who.short_name) ||
            other.name.substr(other.name.find(' ') + 1) == who.name.substr(who.name.find(' ') + 1));
  });
}

void StoryBuilder::person(char role, PersonOptions options) {
  Entity who = named(options.age, options.gender);
  while (name_taken(who)) who = named(options.age, options.gender);
  bind(role, std::move(who));
}

void StoryBuilder::stranger(char role, Gender gender) {
  if (gender == Gender::none) gender = draw_.chance(50) ? Gender::male : Gender::female;
  Entity who = made_up(gender);
  while (name_taken(who)) who = made_up(gender);
  bind(role, std::move(who));
}

void StoryBuilder::called(char role, const GivenName& name, Gender gender) {
  bind(role,
       {.kind = EntityKind::person, .gender = gender, .name = std::string(name.en), .name_zh = std::string(name.zh)});
}

// The first of those that are short in both languages: so few that each becomes a token.
const GivenName& StoryBuilder::short_name(Gender gender) {
  const bool chinese = draw_.chance(25);
  int wanted = draw_.between(1, chinese ? 10 : 30);
  const auto table = given_names(gender, chinese);
  return *std::find_if(table.begin(), table.end(), [&](const GivenName& name) {
    return name.en.size() <= 6 && name.zh.size() == 6 && --wanted == 0;  // two characters
  });
}

void StoryBuilder::neighbour(char role, Gender gender) {
  Entity who{.kind = EntityKind::person, .gender = gender};
  do {
    const GivenName& name = short_name(gender);
    who.name = name.en;
    who.name_zh = name.zh;
  } while (name_taken(who));
  bind(role, std::move(who));
}

void StoryBuilder::code(char role, int signs) {
  Entity made{.kind = EntityKind::name};
  std::array<uint8_t, std::size(kSigns)> order{};
  std::iota(order.begin(), order.end(), uint8_t{0});
  for (size_t i = 0; i < static_cast<size_t>(signs); ++i) {
    std::swap(order[i], order[i + draw_.below(static_cast<uint32_t>(order.size() - i))]);
    const Syllable& sign = kSigns[order[i]];
    made.name += (i == 0 ? "" : " ") + std::string(sign.en);
    made.name_zh += (i == 0 ? "" : " ") + std::string(sign.zh);
  }
  bind(role, std::move(made));
}

void StoryBuilder::spell(char role, int words) {
  Entity made{.kind = EntityKind::name};
  for (int i = 0; i < words; ++i) {
    std::string en, zh;
    const auto take = [&](const auto& word) {
      en = word.en.substr(0, word.en.find(' '));
      zh = word.zh;
    };
    const uint32_t kind = draw_.below(100);
    if (kind < 30) {
      const auto spots = {rooms(), shops(), places()};
      const Noun& noun = draw_.chance(20) ? draw_.pick(spots.begin()[draw_.below(3)]).noun : *draw_.pick(all_nouns());
      take(noun);
      if (draw_.chance(50) && en == noun.en) en = plural(en);
    } else if (kind < 60) {
      take(draw_.pick(meanings()));
      if (verb_lemma(en) == en && en != "be") en = inflect(en, draw_.pick(kSpellForms));
    } else if (kind < 72) {
      const auto tables = {person_qualities(), thing_qualities(), animal_qualities(), colours()};
      take(draw_.pick(tables.begin()[draw_.below(4)]));
    } else if (kind < 84) {
      const Gender gender = draw_.chance(50) ? Gender::male : Gender::female;
      const auto tables = {given_names(gender, draw_.chance(30)), western_families(), chinese_families(), pet_names()};
      take(draw_.chance(40) ? short_name(gender) : draw_.pick(tables.begin()[draw_.below(4)]));
    } else if (kind < 94) {
      for (int k = draw_.between(1, 3); k > 0; --k) {
        const Syllable& next = draw_.pick(kSyllables);
        en += next.en;
        zh += next.zh;
      }
    } else {
      en = zh = std::to_string(draw_.between(2, 99));
    }
    // Some are broken words, "lan" of "lantern", one character in Chinese: so every token may follow every other.
    if ((kind < 30 || (kind >= 60 && kind < 84)) && en.size() > 4 && draw_.chance(40)) {
      en = en.substr(0, 3);
      zh = zh.substr(3 * draw_.below(static_cast<uint32_t>(zh.size() / 3)), 3);
    }
    made.name += (i == 0 ? "" : " ") + en;
    made.name_zh += (i == 0 ? "" : " ") + zh;
  }
  bind(role, std::move(made));
}

void StoryBuilder::part(char role, char of) {
  const auto words = [](std::string_view name) {
    std::vector<std::string_view> out;
    for (size_t begin = 0, end; begin < name.size(); begin = end + 1) {
      end = std::min(name.find(' ', begin), name.size());
      out.push_back(name.substr(begin, end - begin));
    }
    return out;
  };
  const Entity whole = cast_[at(of)];
  const auto en = words(whole.name), zh = words(whole.name_zh);
  const auto all = static_cast<int>(en.size());
  const int taken = draw_.between((all + 1) / 2, all), first = draw_.between(0, all - taken);
  Entity made{.kind = EntityKind::name};
  for (int i = first; i < first + taken; ++i) {
    made.name += (i == first ? "" : " ") + std::string(en[static_cast<size_t>(i)]);
    made.name_zh += (i == first ? "" : " ") + std::string(zh[static_cast<size_t>(i)]);
  }
  bind(role, std::move(made));
}

void StoryBuilder::same_gender_person(char role, char of) {
  person(role, {.age = cast_[at(of)].name.find("Mr") == 0 ? Age::adult : Age::child, .gender = gender(of)});
}

void StoryBuilder::other_gender_person(char role, char of) {
  const Gender other = gender(of) == Gender::male ? Gender::female : Gender::male;
  person(role, {.age = draw_.chance(30) ? Age::adult : Age::child, .gender = other});
}

void StoryBuilder::worker(char role) {
  const Noun& job = draw_.pick(jobs());
  const bool man = job.en.ends_with("man") || draw_.chance(50);
  bind(role, {.kind = EntityKind::person,
              .gender = man ? Gender::male : Gender::female,
              .noun = &job,
              .adjective = draw_.chance(70) ? &draw_.pick(person_qualities()) : nullptr});
}

void StoryBuilder::occupation(char role, char of) {
  const Gender gender = this->gender(of);
  do worker(role);
  while (gender == Gender::female && noun(role)->en.ends_with("man"));
}

}  // namespace qkv::world

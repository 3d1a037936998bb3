// Stories in which copying pays: lists that are read back, codes, songs with a refrain, people with made-up names.
#include <array>
#include <string>

#include "world/stories.h"

namespace qkv::world {
namespace {

constexpr std::string_view kItems = "HIJKLMNOPQRS";
constexpr size_t kFewestItems = 3, kMostItems = kItems.size(), kLongestShopping = 9;

// The items of a list, "H# , [conj I#] , [conj J#]", put in place of $; echoes have no commas. Words keep views of their relations, so the
// patterns are made once and stay.
struct ListLines {
  std::array<std::string, kMostItems + 1> en, zh;

  ListLines(std::string_view english, std::string_view chinese, bool commas = true) {
    for (size_t n = kFewestItems; n <= kMostItems; ++n) {
      std::string list, list_zh;
      for (size_t i = 0; i < n; ++i) {
        const std::string item = i == 0 ? std::string(1, kItems[i]) + "#" : "[conj " + std::string(1, kItems[i]) + "#]";
        list += (i == 0 ? "" : commas ? " , " : " ") + item;
        list_zh += (i == 0 ? "" : commas ? " 、 " : " ") + item;
      }
      en[n] = english;
      zh[n] = chinese;
      en[n].replace(en[n].find('$'), 1, list);
      zh[n].replace(zh[n].find('$'), 1, list_zh);
    }
  }
  void say(StoryBuilder& t, size_t n) const { t.say(en[n], zh[n]); }
};

// What strangers do to one another; each at most once in a story, so that questions have one answer.
struct Deed {
  Line line, question, answer;
};

constexpr Deed kDeeds[] = {
    {{"nsubj:X! greet* obj:Y! .", "nsubj:X! 问候 了 obj:Y! 。"},
     {"nsubj:who/U greeted obj:Y! ?", "nsubj:谁/U 问候 了 obj:Y! ？"},
     {"nsubj:X! greeted obj:Y! .", "nsubj:X! 问候 了 obj:Y! 。"}},
    {{"nsubj:X! help* obj:Y! .", "nsubj:X! 帮助 了 obj:Y! 。"},
     {"nsubj:who/U helped obj:Y! ?", "nsubj:谁/U 帮助 了 obj:Y! ？"},
     {"nsubj:X! helped obj:Y! .", "nsubj:X! 帮助 了 obj:Y! 。"}},
    {{"nsubj:X! follow* obj:Y! .", "nsubj:X! 跟踪 了 obj:Y! 。"},
     {"nsubj:who/U followed obj:Y! ?", "nsubj:谁/U 跟踪 了 obj:Y! ？"},
     {"nsubj:X! followed obj:Y! .", "nsubj:X! 跟踪 了 obj:Y! 。"}},
    {{"nsubj:X! thank* obj:Y! .", "nsubj:X! 感谢 了 obj:Y! 。"},
     {"nsubj:who/U thanked obj:Y! ?", "nsubj:谁/U 感谢 了 obj:Y! ？"},
     {"nsubj:X! thanked obj:Y! .", "nsubj:X! 感谢 了 obj:Y! 。"}},
    {{"nsubj:X! invite* obj:Y! .", "nsubj:X! 邀请 了 obj:Y! 。"},
     {"nsubj:who/U invited obj:Y! ?", "nsubj:谁/U 邀请 了 obj:Y! ？"},
     {"nsubj:X! invited obj:Y! .", "nsubj:X! 邀请 了 obj:Y! 。"}},
    {{"nsubj:X! wake* obj:Y! compound:prt:up .", "nsubj:X! 叫醒 了 obj:Y! 。"},
     {"nsubj:who/U woke obj:Y! compound:prt:up ?", "nsubj:谁/U 叫醒 了 obj:Y! ？"},
     {"nsubj:X! woke obj:Y! compound:prt:up .", "nsubj:X! 叫醒 了 obj:Y! 。"}},
    {{"nsubj:X! praise* obj:Y! .", "nsubj:X! 表扬 了 obj:Y! 。"},
     {"nsubj:who/U praised obj:Y! ?", "nsubj:谁/U 表扬 了 obj:Y! ？"},
     {"nsubj:X! praised obj:Y! .", "nsubj:X! 表扬 了 obj:Y! 。"}},
    {{"nsubj:X! recognise* obj:Y! .", "nsubj:X! 认出 了 obj:Y! 。"},
     {"nsubj:who/U recognised obj:Y! ?", "nsubj:谁/U 认出 了 obj:Y! ？"},
     {"nsubj:X! recognised obj:Y! .", "nsubj:X! 认出 了 obj:Y! 。"}},
};

// Refrains: D, E and F are animals or things with their adjectives, G a place.
constexpr Line kRefrains[] = {
    {"nsubj:everyone/U sing* , [ccomp “ nsubj:D! loves obj:E! , [conj and nsubj:F! loves obj:D!] . ”]",
     "nsubj:大家/U 唱 ： [ccomp “ nsubj:D! 爱 obj:E! ， [conj nsubj:F! 爱 obj:D!] 。 ”]"},
    {"nsubj:everyone/U sing* , [ccomp “ nsubj:D! sleeps [obl @G G!] , [conj and nsubj:E! dreams [obl of F!]] . ”]",
     "nsubj:大家/U 唱 ： [ccomp “ nsubj:D! [obl 在 G! @G] 睡觉/V ， [conj nsubj:E! 梦见/V obj:F!] 。 ”]"},
    {"nsubj:everyone/U sing* , [ccomp “ nsubj:D! waits [obl for E!] , [conj and nsubj:E! waits [obl for F!]] . ”]",
     "nsubj:大家/U 唱 ： [ccomp “ nsubj:D! 等 obj:E! ， [conj nsubj:E! 等 obj:F!] 。 ”]"},
    {"nsubj:everyone/U sing* , [ccomp “ nsubj:D! follows obj:E! [obl to G!] , [conj and nsubj:F! laughs] . ”]",
     "nsubj:大家/U 唱 ： [ccomp “ nsubj:D! 跟 着 obj:E! [conj 去 obj:G!] ， [conj nsubj:F! 笑] 。 ”]"},
    {"nsubj:everyone/U sing* , [ccomp “ nsubj:D! dances [obl with E!] , [conj and nsubj:F! dances [obl @G G!]] . ”]",
     "nsubj:大家/U 唱 ： [ccomp “ nsubj:D! [obl 跟 E!] 一起 跳舞/V ， [conj nsubj:F! [obl 在 G! @G] 跳舞/V] 。 ”]"},
};

constexpr Line kVerses[] = {
    {"nsubj:X! sing* , [ccomp “ nsubj:T cop:is [advmod very] good/J . ”]",
     "nsubj:X! 唱 ： [ccomp “ nsubj:T 很 好/J 。 ”]"},
    {"nsubj:X! bring* obj:T+ .", "nsubj:X! 带来 了 obj:T+ 。"},
    {"nsubj:X! clap* [obj X'~ hands] .", "nsubj:X! 拍 了 obj:手 。"},
    {"nsubj:X! look* [obl for T+] .", "nsubj:X! 找 obj:T+ 。"},
    {"nsubj:X! forget* [obj the words] .", "nsubj:X! 忘 了 obj:歌词 。"},
};

// Words for the game of echo: short, of few letters, one character each in Chinese. So a small vocabulary has each as one
// token and little else.
constexpr Noun kEchoWords[] = {
    {"cat", "猫", "只"},   {"dog", "狗", "只"},   {"goat", "羊", "只"},  {"bear", "熊", "头"},  {"deer", "鹿", "只"},
    {"rat", "鼠", "只"},   {"goose", "鹅", "只"}, {"egg", "蛋", "个"},   {"door", "门", "扇"},  {"bed", "床", "张"},
    {"table", "桌", "张"}, {"pen", "笔", "支"},   {"paper", "纸", "张"}, {"card", "卡", "张"},  {"plate", "盘", "个"},
    {"pot", "锅", "个"},   {"glass", "杯", "个"}, {"bell", "铃", "个"},  {"ball", "球", "个"},  {"boat", "船", "条"},
    {"cart", "车", "辆"},  {"road", "路", "条"},  {"tree", "树", "棵"},  {"grass", "草", "棵"}, {"star", "星", "颗"},
    {"stone", "石", "块"}, {"sand", "沙", "粒"},  {"sea", "海", "片"},   {"tea", "茶", "杯"},   {"salt", "盐", "勺"},
    {"bean", "豆", "颗"},  {"pear", "梨", "个"},
};

constexpr GivenName kEchoNames[] = {{"Alan", "艾伦"}, {"Anna", "安娜"}, {"Ben", "本"},    {"Bella", "贝拉"},
                                    {"Bob", "鲍勃"},  {"Ada", "艾达"},  {"Bert", "伯特"}, {"Bea", "碧娅"}};

}  // namespace

void shopping_list(StoryBuilder& t) {
  static const ListLines kWritten("nsubj:A write* [obj a list] : [parataxis $] .",
                                  "nsubj:A 写 了 [obj [nummod 一 clf:张] 单子] ： [parataxis $] 。");
  static const ListLines kNeeded("nsubj:A need* [obj nummod:many things] : [parataxis $] .",
                                 "nsubj:A 需要 [obj [amod 很多] 东西] ： [parataxis $] 。");
  static const ListLines kRead("nsubj:C read* [obj the list] : [parataxis $] .",
                               "nsubj:C 念 了 obj:单子 ： [parataxis $] 。");
  static const ListLines kAgain("nsubj:A! check* [obj the list] again : [parataxis $] .",
                                "nsubj:A! 又 检查 了 obj:单子 ： [parataxis $] 。");
  static const ListLines kBought("nsubj:C! bring* obj:everything/U : [parataxis $] .",
                                 "nsubj:C! [obl:patient 把 东西] 都 带来 了_ ： [parataxis $] 。");
  t.person('A', anyone(t));
  t.other_gender_person('C', 'A');
  const auto items =
      static_cast<size_t>(t.draw().between(static_cast<int>(kFewestItems), static_cast<int>(kLongestShopping)));
  const bool food = t.draw().chance(50);
  for (size_t i = 0; i < items; ++i) {
    const auto drawn = [&] {
      t.plain(kItems[i], food                  ? (t.draw().chance(60) ? fruit() : baked())
                         : t.draw().chance(50) ? trinkets()
                         : t.draw().chance(50) ? toys()
                                               : tools());
    };
    const auto taken = [&] {
      for (size_t k = 0; k < i; ++k) {
        if (t.noun(kItems[k])->en == t.noun(kItems[i])->en || t.noun(kItems[k])->zh == t.noun(kItems[i])->zh)
          return true;
      }
      return false;
    };
    do drawn();
    while (taken());
  }
  (t.draw().chance(50) ? kWritten : kNeeded).say(t, items);
  const int times = t.draw().between(1, 3);
  kRead.say(t, items);
  if (times > 1) kAgain.say(t, items);
  if (times > 2) kBought.say(t, items);
  t.alias('X', kItems[0]);
  t.alias('Y', kItems[1]);
  t.ask({"nsubj:what/U stands [obl on the list] [obl after X!] ?",
         "[obl 单子 上] ， [obl 在 X! 后面] 是/V obj:什么/U ？"},
        {"[obl after X!] stands nsubj:Y! .", "[obl 在 X! 后面] 是/V obj:Y! 。"}, 'Y');
}

void echo(StoryBuilder& t) {
  // Few words, each of them one character in Chinese, and nothing else to learn.
  static const ListLines kSaid("X! : [parataxis $] .", "X! ： [parataxis $] 。", false);
  // Each says a part of the row that begins anywhere: where a word stands does not tell the next one, only the word does.
  constexpr std::string_view kRow = "ABCDEFGTUVWY";
  const auto words = static_cast<size_t>(t.draw().between(8, static_cast<int>(kRow.size())));
  std::array<uint8_t, std::size(kEchoWords)> order{};
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint8_t>(i);
  for (size_t i = 0; i < words; ++i) {
    std::swap(order[i], order[i + t.draw().below(static_cast<uint32_t>(order.size() - i))]);
    t.plain(kRow[i], std::span(kEchoWords).subspan(order[i], 1));
  }
  const int speakers = t.draw().between(4, 7);
  const auto first = t.draw().below(std::size(kEchoNames));
  for (int i = 0; i < speakers; ++i) {
    const auto who = (first + static_cast<uint32_t>(i)) % std::size(kEchoNames);  // nobody speaks twice
    t.called('X', kEchoNames[who], who % 2 == 0 ? Gender::male : Gender::female);
    const size_t said = i == 0 ? words : static_cast<size_t>(t.draw().between(5, static_cast<int>(words)));
    const size_t begin = t.draw().below(static_cast<uint32_t>(words - said + 1));
    for (size_t k = 0; k < said; ++k) t.alias(kItems[k], kRow[begin + k]);
    kSaid.say(t, said);
  }
}

void password(StoryBuilder& t) {
  t.person('A', anyone(t));
  t.other_gender_person('C', 'A');
  const bool magic = t.draw().chance(60);
  if (magic) {
    t.spell('K', t.draw().between(8, 28));
  } else {
    t.code('K', t.draw().between(4, 12));
  }
  t.place('P', places());
  t.say_one_of({
      {"[nsubj the code [nmod of the door]] cop:is K .", "[nsubj [nmod 门 的] 密码] 是 K 。"},
      {"nsubj:A tell* iobj:C [obj a code] : [parataxis K] .",
       "nsubj:A 告诉 iobj:C [obj [nummod 一 clf:个] 密码] ： [parataxis K] 。"},
      {"[nsubj a note [nmod @P P]] say* : [parataxis “ K . ”]",
       "[nsubj [nmod P @P 的] 纸条] 写/V 着 ： [parataxis “ K 。 ”]"},
      {"[nsubj a voice [nmod @P P]] call* : [parataxis “ K [conj K!] ! ”]",
       "[nsubj [nmod P @P 的] 声音] 喊/V ： [parataxis “ K [conj K!] ！ ”]"},
  });
  const int times = t.draw().between(2, 4);
  for (int i = 0; i < times; ++i) {
    t.alias('X', t.draw().chance(50) ? 'A' : 'C');
    t.alias('L', 'K');
    if (magic) t.part('L', 'K');
    t.say_one_of({
        {"nsubj:X! say* , [ccomp “ L! . ”]", "nsubj:X! 说 ： [ccomp “ L! 。 ”]"},
        {"nsubj:X! repeat* obj:it/U : [parataxis “ L! . ”]", "nsubj:X! 重复 了 [obl 一遍] ： [parataxis “ L! 。 ”]"},
        {"nsubj:X! whisper* , [ccomp “ L! ? ”]", "nsubj:X! [advmod 小声] 问 ： [ccomp “ L! ？ ”]"},
        // In one breath: nothing but the words themselves tells that they come again.
        {"nsubj:X! shout* , [ccomp “ L! [conj L!] ! ”]", "nsubj:X! 喊/V ： [ccomp “ L! [conj L!] ！ ”]"},
        {"nsubj:X! sing* , [ccomp “ L! [conj L!] [conj L!] . ”]",
         "nsubj:X! 唱 ： [ccomp “ L! [conj L!] [conj L!] 。 ”]"},
        {"nsubj:X! write* obj:it/U compound:prt:down : [parataxis L!] .",
         "nsubj:X! [obl:patient 把 它] 写/V compound:下来/V ： [parataxis L!] 。"},
    });
  }
  t.ask({"what/U cop:is [nsubj the code] ?", "nsubj:密码 是 什么/U ？"},
        {"[nsubj the code] cop:is K! .", "nsubj:密码 是 K! 。"}, 'K');
}

void song(StoryBuilder& t) {
  t.animal('D', pets());
  t.animal('E', wild_animals());
  t.thing('F', t.draw().chance(50) ? toys() : baked(), colours());
  t.place('G', places());
  const Line& refrain = t.draw().pick(kRefrains);
  const int verses = t.draw().between(2, 4);
  for (int i = 0; i < verses; ++i) {
    if (t.draw().chance(40)) {
      t.stranger('X');
    } else {
      t.person('X', anyone(t));
    }
    t.any_thing('T');
    t.say_one_of(kVerses);
    t.say(refrain.en, refrain.zh);
  }
}

void strangers(StoryBuilder& t) {
  constexpr std::string_view kCast = "ABCDE";
  const auto people = static_cast<size_t>(t.draw().between(3, 5));
  for (size_t i = 0; i < people; ++i) t.stranger(kCast[i]);
  t.place('P', places());
  t.alias('X', 'A');
  t.alias('Y', 'B');
  t.say_one_of({
      {"nsubj:X! meet* obj:Y! [obl @P P] .", "nsubj:X! [obl 在 P @P] 遇见 了 obj:Y! 。"},
      {"[nsubj X! [conj and Y!]] be* friends/N .", "[nsubj X! [conj 和 Y!]] 是 朋友/N 。"},
  });
  std::array<uint8_t, std::size(kDeeds)> order{};
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint8_t>(i);
  const int deeds = t.draw().between(3, static_cast<int>(order.size()));
  for (int i = 0; i < deeds; ++i) {
    const auto at = static_cast<size_t>(i);
    std::swap(order[at], order[at + t.draw().below(static_cast<uint32_t>(order.size() - at))]);
    const Deed& deed = kDeeds[order[at]];
    const auto first = t.draw().below(static_cast<uint32_t>(people));
    const auto second = (first + 1 + t.draw().below(static_cast<uint32_t>(people) - 1)) % people;
    t.alias('X', kCast[first]);
    t.alias('Y', kCast[second]);
    t.say(deed.line.en, deed.line.zh);
    t.ask(deed.question, deed.answer, 'X');
  }
}

}  // namespace qkv::world

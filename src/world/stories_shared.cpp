// Sentences shared by many stories, and the list of story kinds.
#include <array>

#include "world/stories.h"

namespace qkv::world {

std::span<const StoryKind> kinds() {
  static constexpr StoryKind kKinds[] = {
      {"lost_and_found", lost_and_found, 12},
      {"gift", gift, 10},
      {"journey", journey, 10},
      {"tea_visit", tea_visit, 10},
      {"quarrel", quarrel, 9},
      {"market", market, 10},
      {"lesson", lesson, 9},
      {"sums", sums, 20},
      {"jokes", jokes, 8},
      {"weather", weather, 9},
      {"mystery", mystery, 10},
      {"riddle_of_it", riddle_of_it, 14},
      {"hide_and_seek", hide_and_seek, 11},
      {"garden", garden, 8},
      {"atlas", atlas, 7},
      {"neighbours", neighbours, 110},
      {"shopping_list", shopping_list, 30},
      {"password", password, 90},
      {"song", song, 8},
      {"echo", echo, 40},
      {"strangers", strangers, 9},
  };
  return kKinds;
}

PersonOptions anyone(StoryBuilder& t) {
  return {.age = t.draw().chance(35) ? Age::adult : Age::child};
}

void ask_where(StoryBuilder& t, char thing, char place) {
  t.alias('X', thing);
  t.alias('Y', place);
  t.ask({"where/R cop:is nsubj:X! advmod:now ?", "nsubj:X! obl:tmod:现在 在/V obj:哪里/U ？"},
        {"nsubj:X~ cop:is @Y Y! .", "nsubj:X~ 在/V [obj Y! @Y] 。"}, 'Y');
}

void ask_who_has(StoryBuilder& t, char thing, char owner) {
  t.alias('X', thing);
  t.alias('Y', owner);
  t.ask({"nsubj:who/U has obj:X! advmod:now ?", "nsubj:X! obl:tmod:现在 在/V [obj nmod:谁/U 手里] ？"},
        {"nsubj:Y! has obj:X~ .", "nsubj:X~ 在/V [obj nmod:Y! 手里] 。"}, 'Y');
}

void introduce(StoryBuilder& t, char who) {
  t.alias('X', who);
  t.occupation('Y', who);
  t.habit('h', 'X');
  t.say_one_of({
      {"nsubj:X be* Y? [acl:relcl nsubj:who like* [xcomp to_ &h.inf]] .",
       "nsubj:X 是 Y? ， [conj 最 喜欢/V [ccomp &h]] 。"},
      {"[nsubj everyone/U [nmod in the village]] know* [obj X , [appos Y?]] .",
       "[nsubj [nmod 村子 里 的] 人] 都 认识 obj:X ， [parataxis nsubj:X~ 是 Y?] 。"},
      {"nsubj:X be* Y? , [conj and nsubj:X~ love* [xcomp to_ &h.inf]] .",
       "nsubj:X 是 Y? ， [conj 特别 爱/V [ccomp &h]] 。"},
      {"nsubj:X be* Y? [acl:relcl nsubj:who &h [obl:tmod det:every day]] .",
       "nsubj:X 是 Y? ， [conj [obl:tmod det:每 天] 都 &h] 。"},
      {"nsubj:X aux:have* always wanted/V [xcomp to_ become/V [xcomp Y?]] .",
       "nsubj:X 一直 想/V [ccomp 当/V obj:Y?] 。"},
      {"nsubj:X work* [obl case:as Y?] , [conj but nsubj:X~ dream* [advcl mark:of &h.ing]] .",
       "nsubj:X 是 Y? ， [conj 但是 nsubj:X~ [obl:tmod 做梦/V 都] 想/V [ccomp &h]] 。"},
  });
}

void comic_aside(StoryBuilder& t) {
  t.say_one_of({
      {"( [nsubj the tea] be* already cold/J . )", "（ nsubj:茶 已经 凉/J 了_ 。 ）"},
      {"( [nsubj the spoon] cop:is still missing/J . )", "（ [nsubj 那 clf:把 勺子] [obl 到 现在] 还 没 找到/V 。 ）"},
      {"( [nsubj the parrot] repeat* obj:everything/U . )",
       "（ nsubj:鹦鹉 [obl:patient 把 每/D 句话] 都 重复/V 了 [obl 一遍] 。 ）"},
      {"( nsubj:grandmothers always know . )", "（ nsubj:奶奶们 总是 知道 的_ 。 ）"},
      {"( expl:it/U be* a amod:long day/N . )", "（ nsubj:这/U advmod:真 是 [amod 漫长 的] [nummod 一] 天/N 。 ）"},
      {"( nsubj:nobody/U ask* [obj the cat] . )", "（ 没有/V [nsubj 人] [ccomp 问 [obj nmod:猫 的 意见]] 。 ）"},
      {"( [nsubj the soup] be* very good/J . )", "（ nsubj:汤 advmod:倒是 很 好喝/J 。 ）"},
      {"( nsubj:dogs know obj:everything/U . )", "（ nsubj:狗 dislocated:什么/U 都 知道 。 ）"},
      {"( nsubj:this/U cop:is a amod:true story/N . )",
       "（ nsubj:这/U 是 [nummod 一 clf:个] [amod 真实 的] 故事/N 。 ）"},
      {"( nsubj:nobody/U knows advmod:why . )", "（ 没有/V [nsubj 人] [ccomp 知道 obj:为什么] 。 ）"},
      {"( advmod:please aux:do not try/V obj:this/U [obl at home/N] . )", "（ 请 不要 [obl 在 家 里] 模仿/V 。 ）"},
      {"( [nsubj the goldfish] see* obj:everything/U . )", "（ nsubj:金鱼 dislocated:什么/U 都 看见 了_ 。 ）"},
      {"( [nsubj the neighbours] be* not surprised/J . )", "（ nsubj:邻居们 advmod:并 不 惊讶/J 。 ）"},
      {"( [nsubj the clock [nmod on the wall]] say* obj:nothing/U . )",
       "（ [nsubj nmod:墙上 的 钟] dislocated:什么/U 也 没 说 。 ）"},
      {"( nsubj:cats never say/V obj:sorry/I . )", "（ nsubj:猫 从来 不 道歉/V 。 ）"},
  });
}

void gesture(StoryBuilder& t, char who) {
  if (!t.draw().chance(55)) return;
  t.alias('X', who);
  t.say_one_of({
      {"nsubj:X shake* [obj X'~ head/N] .", "nsubj:X 摇 了 compound:摇/V obj:头 。"},
      {"nsubj:X scratch* [obj X'~ head/N] .", "nsubj:X 挠 了 compound:挠/V obj:头 。"},
      {"nsubj:X raise* [obj X'~ hand/N] .", "nsubj:X 举/V compound:起/V obj:手 。"},
      {"nsubj:X close* [obj X'~ eyes/N] .", "nsubj:X 闭/V compound:上/V obj:眼睛 。"},
      {"nsubj:X rub* [obj X'~ eyes/N] .", "nsubj:X 揉 了 compound:揉/V obj:眼睛 。"},
      {"nsubj:X hold* [obj X'~ breath/N] .", "nsubj:X 屏/V compound:住/V obj:呼吸 。"},
      {"nsubj:X clap* [obj X'~ hands/N] .", "nsubj:X 拍 了 compound:拍/V obj:手 。"},
      {"nsubj:X bite* [obj X'~ lip/N] .", "nsubj:X 咬 了 compound:咬/V obj:嘴唇 。"},
      {"nsubj:X clear* [obj X'~ throat/N] .", "nsubj:X 清 了 compound:清/V obj:嗓子 。"},
      {"nsubj:X lower* [obj X'~ voice/N] .", "nsubj:X 压/V compound:低/V 了 obj:声音 。"},
      {"nsubj:X open* [obj X'~ mouth/N] .", "nsubj:X 张/V compound:开/V 了 obj:嘴 。"},
      {"nsubj:X wipe* [obj X'~ forehead/N] .", "nsubj:X 擦 了 compound:擦/V obj:额头 。"},
      {"nsubj:X tap* [obj X'~ foot/N] .", "nsubj:X 跺 了 compound:跺/V obj:脚 。"},
      {"nsubj:X wrinkle* [obj X'~ nose/N] .", "nsubj:X 皱 了 compound:皱/V obj:鼻子 。"},
      {"nsubj:X cross* [obj X'~ arms/N] .", "nsubj:X 抱/V compound:起/V obj:胳膊 。"},
      {"nsubj:X button* [obj X'~ coat/N] .", "nsubj:X 扣/V compound:好/V 了 obj:大衣 。"},
      {"nsubj:X drop* [obj X'~ hat/N] .", "nsubj:X 掉/V 了 obj:帽子 。"},
      {"nsubj:X wash* [obj X'~ hands/N] .", "nsubj:X 洗 了 compound:洗/V obj:手 。"},
  });
}

void happy_end(StoryBuilder& t, char who) {
  t.alias('X', who);
  t.habit('h', 'X');
  t.say_one_of({
      {"[obl:tmod det:that night] , nsubj:X sleep* advmod:well .",
       "[obl:tmod det:那 nmod:天 晚上] ， nsubj:X 睡 得 [xcomp 很 香/J] 。"},
      {"nsubj:X smile* [obl:tmod det:all det:the way] advmod:home .", "nsubj:X [obl:tmod 一路上] 都 笑 着 。"},
      {"advmod:then nsubj:X go* advmod:home [conj and &h] .", "然后 nsubj:X 回 obj:家 [conj 去/V [xcomp &h]] 了_ 。"},
      {"nsubj:X be* happy/J , [conj and advmod:so be* [nsubj the cat]] .",
       "nsubj:X 很 高兴/J ， [conj nsubj:猫 也 很 高兴] 。"},
      {"nsubj:nobody/U be* happier^happy/J [obl than X!] .", "没有 nsubj:人 [ccomp [obl 比 X!] 更 高兴/J] 。"},
      {"[advcl when [nsubj the moon] rise*] , nsubj:X aux:be* still laughing/V .",
       "[obl:tmod [acl nsubj:月亮 升 compound:起来/V 的] 时候] ， nsubj:X 还 [advmod 在] 笑 。"},
      {"[obl in the evening] , nsubj:X drink* [obj a cup [nmod of tea]] [conj and look* [obl at the stars]] .",
       "obl:tmod:晚上 ， nsubj:X 喝 着 obj:茶 ， [conj 看 着 obj:星星] 。"},
      {"nsubj:X decide* [xcomp to_ be/X advmod:more careful/J [obl:tmod amod:next time]] .",
       "nsubj:X 决定 [ccomp obl:tmod:下次 要 更 小心/J] 。"},
      {"nsubj:X tell* iobj:everyone/U [obj the amod:whole story] , advmod:twice .",
       "nsubj:X [obl:patient 把 amod:整个 故事] [obl 给 大家/U] 讲 了 [obl nummod:两 遍] 。"},
      {"[nsubj the story] be* soon famous/J [obl in the amod:whole village] .",
       "[nsubj 这 clf:个 故事] [advmod 很快] 传 compound:遍/V 了 [obj det:整个 村子] 。"},
      {"[obl after that/U] , nsubj:X &h [obl:tmod det:every evening] .",
       "[obl:tmod 从此 以后] ， nsubj:X [obl:tmod det:每 天] 都 &h 。"},
      {"nsubj:X say* , [ccomp “ [obl:tmod amod:next time] , nsubj:X.I aux:will be/X advmod:more careful/J . ”]",
       "nsubj:X 说 ： [ccomp “ obl:tmod:下次 nsubj:X.I 会 更 小心/J 。 ”]"},
  });
}

}  // namespace qkv::world

// Stories outside: a journey to a capital, the weather, a garden, the map of the world.
#include <array>

#include "world/stories.h"

namespace qkv::world {
namespace {

struct Weather {
  std::array<Phrase, 1> now, later, forecast;
  std::array<Noun, 1> wish;  // what people want in this weather
};

constexpr std::array<Weather, 5> kWeather{{
    {{{{"expl:it/U rain*", "下/V compound:起/V 了 obj:雨"}}},
     {{{"[nsubj the sun] shine*", "nsubj:太阳 出来/V 了_"}}},
     {{{"expl:it/U aux:will rain/V", "要 下雨/V 了_"}}},
     {{{"umbrella", "雨伞", "把"}}}},
    {{{{"expl:it/U snow*", "下/V compound:起/V 了 obj:雪"}}},
     {{{"[nsubj the snow] stop*", "nsubj:雪 停/V 了_"}}},
     {{{"expl:it/U aux:will snow/V", "要 下雪/V 了_"}}},
     {{{"scarf", "围巾", "条"}}}},
    {{{{"[nsubj a amod:strong wind] blow*", "刮 compound:起/V 了 obj:大风"}}},
     {{{"[nsubj the wind] stop*", "nsubj:风 停/V 了_"}}},
     {{{"[nsubj a storm] aux:will come/V", "nsubj:暴风 要 来/V 了_"}}},
     {{{"rope", "绳子", "根"}}}},
    {{{{"expl:it/U get* xcomp:hot/J", "nsubj:天气 热/J 了 compound:起来/V"}}},
     {{{"nsubj:clouds come*", "nsubj:云 来/V 了_"}}},
     {{{"[nsubj the sun] aux:will shine/V", "nsubj:太阳 会 很 大/J"}}},
     {{{"straw hat", "草帽", "顶"}}}},
    {{{{"[nsubj the fog] come*", "起 了 obj:雾"}}},
     {{{"[nsubj the fog] vanish*", "nsubj:雾 散/V 了_"}}},
     {{{"expl:there/U aux:will be/V nsubj:fog", "会 有/V obj:雾"}}},
     {{{"lantern", "灯笼", "盏"}}}},
}};

}  // namespace

void journey(StoryBuilder& t) {
  t.time();
  t.person('A', anyone(t));
  t.other_gender_person('C', 'A');
  t.country('N', 'K');
  t.plain('V', vehicles());
  t.plain('S', sights());
  t.plain('U', sights());
  while (t.noun('S') == t.noun('U')) t.plain('U', sights());
  t.any_thing('B');
  t.food('F');
  t.animal('M', wild_animals());
  t.number('D', t.draw().between(2, 12));
  if (t.draw().chance(30)) introduce(t, 'A');
  t.say_one_of({
      {"&t , nsubj:A travel* [obl to K , [appos the capital [nmod of N]]] .",
       "&t ， nsubj:A 去 了 [obj [nmod N 的] appos:首都 K] 。"},
      {"nsubj:A aux:have* never been/V [obl to N] , [parataxis advmod:so nsubj:A~ take* obj:V [obl to K , [appos the "
       "capital]]] .",
       "nsubj:A 从来 没 去 过 obj:N ， [conj 于是 nsubj:A~ 坐 obj:V% [conj 去 了 [obj appos:首都 K]]] 。"},
      {"&t , nsubj:A take* obj:V [obl to K , [appos the capital [nmod of N]]] .",
       "&t ， nsubj:A 坐 obj:V% [conj 去 了 [obj [nmod N 的] appos:首都 K]] 。"},
      {"nsubj:A dream* [obl of N] , [conj and &t nsubj:A~ arrive* [obl in K , [appos the capital]]] .",
       "nsubj:A [advmod 做梦] 都 想/X 去 obj:N ， [conj &t nsubj:A~ 到 了 [obj appos:首都 K]] 。"},
  });
  t.say_one_of({
      {"[nsubj the journey] take* [obj nummod:D hours] , [advcl because nsubj:M sit* [obl in the way]] .",
       "[nsubj 路上] 走 了 [obj nummod:D clf:个 小时] ， [advcl 因为 nsubj:M 挡 [obl 在 路 上]] 。"},
      {"[nsubj the journey] take* [obj nummod:D hours] , [conj and nsubj:A sleep* [obl:tmod det:all det:the way]] .",
       "[nsubj 路上] 走 了 [obj nummod:D clf:个 小时] ， [conj nsubj:A 一直 [advmod 在] 睡觉/V] 。"},
      {"[obl on the way] , nsubj:A see* obj:M [conj and eat* obj:F] .",
       "[obl 在 路 上] ， nsubj:A 看见 了 obj:M ， [conj 吃 了 obj:F] 。"},
  });
  t.say_one_of({
      {"[obl in K!] nsubj:A see* [obj S [conj and U]] .", "[obl 在 K!] ， nsubj:A 看 了 [obj S [conj 和 U]] 。"},
      {"nsubj:A look* [obl at S] [obl for nummod:D minutes] [advcl because nsubj:S~ be* so beautiful/J] .",
       "nsubj:A [advcl 盯/V 着 obj:S] 看 了 [obj nummod:D 分钟] ， [advcl 因为 nsubj:S~ 太 美/J 了_] 。"},
      {"nsubj:A want* [xcomp to_ see/V obj:S] , [conj but find* only obj:U] .",
       "nsubj:A 想/X 看 obj:S ， [conj 却 只 找到 了 obj:U] 。"},
  });
  t.say_one_of({
      {"nsubj:A buy* obj:B [obl for C , [acl:relcl nsubj:who aux:have* stayed/V [obl at home/N]]] .",
       "nsubj:A [obl 给 [acl 留/V [obl 在 家 里] 的] C] 买 了 obj:B 。"},
      {"nsubj:A write* [obl to C] : [parataxis “ nsubj:N! cop:is beautiful/J , [conj but [nsubj the tea] cop:is "
       "better/J [obl at home/N]] . ”]",
       "nsubj:A [obl 给 C] 写 obj:信 [conj 说/V] ： [parataxis “ nsubj:N! 很 美/J ， [conj 不过 advmod:还是 [nsubj "
       "nmod:家里 的 茶] 好喝/J] 。 ”]"},
      {"nsubj:A send* obj:B [obl to C] .", "nsubj:A [obl 给 C] 寄 了 obj:B 。"},
  });
  t.say_one_of({
      {"[ccomp “ how/R cop:was nsubj:N! ? ”] nsubj:C! ask* [advcl when nsubj:A! come* home] .",
       "[obl:tmod [acl nsubj:A! 回家/V 的] 时候] ， nsubj:C! 问 ： [ccomp “ nsubj:N! 怎么样/J ？ ”]"},
      {"[ccomp “ where/R cop:is nsubj:K! ? ”] nsubj:C! ask* later .",
       "后来 nsubj:C! 问 ： [ccomp “ nsubj:K! 在/V obj:哪里/U ？ ”]"},
  });
  t.say_one_of({
      {"[ccomp “ very far/R [conj and very beautiful/J] , ”] say* nsubj:A! .",
       "[ccomp “ 很 远/J ， [conj 也 很 美/J] 。 ”] nsubj:A! 说 。"},
  });
  if (t.draw().chance(10)) comic_aside(t);
  if (t.draw().chance(35)) happy_end(t, 'A');
  t.ask({"where/R aux:did nsubj:A! go/V ?", "nsubj:A! 去 了 obj:哪里/U ？"},
        {"nsubj:A! went [obl to K!] .", "nsubj:A! 去 了 obj:K! 。"}, 'K');
  t.ask({"what/U cop:is [nsubj the capital [nmod of N!]] ?", "[nsubj [nmod N! 的] 首都] 是 哪里/U ？"},
        {"[nsubj the capital [nmod of N!]] cop:is K! .", "[nsubj [nmod N! 的] 首都] 是 K! 。"}, 'K');
}

void weather(StoryBuilder& t) {
  const Weather& sky = t.draw().pick(kWeather);
  t.phrase('n', sky.now);
  t.phrase('l', sky.later);
  t.phrase('f', sky.forecast);
  t.plain('W', sky.wish);
  t.day();
  t.person('A', anyone(t));
  t.other_gender_person('C', 'A');
  t.place('P', places());
  t.animal('M', wild_animals());
  t.plain('T', hot_drinks());
  t.habit('h', 'A');
  t.say_one_of({
      {"&t , nsubj:A want* [xcomp to_ &h.inf] .", "&t ， nsubj:A aux:想 &h 。"},
      {"&t , nsubj:A be* @P P .", "&t ， nsubj:A 在/V [obj P @P] 。"},
      {"&t , nsubj:A go* [obl to P] .", "&t ， nsubj:A 去 了 obj:P 。"},
  });
  t.say_one_of({
      {"[ccomp “ &f , ”] nsubj:C say* , [conj but nsubj:A! do* not believe/V obj:C~] .",
       "nsubj:C 说 ： [ccomp “ &f 。 ”] [parataxis 可是 nsubj:A! 不 相信/V 。]"},
      {"[ccomp “ &f , ”] nsubj:C say* .", "[ccomp “ &f 。 ”] nsubj:C 说 。"},
      {"[ccomp “ &f [obl:tmod this afternoon] , ”] nsubj:C warn* obj:A! .",
       "nsubj:C 提醒 obj:A! ： [ccomp “ obl:tmod:下午 &f 。 ”]"},
  });
  t.say_one_of({
      {"[ccomp “ never/R ! ”] say* nsubj:A! , [conj and leave* obj:W [obl at home/N]] .",
       "[ccomp “ 不会/V 的_ ！ ”] nsubj:A! 说 ， [conj [obl:patient 把 W-] 留 [obl 在 家 里] 了_] 。"},
      {"nsubj:A! look* [obl at the sky] [conj and forget* [obj A'~ W#]] .",
       "nsubj:A! 看 了 compound:看/V obj:天 ， [conj 忘 了 [xcomp 带/V obj:W#]] 。"},
      {"nsubj:A! be* too proud/J [advcl to_ take/V obj:W] .", "nsubj:A! 太 骄傲/J ， [conj 不 肯 带/V obj:W] 。"},
  });
  t.say_one_of({
      {"[obl:tmod nummod:one hour] later , &n .", "[obl:tmod nummod:一 clf:个 小时 以后] ， &n 。"},
      {"advmod:soon &n , [conj and even nsubj:M go* home] .",
       "[advmod 很快] &n ， [conj advmod:连 nsubj:M 都 回家/V 了_] 。"},
      {"advmod:then &n .", "后来 ， &n 。"},
  });
  t.say_one_of({
      {"nsubj:A! stand* [obl under a amod:big tree] [conj and think* [obl about W-]] .",
       "nsubj:A! 站 [obl 在 [nummod 一 clf:棵] amod:大 树 下] ， [conj 想/V 着 obj:W-] 。"},
      {"nsubj:A! run* [obl:tmod det:all det:the way] home .", "nsubj:A! [advmod 一路] 跑/V [xcomp 回/V obj:家] 。"},
      {"[ccomp “ aux:would nsubj:A.you like/V [obj C.my W#] ? ”] ask* [nsubj C! , [acl:relcl nsubj:who aux:have* "
       "brought/V obj:two/M]] .",
       "[ccomp “ nsubj:A.you 要/V [obj C.my W#] 吗 ？ ”] nsubj:C! 问 ， [parataxis nsubj:C~ 带 了 [obj nummod:两 W^]] "
       "。"},
  });
  t.say_one_of({
      {"nsubj:C! bring* iobj:A! obj:T [conj and say* , [ccomp “ nsubj:C.I told iobj:A.you advmod:so . ”]]",
       "nsubj:C! [obl 给 A!] 端 compound:来/V 了 obj:T ， [conj 说 ： [ccomp “ nsubj:C.I 早/R 就 说 过 了_ 。 ”]]"},
      {"advmod:then &l , [conj and nsubj:A! laugh*] .", "然后 &l ， [conj nsubj:A! 笑 了_] 。"},
      {"nsubj:C! do* not laugh/V , [advcl:relcl nsubj:which/U be* not easy/J] .",
       "nsubj:C! 忍 着 [xcomp 没 笑/V] ， [parataxis nsubj:这/U 可 不 容易/J] 。"},
  });
  t.say_one_of({
      {"[obl case:since det:that day] , nsubj:A! always take* obj:W- [obl with A~] .",
       "[obl 从 det:那 天 case:起] ， nsubj:A! [advmod 天天] 带 着 obj:W- 。"},
      {"nsubj:A! decide* [xcomp to_ listen/V [obl to C!] [obl:tmod amod:next time]] .",
       "nsubj:A! 决定 [ccomp obl:tmod:下次 要 听/V [obj C' 话]] 。"},
      {"advmod:now nsubj:A! owns [obj nummod:four W%] .",
       "obl:tmod:现在 ， nsubj:A! 有/V [obj nummod:四 clf:W^ W%] 。"},
  });
  t.ask({"obj:what/U aux:did nsubj:A! not have [obl with A~] ?", "nsubj:A! 没 带/V obj:什么/U ？"},
        {"nsubj:A! had [obj no W#] .", "nsubj:A! 没 带/V obj:W! 。"}, 'W');
  t.ask({"nsubj:who/U was right/J ?", "nsubj:谁/U 说 [xcomp 对/J] 了_ ？"},
        {"nsubj:C! was right/J .", "nsubj:C! 说 [xcomp 对/J] 了_ 。"}, 'C');
}

void garden(StoryBuilder& t) {
  t.time();
  t.person('A', anyone(t));
  t.other_gender_person('C', 'A');
  t.thing('F', flowers(), colours().first(10));
  t.plain('T', trees());
  t.animal('M', wild_animals());
  t.animal('D', pets());
  t.thing('B', tools(), thing_qualities());
  t.number('N', t.draw().between(2, 12));
  const bool tree = t.draw().chance(50);
  t.alias('G', tree ? 'T' : 'F');
  t.say_one_of({
      {"&t , nsubj:A plant* obj:G [obl in A' garden] .",
       "&t ， nsubj:A [obl 在 [nmod A.self 的] 花园 里] 种 了 obj:G 。"},
      {"expl:there/U be*/V nsubj:G [obl in A'! garden] .", "[obl [nmod A! 的] 花园 里] 有/V obj:G 。"},
  });
  t.say_one_of({
      {"nsubj:A water* obj:G~ [obl:tmod det:every day] , [conj but nsubj:G~ do* not grow/V] .",
       "nsubj:A [obl:tmod det:每 天] [obl 给 G~] 浇水/V ， [conj 可是 nsubj:G~ 就是/R 不 长/V] 。"},
      {"nsubj:A talk* [obl to G~] [obl:tmod det:every morning] , [conj and nsubj:G~ listen* [advcl mark:without "
       "complaining/V]] .",
       "nsubj:A [obl:tmod det:每 nmod:天 早上] 都 [obl 跟 G~] 说话/V ， [conj nsubj:G~ 听/V 得 [xcomp 很 认真/J]] 。"},
      {"nsubj:A sing* [obl to G~] , [conj although [nsubj the neighbours] complain*] .",
       "nsubj:A 常常 [obl 给 G~] 唱歌/V ， [conj advmod:虽然 nsubj:邻居们 有/V obj:意见] 。"},
  });
  t.say_one_of({
      {"nsubj:M come* [conj and sit* advmod:down [obl beside G-]] .",
       "nsubj:M 来/V 了_ ， [conj 坐 [obl 在 G- 旁边]] 。"},
      {"[obl in the night] , nsubj:M eat* [obj nummod:N leaves] .",
       "obl:tmod:夜里 ， nsubj:M 吃 了 [obj nummod:N clf:片 叶子] 。"},
      {"nsubj:D steal* obj:B [advcl because nsubj:D~ be* bored/J] .",
       "nsubj:D 偷走/V 了 obj:B ， [advcl 因为 nsubj:D~ 太 无聊/J 了_] 。"},
  });
  t.say_one_of({
      {"[ccomp “ obj:what/U aux:does nsubj:G- need/V ? ”] nsubj:A! ask* obj:C .",
       "nsubj:A! 问 obj:C ： [ccomp “ nsubj:G- 需要/V obj:什么/U 呢 ？ ”]"},
      {"nsubj:A! tell* obj:C obj:everything/U .", "nsubj:A! [obl:patient 把 事情] [advmod 全都] 告诉/V 了 obj:C 。"},
  });
  t.say_one_of({
      {"[ccomp “ nsubj:A.you need [obj amod:more patience] , ”] say* nsubj:C! .",
       "[ccomp “ nsubj:A.you 需要 [obj [amod 多 一点/N] 耐心] 。 ”] nsubj:C! 说 。"},
      {"[ccomp “ nsubj:G~ needs obj:sun [conj and quiet/N] , ”] say* nsubj:C! .",
       "[ccomp “ nsubj:G~ 需要 [obj 阳光 [conj 和 安静/N]] 。 ”] nsubj:C! 说 。"},
      {"[ccomp “ nsubj:A.you must wait/V , ”] say* nsubj:C! .", "[ccomp “ nsubj:A.you 得_ 等/V 。 ”] nsubj:C! 说 。"},
  });
  t.say_one_of({
      {"nsubj:A! wait* [obl for nummod:N weeks] , [conj and obl:tmod:then nsubj:G- be* taller/J [obl than C!]] .",
       "nsubj:A! 等 了 [obj nummod:N clf:个 星期] ， [conj 后来 nsubj:G- [obl 比 C!] 还 高/J] 。"},
      {"[obl after nummod:N weeks] , nsubj:G- be* the amod:best/J thing/N [nmod in the garden] .",
       "[obl nummod:N clf:个 星期 之后] ， nsubj:G- 成 了 [obj [nmod 花园 里] [amod 最 好看 的] 东西] 。"},
      {"[obl after nummod:N days] , nsubj:G- begin* [xcomp to_ grow/V] .",
       "[obl nummod:N 天 之后] ， nsubj:G- 开始 [xcomp 长/V] 了_ 。"},
  });
  if (t.draw().chance(30)) happy_end(t, 'A');
  t.ask({"nsubj:what/U grew [obl in A'! garden] ?", "[obl [nmod A! 的] 花园 里] 种/V 着 obj:什么/U ？"},
        {"nsubj:G+ grew there .", "[obl 那里/U] 种/V 着 obj:G+ 。"}, 'G');
}

void atlas(StoryBuilder& t) {
  t.person('A');
  t.other_gender_person('C', 'A');
  t.country('N', 'K');
  t.country('M', 'L');
  while (t.name('M') == t.name('N')) t.country('M', 'L');
  t.any_thing('B');
  t.plain('S', sights());
  t.say_one_of({
      {"nsubj:A come* [obl from N] , [conj and nsubj:C come* [obl from M]] .",
       "nsubj:A 来自 obj:N ， [conj nsubj:C 来自 obj:M] 。"},
      {"nsubj:A live* [obl in N] , [conj and nsubj:C live* [obl in M]] .",
       "nsubj:A 住 [obl 在 N] ， [conj nsubj:C 住 [obl 在 M]] 。"},
      {"nsubj:A open* [obj an amod:old atlas] [conj and show* iobj:C [obj N [conj and M]]] .",
       "nsubj:A 打开 [obj [nummod 一 clf:本] amod:旧 地图册] ， [conj [obl 给 C] 看 obj:N [conj 和 M]] 。"},
  });
  t.say_one_of({
      {"[nsubj the capital [nmod of N!]] cop:is K , [conj and [nsubj the capital [nmod of M!]] cop:is L] .",
       "[nsubj [nmod N! 的] 首都] 是 K ， [conj [nsubj [nmod M! 的] 首都] 是 L] 。"},
      {"nsubj:K cop:is the capital/N [nmod of N!] , [conj and nsubj:L cop:is the capital/N [nmod of M!]] .",
       "nsubj:K 是 [nmod N! 的] 首都/N ， [conj nsubj:L 是 [nmod M! 的] 首都/N] 。"},
  });
  if (t.draw().chance(50)) {
    t.say("[ccomp “ aux:have nsubj:C.you ever been/V [obl to K!] ? ”] ask* nsubj:A! .",
          "[ccomp “ nsubj:C.you 去 过 obj:K! 吗 ？ ”] nsubj:A! 问 。");
    t.say_one_of({
        {"[ccomp “ only [obl on the map/N] , ”] say* nsubj:C! .",
         "[ccomp “ 只 [obl 在 地图 上] 去/V 过 。 ”] nsubj:C! 说 。"},
        {"[ccomp “ discourse:yes , [conj but nsubj:C.I always get xcomp:lost/J there] , ”] say* nsubj:C! .",
         "[ccomp “ 去/V 过 ， [conj 可是 nsubj:C.I 总是 [obl 在 那里/U] 迷路/V] 。 ”] nsubj:C! 说 。"},
        {"[ccomp “ not yet , ”] say* nsubj:C! .", "[ccomp “ 还 没有/V 。 ”] nsubj:C! 说 。"},
    });
  } else {
    t.say_one_of({
        {"[ccomp “ [nsubj the tea [nmod in K!]] cop:is better^good/J [obl than the tea [nmod in L!]] , ”] say* "
         "nsubj:A! .",
         "[ccomp “ [nsubj [nmod K! 的] 茶] [obl 比 [nmod L! 的] 茶] 好喝/J 。 ”] nsubj:A! 说 。"},
        {"[ccomp “ nsubj:K! has [obj a amod:wonderful S#] , ”] say* nsubj:A! .",
         "[ccomp “ nsubj:K! 有/V [obj nummod:一 clf:S^ [amod 很 美/J 的] S#] 。 ”] nsubj:A! 说 。"},
        {"[ccomp “ [nsubj nobody/U [nmod in K!]] is ever late/J , ”] say* nsubj:A! .",
         "[ccomp “ [nsubj [nmod K! 的] 人] 从来 不 迟到/V 。 ”] nsubj:A! 说 。"},
    });
    t.say_one_of({
        {"[ccomp “ aux:have nsubj:A.you ever tried/V [obj the soup [nmod in L!]] ? ”] ask* nsubj:C! .",
         "[ccomp “ nsubj:A.you 喝 过 [obj [nmod L! 的] 汤] 吗 ？ ”] nsubj:C! 问 。"},
        {"[ccomp “ obl:tmod:tomorrow nsubj:C.I aux:will show/V iobj:A.you obj:L! , ”] answer* nsubj:C! .",
         "[ccomp “ obl:tmod:明天 nsubj:C.I 带/V obj:A.you [xcomp 去/V [xcomp 看/V obj:L!]] 。 ”] nsubj:C! 回答 。"},
        {"[ccomp “ nsubj:C.I do not believe obj:that/U , ”] say* nsubj:C! .",
         "[ccomp “ nsubj:C.I 不 相信/V 。 ”] nsubj:C! 说 。"},
    });
  }
  if (t.draw().chance(30)) {
    t.say("nsubj:C! give* iobj:A! [obj B [nmod from L!]] .",
          "nsubj:C! 送 [obl 给 A!] obj:B ， [parataxis advmod:是 [obl 从 L!] 带来/V 的_] 。");
    ask_who_has(t, 'B', 'A');
  }
  t.ask({"what/U cop:is [nsubj the capital [nmod of N!]] ?", "[nsubj [nmod N! 的] 首都] 是 哪里/U ？"},
        {"[nsubj the capital [nmod of N!]] cop:is K! .", "[nsubj [nmod N! 的] 首都] 是 K! 。"}, 'K');
  t.ask({"[obl of det:which country] cop:is nsubj:L! the capital/N ?",
         "nsubj:L! 是 [nmod nmod:哪个/D 国家 的] 首都/N ？"},
        {"nsubj:L! cop:is the capital/N [nmod of M!] .", "nsubj:L! 是 [nmod M! 的] 首都/N 。"}, 'M');
}

}  // namespace qkv::world

// Stories at home: something is lost, given, spilled, argued over, or carried around.
#include <array>

#include "world/stories.h"

namespace qkv::world {
void lost_and_found(StoryBuilder& t) {
  t.time();
  t.person('A', anyone(t));
  t.any_thing('B');
  t.other_gender_person('C', 'A');
  t.pet('D');
  t.hiding_place('E', 'B');
  t.hiding_place('S', 'B');
  t.place('R', rooms());
  t.place('Q', rooms());
  do t.plain('F', trinkets());
  while (t.noun('F') == t.noun('B'));
  if (t.draw().chance(40)) introduce(t, 'A');
  t.say_one_of({
      {"&t , nsubj:A can* not find/V [obj A' B##] .",
       "&t ， nsubj:A 怎么 也 找不到/V [obj nmod:A.self [det 那/D clf:B^] B##] 。"},
      {"&t , nsubj:A lose* obj:B .", "&t ， nsubj:A 弄丢 了 obj:B 。"},
      {"&t , nsubj:A notice* [ccomp mark:that [nsubj A' B##] be* gone/J] .",
       "&t ， nsubj:A 发现 [ccomp [nsubj nmod:A.self [det 那/D clf:B^] B##] 不见/V 了_] 。"},
      {"&t , [nsubj A' B##] vanish* .", "&t ， [nsubj A'0 [det 那/D clf:B^] B##] 不见/V 了_ 。"},
  });
  const bool long_search = t.draw().chance(50);
  if (long_search || t.draw().chance(50)) {
    t.say_one_of({
        {"nsubj:A look* [obl @E E] , [conj but [nsubj B-] be* not there/R] .",
         "nsubj:A 看 了 compound:看/V [obj E @E] ， [conj 可是 nsubj:B# 不 在/V obj:那里/U] 。"},
        {"nsubj:A look* [obl @E E] [conj and find* [obj advmod:only F]] .",
         "nsubj:A 看 了 compound:看/V [obj E @E] ， [conj 只 找到 了 obj:F] 。"},
        {"nsubj:A search* [obj R [conj and Q]] , [conj but find* [obj advmod:only F]] .",
         "nsubj:A [obl:patient 把 R [conj 和 Q]] 都 找 compound:遍/V 了_ ， [conj 只 找到 了 obj:F] 。"},
    });
  }
  const bool pet = long_search || t.draw().chance(40);
  if (pet) {
    t.say_one_of({
        {"nsubj:A even ask* [obj D , [appos A' D=]] , [conj but nsubj:D! only yawn*] .",
         "nsubj:A advmod:甚至 问 了 [obj A'0 [det 那/D clf:D^] compound:D= D] ， [conj 可是 nsubj:D! 只 打 了 [obj "
         "clf:个 哈欠]] 。"},
        {"nsubj:A look* [obl at D , [appos A' D=]] , [conj and nsubj:D! look* advmod:out [obl of the window]] .",
         "nsubj:A 看 了 compound:看/V [obj A'0 [det 那/D clf:D^] compound:D= D] ， [conj nsubj:D! 却 看 着 [obj 窗 "
         "外]] 。"},
    });
  }
  if (t.draw().chance(60)) {
    t.say_one_of({
        {"nsubj:A ask* obj:C , [ccomp “ aux:have nsubj:C.you seen/V [obj A.my B#] ? ”]",
         "nsubj:A 问 obj:C ： [ccomp “ nsubj:C.you 看见 [obj A.my B#] 了_ 吗 ？ ”]"},
        {"nsubj:A tell* obj:C , [ccomp “ nsubj:A.I have lost/V [obj A.my B#] . ”]",
         "nsubj:A [obl 对 C] 说 ： [ccomp “ nsubj:A.I [obl:patient 把 B#] 弄丢 了_ 。 ”]"},
    });
    t.say_one_of({
        {"[ccomp “ advmod:when aux:did nsubj:A.you last/R use/V obj:B~ ? ”] ask* nsubj:C! .",
         "nsubj:C! 问 ： [ccomp “ [csubj nsubj:A.you [obl:tmod 上次] 用/V obj:B~] 是 什么时候/N ？ ”]"},
        {"[ccomp “ nsubj:things always hide/V [advcl advmod:when nsubj:A.you need obj:them/U] , ”] say* nsubj:C! .",
         "[ccomp “ nsubj:东西 总是 [obl 在 [acl nsubj:A.you 需要 的] 时候] 躲 compound:起来/V 。 ”] "
         "nsubj:C! 说 。"},
        {"[ccomp “ nsubj:C.I have not seen/V obj:B~ , ”] say* nsubj:C! , [advcl looking/V [obl @E E]] .",
         "[ccomp “ nsubj:C.I 没 看见 过 obj:B~ 。 ”] nsubj:C! [advcl 看 着 [obj E @E]] 说 。"},
    });
  }
  const bool thief = pet && t.draw().chance(40);
  if (thief) {
    t.say_one_of({
        {"advmod:then nsubj:C find* obj:B~ [obl @S S] : [parataxis nsubj:D! aux:have* hidden/V obj:B~ there] .",
         "后来 nsubj:C [obl 在 S @S] 找到 了 obj:B~ ： [parataxis 原来 advmod:是 nsubj:D! [obl:patient 把 B~] 藏 [obl "
         "在 那里/U] 的_] 。"},
        {"[nsubj the thief] be* D! , [acl:relcl nsubj:who aux:have* hidden/V obj:B- [obl @S S]] .",
         "nsubj:小偷 原来 是 D! ， [conj nsubj:D~ [obl:patient 把 B#] 藏 [obl 在 S @S] 了_] 。"},
    });
  } else {
    t.say_one_of({
        {"[obl at last/J] , nsubj:C find* obj:B- [obl @S S] .", "终于 ， nsubj:C [obl 在 S @S] 找到 了 obj:B- 。"},
        {"[nsubj B- [acl:relcl [obj that/U] nsubj:A aux:have* lost/V]] be* @S S .",
         "[nsubj [acl nsubj:A 弄丢 的] B-] 就 在/V [obj S @S] 。"},
        {"nsubj:C find* obj:B- [obl @S S [nmod @R R]] .", "nsubj:C [obl 在 [nmod R 的] S @S] 找到 了 obj:B- 。"},
    });
  }
  t.say_one_of({
      {"[ccomp “ nsubj:A.I never look [obl @S S] , ”] say* nsubj:A! .",
       "[ccomp “ nsubj:A.I 从来 不 看 [obj S @S] 。 ”] nsubj:A! 说 。"},
      {"[ccomp “ of course/N ! ”] nsubj:A! say* .", "[ccomp “ 当然/J ！ ”] nsubj:A! 说 。"},
      {"nsubj:A be* so happy/J [advcl mark:that nsubj:A~ kiss* obj:B-] .",
       "nsubj:A 高兴/J 得 [xcomp 亲/V 了 compound:亲/V obj:B-] 。"},
      {"nsubj:A thank* obj:C! [conj and put* obj:B- [obl into A' bag/N]] .",
       "nsubj:A 谢 了 compound:谢/V obj:C! ， [conj [obl:patient 把 B-] 放 compound:进/V 了 [obj [nmod A.self 的] 包]] "
       "。"},
      {"nsubj:A thank* obj:C! .", "nsubj:A 向 obl:C! 道 了 obj:谢 。"},
  });
  gesture(t, 'A');
  if (t.draw().chance(12)) comic_aside(t);
  if (t.draw().chance(35)) happy_end(t, 'A');
  t.ask({"obj:what/U aux:did nsubj:A! lose ?", "nsubj:A! 弄丢 了 obj:什么/U ？"},
        {"nsubj:A! lost obj:B! .", "nsubj:A! 弄丢 了 obj:B! 。"}, 'B');
  t.ask({"where/R cop:was nsubj:B! ?", "nsubj:B! 在/V obj:哪里/U ？"},
        {"nsubj:B~ cop:was @S S! .", "nsubj:B~ 在/V [obj S! @S] 。"}, 'S');
}

void gift(StoryBuilder& t) {
  t.person('A', anyone(t));
  t.other_gender_person('C', 'A');
  t.same_gender_person('E', 'C');
  t.any_thing('B');
  t.place('P', shops());
  t.food('F');
  t.number('N', t.draw().between(3, 60));
  if (t.draw().chance(25)) introduce(t, 'C');
  t.say_one_of({
      {"expl:it/U be* C'! birthday/N , [conj and nsubj:A want* [xcomp to_ give/V iobj:C~ obj:B]] .",
       "nsubj:这天 是 C'! 生日/N ， [conj nsubj:A 想/V [ccomp 送/V iobj:C~ obj:B]] 。"},
      {"nsubj:A want* [xcomp to_ give/V iobj:C! obj:B] .", "nsubj:A 想/V [ccomp 送/V iobj:C! obj:B] 。"},
      {"nsubj:C! like* obj:B% , [parataxis so/R nsubj:A plan* [xcomp to_ give/V iobj:C~ obj:B]] .",
       "nsubj:C! 喜欢 obj:B% ， [conj 所以 nsubj:A 打算/V [ccomp 送/V iobj:C~ obj:B]] 。"},
  });
  t.say_one_of({
      {"nsubj:A buy* obj:B~ [obl @P P] [obl for nummod:N coins] .",
       "nsubj:A [obl 在 P @P] 花 了 [obj nummod:N clf:块 钱] [conj 买 compound:下/V obj:B~] 。"},
      {"nsubj:A find* obj:B~ [obl @P P] .", "nsubj:A [obl 在 P @P] 找到 了 obj:B~ 。"},
      {"nsubj:A go* [obl to P] [conj and choose* obj:B~ very carefully] .",
       "nsubj:A 去 了 obj:P ， [conj advmod:仔细 地 挑 compound:好/V 了 obj:B~] 。"},
  });
  gesture(t, 'A');
  t.say_one_of({
      {"nsubj:A wrap* obj:B~ [obl in amod:blue paper] , [conj but nsubj:anyone/U can* see/V [ccomp mark:that nsubj:B~ "
       "be* a B#]] .",
       "nsubj:A [obl 用 amod:蓝 纸] [obl:patient 把 B~] 包 compound:起来/V ， [conj 可是 nsubj:谁/U 都 看得出/V [ccomp "
       "nsubj:那/U 是 [nummod 一 clf:B^] B#]] 。"},
      {"nsubj:A hide* obj:B~ [obl behind A'~ back/N] .", "nsubj:A [obl:patient 把 B~] 藏 [obl 在 身后] 。"},
      {"nsubj:A can* not wait/V , [conj and run* [obl:tmod det:all det:the way]] .",
       "nsubj:A 等不及/V 了_ ， [conj advmod:一路 跑 着 xcomp:去/V] 。"},
  });
  t.say_one_of({
      {"nsubj:A! say* , [ccomp “ amod:happy birthday/N , vocative:C! ! ”]",
       "nsubj:A! 说 ： [ccomp “ vocative:C! ， nsubj:生日 快乐/J ！ ”]"},
      {"nsubj:A! say* , [ccomp “ nsubj:this/U cop:is for C.you . ”]",
       "nsubj:A! 说 ： [ccomp “ nsubj:这/U 是 送/V [obj C.you] 的_ 。 ”]"},
      {"nsubj:A! give* obj:B~ [obl to C!] .", "nsubj:A! [obl:patient 把 B~] 送 [obl 给 C!] 了_ 。"},
  });
  gesture(t, 'C');
  t.say_one_of({
      {"[ccomp “ nsubj:C.I have always wanted/V obj:B? , ”] say* [nsubj C! , [acl:relcl nsubj:who already have* "
       "obj:three/M]] .",
       "[ccomp “ nsubj:C.I 一直 想/X 要/V obj:B? 。 ”] nsubj:C! 说 ， [parataxis 其实 nsubj:C~ 已经 有/V [obj "
       "nummod:三 B^] 了_] 。"},
      {"[ccomp “ nsubj:B~ cop:is just what/U [acl:relcl nsubj:C.I wanted/V] , ”] say* nsubj:C! , [conj and hug* "
       "obj:A!] "
       ".",
       "[ccomp “ nsubj:这/U 正 是/V [ccomp nsubj:C.I 想要 的_] 。 ”] nsubj:C! 说 着 ， [conj 拥抱/V 了 obj:A!] 。"},
      {"nsubj:C! be* so happy/J [advcl mark:that nsubj:C~ dance* [obl around the table]] .",
       "nsubj:C! 高兴/J 得 [xcomp [obl case:围着 桌子] 跳 compound:起/V obj:舞 compound:来/V] 。"},
      {"nsubj:C! laugh* [conj and give* iobj:A! obj:F [obl in return]] .",
       "nsubj:C! 笑 了_ ， [conj 也 送 [obl 给 A!] obj:F] 。"},
  });
  if (t.draw().chance(40)) {
    t.say_one_of({
        {"[obl:tmod nummod:one week] later , nsubj:C! give* obj:B- [obl to E!] .",
         "[obl:tmod nummod:一 clf:个 星期 以后] ， nsubj:C! [obl:patient 把 B-] 送 [obl 给 E!] 了_ 。"},
        {"advmod:unfortunately , nsubj:C! forget* obj:B- [obl @P P] , [parataxis where/R nsubj:E! find* obj:B~] .",
         "advmod:可惜 ， nsubj:C! [obl:patient 把 B-] 忘 [obl 在 P @P] 了_ ， [parataxis obl:tmod:后来 advmod:被/P "
         "nsubj:E! 捡到/V 了_] 。"},
    });
    if (t.draw().chance(50)) {
      t.say(
          "nsubj:E! know* [ccomp mark:that nsubj:A! love* obj:B%] , [parataxis advmod:so nsubj:E~ give* obj:B~ [obl to "
          "A!]] .",
          "nsubj:E! 知道 [ccomp nsubj:A! 喜欢 obj:B%] ， [conj 于是 [obl:patient 把 B~] 送 [obl 给 A!] 了_] 。");
      t.say_one_of({
          {"[ccomp “ nsubj:A.I know obj:this/U , ”] say* nsubj:A! .",
           "[ccomp “ nsubj:这/U nsubj:A.I 认识/V 。 ”] nsubj:A! 说 。"},
          {"[ccomp “ advmod:how strange/J ! ”] say* nsubj:A! .", "[ccomp “ 真 奇怪/J ！ ”] nsubj:A! 说 。"},
      });
      ask_who_has(t, 'B', 'A');
    } else {
      ask_who_has(t, 'B', 'E');
    }
  } else {
    ask_who_has(t, 'B', 'C');
  }
  t.ask({"obj:what/U aux:did nsubj:A! give/V [obl to C!] ?", "nsubj:A! 送 了 obj:什么/U [obl 给 C!] ？"},
        {"nsubj:A! gave obj:B+ [obl to C!] .", "nsubj:A! 送 了 obj:B+ [obl 给 C!] 。"}, 'B');
}

void tea_visit(StoryBuilder& t) {
  t.time();
  t.person('A', anyone(t));
  t.other_gender_person('C', 'A');
  t.plain('T', t.draw().chance(60) ? hot_drinks() : cold_drinks());
  t.thing('B', readables(), thing_qualities());
  t.pet('D');
  t.thing('F', baked(), baked_qualities());
  const bool alone = t.draw().chance(50);
  t.say_one_of({
      {"&t , nsubj:A visit* obj:C! .", "&t ， nsubj:A 去 [xcomp 看望 obj:C!] 。"},
      {"&t , nsubj:A knock* [obl at C'! door] .", "&t ， nsubj:A 敲 了 compound:敲/V [obj C'! 门] 。"},
      {"&t , nsubj:C! invite* obj:A! [obl to tea] .",
       "&t ， nsubj:C! 请/V obj:A! [xcomp [compound 来/V] 喝/V obj:茶] 。"},
  });
  t.say_one_of({
      {"nsubj:C! bring* obj:T [conj and put* obj:T~ [obl beside B]] .",
       "nsubj:C! 端 compound:来/V 了 obj:T ， [conj 放 [obl 在 B 旁边]] 。"},
      {"[nsubj B] lie* [obl on the table] , [conj and nsubj:C! put* obj:T [obl beside B~]] .",
       "[obl 桌子 上] 放/V 着 nsubj:B ， [conj nsubj:C! [obl 在 B~ 旁边] 放 了 obj:T] 。"},
      {"nsubj:A! aux:be* reading/V obj:B , [conj and nsubj:C! pour* obj:T [obl for A~]] .",
       "nsubj:A! 正在 读 obj:B ， [conj nsubj:C! [obl 给 A~] 倒 了 obj:T] 。"},
  });
  gesture(t, 'A');
  if (t.draw().chance(40)) {
    t.say_one_of({
        {"[ccomp “ nsubj:T- cop:is hot/J , [parataxis so/R be/X careful/J] , ”] nsubj:C! say* .",
         "[ccomp “ nsubj:T- 很 烫/J ， [parataxis 小心/V] 。 ”] nsubj:C! 说 。"},
        {"[ccomp “ aux:would nsubj:A.you like/V obj:F ? ”] nsubj:C! ask* .",
         "[ccomp “ nsubj:A.you 要/V obj:F 吗 ？ ”] nsubj:C! 问 。"},
    });
  }
  t.say_one_of({
      {"advmod:suddenly [nsubj D , [appos C'! D=] ,] jump* [obl onto the table] , [conj and nsubj:T- spill*] .",
       "突然 ， [nsubj C'!0 [det 那/D clf:D^] compound:D= D] 跳 compound:上/V 了 obj:桌子 ， [conj [obl:patient 把 T-] "
       "打翻/V 了_] 。"},
      {"nsubj:A! sneeze* very loudly , [conj and nsubj:T- spill*] .",
       "nsubj:A! 打 了 [obj nummod:一 clf:个 [amod 很 响/J 的] 喷嚏] ， [conj [obl:patient 把 T-] 震/V compound:翻/V "
       "了_] 。"},
      {"nsubj:A! wave* [obj A'~ arms] [conj and knock* compound:prt:over obj:T-] .",
       "nsubj:A! [advcl advmod:一 挥/V obj:手] ， [conj [obl:patient 把 T-] 碰 compound:翻/V 了_] 。"},
  });
  t.say("expl:there/U be*/V nsubj:T% everywhere , [conj and nsubj:B- be* wet/J] .",
        "[dislocated 到处/N] 都 是/V obj:T% ， [conj nsubj:B- 也 湿/J 了_] 。");
  // One "it" with two possible antecedents.
  t.say_one_of({
      {"[ccomp “ nsubj:B~ cop:was boring/J advmod:anyway , ”] say* nsubj:A! , [advcl looking/V [obl at B-]] .",
       "[ccomp “ nsubj:B~ advmod:反正 也 很 无聊/J 。 ”] nsubj:A! [advcl 看 着 obj:B-] 说 。"},
      {"[ccomp “ nsubj:T~ cop:was not very good/J advmod:anyway , ”] say* nsubj:A! , [advcl looking/V [obl at T-]] .",
       "[ccomp “ nsubj:T~ advmod:反正 也 不 好喝/J 。 ”] nsubj:A! [advcl 看 着 obj:T-] 说 。"},
      {"[ccomp “ nsubj:B~ cop:is A.my favourite/J ! ”] cry* nsubj:A! , [advcl holding/V compound:prt:up obj:B-] .",
       "[ccomp “ nsubj:B~ 是 A.my 宝贝/N 啊 ！ ”] nsubj:A! [advcl 举 着 obj:B-] 喊 。"},
      {"[ccomp “ nsubj:B~ cop:is only a B# , ”] say* nsubj:C! politely .",
       "[ccomp “ nsubj:这/U advmod:不过 是 [nummod 一 clf:B^] B# 。 ”] nsubj:C! [advmod 客气] 地 说 。"},
  });
  gesture(t, 'C');
  t.say_one_of({
      {"nsubj:C! dry* obj:B- [obl beside the stove] [conj and bring* obj:F] .",
       "nsubj:C! [obl:patient 把 B-] [obl 在 炉子 旁边] 烤 compound:干/J ， [conj 又 端 compound:来/V 了 obj:F] 。"},
      {"nsubj:C! bring* obj:F , [conj and soon nsubj:everybody/U be* happy/J again] .",
       "nsubj:C! 端 compound:来/V 了 obj:F ， [conj nsubj:大家/U [advmod 很快] 又 高兴/J compound:起来/V 了_] 。"},
      {"nsubj:C! laugh* [advcl until [nsubj the cups] shake*] .",
       "nsubj:C! 笑 得 [xcomp nsubj:杯子 都 晃/V compound:起来/V 了_] 。"},
  });
  if (alone) happy_end(t, 'A');
  t.ask({"nsubj:what/U was wet/J ?", "nsubj:什么/U 湿/J 了_ ？"}, {"nsubj:B! was wet/J .", "nsubj:B! 湿/J 了_ 。"},
        'B');
  t.ask({"nsubj:what/U spilled ?", "nsubj:什么/U 洒/V 了_ ？"}, {"nsubj:T! spilled .", "nsubj:T! 洒/V 了_ 。"}, 'T');
}

void quarrel(StoryBuilder& t) {
  t.time();
  t.person('A');
  if (t.draw().chance(50)) {
    t.same_gender_person('C', 'A');
  } else {
    t.other_gender_person('C', 'A');
  }
  t.pair('G', 'A', 'C');
  t.any_thing('B');
  t.food('F');
  t.plain('S', dishes());
  t.number('N', t.draw().between(2, 9));
  t.say_one_of({
      {"&t , nsubj:G quarrel* [obl about B] .", "&t ， nsubj:G [obl 为了 B] 吵 compound:起来/V 了_ 。"},
      {"&t , nsubj:G see* obj:B , [conj and nsubj:everyone/U want* obj:B~] .",
       "&t ， nsubj:G 看见 了 obj:B ， [conj nsubj:谁/U 都 想/X 要/V obj:B~] 。"},
      {"nsubj:G be* amod:good friends/N , [conj but obl:tmod:today nsubj:G~ quarrel* [obl about B]] .",
       "nsubj:G 是 [amod 好] 朋友/N ， [conj 可是 [obl:tmod 今天] nsubj:G~ [obl 为了 B] 吵架/V 了_] 。"},
  });
  t.say_one_of({
      {"[ccomp “ nsubj:B~ belongs [obl to A.me] , ”] say* nsubj:A! .",
       "nsubj:A! 说 ： [ccomp “ nsubj:B~ 是 A.me 的 。 ”]"},
      {"[ccomp “ nsubj:A.I saw obj:B~ advmod:first , ”] say* nsubj:A! .",
       "nsubj:A! 说 ： [ccomp “ advmod:是 nsubj:A.I 先 看见 obj:B~ 的_ 。 ”]"},
  });
  gesture(t, 'A');
  t.say_one_of({
      {"[ccomp “ discourse:no , nsubj:B~ belongs [obl to C.me] ! ”] say* nsubj:C! .",
       "nsubj:C! 说 ： [ccomp “ discourse:不/I ， nsubj:B~ 是 C.me 的 ！ ”]"},
      {"[ccomp “ nsubj:A.you do not even know [ccomp obj:what/U nsubj:B~ is/V] , ”] say* nsubj:C! .",
       "nsubj:C! 说 ： [ccomp “ nsubj:A.you [ccomp advmod:连 nsubj:B~ 是/V obj:什么/U] 都 不 知道/V 。 ”]"},
      {"[ccomp “ nsubj:A.you always say/V obj:that/U , ”] answer* nsubj:C! .",
       "nsubj:C! 回答 ： [ccomp “ nsubj:A.you 总是 这么 说 。 ”]"},
  });
  t.say_one_of({
      {"nsubj:G~ do* not speak/V [obl for nummod:N hours] .", "nsubj:G~ [obl:tmod nummod:N clf:个 小时] 没 说话/V 。"},
      {"[obl for nummod:N days] nsubj:G~ only speak* [obl to the cat] .",
       "nsubj:G~ [obl:tmod nummod:N 天] 只 [obl 跟 猫] 说话/V 。"},
  });
  gesture(t, 'C');
  t.say_one_of({
      {"advmod:then nsubj:C! bring* iobj:A! obj:S .", "后来 ， nsubj:C! [obl 给 A!] 端 compound:来/V 了 obj:S 。"},
      {"advmod:then expl:it/U begin* [xcomp to_ rain/V] , [conj and nsubj:A! have* [obj the amod:only umbrella]] .",
       "后来 下/V compound:起/V 了 obj:雨 ， [conj 只有/R nsubj:A! 有/V obj:伞] 。"},
      {"advmod:then nsubj:A! share* obj:F [obl with C!] .",
       "后来 ， nsubj:A! [obl:patient 把 F] 分 [obl 给 C!] [obj 一半] 。"},
  });
  t.say_one_of({
      {"[ccomp “ nsubj:C.I cop:am sorry/J , ”] say* nsubj:C! .", "[ccomp “ 对不起/I 。 ”] nsubj:C! 说 。"},
      {"[ccomp “ aux:can nsubj:G.we be/X friends/N again ? ”] ask* nsubj:C! .",
       "[ccomp “ nsubj:G.we 还 能 做/V obj:朋友 吗 ？ ”] nsubj:C! 问 。"},
      {"[ccomp “ nsubj:B~ cop:is not even pretty/J , ”] say* nsubj:C! .",
       "[ccomp “ nsubj:B~ 其实 也 不 好看/J 。 ”] nsubj:C! 说 。"},
  });
  t.say_one_of({
      {"[ccomp “ nsubj:A.I aux:was wrong/J advmod:too , ”] say* nsubj:A! , [conj and nsubj:G~ laugh*] .",
       "[ccomp “ nsubj:A.I 也 错/V 了_ 。 ”] nsubj:A! 说 ， [conj nsubj:G~ 都 笑 了_] 。"},
      {"nsubj:A! smile* , [conj and nsubj:G~ shake* obj:hands] .",
       "nsubj:A! 笑 了_ ， [conj nsubj:G~ 握 了 compound:握/V obj:手] 。"},
  });
  if (t.draw().chance(50)) {
    t.say("advmod:now nsubj:A! has obj:B- [obl on Mondays] , [conj and nsubj:C! has obj:B~ [obl on Tuesdays]] .",
          "obl:tmod:现在 ， nsubj:B- obl:tmod:星期一 归/V obj:A! ， [conj obl:tmod:星期二 归 obj:C!] 。");
    t.ask({"nsubj:who/U has obj:B! [obl on Mondays] ?", "nsubj:B! obl:tmod:星期一 归/V obj:谁/U ？"},
          {"nsubj:A! has obj:B~ [obl on Mondays] .", "nsubj:B~ obl:tmod:星期一 归/V obj:A! 。"}, 'A');
    t.ask({"nsubj:who/U has obj:B! [obl on Tuesdays] ?", "nsubj:B! obl:tmod:星期二 归/V obj:谁/U ？"},
          {"nsubj:C! has obj:B~ [obl on Tuesdays] .", "nsubj:B~ obl:tmod:星期二 归/V obj:C! 。"}, 'C');
  } else {
    t.say("nsubj:A! keep* obj:B- , [conj but nsubj:C! can* use/V obj:B~ [obl on Sundays]] .",
          "nsubj:B- 留/V [obl 给 A!] ， [conj 但是 nsubj:C! obl:tmod:星期天 可以 用/V obj:B~] 。");
    ask_who_has(t, 'B', 'A');
  }
  if (t.draw().chance(15)) comic_aside(t);
}

}  // namespace qkv::world

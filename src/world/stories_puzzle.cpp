// Stories that need reasoning: a mystery, a pronoun with two possible antecedents, and tracking who has what.
#include <array>

#include "world/stories.h"

namespace qkv::world {
namespace {

// Requirements of each line: people A and C of the same gender, and things by class.
struct Riddle {
  Line line;
  Line question, answer;
  char role;
};

constexpr Riddle kPeople[] = {
    {{"nsubj:A thank* obj:C [advcl because nsubj:C~ aux:have* helped/V] .",
      "nsubj:A 感谢 obj:C ， [advcl 因为 nsubj:C~ 帮/V 了 obj:忙] 。"},
     {"nsubj:who/U helped ?", "nsubj:谁/U 帮/V 了 obj:忙 ？"},
     {"nsubj:C! helped .", "nsubj:C! 帮/V 了 obj:忙 。"},
     'C'},
    {{"nsubj:A thank* obj:C [advcl because nsubj:A~ be* polite/J] .",
      "nsubj:A 感谢 obj:C ， [advcl 因为 nsubj:A~ 很 有礼貌/J] 。"},
     {"nsubj:who/U cop:was polite/J ?", "nsubj:谁/U 很 有礼貌/J ？"},
     {"nsubj:A! cop:was polite/J .", "nsubj:A! 很 有礼貌/J 。"},
     'A'},
    {{"nsubj:A ask* obj:C [obl for help] [advcl because nsubj:A~ can* not open/V [obj the jar]] .",
      "nsubj:A 请/V obj:C [xcomp 帮忙/V] ， [advcl 因为 nsubj:A~ 打不开/V obj:罐子] 。"},
     {"nsubj:who/U aux:could not open [obj the jar] ?", "nsubj:谁/U 打不开/V obj:罐子 ？"},
     {"nsubj:A! aux:could not open/V obj:it/U .", "nsubj:A! 打不开/V 。"},
     'A'},
    {{"nsubj:A ask* obj:C [obl for help] [advcl because nsubj:C~ be* very strong/J] .",
      "nsubj:A 请/V obj:C [xcomp 帮忙/V] ， [advcl 因为 [nsubj nmod:C~ 力气] 很 大/J] 。"},
     {"nsubj:who/U cop:was strong/J ?", "[nsubj nmod:谁/U 力气] 大/J ？"},
     {"nsubj:C! cop:was strong/J .", "[nsubj nmod:C! 力气] 大/J 。"},
     'C'},
    {{"nsubj:A lend* iobj:C [obj an umbrella] [advcl because nsubj:A~ have* obj:two/M] .",
      "nsubj:A [obl:patient 把 雨伞] 借 [obl 给 C] ， [advcl 因为 nsubj:A~ 有/V [obj nummod:两 把/N]] 。"},
     {"nsubj:who/U had [obj nummod:two umbrellas] ?", "nsubj:谁/U 有 [obj nummod:两 clf:把 雨伞] ？"},
     {"nsubj:A! did .", "nsubj:A! 有 。"},
     'A'},
    {{"nsubj:A lend* iobj:C [obj an umbrella] [advcl because nsubj:C~ have* obj:none/U] .",
      "nsubj:A [obl:patient 把 雨伞] 借 [obl 给 C] ， [advcl 因为 nsubj:C~ 没 带/V] 。"},
     {"nsubj:who/U had [obj no umbrella] ?", "nsubj:谁/U 没 带/V obj:雨伞 ？"},
     {"nsubj:C! had obj:none/U .", "nsubj:C! 没 带/V 。"},
     'C'},
    {{"nsubj:A can* not see/V [obj the stage] [advcl because nsubj:C stand* [obl in front [nmod of A~]]] .",
      "nsubj:A 看不见/V obj:舞台 ， [advcl 因为 nsubj:C 站/V [obl 在 nmod:A~ 前面/N]] 。"},
     {"nsubj:who/U stood [obl in front] ?", "nsubj:谁/U 站/V [obl 在 前面/N] ？"},
     {"nsubj:C! did .", "advmod:是 C! 。"},
     'C'},
    {{"nsubj:A visit* obj:C [advcl because nsubj:C~ be* ill/J] .",
      "nsubj:A 去 [xcomp 看望 obj:C] ， [advcl 因为 nsubj:C~ 病/V 了_] 。"},
     {"nsubj:who/U cop:was ill/J ?", "nsubj:谁/U 病/V 了_ ？"},
     {"nsubj:C! cop:was ill/J .", "nsubj:C! 病/V 了_ 。"},
     'C'},
    {{"nsubj:A visit* obj:C [advcl because nsubj:A~ be* lonely/J] .",
      "nsubj:A 去 [xcomp 看望 obj:C] ， [advcl 因为 nsubj:A~ 很 寂寞/J] 。"},
     {"nsubj:who/U cop:was lonely/J ?", "nsubj:谁/U 很 寂寞/J ？"},
     {"nsubj:A! cop:was lonely/J .", "nsubj:A! 很 寂寞/J 。"},
     'A'},
    {{"nsubj:A wake* obj:C [advcl because nsubj:C~ snore*] .",
      "nsubj:A [obl:patient 把 C] 叫醒/V 了_ ， [advcl 因为 nsubj:C~ [advmod 在] 打呼噜/V] 。"},
     {"nsubj:who/U snored ?", "nsubj:谁/U [advmod 在] 打呼噜/V ？"},
     {"nsubj:C! did .", "advmod:是 C! 。"},
     'C'},
    {{"nsubj:A wake* obj:C [advcl because nsubj:A~ be* afraid/J [obl of the storm]] .",
      "nsubj:A [obl:patient 把 C] 叫醒/V 了_ ， [advcl 因为 nsubj:A~ 害怕/V obj:暴风雨] 。"},
     {"nsubj:who/U cop:was afraid/J ?", "nsubj:谁/U 害怕/V 了_ ？"},
     {"nsubj:A! cop:was afraid/J .", "nsubj:A! 害怕/V 了_ 。"},
     'A'},
    {{"nsubj:A phone* obj:C [advcl because nsubj:A~ be* lost/J] .",
      "nsubj:A [obl 给 C] 打/V obj:电话 ， [advcl 因为 nsubj:A~ 迷路/V 了_] 。"},
     {"nsubj:who/U cop:was lost/J ?", "nsubj:谁/U 迷路/V 了_ ？"},
     {"nsubj:A! cop:was lost/J .", "nsubj:A! 迷路/V 了_ 。"},
     'A'},
    {{"nsubj:A phone* obj:C [advcl because nsubj:C~ know* [obj the way]] .",
      "nsubj:A [obl 给 C] 打/V obj:电话 ， [advcl 因为 nsubj:C~ 认识/V obj:路] 。"},
     {"nsubj:who/U knew [obj the way] ?", "nsubj:谁/U 认识/V obj:路 ？"},
     {"nsubj:C! did .", "advmod:是 C! 。"},
     'C'},
    {{"nsubj:A follow* obj:C [advcl because nsubj:C~ have* [obj a map]] .",
      "nsubj:A 跟/V 着 obj:C ， [advcl 因为 nsubj:C~ 有/V obj:地图] 。"},
     {"nsubj:who/U had [obj a map] ?", "nsubj:谁/U 有/V obj:地图 ？"},
     {"nsubj:C! did .", "advmod:是 C! 。"},
     'C'},
    {{"nsubj:A follow* obj:C [advcl because nsubj:A~ be* curious/J] .",
      "nsubj:A 跟/V 着 obj:C ， [advcl 因为 nsubj:A~ 很 好奇/J] 。"},
     {"nsubj:who/U cop:was curious/J ?", "nsubj:谁/U 很 好奇/J ？"},
     {"nsubj:A! cop:was curious/J .", "nsubj:A! 很 好奇/J 。"},
     'A'},
    {{"nsubj:A comfort* obj:C [advcl because nsubj:C~ be* sad/J] .",
      "nsubj:A 安慰 obj:C ， [advcl 因为 nsubj:C~ 很 难过/J] 。"},
     {"nsubj:who/U cop:was sad/J ?", "nsubj:谁/U 很 难过/J ？"},
     {"nsubj:C! cop:was sad/J .", "nsubj:C! 很 难过/J 。"},
     'C'},
    {{"nsubj:A envy* obj:C [advcl because nsubj:C~ be* famous/J] .",
      "nsubj:A 羡慕 obj:C ， [advcl 因为 nsubj:C~ 很 有名/J] 。"},
     {"nsubj:who/U cop:was famous/J ?", "nsubj:谁/U 很 有名/J ？"},
     {"nsubj:C! cop:was famous/J .", "nsubj:C! 很 有名/J 。"},
     'C'},
    {{"nsubj:A avoid* obj:C [advcl because nsubj:A~ be* shy/J] .",
      "nsubj:A 躲/V 着 obj:C ， [advcl 因为 nsubj:A~ 很 害羞/J] 。"},
     {"nsubj:who/U cop:was shy/J ?", "nsubj:谁/U 很 害羞/J ？"},
     {"nsubj:A! cop:was shy/J .", "nsubj:A! 很 害羞/J 。"},
     'A'},
    {{"nsubj:A avoid* obj:C [advcl because nsubj:C~ be* angry/J] .",
      "nsubj:A 躲/V 着 obj:C ， [advcl 因为 nsubj:C~ 很 生气/J] 。"},
     {"nsubj:who/U cop:was angry/J ?", "nsubj:谁/U 很 生气/J ？"},
     {"nsubj:C! cop:was angry/J .", "nsubj:C! 很 生气/J 。"},
     'C'},
    {{"nsubj:A carry* [obj the basket] [obl for C] [advcl because nsubj:C~ be* tired/J] .",
      "nsubj:A [obl 替 C] 提/V 着 obj:篮子 ， [advcl 因为 nsubj:C~ 累/J 了_] 。"},
     {"nsubj:who/U cop:was tired/J ?", "nsubj:谁/U 累/J 了_ ？"},
     {"nsubj:C! cop:was tired/J .", "nsubj:C! 累/J 了_ 。"},
     'C'},
    {{"nsubj:A carry* [obj the basket] [obl for C] [advcl because nsubj:A~ be* strong/J] .",
      "nsubj:A [obl 替 C] 提/V 着 obj:篮子 ， [advcl 因为 nsubj:A~ 很 强壮/J] 。"},
     {"nsubj:who/U cop:was strong/J ?", "nsubj:谁/U 很 强壮/J ？"},
     {"nsubj:A! cop:was strong/J .", "nsubj:A! 很 强壮/J 。"},
     'A'},
};

constexpr Riddle kThings[] = {
    {{"nsubj:B do* not fit/V [obl into W] [advcl because nsubj:B~ be* too big/J] .",
      "nsubj:B 放不进/V obj:W ， [advcl 因为 nsubj:B~ 太 大/J 了_] 。"},
     {"nsubj:what/U cop:was too big/J ?", "nsubj:什么/U 太 大/J 了_ ？"},
     {"nsubj:B! cop:was too big/J .", "nsubj:B! 太 大/J 了_ 。"},
     'B'},
    {{"nsubj:B do* not fit/V [obl into W] [advcl because nsubj:W~ be* too small/J] .",
      "nsubj:B 放不进/V obj:W ， [advcl 因为 nsubj:W~ 太 小/J 了_] 。"},
     {"nsubj:what/U cop:was too small/J ?", "nsubj:什么/U 太 小/J 了_ ？"},
     {"nsubj:W! cop:was too small/J .", "nsubj:W! 太 小/J 了_ 。"},
     'W'},
    {{"nsubj:A put* obj:B [obl beside T] [advcl because nsubj:T~ be* still hot/J] .",
      "nsubj:A [obl:patient 把 B-] 放 [obl 在 T+ 旁边] ， [advcl 因为 nsubj:T~ 还 很 烫/J] 。"},
     {"nsubj:what/U cop:was hot/J ?", "nsubj:什么/U 很 烫/J ？"},
     {"nsubj:T! cop:was hot/J .", "nsubj:T! 很 烫/J 。"},
     'T'},
    {{"nsubj:A put* obj:L [obl beside T] [advcl because nsubj:L~ be* finished/J] .",
      "nsubj:A [obl:patient 把 L-] 放 [obl 在 T+ 旁边] ， [advcl 因为 nsubj:L~ 已经 读/V compound:完/V 了_] 。"},
     {"nsubj:what/U cop:was finished/J ?", "nsubj:什么/U 读/V compound:完/V 了_ ？"},
     {"nsubj:L! cop:was finished/J .", "nsubj:L! 读/V compound:完/V 了_ 。"},
     'L'},
    {{"nsubj:A take* obj:F [obl case:off the plate] [advcl because nsubj:F~ be* cold/J] .",
      "nsubj:A [obl:patient 把 F-] [obl 从 盘子 上] 拿/V compound:下来/V ， [advcl 因为 nsubj:F~ 凉/J 了_] 。"},
     {"nsubj:what/U cop:was cold/J ?", "nsubj:什么/U 凉/J 了_ ？"},
     {"nsubj:F! cop:was cold/J .", "nsubj:F! 凉/J 了_ 。"},
     'F'},
    {{"nsubj:D chase* obj:M [advcl because nsubj:D~ be* bored/J] .",
      "nsubj:D 追 obj:M ， [advcl 因为 nsubj:D~ 很 无聊/J] 。"},
     {"nsubj:who/U cop:was bored/J ?", "nsubj:谁/U 很 无聊/J ？"},
     {"nsubj:D! cop:was bored/J .", "nsubj:D! 很 无聊/J 。"},
     'D'},
    {{"nsubj:D chase* obj:M [advcl because nsubj:M~ aux:have* stolen/V [obj a sausage]] .",
      "nsubj:D 追 obj:M ， [advcl 因为 nsubj:M~ 偷/V 了 [obj [nummod 一 clf:根] 香肠]] 。"},
     {"nsubj:who/U stole [obj a sausage] ?", "nsubj:谁/U 偷/V 了 obj:香肠 ？"},
     {"nsubj:M! did .", "advmod:是 M! 。"},
     'M'},
    {{"nsubj:A give* obj:F [obl to D] [advcl because nsubj:D~ be* hungry/J] .",
      "nsubj:A [obl:patient 把 F-] 给/V 了 obj:D ， [advcl 因为 nsubj:D~ 饿/J 了_] 。"},
     {"nsubj:who/U cop:was hungry/J ?", "nsubj:谁/U 饿/J 了_ ？"},
     {"nsubj:D! cop:was hungry/J .", "nsubj:D! 饿/J 了_ 。"},
     'D'},
    {{"nsubj:A give* obj:F [obl to D] [advcl because nsubj:F~ be* too salty/J] .",
      "nsubj:A [obl:patient 把 F-] 给/V 了 obj:D ， [advcl 因为 nsubj:F~ 太 咸/J 了_] 。"},
     {"nsubj:what/U cop:was too salty/J ?", "nsubj:什么/U 太 咸/J 了_ ？"},
     {"nsubj:F! cop:was too salty/J .", "nsubj:F! 太 咸/J 了_ 。"},
     'F'},
    {{"nsubj:A sit* [obl on W] , [conj and nsubj:W~ break*] .",
      "nsubj:A 坐 [obl 在 W+ 上] ， [conj advmod:结果 nsubj:W~ 破/V 了_] 。"},
     {"nsubj:what/U broke ?", "nsubj:什么/U 破/V 了_ ？"},
     {"nsubj:W! broke .", "nsubj:W! 破/V 了_ 。"},
     'W'},
    {{"nsubj:A pour* obj:T [obl over L] , [conj and nsubj:L~ be* wet/J] .",
      "nsubj:A [obl:patient 把 T-] 洒 [obl 在 了 L+ 上] ， [conj nsubj:L~ 湿/J 了_] 。"},
     {"nsubj:what/U cop:was wet/J ?", "nsubj:什么/U 湿/J 了_ ？"},
     {"nsubj:L! cop:was wet/J .", "nsubj:L! 湿/J 了_ 。"},
     'L'},
    {{"nsubj:A hide* obj:B [obl under W] [advcl because nsubj:B~ be* a secret/N] .",
      "nsubj:A [obl:patient 把 B-] 藏 [obl 在 W+ 下面] ， [advcl 因为 nsubj:B~ 是 [nummod 一 clf:个] 秘密/N] 。"},
     {"nsubj:what/U cop:was a secret/N ?", "nsubj:什么/U 是 秘密/N ？"},
     {"nsubj:B! cop:was a secret/N .", "nsubj:B! 是 秘密/N 。"},
     'B'},
};

constexpr Noun kBags[] = {{"bag", "袋子", "个"},       {"box", "盒子", "个"},    {"suitcase", "箱子", "只"},
                          {"basket", "篮子", "个"},    {"drawer", "抽屉", "个"}, {"chest", "木箱", "个"},
                          {"schoolbag", "书包", "个"}, {"bucket", "水桶", "个"}, {"parcel", "包裹", "个"},
                          {"handbag", "手提包", "个"}};

}  // namespace

void riddle_of_it(StoryBuilder& t) {
  t.person('A', anyone(t));
  t.same_gender_person('C', 'A');
  t.other_gender_person('E', 'A');
  t.any_thing('B');
  t.thing('W', kBags, colours());
  while (t.noun('B')->en == t.noun('W')->en) t.any_thing('B');
  t.thing('L', readables(), thing_qualities());
  t.plain('T', hot_drinks());
  t.thing('F', baked(), baked_qualities());
  t.animal('D', pets());
  t.animal('M', wild_animals());
  t.place('P', rooms());
  const bool people = t.draw().chance(45);
  const auto tell = [&](std::span<const Riddle> riddles) {
    const Riddle& riddle = t.draw().pick(riddles);
    t.say(riddle.line.en, riddle.line.zh);
    t.ask(riddle.question, riddle.answer, riddle.role);
  };
  if (!people || t.draw().chance(40)) introduce(t, 'A');
  tell(people ? std::span<const Riddle>(kPeople) : kThings);
  if (t.draw().chance(50)) {
    t.say("[ccomp “ obj:what/U aux:are nsubj:A.you doing/V ? ”] ask* nsubj:E .",
          "[ccomp “ nsubj:A.you [advmod 在] 干/V obj:什么/U ？ ”] nsubj:E 问 。");
    t.say_one_of({
        {"[ccomp “ obj:nothing/U , ”] say* nsubj:A! .", "[ccomp “ 没/V obj:什么/U 。 ”] nsubj:A! 说 。"},
        {"[ccomp “ thinking/V , ”] say* nsubj:A! .", "[ccomp “ [advmod 在] 思考/V 。 ”] nsubj:A! 说 。"},
        {"[ccomp “ nsubj:A.I cop:am not sure/J , ”] answer* nsubj:A! .",
         "[ccomp “ nsubj:A.I 也 不 知道/V 。 ”] nsubj:A! 回答 。"},
        {"nsubj:A! only smile* .", "nsubj:A! 只 advmod:是 笑 了 compound:笑/V 。"},
    });
  } else {
    t.say_one_of({
        {"nsubj:E come* [obl into P] [conj and laugh*] .", "nsubj:E 走/V compound:进/V obj:P ， [conj 笑 了_] 。"},
        {"[nsubj E , [acl:relcl nsubj:who see* obj:everything/U] ,] say* obj:nothing/U .",
         "nsubj:E dislocated:什么/U 都 看见/V 了_ ， [conj 可是 dislocated:什么/U 也 没 说] 。"},
        {"[nsubj the news] be* soon all/R [obl over the village] .",
         "[nsubj 这 clf:个 消息] advmod:很快 传 compound:遍/V 了 obj:村子 。"},
    });
    t.say_one_of({
        {"[ccomp “ nsubj:today/N cop:is not A.my day/N , ”] say* nsubj:A! .",
         "[ccomp “ nsubj:今天 真 倒霉/J 。 ”] nsubj:A! 说 。"},
        {"[ccomp “ nsubj:everything/U is [advcl under control/N] , ”] say* nsubj:A! .",
         "[ccomp “ nsubj:一切/U 都 [advmod 很] 正常/J 。 ”] nsubj:A! 说 。"},
        {"nsubj:A! need* [obj a cup [nmod of tea]] .", "nsubj:A! 需要 [obj [nummod 一 clf:杯] 茶] 。"},
    });
  }
  if (t.draw().chance(20)) comic_aside(t);
}

void hide_and_seek(StoryBuilder& t) {
  t.person('A', anyone(t));
  t.other_gender_person('C', 'A');
  t.any_thing('B');
  t.any_thing('H');
  while (t.noun('B') == t.noun('H')) t.any_thing('H');
  t.hiding_place('S', 'B');
  t.hiding_place('U', 'B');
  t.place('R', rooms());
  t.place('Q', rooms());
  if (t.draw().chance(45)) {  // somebody looks in its old place
    t.say_one_of({
        {"nsubj:A put* obj:B [obl @S S] [conj and leave* [obj the room]] .",
         "nsubj:A [obl:patient 把 B+] 放 [obl 在 S @S] ， [conj 离开/V 了 obj:房间] 。"},
        {"nsubj:A hide* obj:B [obl @S S] [conj and go* [obl to R]] .",
         "nsubj:A [obl:patient 把 B+] 藏 [obl 在 S @S] ， [conj 去 了 obj:R] 。"},
    });
    t.say_one_of({
        {"[advcl while nsubj:A~ be* away/R] , nsubj:C find* obj:B- [conj and put* obj:B~ [obl @U U]] .",
         "[obl:tmod [acl nsubj:A~ 不 在/V 的] 时候] ， nsubj:C 发现 了 obj:B- ， [conj [obl:patient 把 B~] 放 [obl 在 "
         "U @U]] 。"},
        {"advmod:then nsubj:C come* [conj and hide* obj:B- [obl @U U]] .",
         "后来 nsubj:C 来/V 了_ ， [conj [obl:patient 把 B-] 藏 [obl 在 U @U]] 。"},
    });
    const bool returns = t.draw().chance(60);
    if (returns) {
      t.say("[advcl when nsubj:A! return*] , nsubj:A~ look* [obl @S S-] , [conj but nsubj:B- be* not there/R] .",
            "[obl:tmod [acl nsubj:A! 回来/V 的] 时候] ， nsubj:A~ 看 了 compound:看/V [obj S @S] ， [conj 可是 "
            "nsubj:B# 不 在/V obj:那里/U] 。");
      t.say_one_of({
          {"[ccomp “ aux:does [nsubj A.my B#] have/V obj:legs ? ”] ask* nsubj:A! .",
           "[ccomp “ advmod:难道 [nsubj A.my B#] 长/V obj:腿 了_ ？ ”] nsubj:A! 问 。"},
          {"nsubj:C! look* [obl at the ceiling] [conj and whistle*] .",
           "nsubj:C! 看 着 obj:天花板 ， [conj 吹/V compound:起/V 了 obj:口哨] 。"},
          {"[ccomp “ nsubj:ghosts ! ”] whisper* nsubj:A! .", "[ccomp “ 有/V obj:鬼 ！ ”] nsubj:A! [advmod 小声] 说 。"},
      });
    } else {
      t.ask({"where/R aux:will nsubj:A! look/V advmod:first ?", "nsubj:A! 会 先 advmod:去/V obj:哪里/U 找/V ？"},
            {"nsubj:A! aux:will look/V [obl @S S!] .", "nsubj:A! 会 先 看/V [obj S! @S] 。"}, 'S');
    }
    ask_where(t, 'B', 'U');
    t.ask({"nsubj:who/U moved obj:B! ?", "nsubj:谁/U 动/V 了 obj:B! ？"}, {"nsubj:C! did .", "advmod:是 C! 。"}, 'C');
    return;
  }
  // Things change owners and rooms; questions are about the final state.
  t.say_one_of({
      {"nsubj:A have* obj:B , [conj and nsubj:C have* obj:H] .", "nsubj:A 有 obj:B ， [conj nsubj:C 有 obj:H] 。"},
      {"nsubj:A pick* compound:prt:up obj:B , [conj and nsubj:C pick* compound:prt:up obj:H] .",
       "nsubj:A 拿起/V 了 obj:B ， [conj nsubj:C 拿起/V 了 obj:H] 。"},
  });
  char has_b = 'A', has_h = 'C';
  const int moves = t.draw().between(2, 5);
  bool laid_down = false;
  for (int i = 0; i < moves && !laid_down; ++i) {
    const bool first = t.draw().chance(50);
    char& holder = first ? has_b : has_h;
    t.alias('T', first ? 'B' : 'H');
    t.alias('F', holder);
    t.alias('G', holder == 'A' ? 'C' : 'A');
    switch (t.draw().below(i + 1 == moves ? 4 : 3)) {
      case 0:
        t.say_one_of({
            {"nsubj:F! give* obj:T- [obl to G!] .", "nsubj:F! [obl:patient 把 T-] 给/V 了 obj:G! 。"},
            {"nsubj:F! hand* iobj:G! obj:T- .", "nsubj:F! [obl:patient 把 T-] 递 [obl 给 G!] 。"},
        });
        holder = holder == 'A' ? 'C' : 'A';
        break;
      case 1:
        t.place('W', rooms());
        t.say_one_of({
            {"nsubj:F! go* [obl to W] .", "nsubj:F! 去 了 obj:W 。"},
            {"nsubj:F! walk* [obl into W] [obl with T-] .",
             "nsubj:F! 带 着 obj:T- [conj 走/V compound:进/V 了 obj:W] 。"},
        });
        break;
      case 2:
        t.say_one_of({
            {"nsubj:G! admire* obj:T- , [conj but nsubj:F! do* not give/V obj:T~ compound:prt:away] .",
             "nsubj:G! 很 喜欢/V obj:T- ， [conj 可是 nsubj:F! 没 给/V] 。"},
            {"nsubj:F! drop* obj:T- , [conj but pick* obj:T~ compound:prt:up advmod:again] .",
             "nsubj:F! [obl:patient 把 T-] 掉/V [obl 在 地/N 上] ， [conj 又 捡/V compound:起来/V 了_] 。"},
        });
        break;
      default:
        t.hiding_place('S', 'T');
        t.say("nsubj:F! put* obj:T- [obl @S S] .", "nsubj:F! [obl:patient 把 T-] 放 [obl 在 S @S] 。");
        ask_where(t, 'T', 'S');
        laid_down = true;
        if (first) {
          has_b = ' ';
        } else {
          has_h = ' ';
        }
    }
  }
  if (has_b != ' ') ask_who_has(t, 'B', has_b);
  if (has_h != ' ') ask_who_has(t, 'H', has_h);
  if (t.draw().chance(12)) comic_aside(t);
}

void mystery(StoryBuilder& t) {
  t.time();
  t.person('A', anyone(t));
  t.other_gender_person('C', 'A');
  t.pet('D');
  t.worker('E');
  t.food('F');
  t.place('R', rooms());
  t.place('S', spots());
  t.animal('M', wild_animals());
  t.say_one_of({
      {"&t , nsubj:F vanish* [obl from A'! R#] .", "&t ， [nsubj [nmod [nmod A! 的] R# @R] F+] 忽然 不见/V 了_ 。"},
      {"nsubj:A leave* obj:F [obl on the table] , [conj and [obl:tmod nummod:one hour] later nsubj:F~ be* gone/J] .",
       "nsubj:A [obl:patient 把 F+] 放 [obl 在 桌子 上] ， [conj [obl:tmod nummod:一 clf:个 小时 以后] ， nsubj:F~ "
       "不见/V 了_] 。"},
      {"&t , nsubj:A can* not find/V [obj A' F##] .",
       "&t ， nsubj:A 找不到/V [obj nmod:A.self [det 那/D clf:F^] F##] 了_ 。"},
  });
  t.say_one_of({
      {"nsubj:A call* obj:E .", "nsubj:A 叫来/V 了 obj:E 。"},
      {"[nsubj E , [acl:relcl nsubj:who love* obj:mysteries] ,] come* advmod:quickly .",
       "nsubj:E 喜欢/V obj:谜案 ， [conj 马上 赶来 了_] 。"},
      {"advmod:luckily nsubj:E live* [obl in the amod:next house] .", "幸好/R nsubj:E 就 住/V [obl 在 隔壁] 。"},
  });
  gesture(t, 'A');
  t.say_one_of({
      {"nsubj:E- find* obj:crumbs [obl @S S] .", "nsubj:E- [obl 在 S @S] 发现 了 obj:碎屑 。"},
      {"nsubj:E- look* [obl at the floor] [conj and see* [obj amod:small footprints]] .",
       "nsubj:E- 看 了 compound:看/V obj:地板 ， [conj 看见 了 [obj [amod 小小 的] 脚印]] 。"},
      {"nsubj:E- sniff* [obl at the carpet] .", "nsubj:E- 闻 了 compound:闻/V obj:地毯 。"},
  });
  t.say("nsubj:E- ask* obj:C , [ccomp “ aux:did nsubj:C.you eat/V obj:F- ? ”]",
        "nsubj:E- 问 obj:C ： [ccomp “ advmod:是 nsubj:C.you 吃/V 了 obj:F- 吗 ？ ”]");
  const bool guilty = t.draw().chance(35);
  if (guilty) {
    t.say_one_of({
        {"[ccomp “ discourse:no , ”] say* nsubj:C! , [conj but expl:there/U be*/V nsubj:cream [obl on C'~ nose]] .",
         "[ccomp “ 没有/V 。 ”] nsubj:C! 说 ， [conj 可是 [nsubj [nmod C~ 的] 鼻子] [advmod 上] 有/V obj:奶油] 。"},
        {"[ccomp “ discourse:no , ”] say* nsubj:C! [obl with a amod:full mouth] .",
         "[ccomp “ 没有/V 。 ”] nsubj:C! [advcl nsubj:嘴里 塞/V 得 [xcomp 满满/J] 地] 说 。"},
    });
    t.say_one_of({
        {"[ccomp “ nsubj:C.I only wanted [xcomp to_ taste/V obj:F~] , ”] nsubj:C! admit* .",
         "[ccomp “ nsubj:C.I 只 想/X 尝/V obj:一口 。 ”] nsubj:C! 承认 。"},
        {"[ccomp “ nsubj:F~ cop:was so lonely/J , ”] nsubj:C! admit* .",
         "[ccomp “ nsubj:F~ advmod:看起来 太 寂寞/J 了_ 。 ”] nsubj:C! 承认 。"},
    });
    t.ask({"nsubj:who/U ate obj:F! ?", "nsubj:谁/U 吃/V 了 obj:F! ？"}, {"nsubj:C! did .", "advmod:是 C! 。"}, 'C');
  } else {
    t.say_one_of({
        {"[ccomp “ discourse:no , nsubj:C.I do n't even like obj:F% , ”] say* nsubj:C! .",
         "[ccomp “ 没有/V ， [parataxis nsubj:C.I advmod:根本 就 不 喜欢/V obj:F%] 。 ”] nsubj:C! 说 。"},
        {"[ccomp “ discourse:no , nsubj:C.I was asleep/J , ”] say* nsubj:C! .",
         "[ccomp “ 没有/V ， [parataxis nsubj:C.I 刚才/R [advmod 在] 睡觉/V] 。 ”] nsubj:C! 说 。"},
        {"[ccomp “ discourse:no , ”] say* nsubj:C! , [conj and nsubj:E- believe* obj:C~] .",
         "[ccomp “ 没有/V 。 ”] nsubj:C! 说 ， [conj nsubj:E- 相信/V 了_] 。"},
    });
    const bool pet = t.draw().chance(60);
    t.alias('G', pet ? 'D' : 'M');
    if (pet) {
      t.say("advmod:then nsubj:E- look* [obl behind the curtain] [conj and find* [obj D , [appos A'! D=]]] .",
            "然后 nsubj:E- 看 了 compound:看/V [obj 窗帘 后面] ， [conj 发现 了 [obj A'!0 [det 那/D clf:D^] "
            "compound:D= D]] 。");
      t.say_one_of({
          {"nsubj:D! be* too full/J [advcl to_ run/V compound:prt:away] .",
           "nsubj:D! 吃/V 得 [xcomp 太 饱/J] ， [conj 跑不动/V 了_] 。"},
          {"nsubj:D! yawn* , [conj and [nsubj the case] be* closed/J] .",
           "nsubj:D! 打 了 [obj clf:个 哈欠] ， [conj nsubj:案子 就 破/V 了_] 。"},
      });
    } else {
      t.say(
          "advmod:then nsubj:E- open* [obj the door] [conj and find* obj:M [acl sleeping/V [obl with a amod:round "
          "belly]]] .",
          "然后 nsubj:E- 打开 了 obj:门 ， [conj 发现 [ccomp nsubj:M [advmod 正] 挺/V 着 obj:肚子 [conj 睡觉/V]]] 。");
    }
    t.ask({"nsubj:who/U ate obj:F! ?", "nsubj:谁/U 吃/V 了 obj:F! ？"}, {"nsubj:G! did .", "advmod:是 G! 。"}, 'G');
  }
  t.say_one_of({
      {"[ccomp “ nsubj:that/U cop:was easy/J , ”] say* nsubj:E- .",
       "[ccomp “ nsubj:这/U 太 简单/J 了_ 。 ”] nsubj:E- 说 。"},
      {"nsubj:A! laugh* [conj and buy* [obj another F=]] .",
       "nsubj:A! 笑 了_ ， [conj 又 准备/V 了 [obj nummod:一 F^]] 。"},
      {"nsubj:E- bow* [conj and go* home] .", "nsubj:E- 鞠/V 了 [obj clf:个 躬] ， [conj 回家/V 了_] 。"},
  });
  gesture(t, 'C');
  if (t.draw().chance(12)) comic_aside(t);
  t.ask({"nsubj:what/U vanished ?", "nsubj:什么/U 不见/V 了_ ？"}, {"nsubj:F! vanished .", "nsubj:F! 不见/V 了_ 。"},
        'F');
}

}  // namespace qkv::world

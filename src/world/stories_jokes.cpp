// Dialogues with jokes that work in both languages.
#include <vector>

#include "world/stories.h"

namespace qkv::world {
namespace {

// Roles: A and C talk; E is known by occupation; B thing, D and M animals, F food, S soup, P and R places, N number.
const std::vector<std::vector<Line>>& all_jokes() {
  static const std::vector<std::vector<Line>> jokes{
      {{"nsubj:A tell* obj:C , [ccomp “ nsubj:A.I forget obj:everything/U . ”]",
        "nsubj:A [obl 对 C] 说 ： [ccomp “ nsubj:A.I dislocated:什么/U 都 记不住/V 。 ”]"},
       {"[ccomp “ [obl since when/R] ? ”] ask* nsubj:C! .",
        "[ccomp “ [obl 从 什么时候/N] 开始/V 的_ ？ ”] nsubj:C! 问 。"},
       {"[ccomp “ [obl since when/R] what/U ? ”] say* nsubj:A! .",
        "[ccomp “ 什么/U [nsubj 什么时候/N] ？ ”] nsubj:A! 说 。"}},
      {{"nsubj:A call* [obj the waiter] .", "nsubj:A [obl:patient 把 服务员] 叫 compound:过来/V 。"},
       {"[ccomp “ expl:there/U is/V nsubj:M [obl in A.my S#] , ”] say* nsubj:A! .",
        "[ccomp “ [obl A.my S# 里] 有/V obj:M 。 ”] nsubj:A! 说 。"},
       {"[ccomp “ please do not shout/V , [conj or nsubj:everyone/U aux:will want/V nummod:one/M] , ”] whisper* [nsubj "
        "the waiter] .",
        "[ccomp “ 请 别 喊/V ， [parataxis 不然/R nsubj:大家/U 都 想要/V 了_] 。 ”] nsubj:服务员 [advmod 小声] 说 。"}},
      {{"nsubj:A meet* obj:C [obl @P P] .", "nsubj:A [obl 在 P @P] 遇见 了 obj:C 。"},
       {"[ccomp “ aux:does [nsubj C.your D#] bite/V ? ”] nsubj:A! ask* .",
        "[ccomp “ [nsubj C.your D#] 咬/V obj:人 吗 ？ ”] nsubj:A! 问 。"},
       {"[ccomp “ never/R , ”] say* nsubj:C! , [conj and nsubj:D bite* obj:A!] .",
        "[ccomp “ 从来 不 咬/V 。 ”] nsubj:C! 说 ， [conj 可是 nsubj:D 咬 了 obj:A! [obl 一口]] 。"},
       {"[ccomp “ nsubj:that/U cop:is not C.my D# , ”] nsubj:C! explain* .",
        "[ccomp “ nsubj:那/U 不 是 C.my D# 。 ”] nsubj:C! 解释 。"}},
      {{"nsubj:A say* [obl to C] , [ccomp “ nsubj:A.I have [obj amod:good news] [conj and amod:bad news/N] . ”]",
        "nsubj:A [obl 对 C] 说 ： [ccomp “ nsubj:A.I 有 [obj nummod:一 clf:个 [amod 好] 消息] [conj 和 nummod:一 "
        "clf:个 [amod 坏] 消息/N] 。 ”]"},
       {"[ccomp “ what/U cop:is [nsubj the amod:good news] ? ”] ask* nsubj:C! .",
        "[ccomp “ [nsubj amod:好 消息] 是 什么/U ？ ”] nsubj:C! 问 。"},
       {"[ccomp “ nsubj:A.I have found/V [obj C.your B##] , ”] say* nsubj:A! .",
        "[ccomp “ nsubj:A.I 找到 了 [obj C.your0 [det 那/D clf:B^] B##] 。 ”] nsubj:A! 说 。"},
       {"[ccomp “ [conj and what/U] cop:is [nsubj the amod:bad news] ? ”] ask* nsubj:C! .",
        "[ccomp “ [nsubj amod:坏 消息] 是 什么/U 呢 ？ ”] nsubj:C! 问 。"},
       {"[ccomp “ nsubj:D sleeps [obl on B~] , ”] say* nsubj:A! .",
        "[ccomp “ nsubj:D 正 睡 [obl 在 B~ 上面] 。 ”] nsubj:A! 说 。"}},
      {{"nsubj:A ask* obj:C , [ccomp “ aux:can nsubj:C.you swim/V ? ”]",
        "nsubj:A 问 obj:C ： [ccomp “ nsubj:C.you 会 游泳/V 吗 ？ ”]"},
       {"[ccomp “ sometimes/R , ”] say* nsubj:C! .", "[ccomp “ 有时候/R 会 。 ”] nsubj:C! 说 。"},
       {"[ccomp “ when/R ? ”] ask* nsubj:A! .", "[ccomp “ 什么时候/R ？ ”] nsubj:A! 问 。"},
       {"[ccomp “ when/R nsubj:C.I cop:am [advcl in the water/N] , ”] say* nsubj:C! .",
        "[ccomp “ [acl 掉/V [obl 在 水 里] 的] 时候/N 。 ”] nsubj:C! 说 。"}},
      {{"nsubj:A come* [xcomp late/J] [obl to school] .", "nsubj:A advmod:上学 迟到/V 了_ 。"},
       {"nsubj:C ask* obj:A! , [ccomp “ advmod:why cop:are nsubj:A.you late/J ? ”]",
        "nsubj:C 问 obj:A! ： [ccomp “ nsubj:A.you 为什么 迟到/V ？ ”]"},
       {"[ccomp “ because/P [obl of the sign] , ”] say* nsubj:A! .", "[ccomp “ 因为/V obj:牌子 。 ”] nsubj:A! 说 。"},
       {"[ccomp “ det:which sign/N ? ”] ask* nsubj:C! .", "[ccomp “ 什么/D 牌子/N ？ ”] nsubj:C! 问 。"},
       {"[ccomp “ [nsubj the sign] says : [ccomp school/N , [parataxis go/V slowly]] . ”] nsubj:A! explain* .",
        "[ccomp “ nsubj:牌子 上 写/V 着 ： [ccomp nmod:前方 学校/N ， [parataxis 请 慢行/V]] 。 ”] nsubj:A! 解释 。"}},
      {{"nsubj:A say* , [ccomp “ [nsubj A.my hat] cop:is too small/J . ”]",
        "nsubj:A 说 ： [ccomp “ [nsubj A.my 帽子] 太 小/J 了_ 。 ”]"},
       {"[ccomp “ discourse:no , [nsubj A.your head] cop:is too big/J , ”] say* nsubj:C .",
        "[ccomp “ discourse:不/I ， advmod:是 [nsubj A.your 头] 太 大/J 了_ 。 ”] nsubj:C 说 。"},
       {"nsubj:A! think* [obl about that/U] , [conj and aux:do* not speak/V [obl to C!] [obl for nummod:N days]] .",
        "nsubj:A! 想/V 了 compound:想/V ， [conj [obl:tmod nummod:N 天] 没 理/V obj:C!] 。"}},
      {{"nsubj:A tell* obj:C [obl about a amod:big fish] .",
        "nsubj:A [obl 给 C] 讲/V 了 [obj [nummod 一 clf:条] amod:大 鱼 的/T nmod:故事] 。"},
       {"[ccomp “ advmod:how big/J cop:was [nsubj the fish] ? ”] ask* nsubj:C! .",
        "[ccomp “ [nsubj 那 clf:条 鱼] 有/V advmod:多 xcomp:大/J ？ ”] nsubj:C! 问 。"},
       {"[ccomp “ [nsubj the photograph] alone/R weighs^weigh/V [obj nummod:N kilos] , ”] say* nsubj:A! .",
        "[ccomp “ advmod:光 nsubj:照片 就 有/V [obj nummod:N 公斤] 。 ”] nsubj:A! 说 。"}},
      {{"nsubj:A sell* obj:C [obj a parrot] .", "nsubj:A 卖 [obl 给 C] [obj [nummod 一 clf:只] 鹦鹉] 。"},
       {"[ccomp “ aux:can [nsubj the parrot] speak/V ? ”] ask* nsubj:C! .",
        "[ccomp “ nsubj:鹦鹉 会 说话/V 吗 ？ ”] nsubj:C! 问 。"},
       {"[ccomp “ discourse:yes , [conj but [nsubj the parrot] prefers [xcomp to_ listen/V]] , ”] say* nsubj:A! .",
        "[ccomp “ 会/V ， [conj 不过 nsubj:鹦鹉 更 喜欢/V [ccomp 听/V]] 。 ”] nsubj:A! 说 。"}},
      {{"&t , nsubj:A sit* [obl @P P] [conj and look* [xcomp very sad/J]] .",
        "&t ， nsubj:A 坐 [obl 在 P @P] ， [conj 看起来/V [xcomp 很 难过/J]] 。"},
       {"[ccomp “ nsubj:what/U is wrong/J ? ”] ask* nsubj:C .", "[ccomp “ 怎么/V 了_ ？ ”] nsubj:C 问 。"},
       {"[ccomp “ nsubj:nobody/U listens [obl to A.me] , ”] say* nsubj:A! .",
        "[ccomp “ 没有/V nsubj:人 [ccomp 听/V [ccomp nsubj:A.me 说话/V]] 。 ”] nsubj:A! 说 。"},
       {"[ccomp “ discourse:sorry , obj:what/U aux:did nsubj:A.you say/V ? ”] ask* nsubj:C! .",
        "[ccomp “ discourse:对不起 ， nsubj:A.you 说 obj:什么/U ？ ”] nsubj:C! 问 。"}},
      {{"nsubj:A show* iobj:C obj:B .", "nsubj:A [obl 给 C] 看 obj:B 。"},
       {"[ccomp “ obj:what/U aux:can nsubj:one/U do/V [obl with B~] ? ”] ask* nsubj:C! .",
        "[ccomp “ nsubj:这/U 能 用来/V [xcomp 干/V obj:什么/U] ？ ”] nsubj:C! 问 。"},
       {"[ccomp “ nsubj:A.I do not know , [conj but nsubj:B~ cost obj:nothing/U] , ”] say* nsubj:A! .",
        "[ccomp “ nsubj:A.I 不 知道/V ， [conj 不过 nsubj:B~ 没/V advmod:花 obj:钱] 。 ”] nsubj:A! 说 。"}},
      {{"nsubj:D walk* [obl into the compound:tea house] [conj and order* obj:F] .",
        "nsubj:D 走/V compound:进/V obj:茶馆 ， [conj 点/V 了 obj:F] 。"},
       {"nsubj:everyone/U stare* .", "nsubj:大家/U 都 看/V compound:呆/V 了_ 。"},
       {"[ccomp “ nsubj:that/U cop:is very unusual/J , ”] say* nsubj:A .",
        "[ccomp “ nsubj:这/U 可 太 少见/J 了_ 。 ”] nsubj:A 说 。"},
       {"[ccomp “ discourse:yes , nsubj:D- usually wants obj:S , ”] answer* nsubj:C .",
        "[ccomp “ advmod:是啊 ， nsubj:D- [advmod 平时] 都 点/V obj:S% 。 ”] nsubj:C 回答 。"}},
      {{"nsubj:C talk* [obl to D] [obl for nummod:N hours] .",
        "nsubj:C [obl 跟 D] 聊/V 了 [obj nummod:N clf:个 小时] 。"},
       {"[ccomp “ aux:does nsubj:D- understand/V obj:C.you ? ”] ask* nsubj:A .",
        "[ccomp “ nsubj:D- 听得懂/V [ccomp nsubj:C.you 说话/V] 吗 ？ ”] nsubj:A 问 。"},
       {"[ccomp “ better^well/R [obl than people] , ”] say* nsubj:C! , [conj and nsubj:D- nod*] .",
        "[ccomp “ [obl 比 人] 懂/V 。 ”] nsubj:C! 说 ， [conj nsubj:D- 点/V 了 compound:点/V obj:头] 。"}},
      {{"nsubj:A tell* obj:C , [ccomp “ nsubj:A.I aux:will never eat/V obj:F% again . ”]",
        "nsubj:A [obl 对 C] 说 ： [ccomp “ nsubj:A.I [advmod 再] 也 不 吃/V obj:F% 了_ 。 ”]"},
       {"[ccomp “ advmod:why not/T ? ”] ask* nsubj:C! .", "[ccomp “ 为什么/R ？ ”] nsubj:C! 问 。"},
       {"[ccomp “ because nsubj:A.I have eaten/V obj:all/U , ”] say* nsubj:A! .",
        "[ccomp “ 因为 nsubj:A.I [advmod 全] 吃/V compound:完/V 了_ 。 ”] nsubj:A! 说 。"}},
      {{"nsubj:C ask* obj:A , [ccomp “ obj:what/U aux:do nsubj:A.you want/V [xcomp to_ become/V] ? ”]",
        "nsubj:C 问 obj:A ： [ccomp “ nsubj:A.you advmod:长大 想/X 当/V obj:什么/U ？ ”]"},
       {"[ccomp “ older^old/J , ”] say* nsubj:A! .", "[ccomp “ 当/V obj:大人 。 ”] nsubj:A! 说 。"}},
      {{"nsubj:A aux:be* writing/V [obj a letter] [obl to A.self] .", "nsubj:A 正在 [obl 给 A.self] 写 obj:信 。"},
       {"[ccomp “ obj:what/U aux:does [nsubj the letter] say/V ? ”] ask* nsubj:C .",
        "[ccomp “ [obl 信 里] 写 了 obj:什么/U ？ ”] nsubj:C 问 。"},
       {"[ccomp “ nsubj:A.I aux:do not know/V , [parataxis [nsubj the letter] aux:will come/V obl:tmod:tomorrow] , ”] "
        "answer* nsubj:A! .",
        "[ccomp “ nsubj:A.I 不 知道/V ， [parataxis nsubj:信 obl:tmod:明天 才 到/V] 。 ”] nsubj:A! 回答 。"}},
      {{"nsubj:C ask* obj:A , [ccomp “ advmod:why aux:do nsubj:A.you have/V [obj nummod:two B%] ? ”]",
        "nsubj:C 问 obj:A ： [ccomp “ nsubj:A.you 为什么 有/V [obj [nummod 两 clf:B^] B%] ？ ”]"},
       {"[ccomp “ because nsubj:one/M cop:was lonely/J , ”] say* nsubj:A! .",
        "[ccomp “ 因为 [nsubj nummod:一 B^] 太 寂寞/J 了_ 。 ”] nsubj:A! 说 。"}},
      {{"nsubj:A aux:be* looking/V [obl for B] [obl under a amod:bright lamp] .",
        "nsubj:A 正在 [obl [nummod 一 clf:盏] [amod 明亮 的] 路灯 下] 找 obj:B 。"},
       {"[ccomp “ where/R aux:did nsubj:A.you lose/V obj:B~ ? ”] ask* nsubj:C .",
        "[ccomp “ nsubj:A.you [obl 在 哪里/U] 丢/V 的_ ？ ”] nsubj:C 问 。"},
       {"[ccomp “ @P P , [conj but [nsubj the light] cop:is better^good/J here] , ”] say* nsubj:A! .",
        "[ccomp “ 在/V [obj P @P] ， [conj 可是 [nsubj 这里/U] 亮/J] 。 ”] nsubj:A! 说 。"}},
      {{"nsubj:A ask* obj:C , [ccomp “ aux:do nsubj:C.you believe/V [obl in ghosts] ? ”]",
        "nsubj:A 问 obj:C ： [ccomp “ nsubj:C.you 相信/V [ccomp 有/V obj:鬼] 吗 ？ ”]"},
       {"[ccomp “ discourse:no , ”] say* nsubj:C! .", "[ccomp “ 不/R 相信/V 。 ”] nsubj:C! 说 。"},
       {"[ccomp “ nsubj:that/U cop:is a pity/N , ”] say* nsubj:A! , [conj and walk* [obl through the wall]] .",
        "[ccomp “ 真 可惜/J 。 ”] nsubj:A! 说 ， [conj 穿/V compound:过/V obj:墙 [conj 走/V 了_]] 。"}},
  };
  return jokes;
}

}  // namespace

void jokes(StoryBuilder& t) {
  t.time();
  t.person('A', anyone(t));
  t.other_gender_person('C', 'A');
  t.any_thing('B');
  t.animal('D', pets());
  t.animal('M', wild_animals());
  t.food('F');
  t.plain('S', dishes());
  t.place('P', places());
  t.number('N', t.draw().between(2, 30));
  if (t.draw().chance(40)) introduce(t, t.draw().chance(50) ? 'A' : 'C');
  if (t.draw().chance(22)) {  // the joke about a wrong sum
    const int n = t.draw().between(2, 9), m = t.draw().between(2, 9);
    t.number('P', n);
    t.number('Q', m);
    t.number('R', n + m + 1);
    t.number('S', n + m);
    t.say(
        "nsubj:C ask* obj:A , [ccomp “ [advcl if nsubj:C.I give/V iobj:A.you [obj nummod:P D%] [conj and advmod:then "
        "nummod:Q more/J]] , [obj [amod how many] D%] aux:do nsubj:A.you have/V ? ”]",
        "nsubj:C 问 obj:A ： [ccomp “ [advcl 如果 nsubj:C.I 给/V iobj:A.you [obj nummod:P clf:D^ D%] ， [conj 再 给/V "
        "[obj nummod:Q D^]]] ， nsubj:A.you [advmod 一共] 有/V [obj nummod:多少 clf:D^ D%] ？ ”]");
    t.say("[ccomp “ R , ”] say* nsubj:A! .", "[ccomp “ nummod:R D^ 。 ”] nsubj:A! 说 。");
    t.say("[ccomp “ discourse:no , [nsubj P [conj cc:+/S Q]] =/S obj:S , ”] say* nsubj:C! .",
          "[ccomp “ discourse:不/I ， [nsubj P [conj cc:+/S Q]] =/S obj:S 。 ”] nsubj:C! 说 。");
    t.say("[ccomp “ but nsubj:A.I already have obj:one/M [obl at home/N] , ”] say* nsubj:A! .",
          "[ccomp “ 可是 [obl A.my0 家 里] 已经 有/V [obj nummod:一 D^] 了_ 。 ”] nsubj:A! 说 。");
    t.ask({"[nsubj P [conj cc:+/S Q]] =/S obj:?/S", "[nsubj P [conj cc:+/S Q]] =/S obj:？/S"},
          {"[nsubj P [conj cc:+/S Q]] =/S obj:S .", "[nsubj P [conj cc:+/S Q]] =/S obj:S 。"}, 'S');
    return;
  }
  for (const Line& line : t.draw().pick(all_jokes())) t.say(line.en, line.zh);
  if (t.draw().chance(45)) {
    t.say_one_of({
        {"nsubj:nobody/U laugh* , [conj but [nsubj the cat] smile*] .",
         "没有 nsubj:人 [ccomp 笑/V] ， [conj 只有/R nsubj:猫 笑 了_] 。"},
        {"nsubj:A! laugh* advmod:so loudly [advcl mark:that [nsubj the windows] shake*] .",
         "nsubj:A! 笑 得 [xcomp nsubj:窗户 都 [advmod 在] 抖/V] 。"},
        {"nsubj:nobody/U know* [ccomp whether nsubj:that/U be* a joke/N] .",
         "没有 nsubj:人 [ccomp 知道/V [ccomp nsubj:这/U 是 advmod:不 advmod:是 笑话/N]] 。"},
        {"nsubj:C! sigh* [conj and go* home] .", "nsubj:C! 叹/V 了 [obj clf:口 气] ， [conj 回家/V 了_] 。"},
    });
  }
  if (t.draw().chance(15)) comic_aside(t);
}

}  // namespace qkv::world

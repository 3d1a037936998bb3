// Stories about people whose habits and tastes follow from their names: whoever reads "she" or a verb, beside its subject
// or far from it, has to find out who it is to know what comes next.
#include <utility>

#include "world/stories.h"

namespace qkv::world {
namespace {

constexpr char kRoles[][2] = {{'A', 'C'}, {'E', 'G'}, {'I', 'K'}, {'L', 'N'}};

// Each line names X and Y.
constexpr Line kMeetings[] = {
    {"nsubj:X! meet* obj:Y! [obl @P P] .", "nsubj:X! [obl 在 P @P] 碰见 了 obj:Y! 。"},
    {"nsubj:X! see* obj:Y! [obl @P P] .", "nsubj:X! [obl 在 P @P] 看见 了 obj:Y! 。"},
    {"nsubj:X! go* [obl to P] [obl with Y!] .", "nsubj:X! [obl 跟 Y!] 去 了 obj:P 。"},
    {"nsubj:X! wait* [obl for Y!] [obl @P P] .", "nsubj:X! [obl 在 P @P] 等 obj:Y! 。"},
    {"nsubj:X! invite* obj:Y! [obl to P] .", "nsubj:X! 请 了 obj:Y! [xcomp 来/V obj:P] 。"},
};

// Who "he" and "she" are decides what they do.
constexpr Line kPronouns[] = {
    {"nsubj:X~ &h , [conj and nsubj:Y~ &g] .", "nsubj:X~ &h ， [conj nsubj:Y~ &g] 。"},
    {"nsubj:Y~ &g , [conj and nsubj:X~ &h] .", "nsubj:Y~ &g ， [conj nsubj:X~ &h] 。"},
    {"nsubj:X~ &a drink* obj:D% , [conj and nsubj:Y~ &a drink* obj:Q%] .",
     "nsubj:X~ &a 喝 obj:D% ， [conj nsubj:Y~ &a 喝 obj:Q%] 。"},
    {"nsubj:Y~ &a eat* obj:R% , [conj and nsubj:X~ &a eat* obj:F%] .",
     "nsubj:Y~ &a 吃 obj:R% ， [conj nsubj:X~ &a 吃 obj:F%] 。"},
    {"nsubj:Y~ &a like* obj:S% , [conj but nsubj:X~ &a like* obj:M%] .",
     "nsubj:Y~ &a 喜欢 obj:S% ， [conj 可是 nsubj:X~ &a 喜欢 obj:M%] 。"},
    {"[advcl while nsubj:X~ &h] , nsubj:Y~ &g .", "[obl:tmod [acl nsubj:X~ &h 的] 时候] ， nsubj:Y~ &g 。"},
    {"nsubj:X~ &h , [conj and nsubj:Y~ &a drink* obj:Q%] .", "nsubj:X~ &h ， [conj nsubj:Y~ &a 喝 obj:Q%] 。"},
    {"nsubj:Y~ &g , [conj but nsubj:X~ &a eat* obj:F%] .", "nsubj:Y~ &g ， [conj 可是 nsubj:X~ &a 吃 obj:F%] 。"},
};

// The verb stands apart from its subject, and another name is nearer.
constexpr Line kFarVerbs[] = {
    {"[nsubj X! , [acl sitting/V [obl beside Y!]]] , drink* obj:D% .",
     "nsubj:X! [advcl 坐/V [obl 在 nmod:Y! 旁边/N]] 喝 obj:D% 。"},
    {"[nsubj X! , [appos a friend [nmod of Y!]]] , keep* obj:M% .",
     "nsubj:X! [obl case:作为 [nmod Y! 的] 朋友] 养 obj:M% 。"},
    {"[nsubj X! , [acl standing/V [obl @P P] [obl with Y!]]] , eat* obj:F% .",
     "nsubj:X! [obl 在 P @P] [obl 跟 Y!] advmod:一起 吃 obj:F% 。"},
    {"[nsubj X! , [acl invited/V [obl by Y!]]] , &h [obl @P P] .",
     "nsubj:X! [obl case:应 [nmod Y! 的] 邀请] [obl 在 P @P] &h 。"},
    {"nsubj:X! , [obl case:unlike Y!] , advmod:always &h .", "nsubj:X! [advcl 不 像/V obj:Y!] ， advmod:总是 &h 。"},
    {"nsubj:X! , [obl case:like Y!] , advmod:often drink* obj:D% .",
     "nsubj:X! [advcl 像/V obj:Y!] ， advmod:常常 喝 obj:D% 。"},
    {"nsubj:X! , [obl advmod:together with Y!] , advmod:never eat* obj:R% .",
     "nsubj:X! [obl 跟 Y!] advmod:一起 ， advmod:从来 不 吃 obj:R% 。"},
};

// The verb stands beside the name of its subject or a few words away; what it takes follows from who that is.
constexpr Line kNearVerbs[] = {
    {"nsubj:X! &a &v .", "nsubj:X! &a &v 。"},
    {"nsubj:X! &v [obl @P P] .", "nsubj:X! [obl 在 P @P] &v 。"},
    {"nsubj:X! &a &v [obl @P P] .", "nsubj:X! &a [obl 在 P @P] &v 。"},
    {"nsubj:X! &a &v , [conj and nsubj:Y! &a &w] .", "nsubj:X! &a &v ， [conj nsubj:Y! &a &w] 。"},
    {"nsubj:X! &a &v , [conj but nsubj:Y! &w [obl @P P]] .",
     "nsubj:X! &a &v ， [conj 可是 nsubj:Y! [obl 在 P @P] &w] 。"},
    {"[advcl while nsubj:X! &v] , nsubj:Y! &a &w .", "[obl:tmod [acl nsubj:X! &v 的] 时候] ， nsubj:Y! &a &w 。"},
};

// What one does with what one likes: X likes D, Y likes Q.
struct Taste {
  Phrase first, second;
  std::span<const Noun> (*nouns)();
};
constexpr Taste kTastes[] = {
    {{"drink* obj:D%", "喝* obj:D%"}, {"drink* obj:Q%", "喝* obj:Q%"}, hot_drinks},
    {{"eat* obj:D%", "吃* obj:D%"}, {"eat* obj:Q%", "吃* obj:Q%"}, fruit},
    {{"keep* obj:D%", "养* obj:D%"}, {"keep* obj:Q%", "养* obj:Q%"}, pets},
    {{"read* obj:D%", "读* obj:D%"}, {"read* obj:Q%", "读* obj:Q%"}, readables},
    {{"grow* obj:D%", "种* obj:D%"}, {"grow* obj:Q%", "种* obj:Q%"}, flowers},
    {{"draw* obj:D%", "画* obj:D%"}, {"draw* obj:Q%", "画* obj:Q%"}, wild_animals},
    {{"mend* obj:D%", "修* obj:D%"}, {"mend* obj:Q%", "修* obj:Q%"}, tools},
    {{"sell* obj:D%", "卖* obj:D%"}, {"sell* obj:Q%", "卖* obj:Q%"}, baked},
    {{"wash* obj:D%", "洗* obj:D%"}, {"wash* obj:Q%", "洗* obj:Q%"}, kitchenware},
    {{"buy* obj:D%", "买* obj:D%"}, {"buy* obj:Q%", "买* obj:Q%"}, toys},
    {{"collect* obj:D%", "收集* obj:D%"}, {"collect* obj:Q%", "收集* obj:Q%"}, trinkets},
};

constexpr Phrase kOften[] = {
    {"advmod:often", "advmod:常常"},     {"advmod:always", "advmod:总是"}, {"advmod:usually", "advmod:通常"},
    {"advmod:sometimes", "advmod:有时"}, {"advmod:still", "advmod:还"},    {"advmod:secretly", "advmod:偷偷"},
};

// What X and Y always do and like.
void remember_tastes(StoryBuilder& t) {
  t.phrase('a', kOften);
  t.habit('h', 'X');
  t.habit('g', 'Y');
  t.favourite('D', hot_drinks(), 'X');
  t.favourite('Q', hot_drinks(), 'Y');
  t.favourite('F', fruit(), 'X');
  t.favourite('R', fruit(), 'Y');
  t.favourite('M', pets(), 'X');
  t.favourite('S', pets(), 'Y');
}

void say_near(StoryBuilder& t) {
  const Taste &mine = t.draw().pick(kTastes), &yours = t.draw().pick(kTastes);
  t.favourite('D', mine.nouns(), 'X');
  t.favourite('Q', yours.nouns(), 'Y');
  t.phrase('v', std::span(&mine.first, 1));
  t.phrase('w', std::span(&yours.second, 1));
  t.phrase('a', kOften);
  t.say_one_of(kNearVerbs);
}

}  // namespace

void neighbours(StoryBuilder& t) {
  const int rounds = t.draw().between(2, 4);
  for (int i = 0; i < rounds; ++i) {
    char first = kRoles[i][0], second = kRoles[i][1];
    const bool man = t.draw().chance(50);
    t.neighbour(first, man ? Gender::male : Gender::female);
    t.neighbour(second, man ? Gender::female : Gender::male);
    t.alias('X', first);
    t.alias('Y', second);
    t.place('P', places());
    remember_tastes(t);
    const bool meet = t.draw().chance(70);
    if (meet) {
      t.say_one_of(kMeetings);
      t.say_one_of(kPronouns);
    }
    t.say_one_of(kFarVerbs);
    for (int more = t.draw().between(1, 3); more > 0; --more) {
      if (t.draw().chance(50)) std::swap(first, second);
      t.alias('X', first);
      t.alias('Y', second);
      say_near(t);
    }
    if (meet) gesture(t, t.draw().chance(50) ? first : second);
  }
}

}  // namespace qkv::world

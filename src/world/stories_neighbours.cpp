// Stories about people whose habits and tastes follow from their names: whoever reads "she" or a verb far from its
// subject has to find out who it is to know what comes next.
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

// Who "he" and "she" are decides what they do (&h and &g) and what their verbs take (&v and &w).
constexpr Line kPronouns[] = {
    {"nsubj:X~ &h , [conj and nsubj:Y~ &g] .", "nsubj:X~ &h ， [conj nsubj:Y~ &g] 。"},
    {"nsubj:Y~ &g , [conj and nsubj:X~ &h] .", "nsubj:Y~ &g ， [conj nsubj:X~ &h] 。"},
    {"[advcl while nsubj:X~ &h] , nsubj:Y~ &g .", "[obl:tmod [acl nsubj:X~ &h 的] 时候] ， nsubj:Y~ &g 。"},
    {"nsubj:X~ &a &v , [conj and nsubj:Y~ &a &w] .", "nsubj:X~ &a &v ， [conj nsubj:Y~ &a &w] 。"},
    {"nsubj:Y~ &a &w , [conj but nsubj:X~ &a &v] .", "nsubj:Y~ &a &w ， [conj 可是 nsubj:X~ &a &v] 。"},
    {"nsubj:X~ &h , [conj and nsubj:Y~ &w] .", "nsubj:X~ &h ， [conj nsubj:Y~ &w] 。"},
    {"nsubj:Y~ &g , [conj but nsubj:X~ &v] .", "nsubj:Y~ &g ， [conj 可是 nsubj:X~ &v] 。"},
    {"[advcl while nsubj:X~ &v] , nsubj:Y~ &a &w .", "[obl:tmod [acl nsubj:X~ &v 的] 时候] ， nsubj:Y~ &a &w 。"},
};

// The verb stands apart from its subject, and another name is nearer. The verb itself says nothing about anybody; what
// it takes does, so that the verb has to look for its subject.
constexpr Line kFarVerbs[] = {
    {"[nsubj X! , [acl sitting/V [obl beside Y!]]] , &v .", "nsubj:X! [advcl 坐/V [obl 在 nmod:Y! 旁边/N]] &v 。"},
    {"[nsubj X! , [acl standing/V [obl @P P] [obl with Y!]]] , &v .",
     "nsubj:X! [obl 在 P @P] [obl 跟 Y!] advmod:一起 &v 。"},
    {"[nsubj X! , [acl invited/V [obl by Y!]]] , &v [obl @P P] .",
     "nsubj:X! [obl case:应 [nmod Y! 的] 邀请] [obl 在 P @P] &v 。"},
    {"[nsubj X! , [acl waiting/V [obl for Y!] [obl @P P]]] , &v .",
     "nsubj:X! [advcl [obl 在 P @P] 等/V 着 obj:Y!] ， &v 。"},
    {"[nsubj X! , [acl hidden/V [obl behind Y!]]] , &v .", "nsubj:X! [advcl 躲/V [obl 在 nmod:Y! 后面/N]] &v 。"},
    {"[nsubj X! , [acl followed/V [obl by Y!]]] , &v .", "nsubj:X! [advcl 带/V 着 obj:Y!] &v 。"},
};

// Of tastes that last.
constexpr Line kFarTastes[] = {
    {"[nsubj X! , [appos a friend [nmod of Y!]]] , &v .", "nsubj:X! [obl case:作为 [nmod Y! 的] 朋友] &v 。"},
    {"[nsubj X! , [appos the neighbour [nmod of Y!]]] , &a &v .",
     "nsubj:X! [advcl 住/V [obl 在 nmod:Y! 隔壁/N]] ， &a &v 。"},
    {"nsubj:X! , [obl case:unlike Y!] , &a &v .", "nsubj:X! [advcl 不 像/V obj:Y!] ， &a &v 。"},
    {"nsubj:X! , [obl case:like Y!] , &a &v .", "nsubj:X! [advcl 像/V obj:Y! advmod:一样] ， &a &v 。"},
    {"nsubj:X! , [obl advmod:together with Y!] , &v .", "nsubj:X! [obl 跟 Y!] advmod:一起 &v 。"},
    {"[nsubj X! , [acl living/V [obl @P P] [obl with Y!]]] , &v .",
     "nsubj:X! [advcl [obl 跟 Y!] 住/V [obl 在 P @P]] ， &v 。"},
};

// What follows the verb says who it is: X likes D, Y likes Q.
struct Taste {
  Phrase first, second;
  std::span<const Noun> (*nouns)();
  bool lasts;
};
constexpr Taste kTastes[] = {
    {{"drink* obj:D%", "喝* obj:D%"}, {"drink* obj:Q%", "喝* obj:Q%"}, hot_drinks, false},
    {{"eat* obj:D%", "吃* obj:D%"}, {"eat* obj:Q%", "吃* obj:Q%"}, fruit, false},
    {{"read* obj:D%", "读* obj:D%"}, {"read* obj:Q%", "读* obj:Q%"}, readables, false},
    {{"keep* obj:D%", "养* obj:D%"}, {"keep* obj:Q%", "养* obj:Q%"}, pets, true},
    {{"grow* obj:D%", "种* obj:D%"}, {"grow* obj:Q%", "种* obj:Q%"}, flowers, true},
    {{"draw* obj:D%", "画* obj:D%"}, {"draw* obj:Q%", "画* obj:Q%"}, wild_animals, true},
};

// What one does far from one's name with one's own hand: his or hers.
constexpr Phrase kGestures[] = {
    {"raise* [obj X'~ hand/N]", "举/V compound:起/V 了 obj:手"},
    {"close* [obj X'~ eyes/N]", "闭/V compound:上/V 了 obj:眼睛"},
    {"lower* [obj X'~ voice/N]", "压/V compound:低/V 了 obj:声音"},
    {"open* [obj X'~ mouth/N]", "张/V compound:开/V 了 obj:嘴"},
    {"drop* [obj X'~ hat/N]", "掉/V 了 obj:帽子"},
    {"button* [obj X'~ coat/N]", "扣/V compound:好/V 了 obj:大衣"},
    {"wipe* [obj X'~ forehead/N]", "擦 了 compound:擦/V obj:额头"},
    {"shake* [obj X'~ head/N]", "摇 了 compound:摇/V obj:头"},
};

constexpr Phrase kOften[] = {
    {"advmod:often", "advmod:常常"},     {"advmod:always", "advmod:总是"}, {"advmod:usually", "advmod:通常"},
    {"advmod:sometimes", "advmod:有时"}, {"advmod:still", "advmod:还"},    {"advmod:secretly", "advmod:偷偷"},
};

// What X and Y do (&v and &w) with what each of them likes.
bool remember_tastes(StoryBuilder& t) {
  const Taste &mine = t.draw().pick(kTastes), &yours = t.draw().pick(kTastes);
  t.favourite('D', mine.nouns(), 'X');
  t.favourite('Q', yours.nouns(), 'Y');
  t.phrase('v', std::span(&mine.first, 1));
  t.phrase('w', std::span(&yours.second, 1));
  t.phrase('a', kOften);
  return mine.lasts;
}

void say_far(StoryBuilder& t) {
  const bool lasts = remember_tastes(t);
  t.say_one_of(lasts ? std::span<const Line>(kFarTastes) : std::span<const Line>(kFarVerbs));
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
    const bool meet = t.draw().chance(85);
    if (meet) {
      t.habit('h', 'X');
      t.habit('g', 'Y');
      remember_tastes(t);
      t.say_one_of(kMeetings);
      t.say_one_of(kPronouns);
      if (t.draw().chance(50)) std::swap(first, second);
    }
    t.alias('X', first);
    t.alias('Y', second);
    say_far(t);
    if (meet) gesture(t, t.draw().chance(50) ? first : second);
  }
}

void habits(StoryBuilder& t) {
  const int people = t.draw().between(5, 9);
  for (int i = 0; i < people; ++i) {
    const bool man = t.draw().chance(50);
    const Gender one = man ? Gender::male : Gender::female, other = man ? Gender::female : Gender::male;
    t.place('P', places());
    if (t.draw().chance(25)) {
      t.person('X', {.age = t.draw().chance(50) ? Age::adult : Age::child, .gender = one});
      t.person('Y', {.age = t.draw().chance(50) ? Age::adult : Age::child, .gender = other});
      t.phrase('v', kGestures);
      t.say_one_of(kFarVerbs);
    } else {
      t.neighbour('X', one);
      t.neighbour('Y', t.draw().chance(50) ? one : other);
      say_far(t);
    }
  }
}

}  // namespace qkv::world

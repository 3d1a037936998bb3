// Stories with numbers: the market, the lesson, and sums with or without intermediate steps.
#include <algorithm>
#include <string>

#include "world/stories.h"

namespace qkv::world {
namespace {

constexpr Line kAdd{"[nsubj P [conj cc:+/S Q]] =/S obj:R .", "[nsubj P [conj cc:+/S Q]] =/S obj:R 。"};

// "Compute 17 + 25 by steps." asks for the steps; "17 + 25 =" for the result alone.
struct Operation {
  Line question, steps, answer, so;
};

constexpr Operation kPlus{
    {"[nsubj P [conj cc:+/S Q]] =/S obj:?/S", "[nsubj P [conj cc:+/S Q]] =/S obj:？/S"},
    {"compute/V [obj P [conj cc:+/S Q]] [obl by steps] .", "一步一步/R 地 算/V [obj P [conj cc:+/S Q]] 。"},
    kAdd,
    {"advmod:so [nsubj P [conj cc:+/S Q]] =/S obj:R .", "所以 [nsubj P [conj cc:+/S Q]] =/S obj:R 。"}};
constexpr Operation kMinus{
    {"[nsubj P [conj cc:-/S Q]] =/S obj:?/S", "[nsubj P [conj cc:-/S Q]] =/S obj:？/S"},
    {"compute/V [obj P [conj cc:-/S Q]] [obl by steps] .", "一步一步/R 地 算/V [obj P [conj cc:-/S Q]] 。"},
    {"[nsubj P [conj cc:-/S Q]] =/S obj:R .", "[nsubj P [conj cc:-/S Q]] =/S obj:R 。"},
    {"advmod:so [nsubj P [conj cc:-/S Q]] =/S obj:R .", "所以 [nsubj P [conj cc:-/S Q]] =/S obj:R 。"}};
constexpr Operation kTimes{
    {"[nsubj P [conj cc:×/S Q]] =/S obj:?/S", "[nsubj P [conj cc:×/S Q]] =/S obj:？/S"},
    {"compute/V [obj P [conj cc:×/S Q]] [obl by steps] .", "一步一步/R 地 算/V [obj P [conj cc:×/S Q]] 。"},
    {"[nsubj P [conj cc:×/S Q]] =/S obj:R .", "[nsubj P [conj cc:×/S Q]] =/S obj:R 。"},
    {"advmod:so [nsubj P [conj cc:×/S Q]] =/S obj:R .", "所以 [nsubj P [conj cc:×/S Q]] =/S obj:R 。"}};
constexpr Operation kDivided{
    {"[nsubj P [conj cc:÷/S Q]] =/S obj:?/S", "[nsubj P [conj cc:÷/S Q]] =/S obj:？/S"},
    {"compute/V [obj P [conj cc:÷/S Q]] [obl by steps] .", "一步一步/R 地 算/V [obj P [conj cc:÷/S Q]] 。"},
    {"[nsubj P [conj cc:÷/S Q]] =/S obj:R .", "[nsubj P [conj cc:÷/S Q]] =/S obj:R 。"},
    {"advmod:so [nsubj P [conj cc:÷/S Q]] =/S obj:R .", "所以 [nsubj P [conj cc:÷/S Q]] =/S obj:R 。"}};

// Addition column by column, from the right.
void plus_steps(StoryBuilder& t, int64_t p, int64_t q) {
  int64_t carry = 0;
  for (; p > 0 || q > 0; p /= 10, q /= 10) {
    const int64_t sum = p % 10 + q % 10 + carry;
    t.number('A', p % 10);
    t.number('B', q % 10);
    t.number('I', carry);
    t.number('C', sum);
    t.number('D', sum % 10);
    t.number('E', sum / 10);
    const bool last = p < 10 && q < 10;
    if (carry > 0 && sum >= 10 && !last) {
      t.say("[nsubj A [conj cc:+/S B] [conj cc:+/S I]] =/S obj:C , [parataxis write obj:D] , [parataxis carry obj:E] .",
            "[nsubj A [conj cc:+/S B] [conj cc:+/S I]] =/S obj:C ， [parataxis 写 obj:D] ， [parataxis 进 obj:E] 。");
    } else if (carry > 0) {
      t.say("[nsubj A [conj cc:+/S B] [conj cc:+/S I]] =/S obj:C , [parataxis write obj:C] .",
            "[nsubj A [conj cc:+/S B] [conj cc:+/S I]] =/S obj:C ， [parataxis 写 obj:C] 。");
    } else if (sum >= 10 && !last) {
      t.say("[nsubj A [conj cc:+/S B]] =/S obj:C , [parataxis write obj:D] , [parataxis carry obj:E] .",
            "[nsubj A [conj cc:+/S B]] =/S obj:C ， [parataxis 写 obj:D] ， [parataxis 进 obj:E] 。");
    } else {
      t.say("[nsubj A [conj cc:+/S B]] =/S obj:C , [parataxis write obj:C] .",
            "[nsubj A [conj cc:+/S B]] =/S obj:C ， [parataxis 写 obj:C] 。");
    }
    carry = last ? 0 : sum / 10;
  }
}

// The greatest power of ten that is at most n.
int64_t place_of(int64_t n) {
  int64_t place = 1;
  while (place * 10 <= n) place *= 10;
  return place;
}

// Subtraction place by place, from the left: 532 - 317 is 532 - 300, then - 10, then - 7.
void minus_steps(StoryBuilder& t, int64_t p, int64_t q) {
  for (int64_t place = place_of(q); place > 0; place /= 10) {
    const int64_t part = q / place % 10 * place;
    if (part == 0) continue;
    t.number('A', p);
    t.number('B', part);
    t.number('C', p - part);
    t.say("[nsubj A [conj cc:-/S B]] =/S obj:C .", "[nsubj A [conj cc:-/S B]] =/S obj:C 。");
    p -= part;
  }
}

// Multiplication by one digit, place by place; the parts are added up as they come.
void times_steps(StoryBuilder& t, int64_t p, int64_t q) {
  int64_t sum = 0;
  for (int64_t place = place_of(p); place > 0; place /= 10) {
    const int64_t part = p / place % 10 * place;
    if (part == 0) continue;
    t.number('A', part);
    t.number('B', q);
    t.number('C', part * q);
    t.number('D', sum);
    t.number('E', sum + part * q);
    if (sum == 0) {
      t.say("[nsubj A [conj cc:×/S B]] =/S obj:C .", "[nsubj A [conj cc:×/S B]] =/S obj:C 。");
    } else {
      t.say("[nsubj A [conj cc:×/S B]] =/S obj:C , [conj and [nsubj D [conj cc:+/S C]] =/S obj:E] .",
            "[nsubj A [conj cc:×/S B]] =/S obj:C ， [conj [nsubj D [conj cc:+/S C]] =/S obj:E] 。");
    }
    sum += part * q;
  }
}

// Long division by one digit: what is left is carried to the next digit.
void divided_steps(StoryBuilder& t, int64_t p, int64_t q) {
  int64_t left = 0;
  bool begun = false;
  for (int64_t place = place_of(p); place > 0; place /= 10) {
    const int64_t now = left * 10 + p / place % 10;
    left = now % q;
    begun = begun || now >= q;
    if (!begun) continue;
    t.number('A', now / q);
    t.number('B', q);
    t.number('C', now - left);
    t.number('D', now);
    t.number('E', left);
    t.say(
        "[nsubj A [conj cc:×/S B]] =/S obj:C , [conj [nsubj D [conj cc:-/S C]] =/S obj:E] , [parataxis write obj:A] .",
        "[nsubj A [conj cc:×/S B]] =/S obj:C ， [conj [nsubj D [conj cc:-/S C]] =/S obj:E] ， [parataxis 写 obj:A] 。");
  }
}

// A number of so many digits.
int64_t of_digits(StoryBuilder& t, int digits) {
  int low = 1;
  for (int i = 1; i < digits; ++i) low *= 10;
  return t.draw().between(digits == 1 ? 2 : low, low * 10 - 1);
}

void one_sum(StoryBuilder& t) {
  enum Which : uint32_t { plus, minus, times, divided };
  const auto which = static_cast<Which>(t.draw().below(4));
  int64_t p = of_digits(t, t.draw().between(1, which == times ? 3 : 4));
  int64_t q = of_digits(t, which == times || which == divided ? 1 : t.draw().between(1, 4));
  if (which == minus && p < q) std::swap(p, q);
  if (which == divided) p = of_digits(t, t.draw().between(1, 3)) * q;  // nothing is left over
  const Operation& op = which == plus ? kPlus : which == minus ? kMinus : which == times ? kTimes : kDivided;
  const int64_t result = which == plus ? p + q : which == minus ? p - q : which == times ? p * q : p / q;
  t.number('P', p);
  t.number('Q', q);
  t.number('R', result);
  if (t.draw().chance(40)) {
    t.say(op.answer.en, op.answer.zh);
  } else {
    t.say(op.steps.en, op.steps.zh);
    if (which == plus) plus_steps(t, p, q);
    if (which == minus) minus_steps(t, p, q);
    if (which == times) times_steps(t, p, q);
    if (which == divided) divided_steps(t, p, q);
    t.say(op.so.en, op.so.zh);
  }
  t.ask(op.question, op.answer, 'R');
}

// "Tom has 17 apples. Anna gives him 25 more."
void word_problem(StoryBuilder& t) {
  const int p = t.draw().between(12, 99), q = t.draw().between(3, p - 2);
  const bool more = t.draw().chance(50);
  t.person('K', anyone(t));
  t.other_gender_person('H', 'K');
  t.plain('J', t.draw().chance(60) ? fruit() : t.draw().chance(50) ? toys() : baked());
  t.number('P', p);
  t.number('Q', q);
  t.number('R', more ? p + q : p - q);
  t.say_one_of({
      {"nsubj:K have* [obj nummod:P J%] .", "nsubj:K 有 [obj nummod:P clf:J^ J%] 。"},
      {"nsubj:K count* [obj nummod:P J%] .", "nsubj:K 数 了 compound:数/V ， [conj 有/V [obj nummod:P clf:J^ J%]] 。"},
  });
  if (more) {
    t.say_one_of({
        {"nsubj:H give* iobj:K! [obj nummod:Q amod:more] .", "nsubj:H 又 送 [obl 给 K!] [obj nummod:Q J^] 。"},
        {"nsubj:H bring* [obj nummod:Q J%] .", "nsubj:H 又 带来 了 [obj nummod:Q clf:J^ J%] 。"},
    });
  } else {
    t.say_one_of({
        {"nsubj:K! give* [obj nummod:Q J%] [obl to H] .", "nsubj:K! 送 [obl 给 H] [obj nummod:Q clf:J^ J%] 。"},
        {"nsubj:H take* [obj nummod:Q J%] compound:prt:away .", "nsubj:H 拿走 了 [obj nummod:Q clf:J^ J%] 。"},
    });
  }
  const Operation& op = more ? kPlus : kMinus;
  t.say("[nsubj [amod how many] J%] are/V there now ?", "nsubj:K! obl:tmod:现在 有 [obj [nummod 多少 clf:J^] J%] ？");
  if (t.draw().chance(50)) {
    t.say(op.steps.en, op.steps.zh);
    if (more) {
      plus_steps(t, p, q);
    } else {
      minus_steps(t, p, q);
    }
    t.say(op.so.en, op.so.zh);
  } else {
    t.say(op.answer.en, op.answer.zh);
  }
  t.say("expl:there/U are/V [nsubj nummod:R J%] now .", "nsubj:K! obl:tmod:现在 有 [obj [nummod R clf:J^] J%] 。");
}

}  // namespace

void sums(StoryBuilder& t) {
  if (t.draw().chance(45)) {
    // The steps use most role letters, so the people are created again.
    word_problem(t);
    return;
  }
  const int count = t.draw().between(2, 4);
  for (int i = 0; i < count; ++i) one_sum(t);
}

void market(StoryBuilder& t) {
  t.day();
  t.person('A', anyone(t));
  t.other_gender_person('C', 'A');
  const int m = t.draw().between(2, 12), n = t.draw().between(2, 12);
  t.things('F', fruit(), m);
  t.things('G', fruit(), n);
  while (t.noun('F') == t.noun('G')) t.things('G', fruit(), n);
  t.pet('D');
  const int f = t.draw().between(2, 9), g = t.draw().between(2, 9);
  const int total = m * f + n * g;
  const int purse = total + t.draw().between(1, 60);
  t.number('U', purse);
  t.number('P', m);
  t.number('Q', f);
  t.number('R', m * f);
  t.number('S', n);
  t.number('T', g);
  t.number('V', n * g);
  t.number('W', total);
  t.number('Z', purse - total);
  t.say_one_of({
      {"&t , nsubj:A go* [obl to the market] [obl with nummod:U coins] .",
       "&t ， nsubj:A 带 着 [obj nummod:U clf:块 钱] [conj 去 了 obj:市场] 。"},
      {"&t , nsubj:A have* [obj nummod:U coins] [conj and go* [obl to the market]] .",
       "&t ， nsubj:A 有 [obj nummod:U clf:块 钱] ， [conj 去 了 obj:市场] 。"},
  });
  t.say_one_of({
      {"nsubj:A buy* [obj F [conj and G]] .", "nsubj:A 买 了 [obj F [conj 和 G]] 。"},
      {"nsubj:A choose* [obj F [conj and G]] .", "nsubj:A 挑 了 [obj F [conj 和 G]] 。"},
      {"nsubj:C sell* iobj:A! [obj F [conj and G]] .", "nsubj:C 卖 [obl 给 A!] [obj F [conj 和 G]] 。"},
  });
  t.say(
      "[nsubj each/U [nmod of F-]] cost* [obj nummod:Q coins] , [conj and [nsubj each/U [nmod of G-]] cost* [obj "
      "nummod:T coins]] .",
      "[nsubj F#] [obl det:每 F^] 要/V [obj nummod:Q clf:块 钱] ， [conj [nsubj G#] [obl det:每 G^] 要/V [obj nummod:T "
      "clf:块 钱]] 。");
  if (t.draw().chance(60)) {
    t.say_one_of({
        {"[ccomp “ advmod:how much/R cop:is nsubj:that/U ? ”] nsubj:A! ask* .",
         "[ccomp “ [advmod 一共] 多少/V obj:钱 ？ ”] nsubj:A! 问 。"},
        {"nsubj:A! count* [obl on A'~ fingers] .", "nsubj:A! 扳/V 着 obj:手指 [conj 算 compound:起来/V] 。"},
        {"nsubj:A! think* [obl for a minute] .", "nsubj:A! 想/V 了 obl:一会儿 。"},
    });
  }
  if (t.draw().chance(65)) {
    t.say("[nsubj P [conj cc:×/S Q]] =/S obj:R , [conj and [nsubj S [conj cc:×/S T]] =/S obj:V] .",
          "[nsubj P [conj cc:×/S Q]] =/S obj:R ， [conj [nsubj S [conj cc:×/S T]] =/S obj:V] 。");
    t.say("advmod:together , nsubj:that/U is/V [obj R [conj cc:+/S V [conj cc:=/S W]]] .",
          "[advmod 一共] 是/V [obj R [conj cc:+/S V [conj cc:=/S W]]] 。");
  }
  t.say_one_of({
      {"nsubj:A! pay* [obj nummod:W coins] , [conj and [nsubj nummod:Z coins] be* left/J] .",
       "nsubj:A! 付 了 [obj nummod:W clf:块 钱] ， [conj 还 剩/V [obj nummod:Z clf:块]] 。"},
      {"advmod:so nsubj:A! pay* [obj nummod:W coins] [conj and go* home [obl with [nummod Z] coins]] .",
       "所以 nsubj:A! 付 了 [obj nummod:W clf:块 钱] ， [conj 带 着 [obj nummod:Z clf:块 钱] [conj 回/V obj:家 了_]] "
       "。"},
  });
  t.say_one_of({
      {"[obl on the way] home , [nsubj D , [appos A'! D=] ,] eat* [obj nummod:one [nmod of F-]] .",
       "[obl 在 [acl 回家 的] 路 上] ， [nsubj A'!0 [det 那/D clf:D^] compound:D= D] 吃 了 [obj nummod:一 clf:F^ F#] "
       "。"},
      {"[ccomp “ [nsubj F-] are/X better^good/J [obl than money/N] , ”] say* nsubj:A! .",
       "[ccomp “ nsubj:F- [obl 比 钱] 好/J 。 ”] nsubj:A! 说 。"},
      {"nsubj:nobody/U be* happier^happy/J [obl than A!] .", "没有 nsubj:人 [ccomp [obl 比 A!] 更 高兴/J] 。"},
      {"nsubj:A! make* obj:soup [obl with F-] , [conj and nsubj:everyone/U be* surprised/J] .",
       "nsubj:A! [obl 用 F-] 煮 了 obj:汤 ， [conj nsubj:大家/U 都 很 惊讶/J] 。"},
  });
  t.ask({"advmod:how [obj amod:many coins] aux:did nsubj:A! pay/V ?",
         "nsubj:A! [advmod 一共] 付 了 [obj nummod:多少 钱] ？"},
        {"nsubj:A! paid [obj nummod:W coins] .", "nsubj:A! 付 了 [obj nummod:W clf:块 钱] 。"}, 'W');
  t.ask({"[nsubj [amod advmod:how many] coins] cop:were left/J ?", "还 剩 [obj nummod:多少 钱] ？"},
        {"[nsubj nummod:Z coins] cop:were left/J .", "还 剩 [obj nummod:Z clf:块 钱] 。"}, 'Z');
}

void lesson(StoryBuilder& t) {
  t.person('Z', {.age = Age::adult});
  t.person('A');
  t.person('C');
  t.animal('D', pets());
  t.day();
  t.say_one_of({
      {"&t , nsubj:Z teach* [obj the class] .", "&t ， nsubj:Z [obl 给 大家/U] 上课/V 。"},
      {"nsubj:Z be* a amod:patient teacher/N , [conj but nsubj:A be* always sleepy/J] .",
       "nsubj:Z 是 [nummod 一 clf:位] [amod 有耐心 的] 老师/N ， [conj 可是 nsubj:A 总是 很 困/J] 。"},
      {"&t , nsubj:Z open* [obj a amod:thick book] [conj and look* [obl at the class]] .",
       "&t ， nsubj:Z 打开 [obj [nummod 一 clf:本] [amod 厚厚 的] 书] ， [conj 看 着 obj:大家/U] 。"},
  });
  const int rounds = t.draw().between(1, 3);
  for (int i = 0; i < rounds; ++i) {
    t.country('N', 'K');
    t.country('M', 'L');
    while (t.name('M') == t.name('N')) t.country('M', 'L');
    t.say_one_of({
        {"nsubj:Z! ask* , [ccomp “ what/U cop:is [nsubj the capital [nmod of N]] ? ”]",
         "nsubj:Z! 问 ： [ccomp “ [nsubj [nmod N 的] 首都] 是 哪里/U ？ ”]"},
        {"[ccomp “ nsubj:who/U knows [obj the capital [nmod of N]] ? ”] nsubj:Z! ask* .",
         "[ccomp “ nsubj:谁/U 知道 [obj [nmod N 的] 首都] ？ ”] nsubj:Z! 问 。"},
    });
    if (t.draw().chance(35)) {
      t.say("[ccomp “ L , ”] say* nsubj:A! .", "[ccomp “ L 。 ”] nsubj:A! 说 。");
      t.say_one_of({
          {"[ccomp “ discourse:no , nsubj:L! cop:is the capital/N [nmod of M] , ”] say* nsubj:Z! .",
           "[ccomp “ 不对/J ， [parataxis nsubj:L! 是 [nmod M 的] 首都/N] 。 ”] nsubj:Z! 说 。"},
          {"[ccomp “ almost/R , [conj but nsubj:L! cop:is the capital/N [nmod of M]] , ”] say* nsubj:Z! kindly .",
           "[ccomp “ 差/V obj:一点 ， [parataxis nsubj:L! 是 [nmod M 的] 首都/N] 。 ”] nsubj:Z! [advmod 和蔼] 地 说 "
           "。"},
      });
      t.say_one_of({
          {"[ccomp “ K , ”] whisper* nsubj:C .", "[ccomp “ K 。 ”] nsubj:C [advmod 小声] 说 。"},
          {"nsubj:C know* obj:it/U : [parataxis “ K ! ”]", "nsubj:C 知道 ： [parataxis “ K ！ ”]"},
      });
    } else {
      t.say_one_of({
          {"[ccomp “ K , ”] answer* nsubj:C .", "[ccomp “ K 。 ”] nsubj:C 回答 。"},
          {"[ccomp “ [nsubj the capital [nmod of N!]] cop:is K , ”] say* nsubj:C .",
           "[ccomp “ [nsubj [nmod N! 的] 首都] 是 K 。 ”] nsubj:C 说 。"},
          {"nsubj:A! wake* compound:prt:up [conj and say* , [ccomp “ K . ”]]",
           "nsubj:A 醒/V compound:过来/V ， [conj 说 ： [ccomp “ K 。 ”]]"},
      });
    }
    t.ask({"what/U cop:is [nsubj the capital [nmod of N!]] ?", "[nsubj [nmod N! 的] 首都] 是 哪里/U ？"},
          {"[nsubj the capital [nmod of N!]] cop:is K! .", "[nsubj [nmod N! 的] 首都] 是 K! 。"}, 'K');
  }
  if (t.draw().chance(50)) {
    const int p = t.draw().between(11, 99), q = t.draw().between(11, 99);
    t.number('P', p);
    t.number('Q', q);
    t.number('R', p + q);
    t.say("[ccomp “ advmod:and [nsubj what/U] cop:is P [conj cc:+/S Q] ? ”] nsubj:Z! ask* .",
          "[ccomp “ 那么/R [nsubj P [conj cc:+/S Q]] 等于/V obj:多少/U 呢 ？ ”] nsubj:Z! 问 。");
    t.say_one_of({
        {"[ccomp “ R , ”] say* nsubj:C! .", "[ccomp “ R 。 ”] nsubj:C! 说 。"},
        {"nsubj:C! count* [obl on C'~ fingers] [conj and say* , [ccomp “ R . ”]]",
         "nsubj:C! 扳 着 obj:手指 [conj 算/V 了 compound:算/V] ， [conj 说 ： [ccomp “ R 。 ”]]"},
    });
    t.ask({"[nsubj P [conj cc:+/S Q]] =/S obj:?/S", "[nsubj P [conj cc:+/S Q]] =/S obj:？/S"}, kAdd, 'R');
  }
  t.say_one_of({
      {"[ccomp “ very good/J , ”] say* nsubj:Z! , [conj and nsubj:everyone/U go* home] .",
       "[ccomp “ 很 好/J 。 ”] nsubj:Z! 说 ， [conj nsubj:大家/U 就 回家/V 了_] 。"},
      {"[ccomp “ [nsubj the lesson] cop:is over/R , ”] say* nsubj:Z! , [conj and [nsubj even D] be* glad/J] .",
       "[ccomp “ 下课/V 。 ”] nsubj:Z! 说 ， [conj advmod:连 nsubj:D 都 很 高兴/J] 。"},
      {"nsubj:Z! smile* , [parataxis because nsubj:nobody/U sleep*] .",
       "nsubj:Z! 笑 了_ ， [advcl 因为 没有/V nsubj:人 [ccomp 睡着/V]] 。"},
      {"nsubj:A! say* , [ccomp “ nsubj:A.I know obj:everything/U advmod:now . ”]",
       "nsubj:A! 说 ： [ccomp “ nsubj:A.I obl:tmod:现在 dislocated:什么/U 都 知道 了_ 。 ”]"},
  });
}

}  // namespace qkv::world

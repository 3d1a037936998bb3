// capital - country + another country: is it the other capital?
#include "labs/labs.h"
#include "labs/words/countries.h"

namespace qkv::labs {
namespace {

SeedNumbers measure_analogy(const LabContext& lab, uint64_t seed) {
  const Countries world, unrelated{.shared = false};
  const int64_t steps = lab.sized(400);
  const AnalogyScore untrained = learnt_analogies(lab, world, 0, seed),
                     trained = learnt_analogies(lab, world, steps, seed),
                     control = learnt_analogies(lab, unrelated, steps, seed);
  SeedNumbers out;
  out.add_share("right, nothing left out", trained.open);
  out.add_share("right, the question's three words left out", trained.three_left_out);
  out.add_share("leak: right without arithmetic, if the country is left out", trained.neighbour);
  out.add("what leaving the three words out adds", trained.three_left_out - trained.open, LabRange::share_difference());
  out.add_share("control: untrained: right, three words left out", untrained.three_left_out);
  out.add_share("control: capitals of other countries: right, three words left out", control.three_left_out);
  out.add_share("by chance", 1 / static_cast<double>(world.vocabulary() - 3));
  return out;
}

}  // namespace

const Lab& analogy() {
  static const Lab lab{
      .name = "analogy",
      .claim =
          "Vectors of words can be reckoned with: capital minus country plus another country is the other capital, "
          "also\n"
          "if none of the question's three words is left out.",
      .claim_zh = "词的向量可以加减：首都减去国家，加上另一个国家，就是另一个首都；问题里的三个词一个都不排除也成立。",
      .how =
          "24 countries and their capitals, known only by sentences such as \"place verb thing\": a country and its\n"
          "capital share four things (rivers, dishes), countries share verbs and capitals share verbs, and no "
          "sentence\n"
          "has both words of a pair. One layer of width 32 with one table for embedding and head learns to continue\n"
          "them, 400 steps of 32 texts. Then all 552 questions: the word with the largest cosine, out of all 157. The\n"
          "question's own words are usually left out; then the country's nearest neighbour may be right without any\n"
          "arithmetic (the leak). With nothing left out that neighbour is the country itself, which is wrong. "
          "Controls\n"
          "that must fail: before training, and with capitals that share the things of another country.",
      .seeds = 3,
      .rules = {{"right, nothing left out", LabRule::Side::above, 0.5, "the nearest of all words"},
                {"what leaving the three words out adds", LabRule::Side::below, 0.2,
                 "leaving words out must not be what makes it right"},
                {"control: untrained: right, three words left out", LabRule::Side::below, 0.1, "nothing is learnt yet"},
                {"control: capitals of other countries: right, three words left out", LabRule::Side::below, 0.2,
                 "nothing ties them to the country"}},
      .found =
          {.seen =
               {"Capital - country + another country is nearest to the other capital in {right, nothing left out%} of "
                "the cases with nothing left out; had the country been left out, its neighbour would have been right "
                "without arithmetic in {leak: right without arithmetic, if the country is left out%}; an untrained "
                "model is right in {control: untrained: right, three words left out%}.",
                "首都 − 国家 + 另一个国家，一个词都不排除，{right, nothing left out%} "
                "的时候离得最近的就是另一个首都；要是照惯例排除国家，不做加减、只取它的近邻也能对 {leak: right without "
                "arithmetic, if the country is left out%}；没有训练的模型对 {control: untrained: right, three words "
                "left "
                "out%}。"},
           .mixed =
               {"Right with nothing left out: {right, nothing left out%}; with the three words left out: {right, the "
                "question's three words left out%}; without arithmetic: {leak: right without arithmetic, if the "
                "country "
                "is left out%}; untrained {control: untrained: right, three words left out%}, capitals of other "
                "countries {control: capitals of other countries: right, three words left out%}.",
                "答对的比例：一个词都不排除 {right, nothing left out%}，排除问题里的三个词 {right, the question's "
                "three "
                "words left out%}，不做加减 {leak: right without arithmetic, if the country is left out%}；没有训练 "
                "{control: untrained: right, three words left out%}，换成别国的首都 {control: capitals of other "
                "countries: right, three words left out%}。"},
           .not_seen = {"The arithmetic found no capitals beyond what neighbourhood or chance finds: {right, nothing "
                        "left out%}.",
                        "加减找到的首都不比近邻或碰巧更多：{right, nothing left out%}。"}},
      .measure = measure_analogy};
  return lab;
}

}  // namespace qkv::labs

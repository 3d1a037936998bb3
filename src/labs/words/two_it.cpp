// 它 the book, 它 the lemon tea: one word, two things, told apart by the rest of the sentence.
#include "labs/labs.h"
#include "labs/words/two_things.h"

namespace qkv::labs {
namespace {

SeedNumbers measure_two_it(const LabContext& lab, uint64_t seed) {
  using Told = TwoThings::Told;
  const int64_t steps = lab.sized(600);
  const ItRead before = learn_it(lab, Told::before, Sight::back, steps, seed),
               after = learn_it(lab, Told::after, Sight::back, steps, seed),
               both_ways = learn_it(lab, Told::after, Sight::both_ways, steps, seed);
  SeedNumbers out;
  out.add_share("told before: decoder, right at 它", before.at_it);
  out.add("told before: likeness of the two 它, embedding", before.alike.front(), LabRange::share_difference());
  out.add("told before: likeness of the two 它, last layer", before.alike.back(), LabRange::share_difference());
  out.add_share("control: told after: decoder, right at 它", after.at_it);
  out.add_share("told after: decoder, right at the end of the sentence", after.at_end);
  out.add_share("told after: encoder, right at 它", both_ways.at_it);
  out.add("told after: encoder, likeness of the two 它, last layer", both_ways.alike.back(),
          LabRange::share_difference());
  const auto curve = [](const ItRead& read, const char* series) {
    SeedNumbers::Curve line{"layer", "likeness of the two 它", series};
    for (size_t d = 0; d < read.alike.size(); ++d) line.points.push_back({static_cast<double>(d), read.alike[d]});
    return line;
  };
  out.curves = {curve(before, "told before, decoder"), curve(after, "told after, decoder"),
                curve(both_ways, "told after, encoder")};
  return out;
}

}  // namespace

const Lab& two_it() {
  static const Lab lab{
      .name = "two-it",
      .claim =
          "它 (it) is the book in one sentence and the lemon tea in another: the sentence makes two vectors of one\n"
          "word, and they say which thing is meant. In a decoder only words before 它 can do that.",
      .claim_zh =
          "同一个“它”，这句话里是书，那句话里是柠檬茶：上下文把一个词变成两个向量，向量里就有它指的是什么。"
          "在解码器里，只有“它”前面的词做得到。",
      .how =
          "24 things of four kinds; a sentence has two, of two kinds, and a word that tells which one 它 is: before "
          "它\n"
          "(小明渴了，桌上有书和柠檬茶，他拿起了它。) or after it (……拿起了它，很解渴。). Two layers of width 64 "
          "learn\n"
          "to say what is meant, at 它 and at the end of the sentence, 600 steps of 48 sentences. The exam: pairs of\n"
          "things that training never put together, as twins that differ in the telling word alone; a pair counts if\n"
          "both twins are right, so always naming the first thing, or the nearest, is never right. Likeness: cosine\n"
          "of the vectors of 它 in twins. Control that must fail: a decoder that is told after 它, read at 它; the "
          "same\n"
          "decoder must know it at the end, and an encoder, which sees both ways, at 它.",
      .seeds = 3,
      .rules = {{"told before: decoder, right at 它", LabRule::Side::above, 0.8, "both of the twins"},
                {"told before: likeness of the two 它, embedding", LabRule::Side::above, 0.999, "one word, one vector"},
                {"told before: likeness of the two 它, last layer", LabRule::Side::below, 0.5, "two vectors"},
                {"control: told after: decoder, right at 它", LabRule::Side::below, 0.05, "it cannot look ahead"},
                {"told after: decoder, right at the end of the sentence", LabRule::Side::above, 0.8,
                 "the same decoder, once it has been told"},
                {"told after: encoder, right at 它", LabRule::Side::above, 0.8, "it sees both ways"}},
      .found =
          {.seen =
               {"Told before 它, a decoder knows at 它 which thing it is in {told before: decoder, right at 它%} of "
                "the "
                "twins, whose two vectors of 它 go from a cosine of 1 to {told before: likeness of the two 它, last "
                "layer}; told after, it knows in {control: told after: decoder, right at 它%} at 它, in {told after: "
                "decoder, right at the end of the sentence%} at the end, and an encoder in {told after: encoder, right "
                "at 它%} at 它.",
                "提示在“它”之前，解码器读到“它”就知道指什么，孪生句两句都对的占 {told before: decoder, right at "
                "它%}，两个“它”的余弦从 1 变到 {told before: likeness of the two 它, last "
                "layer}；提示在后面，解码器在“它”处对 {control: told after: decoder, right at "
                "它%}，到句末对 {told after: decoder, right at the end of the sentence%}，编码器在“它”处就对 "
                "{told after: encoder, right at 它%}。"},
           .mixed =
               {"Twins both right: told before, decoder at 它 {told before: decoder, right at 它%}; told after, "
                "decoder "
                "at 它 {control: told after: decoder, right at 它%} and at the end {told after: decoder, right at the "
                "end of the sentence%}, encoder at 它 {told after: encoder, right at 它%}; likeness of the two 它 in "
                "the "
                "last layer {told before: likeness of the two 它, last layer}.",
                "孪生句两句都对的比例：提示在前，解码器在“它”处 {told before: decoder, right at "
                "它%}；提示在后，解码器在“它”处 {control: told after: decoder, right at 它%}，在句末 {told after: "
                "decoder, right at the end of the sentence%}，编码器在“它”处 {told after: encoder, right at "
                "它%}；最后一层两个“它”的余弦是 {told before: likeness of the two 它, last layer}。"},
           .not_seen = {"The vectors of 它 did not say which thing was meant.", "“它”的向量说不出指的是什么。"}},
      .measure = measure_two_it};
  return lab;
}

}  // namespace qkv::labs

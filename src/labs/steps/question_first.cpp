// The question before or after the text, for a decoder and for an encoder-decoder.
#include "labs/labs.h"
#include "labs/steps/records_task.h"

namespace qkv::labs {
namespace {

SeedNumbers measure_question_first(const LabContext& lab, uint64_t seed) {
  using Table = RecordsTask::Table;
  using Order = RecordsTask::Order;
  const auto read = [&](Order order, Architecture architecture, Table table = Table::random) {
    return learn_records(lab, {.table = table, .order = order, .seed = seed}, architecture,
                         lab.sized(table == Table::match ? 500 : 400));
  };
  const RecordsRead first = read(Order::question_first, Architecture::decoder_only),
                    last = read(Order::question_last, Architecture::decoder_only),
                    both_first = read(Order::question_first, Architecture::encoder_decoder),
                    both_last = read(Order::question_last, Architecture::encoder_decoder),
                    search = read(Order::question_last, Architecture::decoder_only, Table::match);
  SeedNumbers out;
  out.add_share("decoder: right with the question first", first.lists);
  out.add_share("decoder: right with the question last", last.lists);
  out.add("decoder: first less last", first.lists - last.lists, LabRange::share_difference());
  out.add_share("encoder-decoder: right with the question first", both_first.lists);
  out.add_share("encoder-decoder: right with the question last", both_last.lists);
  out.add_share("control: decoder, question last: right about one record alone", last.pairs);
  out.add_share("control: a search: decoder, right with the question last", search.lists);
  return out;
}

}  // namespace

const Lab& question_first() {
  static const Lab lab{
      .name = "question-first",
      .claim =
          "A decoder does better if the question stands before the text, because the text is read with the question "
          "in\n"
          "mind; an encoder-decoder, whose encoder sees both ways, does not care.",
      .claim_zh = "解码器最好先读问题再读正文，这样读正文时心里有问题；编码器两边都看得到，编码器—解码器就无所谓先后。",
      .how =
          "A table, drawn at random, says which of 16 items belong to which of 16 questions. A text has six records, "
          "an\n"
          "item and a colour each; one item belongs to the question, its colour is asked for. To say whether an item\n"
          "belongs takes a feed-forward that has item and question before it; six records at once can only be judged\n"
          "where they stand. Two layers of width 32 with 8 heads (decoder), or one of each (encoder-decoder), 400\n"
          "steps of 96 texts, and of 128 pairs of a question and one record, which teach the table in the same order.\n"
          "Controls: a decoder with the question last must know the table, one record alone; and it must find the\n"
          "record if the table is a search, one item for each question, after 500 steps. Guessing one of the six\n"
          "colours: about 0.27.",
      .seeds = 3,
      .rules = {{"decoder: right with the question first", LabRule::Side::above, 0.9, "it judges every record"},
                {"decoder: first less last", LabRule::Side::above, 0.1, "more than noise"},
                {"encoder-decoder: right with the question first", LabRule::Side::above, 0.9, "it sees both ways"},
                {"encoder-decoder: right with the question last", LabRule::Side::above, 0.9, "it sees both ways"},
                {"control: decoder, question last: right about one record alone", LabRule::Side::above, 0.9,
                 "it knows the table and cannot use it"},
                {"control: a search: decoder, right with the question last", LabRule::Side::above, 0.9,
                 "else it can find nothing at all"}},
      .found =
          {.seen =
               {"With the question first a decoder finds {decoder: right with the question first%} of the answers, "
                "with "
                "the question last {decoder: right with the question last%}, though it judges one record alone in "
                "{control: decoder, question last: right about one record alone%} of the cases; an encoder-decoder "
                "finds {encoder-decoder: right with the question first%} and {encoder-decoder: right with the question "
                "last%}.",
                "先读问题，解码器答对 {decoder: right with the question first%}；后读问题只有 {decoder: right with the "
                "question last%}，尽管单独一条记录它能判断对 {control: decoder, question last: right about one record "
                "alone%}；编码器—解码器先后都行：{encoder-decoder: right with the question first%} 和 "
                "{encoder-decoder: right with the question last%}。"},
           .mixed =
               {"Right with the question first and last: decoder {decoder: right with the question first%} and "
                "{decoder: right with the question last%}, encoder-decoder {encoder-decoder: right with the question "
                "first%} and {encoder-decoder: right with the question last%}; a search with the question last "
                "{control: a search: decoder, right with the question last%}.",
                "问题在前和在后答对的比例：解码器 {decoder: right with the question first%} 和 {decoder: right with "
                "the "
                "question last%}，编码器—解码器 {encoder-decoder: right with the question first%} 和 {encoder-decoder: "
                "right with the question last%}；只是查找、问题在后时 {control: a search: decoder, right with the "
                "question last%}。"},
           .not_seen = {"Nothing was learnt in either order, or the order made no difference to a decoder.",
                        "两种顺序都没有学会，或者先后对解码器没有差别。"}},
      .measure = measure_question_first};
  return lab;
}

}  // namespace qkv::labs

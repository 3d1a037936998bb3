// Roles of heads: against whole attention maps, on hand-set heads, on heads that do nothing.
#include "inspect/heads/head_roles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/host_values.h"
#include "inspect/heads/heads_by_hand.h"
#include "inspect/report/heads_report.h"
#include "inspect/texts/token_kinds.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "model/kv_layouts.h"
#include "support/pass.h"
#include "support/some_ids.h"

namespace qkv {
namespace head_roles_test {

using test::HeadsByHand;
using test::some_ids;
using TextIds = std::vector<int32_t>;

std::vector<TokenText> some_texts(const Model& model, int32_t below = 12) {
  std::vector<TokenText> texts;
  for (const int64_t length : {31, 17, 24, 2, 40, 12, 28}) {
    texts.push_back({.ids = some_ids(length, static_cast<uint32_t>(length), below)});
    if (model.spec().has_source()) {
      texts.back().source = some_ids(length + 5, static_cast<uint32_t>(length) + 90, below);
    }
  }
  return texts;
}

const double kRoom = 2e-5;

// --- measures recomputed from whole attention maps -------------------------------------------------------------------

// Attention maps, values and outputs of every text, one text per pass.
class Patterns : public ReadingProbe {
 public:
  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place, Site site) const override { return site == Site::attn_probs ? Ask::pattern : Ask::none; }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    found[{tap.place.stack, tap.place.layer}] = {host_floats(x), x.dim(1), x.dim(2)};
  }
  struct One {
    std::vector<float> weights;
    int64_t heads, keys;
    double at(int64_t i, int64_t h, int64_t j) const {
      return static_cast<double>(weights[static_cast<size_t>((i * heads + h) * keys + j)]);
    }
  };
  std::map<std::pair<Stack, int16_t>, One> found;
};

struct Plain {
  TextSum previous, next, at_previous, first, sink, entropy, distance, confidence, duplicate, induction, induction_mass;
};

Plain plain_scores(const AttentionSpec& spec, const Patterns::One& a, int64_t h, const std::vector<int32_t>& queries,
                   const std::vector<int32_t>& keys, bool itself) {
  Plain p;
  for (int64_t i = 2; i < std::ssize(queries); ++i) {
    double mass = 0, entropy = 0, distance = 0, highest = 0;
    int64_t seen = 0, strongest = -1;
    for (int64_t j = 0; j < std::ssize(keys); ++j) {
      const bool sees = (!spec.causal || j <= i) && (spec.window == 0 || j > i - spec.window);
      const double w = a.at(i, h, j);
      if (!sees) {
        EXPECT_EQ(w, 0);
        continue;
      }
      ++seen;
      mass += w;
      if (w > 0) entropy -= w * std::log(w);
      distance += w * static_cast<double>(i - j);
      if (w > highest) {
        highest = w;
        strongest = j;
      }
    }
    p.first.add(a.at(i, h, 0));
    if (i - 1 < std::ssize(keys)) {
      p.previous.add(a.at(i, h, i - 1));
      p.at_previous.add(strongest == i - 1 ? 1 : 0);
    }
    if (!spec.causal && i + 1 < std::ssize(keys)) p.next.add(a.at(i, h, i + 1));
    if (spec.sinks) p.sink.add(1 - mass);
    p.entropy.add(entropy / std::log(static_cast<double>(seen)));
    p.distance.add(distance);
    p.confidence.add(highest);
    if (!itself) continue;
    double copies = 0, after = 0;
    bool any = false;
    for (int64_t j = 0; j < i; ++j) {
      if (queries[static_cast<size_t>(j)] != queries[static_cast<size_t>(i)]) continue;
      any = true;
      copies += a.at(i, h, j);
      if (j + 1 < i && a.at(i, h, j + 1) >= 0.01) after += a.at(i, h, j + 1);  // not the row's own token
    }
    if (any) p.duplicate.add(copies);
    if (any) p.induction.add(after);
    p.induction_mass.add(after);
  }
  return p;
}

void near(const Estimate& got, const TextSum& right, const char* what) {
  EXPECT_EQ(got.n, right.count) << what;
  const double mean = right.count > 0 ? right.sum / static_cast<double>(right.count) : 0;
  EXPECT_NEAR(got.mean, mean, kRoom) << what;
}

class RolesOf : public testing::TestWithParam<const char*> {};

TEST_P(RolesOf, are_what_whole_patterns_say) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden(GetParam())).model();
  const ModelSpec& spec = model->spec();
  const bool has_source = spec.has_source();
  const std::vector<TokenText> texts = some_texts(*model);
  Reader reader(*model, engine, {.rows = 64});
  const RoleScores scores = head_roles(reader, nullptr, texts, {});
  ASSERT_EQ(scores.heads.size(), all_heads(spec).size());

  std::map<HeadId, Plain> right;
  for (const TokenText& text : texts) {
    Patterns patterns;
    reader.look({&text, 1}, patterns);
    for (const HeadId& id : all_heads(spec)) {
      const auto& queries = has_source && id.stack == Stack::encoder ? text.source : text.ids;
      const auto& keys = has_source && id.stack != Stack::decoder ? text.source : text.ids;
      const Plain p = plain_scores(attention_at(spec, id.place()), patterns.found.at({id.stack, id.layer}), id.head,
                                   queries, keys, id.stack != Stack::cross);
      Plain& all = right[id];
      for (TextSum Plain::*m :
           {&Plain::previous, &Plain::next, &Plain::at_previous, &Plain::first, &Plain::sink, &Plain::entropy,
            &Plain::distance, &Plain::confidence, &Plain::duplicate, &Plain::induction, &Plain::induction_mass}) {
        all.*m += p.*m;
      }
    }
  }
  for (const HeadScore& head : scores.heads) {
    SCOPED_TRACE(name_of(spec, head.id));
    const Plain& p = right.at(head.id);
    near(head[Measure::previous], p.previous, "previous");
    near(head[Measure::next], p.next, "next");
    near(head[Measure::at_previous], p.at_previous, "at_previous");
    near(head[Measure::first], p.first, "first");
    near(head[Measure::sink], p.sink, "sink");
    near(head[Measure::entropy], p.entropy, "entropy");
    near(head[Measure::distance], p.distance, "distance");
    if (spec.tokens.eos.empty()) near(head[Measure::confidence], p.confidence, "confidence");
    near(head[Measure::duplicate], p.duplicate, "duplicate");
    near(head[Measure::induction], p.induction, "induction");
    near(head[Measure::induction_mass], p.induction_mass, "induction_mass");
    EXPECT_GT(head[Measure::write].n, 0);
    EXPECT_TRUE(roles_of(head).empty()) << "a random model: none found";
  }
}
INSTANTIATE_TEST_SUITE_P(families, RolesOf,
                         testing::Values("llama", "gpt2", "gemma2", "gpt_oss", "marian", "bert", "t5", "deepseek_v3",
                                         "olmo2", "mixtral"));

// Value-weighted measures and outputs, computed directly from the values and W_O.
class Brought : public ReadingProbe {
 public:
  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place place, Site site) const override {
    if (place.layer != 1) return Ask::none;
    if (site == Site::attn_probs) return Ask::pattern;
    return site == Site::attn_v || site == Site::attn_z || site == Site::resid_pre ? Ask::read : Ask::none;
  }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    found[tap.site] = {host_floats(x), x.rank() == 3 ? x.dim(1) : 1, x.dim(-1)};
  }
  std::map<Site, Patterns::One> found;
};

double length_through(const Model& model, const Patterns::One& x, int64_t row, int64_t group, int64_t head) {
  const std::vector<float> w = host_floats(model.weights().at("layers.1.attn.o").master());
  const int64_t columns = model.weights().at("layers.1.attn.o").shape()[1];
  double sum = 0;
  for (int64_t c = 0; c < model.spec().width; ++c) {
    double written = 0;
    for (int64_t e = 0; e < x.keys; ++e) {
      written += x.at(row, group, e) * static_cast<double>(w[static_cast<size_t>(c * columns + head * x.keys + e)]);
    }
    sum += written * written;
  }
  return std::sqrt(sum);
}

TEST(Roles, weighted_by_values_are_what_w_o_says) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  for (const char* family : {"llama", "gpt2"}) {
    const auto model = Checkpoint::open(test::golden(family)).model();
    const AttentionSpec& spec = model->spec().decoder.layers[1].attention;
    Reader reader(*model, engine, {});
    const std::vector<TokenText> texts(1, {.ids = some_ids(14, 3, 12)});
    const RoleScores scores = head_roles(reader, nullptr, texts, {.repeated_texts = 0});
    Brought brought;
    reader.look(texts, brought);
    for (int64_t h = 0; h < spec.heads; ++h) {
      const Patterns::One& a = brought.found.at(Site::attn_probs);
      TextSum previous, write;
      for (int64_t i = 2; i < 14; ++i) {
        double all = 0, before = 0, stream = 0;
        for (int64_t j = 0; j <= i; ++j) {
          const double w =
              a.at(i, h, j) * length_through(*model, brought.found.at(Site::attn_v), j, kv_head_of(spec, h), h);
          all += w;
          if (j == i - 1) before = w;
        }
        previous.add(before / all);
        const Patterns::One& resid = brought.found.at(Site::resid_pre);
        for (int64_t c = 0; c < resid.keys; ++c) stream += resid.at(i, 0, c) * resid.at(i, 0, c);
        write.add(length_through(*model, brought.found.at(Site::attn_z), i, h, h) / std::sqrt(stream));
      }
      const HeadScore& head = scores.heads[static_cast<size_t>(spec.heads + h)];
      near(head.value_weighted[static_cast<size_t>(Measure::previous)], previous, "previous, weighted");
      near(head[Measure::write], write, "write");
    }
  }
}

TEST(Roles, of_a_text_in_stretches_are_those_of_the_whole) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  const std::vector<TokenText> texts{{.ids = some_ids(60, 1)}, {.ids = some_ids(90, 2)}, {.ids = some_ids(20, 3)}};
  Reader whole(*model, engine, {.rows = 128}), parts(*model, engine, {.rows = 16});
  // Enough room for all rows in both.
  const RoleScores a = head_roles(whole, nullptr, texts, {}), b = head_roles(parts, nullptr, texts, {});
  for (size_t h = 0; h < a.heads.size(); ++h) {
    for (size_t m = 0; m < kMeasures; ++m) {
      if (static_cast<Measure>(m) == Measure::copying) continue;  // of some rows of each pass
      EXPECT_EQ(a.heads[h].values[m].n, b.heads[h].values[m].n) << name_of(static_cast<Measure>(m));
      EXPECT_NEAR(a.heads[h].values[m].mean, b.heads[h].values[m].mean, 1e-6) << name_of(static_cast<Measure>(m));
      EXPECT_NEAR(a.heads[h].value_weighted[m].mean, b.heads[h].value_weighted[m].mean, 1e-6)
          << name_of(static_cast<Measure>(m));
    }
  }
  // With a small limit some rows are sampled; what the kernel accumulates is unchanged.
  const RoleScores some = head_roles(parts, nullptr, texts, {.pattern_numbers = 4000});
  EXPECT_LT(some.rows, a.rows);
  EXPECT_GT(some.rows, 0);
  EXPECT_EQ(some.heads[0][Measure::entropy].mean, b.heads[0][Measure::entropy].mean);
  EXPECT_LT(some.heads[0][Measure::duplicate].n, b.heads[0][Measure::duplicate].n);
}

// --- heads set by hand -----------------------------------------------------------------------------------------------

bool has_role(const HeadScore& head, std::string_view name) {
  for (const Role& role : roles_of(head)) {
    if (role.rule->name == name) return true;
  }
  return false;
}

// The rule of terminal, JSON and page: a mean above the threshold is not enough, nor is little more than chance.
TEST(Roles, need_their_whole_interval_above_the_threshold) {
  HeadScore head;
  const auto named = [&](double mean, double low, double chance) {
    head[Measure::previous] = {.mean = mean, .low = low, .high = 2 * mean - low, .n = 400, .texts = 20};
    head.chance[static_cast<size_t>(Measure::previous)] = chance;
    EXPECT_EQ(roles_json(head).size(), roles_of(head).size());
    return has_role(head, "previous token");
  };
  EXPECT_FALSE(named(0.397, 0.36, 0.05));
  EXPECT_FALSE(named(0.43, 0.399, 0.05));
  EXPECT_TRUE(named(0.43, 0.4, 0.05));
  EXPECT_FALSE(named(0.43, 0.4, 0.25));
  EXPECT_EQ(roles_json(head).size(), 0U);
}

TEST(Roles, set_by_hand_are_found) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const HeadsByHand hand;
  Reader reader(*hand.model, engine, {});
  std::vector<TokenText> texts;
  for (uint32_t t = 0; t < 24; ++t) {
    // Distinct tokens, repeated: every row of the second half has one earlier copy.
    std::vector<int32_t> ids;
    for (int32_t i = 1; i < HeadsByHand::kTokens; ++i)
      ids.push_back(1 + static_cast<int32_t>((static_cast<uint32_t>(i) * 7 + t * 3) % 23));
    const std::vector<int32_t> again = ids;
    ids.insert(ids.end(), again.begin(), again.end());
    ids.insert(ids.begin(), 0);
    texts.push_back({.ids = ids});
  }
  const RoleScores scores = head_roles(reader, nullptr, texts, {});
  const HeadScore &previous = scores.heads[0], &induction = scores.heads[2];
  EXPECT_GT(previous[Measure::previous].low, 0.99);
  EXPECT_GT(previous[Measure::at_previous].low, 0.99);
  EXPECT_GT(previous[Measure::repeat_previous].low, 0.99);
  EXPECT_GT(induction[Measure::induction].low, 0.99);
  EXPECT_GT(induction[Measure::repeat_induction].low, 0.99);
  EXPECT_GT(induction.value_weighted[static_cast<size_t>(Measure::induction)].low, 0.99);
  EXPECT_GT(induction[Measure::copying].low, 0);
  EXPECT_EQ(previous.value_weighted[static_cast<size_t>(Measure::previous)].n, previous[Measure::duplicate_mass].n);
  EXPECT_TRUE(has_role(previous, "previous token"));
  EXPECT_TRUE(has_role(induction, "induction"));
  EXPECT_TRUE(has_role(induction, "induction on random tokens"));
  EXPECT_TRUE(roles_of(induction).front().copies);
  EXPECT_FALSE(has_role(previous, "induction"));
  EXPECT_FALSE(has_role(induction, "previous token"));
  for (const size_t idle : {size_t{1}, size_t{3}}) {
    EXPECT_TRUE(roles_of(scores.heads[idle]).empty());
    EXPECT_NEAR(scores.heads[idle][Measure::entropy].mean, 1, 1e-5);
    EXPECT_EQ(scores.heads[idle][Measure::write].mean, 0);
  }
  // Half of the rows have no earlier copy: the role covers half of the head's attention.
  EXPECT_LT(induction[Measure::induction_mass].mean, 0.7);
  // On random tokens its coverage is that on random tokens: a first token, then L tokens twice, without two rows.
  const Estimate& random = induction[Measure::repeat_induction_mass];
  const auto in_each = static_cast<double>(random.n) / 100, length = (in_each + 1) / 2;
  EXPECT_NEAR(random.mean, length / in_each, 0.01);
  EXPECT_EQ(random.texts, 100);
  EXPECT_EQ(random.n, 100 * (2 * static_cast<int64_t>(length) - 1));
  for (const Role& role : roles_of(induction)) {
    const bool on_random = std::string_view(role.rule->name) == "induction on random tokens";
    EXPECT_EQ(role.coverage.n, on_random ? random.n : induction[Measure::induction_mass].n) << role.rule->name;
  }
  // They attend to the first key and write nothing, but only an ablation tells whether they are lazy.
  std::vector<Estimate> cut(4, Estimate{.mean = 0.5, .low = 0.4, .high = 0.6, .n = 9, .texts = 9});
  cut[1] = {.mean = 0, .low = -0.01, .high = 0.01, .n = 9, .texts = 9};
  EXPECT_TRUE(lazy_heads(scores)[1].maybe());
  EXPECT_FALSE(lazy_heads(scores)[1].lazy());
  EXPECT_TRUE(lazy_heads(scores, cut)[1].lazy());
  EXPECT_FALSE(lazy_heads(scores, cut)[3].lazy());
  EXPECT_FALSE(lazy_heads(scores, cut)[2].rests);
}

// A head that stays on its own token has no induction, though in "a a" the token after the first a is the second one.
TEST(Roles, of_induction_do_not_count_a_token_that_looks_at_itself) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const HeadsByHand hand(HeadsByHand::Kind::glances);
  Reader reader(*hand.model, engine, {});
  std::vector<TokenText> texts;
  for (uint32_t t = 0; t < 24; ++t) {
    TextIds ids{0};  // every token twice
    for (int32_t i = 0; i < 20; ++i) ids.push_back(1 + (i / 2 + static_cast<int32_t>(t)) % 23);
    texts.push_back({.ids = ids});
  }
  const RoleScores scores = head_roles(reader, nullptr, texts, {});
  const HeadScore& head = scores.heads[2];
  EXPECT_GT(head[Measure::current].mean, 0.6);
  EXPECT_LT(head[Measure::induction].mean, 0.01);
  EXPECT_GT(head[Measure::induction].n, 0);
  EXPECT_LT(head.value_weighted[static_cast<size_t>(Measure::induction)].mean, 0.01);
}

// Only one head writes, so its contribution to a logit can be read off the model's logits.
TEST(Roles, copying_is_what_the_logits_say) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const HeadsByHand hand;
  Reader reader(*hand.model, engine, {});
  std::vector<TokenText> texts;
  for (uint32_t t = 0; t < 5; ++t) texts.push_back({.ids = some_ids(8, t, 6)});
  const RoleScores scores = head_roles(reader, nullptr, texts, {.repeated_texts = 0});
  TextSum right;
  for (const TokenText& text : texts) {
    Patterns patterns;
    reader.look({&text, 1}, patterns);
    const Patterns::One& a = patterns.found.at({Stack::decoder, int16_t{1}});
    Arena arena(engine.device());
    Context cx = engine.context(arena, Precision::f32());
    const Rows rows = Rows::batch(cx, 1, std::ssize(text.ids));
    const std::vector<float> logits = host_floats(hand.model->logits(cx, {.ids = cx.upload(text.ids), .rows = &rows}));
    for (int64_t i = 2; i < std::ssize(text.ids); ++i) {
      int64_t strongest = 0;
      for (int64_t j = 0; j <= i; ++j) {
        if (a.at(i, 0, j) > a.at(i, 0, strongest)) strongest = j;
      }
      const float* row = logits.data() + i * HeadsByHand::kTokens;
      double mean = 0;
      for (int64_t v = 0; v < HeadsByHand::kTokens; ++v) mean += static_cast<double>(row[v]) / HeadsByHand::kTokens;
      right.add(static_cast<double>(row[text.ids[static_cast<size_t>(strongest)]]) - mean);
    }
  }
  const Estimate& copying = scores.heads[2][Measure::copying];
  EXPECT_EQ(copying.n, right.count);  // few enough that all rows are measured
  EXPECT_GT(copying.mean, 1);
  EXPECT_NEAR(copying.mean, right.sum / static_cast<double>(right.count), 1e-4);
  EXPECT_EQ(scores.heads[3][Measure::copying].mean, 0);
}

TEST(Roles, of_many_estimates_at_once_are_those_of_each) {
  std::vector<TextSum> all;
  for (const int32_t v : some_ids(3 * 40, 9, 100)) all.push_back({static_cast<double>(v), v % 5});
  const std::vector<Estimate> made = estimates(all, 40, 7);
  for (size_t i = 0; i < 3; ++i) {
    const Estimate one = estimate(std::span(all).subspan(i * 40, 40), 7);
    EXPECT_EQ(made[i].mean, one.mean);
    EXPECT_EQ(made[i].low, one.low);
    EXPECT_EQ(made[i].high, one.high);
    EXPECT_EQ(made[i].n, one.n);
    EXPECT_EQ(made[i].texts, one.texts);
    EXPECT_LT(one.low, one.high);
  }
}

TEST(Estimates, of_shares_and_outcomes_stay_between_0_and_1) {
  // All right but one text; and one long text that is all wrong: bootstrap-t goes beyond both ends.
  std::vector<TextSum> one_wrong(24, TextSum{2, 2}), outcomes, all_right;
  one_wrong[0] = {0, 2};
  std::vector<TextSum> long_wrong = one_wrong;
  long_wrong[0] = {0, 20};
  for (int i = 0; i < 24; ++i) {
    outcomes.push_back({i < 7 ? 1.0 : 0.0, 1});
    all_right.push_back({static_cast<double>(1 + i % 3), 1 + i % 3});
  }
  EXPECT_GT(estimate(one_wrong).high, 1);
  EXPECT_EQ(estimate(one_wrong, 0, Quantity::share).high, 1);
  EXPECT_EQ(estimate(one_wrong, 0, Quantity::share).low, estimate(one_wrong).low);
  EXPECT_LT(estimate(long_wrong).low, 0);
  EXPECT_EQ(estimate(long_wrong, 0, Quantity::outcome).low, 0);
  // One outcome a text: exact. All the same: not an interval of no width.
  const Estimate some = estimate(outcomes, 0, Quantity::outcome), same = estimate(all_right, 0, Quantity::outcome);
  EXPECT_NEAR(some.low, exact_interval(7, 24).low, 1e-12);
  EXPECT_NEAR(some.high, exact_interval(7, 24).high, 1e-12);
  EXPECT_EQ(same.mean, 1);
  EXPECT_NEAR(same.low, std::pow(0.025, 1.0 / 24), 1e-9);
  EXPECT_EQ(estimate(all_right).low, 1);
  // Fewer texts than an interval needs.
  EXPECT_TRUE(estimate(std::span(outcomes).first(20)).has_interval());
  EXPECT_FALSE(estimate(std::span(outcomes).first(19)).has_interval());
}

// Two measurements of the same texts that move together: their difference is known better than each of them.
TEST(Estimates, of_paired_differences_leave_out_what_both_share) {
  std::vector<TextSum> a, b, other_counts;
  for (const int32_t v : some_ids(30, 4, 100)) {
    a.push_back({static_cast<double>(v), 1});
    b.push_back({static_cast<double>(v) + 2 + 0.1 * (v % 3), 1});
    other_counts.push_back({2 * (static_cast<double>(v) + 2 + 0.1 * (v % 3)), 2});
  }
  const Estimate difference = paired_difference(a, b), alone = estimate(b), ratios = paired_ratios(a, other_counts);
  EXPECT_NEAR(difference.mean, 2.1, 0.1);
  EXPECT_LT(difference.high - difference.low, 0.1);
  EXPECT_GT(alone.high - alone.low, 5);
  EXPECT_NEAR(ratios.mean, difference.mean, 1e-9);
  EXPECT_NEAR(ratios.low, difference.low, 0.02);
  EXPECT_NEAR(ratios.high, difference.high, 0.02);
}

TEST(TokenKinds, know_marks_in_both_writings) {
  EXPECT_EQ(kind_of("."), TokenKind::period);
  EXPECT_EQ(kind_of(" ."), TokenKind::period);
  EXPECT_EQ(kind_of("。"), TokenKind::period);
  EXPECT_EQ(kind_of("，"), TokenKind::comma);
  EXPECT_EQ(kind_of("、"), TokenKind::comma);
  EXPECT_EQ(kind_of("！"), TokenKind::question);
  EXPECT_EQ(kind_of("；"), TokenKind::colon);
  EXPECT_EQ(kind_of("\n\n"), TokenKind::newline);
  for (const char* other : {"", " ", "a", ".a", ".,", "一", "\xe3"})
    EXPECT_EQ(kind_of(other), TokenKind::other) << other;
}

// Apart from the KV cache, memory does not grow with the text: four times the tokens, the same passes.
TEST(Roles, need_no_more_memory_for_a_longer_text_than_its_cache) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  const auto beyond_cache = [&](int64_t tokens) {
    TokenText text;
    for (int64_t i = 0; i < tokens; ++i) text.ids.push_back(static_cast<int32_t>(i * 7 % 50));
    Reader reader(*model, engine, {.rows = 16});
    head_roles(reader, nullptr, {&text, 1}, {.patterns = false, .repeated_texts = 0});
    return reader.peak_bytes() - KvCache::bytes_for(kv_layouts(model->spec()), DType::f32, tokens);
  };
  const int64_t shorter = beyond_cache(64), longer = beyond_cache(256);
  EXPECT_GT(shorter, 0);
  EXPECT_LT(longer, shorter + shorter / 20) << "the page table alone may grow";
}

}  // namespace head_roles_test
}  // namespace qkv

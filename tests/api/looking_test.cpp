// What the library sees and measures is what the rooms below it see and measure; and what goes wrong is said.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "api/small_model.h"
#include "base/expect_error.h"
#include "inspect/cut/ablation.h"
#include "inspect/heads/head_roles.h"
#include "inspect/lens/lens.h"
#include "inspect/look/attribution.h"
#include "server/models/embedding_queue.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;
const Ids kText{1, 5, 9, 4, 5, 9};

api::Data some_texts() {
  std::vector<api::Text> texts;
  for (int32_t n = 0; n < 24; ++n) texts.push_back(Ids{1, 5 + n, 9, 4, 5 + n, 9, 7});
  return api::Data(std::move(texts));
}

void expect_same(const api::Estimate& made, const Estimate& wanted) {
  EXPECT_EQ(made.mean, wanted.mean);
  EXPECT_EQ(made.low, wanted.low);
  EXPECT_EQ(made.high, wanted.high);
  EXPECT_EQ(made.n, wanted.n);
}

TEST(ApiLook, ArraysAreThoseOfThePassAndOutliveTheModel) {
  api::Model model = test::open_golden("gpt2");
  const api::Looked seen = model.look(kText);
  const api::ReadResult read = model.read(kText, {.keep = "attn.probs,attn.q,attn.z,resid.post,embed,logits"});
  const int64_t layers = model.info().layers;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string tap = std::to_string(layer), head = "L" + tap;
    EXPECT_EQ(seen.array(head + ".probs").values, read[tap + ".attn.probs"].values) << layer;
    EXPECT_EQ(seen.array(head + ".probs").shape, read[tap + ".attn.probs"].shape) << layer;
    EXPECT_EQ(seen.array(head + ".q").values, read[tap + ".attn.q"].values) << layer;
    EXPECT_EQ(seen.array(head + ".z").values, read[tap + ".attn.z"].values) << layer;
    EXPECT_EQ(seen.array("resid." + tap).values, read[tap + ".resid.post"].values) << layer;
  }
  EXPECT_EQ(seen.array("embed").values, read["embed"].values);
  EXPECT_EQ(seen.array("logits").shape, read["logits"].shape);
  model.close();
  EXPECT_EQ(seen.ids(), kText);
  EXPECT_EQ(seen.levels(), layers + 1);
  EXPECT_FALSE(seen.ladder(layers).front().guesses.empty());
  EXPECT_NE(seen.html().find("<html"), std::string::npos);
  EXPECT_EQ(seen.view("L0.probs").values.size(), seen.array("L0.probs").values.size());
  expect_error([&] { seen.view("L99.probs"); }, {"L99.probs"});
  expect_error([&] { seen.ladder(99); }, {"99"});
  EXPECT_THROW(model.look(kText), ClosedError);
}

// A model in bf16 runs in bf16 and is looked into in f32, whatever was done first; a precision that is asked for decides.
TEST(ApiLook, ComputesInF32BelowASize) {
  const test::SmallModel small;
  const std::string path = small.bf16_path();
  const api::Model usual(path, {.threads = 1}), f32(path, {.precision = api::Precision::f32, .threads = 1}),
      bf16(path, {.precision = api::Precision::bf16, .threads = 1});
  const api::GenerateOptions writes{.max_new = 12};
  const std::vector<int32_t> ids{9, 4, 5, 9, 4};
  EXPECT_EQ(usual.info().precision, "bf16");
  EXPECT_EQ(usual.info().looking, "f32");
  EXPECT_EQ(bf16.info().looking, "bf16");
  const std::vector<double> likely = usual.likelihood(api::Text(ids)).log_p;
  const std::string clean = "The cat sat on the mat", corrupt = "The cot sat on the mat";
  const auto seen = [&](const api::Model& model) {
    std::vector<std::string> all{model.look(clean).json(), model.patch(clean, corrupt, {.answer = 5, .wrong = 9}).json};
    std::vector<double> numbers;
    const api::Attribution parts = model.attribute(clean);
    const api::ReadResult read = model.read(clean, {.keep = "logits"});
    const std::vector<api::HeadRoles> roles = model.roles(some_texts());
    for (const api::AttributedPart& part : parts.parts) numbers.push_back(part.share);
    for (const float value : read["logits"].values) numbers.push_back(static_cast<double>(value));
    numbers.push_back(model.cut({.heads = "L0H1", .data = some_texts()}).delta.mean);
    numbers.push_back(model.lens(some_texts()).layers.front().kl.mean);
    for (const auto& [name, value] : roles.front().measures) numbers.push_back(value.mean);
    return std::pair(all, numbers);
  };
  const auto of_usual = seen(usual), of_f32 = seen(f32), of_bf16 = seen(bf16);
  EXPECT_EQ(of_usual.first, of_f32.first);
  EXPECT_EQ(of_usual.second, of_f32.second);
  EXPECT_NE(of_usual.second, of_bf16.second);
  EXPECT_EQ(usual.generate(api::Text(ids), writes).text, bf16.generate(api::Text(ids), writes).text);
  EXPECT_EQ(usual.likelihood(api::Text(ids)).log_p, likely) << "looking left the weights it runs with as they are";
  EXPECT_EQ(bf16.likelihood(api::Text(ids)).log_p, likely);
  EXPECT_NE(f32.likelihood(api::Text(ids)).log_p, likely);
}

// Without data: stories of the world, and for a model that translates its pairs, as cut() has it.
TEST(ApiLook, ChoosesItsDataAsCutDoes) {
  const test::SmallModel translator(test::Small::translator), decoder;
  api::Data pairs("world:pairs"), world("world");
  EXPECT_EQ(translator.open().lens().settled_at.mean, translator.open().lens(pairs).settled_at.mean);
  EXPECT_EQ(translator.open().roles().front().measures.front().second.mean,
            translator.open().roles(pairs).front().measures.front().second.mean);
  EXPECT_EQ(decoder.open().lens().settled_at.mean, decoder.open().lens(world).settled_at.mean);
}

TEST(ApiLook, SaysWhatIsWrong) {
  const api::Model model = test::open_golden("gpt2");
  expect_error([&] { model.look(Ids{}); }, {"0 tokens"});
  expect_error([&] { model.look(kText, {.token = 6}); }, {"6"});
  expect_error([&] { model.look(kText, {.cut = api::Cut{.heads = "X0H0"}}); }, {"X0H0"});
  expect_error([&] { model.look("a text"); }, {"no tokenizer"});
  EXPECT_NE(model.look(kText, {.cut = api::Cut{.heads = "L0H0"}}).array("logits").values,
            model.look(kText).array("logits").values);
}

TEST(ApiCut, EffectsAreThoseOfTheInspector) {
  const api::Model model = test::open_golden("llama");
  const OpenModel& open = inside(model);
  std::vector<TokenText> texts;
  for (const api::Text& text : some_texts().texts) texts.push_back({.ids = text.ids});
  Reader reader(open.model(), open.engine(), {.precision = open.precision()});
  for (const bool mean : {false, true}) {
    const Ablation ablation = mean ? Ablation::mean : Ablation::zero;
    const Cut cut{.heads = parse_heads(open.spec(), "L0H1,L1"), .ablation = ablation};
    CutProbe probe(open.spec(), cut, mean ? measure_outputs(reader, texts, ablation) : nullptr);
    const CutEffect wanted = effect_of(reader, texts, probe);
    const api::CutEffect made =
        model.cut({.heads = "L0H1,L1", .with = mean ? api::CutWith::mean : api::CutWith::zero, .data = some_texts()});
    expect_same(made.before, wanted.before);
    expect_same(made.delta, wanted.delta);
    expect_same(made.kl, wanted.kl);
    expect_same(made.same_guess, wanted.same_guess);
  }
  expect_error([&] { model.cut({}); }, {"neither"});
  expect_error([&] { model.cut({.heads = "L0H1", .data = api::Data(std::vector<api::Text>{})}); }, {"no texts"});
  expect_error([&] { model.cut({.heads = "L0H1", .data = api::Data("/no/such/file")}); }, {"/no/such/file"});
}

TEST(ApiCut, ASavedModelIsTheCutOne) {
  const test::SmallModel small;
  const api::Model model = small.open();
  const std::string folder = small.beside("smaller").string();
  model.save_without({.heads = "L0H1"}, folder);
  const api::Model smaller(folder, {.threads = 1});
  const std::vector<float> wanted =
      model.read(kText, {.keep = "logits", .cut = api::Cut{.heads = "L0H1"}})["logits"].values;
  const std::vector<float> made = smaller.read(kText, {.keep = "logits"})["logits"].values;
  ASSERT_EQ(made.size(), wanted.size());
  for (size_t i = 0; i < made.size(); ++i) ASSERT_NEAR(made[i], wanted[i], 1e-4F) << i;
  EXPECT_EQ(std::ssize(smaller.heads()), std::ssize(model.heads()) - 1);
  expect_error([&] { model.save_without({.heads = "L0H1", .with = api::CutWith::resample}, folder + "2"); },
               {"resample"});

  model.save(small.beside("copy").string());
  EXPECT_EQ(api::Model(small.beside("copy").string(), {.threads = 1}).read(kText, {.keep = "logits"})["logits"].values,
            model.read(kText, {.keep = "logits"})["logits"].values);
}

TEST(ApiMeasures, LensRolesAndAttributionAreThoseOfTheInspector) {
  const api::Model model = test::open_golden("llama");
  const OpenModel& open = inside(model);
  std::vector<TokenText> texts;
  for (const api::Text& text : some_texts().texts) texts.push_back({.ids = text.ids});
  Reader reader(open.model(), open.engine(), {.precision = open.precision()});

  const LensReport lens = read_lens(reader, texts);
  const api::Lens made = model.lens(some_texts());
  ASSERT_EQ(made.layers.size(), lens.layers.size());
  for (size_t i = 0; i < lens.layers.size(); ++i) expect_same(made.layers[i].kl, lens.layers[i].kl);

  const RoleScores scores = head_roles(reader, nullptr, texts, {});
  const std::vector<api::HeadRoles> roles = model.roles(some_texts());
  ASSERT_EQ(roles.size(), scores.heads.size());
  for (size_t h = 0; h < roles.size(); ++h) {
    EXPECT_EQ(roles[h].head, name_of(open.spec(), scores.heads[h].id));
    EXPECT_EQ(roles[h].roles.size(), roles_of(scores.heads[h]).size());
    for (const auto& [name, value] : roles[h].measures) {
      if (name == "previous") expect_same(value, scores.heads[h][Measure::previous]);
    }
  }
  expect_error([&] { model.roles(api::Data(std::vector<api::Text>{kText})); }, {"1 texts"});

  const api::Attribution found = model.attribute(kText);
  const Attributor attributor(open.model(), open.engine(), open.precision(), {.ids = kText}, 5);
  const Attribution wanted = attributor.of(found.target, found.against);
  EXPECT_EQ(found.difference, wanted.difference);
  EXPECT_GT(found.difference, 0) << "the top guess against the second";
  ASSERT_EQ(found.parts.size(), wanted.parts.size());
  for (size_t i = 0; i < found.parts.size(); ++i) EXPECT_EQ(found.parts[i].share, wanted.parts[i].share);
  expect_error([&] { model.attribute(kText, {.token = 99}); }, {"99"});
  expect_error([&] { model.attribute(kText, {.target = 7, .against = 7}); }, {"both token 7"});
  expect_error([&] { model.attribute(kText, {.target = 99999}); }, {"99999"});
}

// Without a token to compare with, it is the best other one.
TEST(ApiMeasures, AttributionsCompareWithTheBestOtherToken) {
  const api::Model model = test::open_golden("gpt2");
  const api::ReadResult read = model.read(kText, {.keep = "logits"});
  const std::vector<float>& logits = read["logits"].values;
  const auto words = static_cast<size_t>(model.info().vocabulary);
  const std::span<const float> last = std::span(logits).last(words);
  std::vector<int32_t> order(words);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::greater(), [&](int32_t id) { return last[static_cast<size_t>(id)]; });
  const api::Attribution plain = model.attribute(kText), second = model.attribute(kText, {.target = order[1]}),
                         third = model.attribute(kText, {.target = order[2]});
  EXPECT_EQ(plain.target, order[0]);
  EXPECT_EQ(plain.against, order[1]);
  EXPECT_EQ(second.target, order[1]);
  EXPECT_EQ(second.against, order[0]) << "the second guess is compared with the best";
  EXPECT_EQ(second.difference, -plain.difference);
  EXPECT_EQ(third.against, order[0]);
}

TEST(ApiJudges, VectorsHaveLengthOneAndAreThoseOfTheServer) {
  for (const test::Small kind : {test::Small::decoder, test::Small::encoder, test::Small::translator}) {
    const test::SmallModel small(kind);
    const api::Model model = small.open();
    const std::vector<std::vector<float>> made = model.embed({"the cat", "a dog ran home"});
    ASSERT_EQ(made.size(), 2U);
    server::EmbeddingQueue queue(inside(model), 64, 8);
    server::Vectors wanted;
    queue.submit({.texts = {inside(model).tokenizer().encode("the cat")},
                  .pooling = server::usual_pooling(inside(model).spec()),
                  .on_end = [&](server::Vectors vectors, std::exception_ptr) { wanted = std::move(vectors); }});
    while (queue.step()) {
    }
    ASSERT_EQ(wanted.size(), 1U);
    EXPECT_EQ(made[0], wanted[0]) << "whatever is beside it";
    double square = 0;
    for (const float x : made[1]) square += static_cast<double>(x) * static_cast<double>(x);
    EXPECT_NEAR(square, 1, 1e-5);
    EXPECT_TRUE(model.embed({}).empty());
    expect_error([&] { model.embed({Ids{}}); }, {"tokens"});
  }
}

TEST(ApiJudges, TranslatesEachTextAsItWouldBeAlone) {
  const test::SmallModel small(test::Small::translator);
  const api::Model model = small.open();
  const auto together = model.translate({"the cat", "", "a dog ran home", "\n"}, {.beams = 3, .max_new = 8, .n = 2});
  ASSERT_EQ(together.size(), 4U);
  EXPECT_TRUE(together[1].empty());
  EXPECT_TRUE(together[3].empty());
  ASSERT_EQ(together[2].size(), 2U);
  const auto alone = model.translate({"a dog ran home"}, {.beams = 3, .max_new = 8, .n = 2});
  for (size_t n = 0; n < 2; ++n) {
    EXPECT_EQ(together[2][n].ids, alone[0][n].ids);
    EXPECT_EQ(together[2][n].score, alone[0][n].score);
  }
  const std::vector<api::Generated> searched = model.search("a dog ran home", {.beams = 3, .n = 2, .max_new = 8});
  ASSERT_EQ(searched.size(), 2U);
  EXPECT_EQ(searched[0].text, alone[0][0].text);
  const auto greedy = model.generate("a dog ran home", {.max_new = 8});
  EXPECT_EQ(greedy.text, model.translate({"a dog ran home"}, {.beams = 1, .max_new = 8})[0][0].text);
  EXPECT_EQ(model.likelihood(api::Text::pair("the cat", "die Katze")).first, 1);
  expect_error([&] { model.likelihood("the cat"); }, {"none is scored"});
  expect_error([&] { model.translate({"a"}, {.beams = 0}); }, {"beams"});
  expect_error([&] { model.translate({"a"}, {.rows = 0}); }, {"0 rows"});

  const test::SmallModel decoder;
  expect_error([&] { decoder.open().translate({"a"}); }, {"translates nothing"});
  const test::SmallModel encoder(test::Small::encoder);
  expect_error([&] { encoder.open().likelihood("a"); }, {"no probability"});
  expect_error([&] { encoder.open().generate("a"); }, {});
}

}  // namespace
}  // namespace qkv

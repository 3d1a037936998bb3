// Texts written through the library are those the Scheduler writes; many at once, from many threads, ended from outside.
#include <gtest/gtest.h>

#include <thread>

#include "api/small_model.h"
#include "base/expect_error.h"
#include "infer/text_choices.h"
#include "infer/text_run.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;

Ids ids_of(const api::Generated& made) {
  Ids ids;
  for (const api::Token& token : made.tokens) ids.push_back(token.id);
  return ids;
}

WrittenText by_scheduler(const OpenModel& model, const std::string& prompt, const TextChoices& chosen) {
  Runner runner = model.runner({.positions = 256});
  Scheduler scheduler(runner);
  WrittenText out;
  TextRequest request = text_request(chosen, model.defaults());
  request.options.prompt = prompt_ids(model.tokenizer(), model.spec(), prompt);
  request.on_end = [&](const WrittenText& written) { out = written; };
  submit_text(scheduler, model.tokenizer(), std::move(request));
  scheduler.run();
  return out;
}

TEST(ApiGenerate, WritesWhatTheSchedulerWrites) {
  const test::SmallModel small;
  const api::Model model = small.open();
  for (const double temperature : {0.0, 1.0}) {
    const WrittenText wanted =
        by_scheduler(inside(model), "the cat", {.temperature = temperature, .max_new = 12, .seed = 5});
    const api::Generated made = model.generate("the cat", {.max_new = 12, .temperature = temperature, .seed = 5});
    EXPECT_EQ(made.text, wanted.text);
    Ids ids;
    for (const Choice& choice : wanted.tokens) ids.push_back(choice.id);
    EXPECT_EQ(ids_of(made), ids);
    EXPECT_EQ(made.prompt_tokens, wanted.prompt_tokens);
    EXPECT_STREQ(name_of(made.ended), qkv::name_of(wanted.ended));
  }
}

TEST(ApiGenerate, PiecesMakeTheText) {
  const test::SmallModel small;
  const api::Model model = small.open();
  std::string heard;
  const api::Generated made = model.generate("the cat", {.max_new = 12}, [&](std::string_view piece) {
    heard += piece;
    return true;
  });
  EXPECT_EQ(heard, made.text);

  api::Generation text = model.start("the cat", {.max_new = 12});
  std::string pulled;
  Ids ids;
  while (const std::optional<api::Piece> piece = text.next()) {
    pulled += piece->text;
    for (const api::Token& token : piece->tokens) ids.push_back(token.id);
  }
  EXPECT_EQ(pulled, made.text);
  EXPECT_EQ(ids, ids_of(made));
  EXPECT_EQ(text.result().text, made.text);
  EXPECT_EQ(text.next(), std::nullopt) << "it stays ended";
}

TEST(ApiGenerate, ManyAtOnceAreThoseOfEachAlone) {
  const test::SmallModel small;
  const api::Model model = small.open({.texts = 2});
  const std::vector<api::Text> prompts{"the cat", "a dog ran", "the", Ids{1, 5, 9}};
  const api::GenerateOptions options{.max_new = 9, .temperature = 1, .seed = 3};
  const std::vector<api::Generated> together = model.generate(prompts, options);
  ASSERT_EQ(together.size(), prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(ids_of(together[i]), ids_of(model.generate(prompts[i], options))) << i;
  }
}

TEST(ApiGenerate, FourThreadsWriteWhatEachWritesAlone) {
  const test::SmallModel small;
  const api::Model model = small.open();
  const std::vector<api::Text> prompts{"the cat", "a dog ran", "the", "once"};
  std::vector<Ids> alone, found(prompts.size());
  for (const api::Text& prompt : prompts) alone.push_back(ids_of(model.generate(prompt, {.max_new = 20})));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < prompts.size(); ++i) {
    threads.emplace_back([&, i] {
      found[i] = ids_of(model.generate(prompts[i], {.max_new = 20}));
      model.read(prompts[i], {.keep = "final"});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, alone);
}

TEST(ApiGenerate, EndsWhenAskedTo) {
  const test::SmallModel small;
  const api::Model model = small.open();
  int pieces = 0;
  const api::Generated stopped =
      model.generate("the cat", {.max_new = 50}, [&](std::string_view) { return ++pieces < 2; });
  EXPECT_EQ(stopped.ended, api::Ended::cancelled);
  EXPECT_EQ(pieces, 2);
  EXPECT_LT(stopped.tokens.size(), 50U);

  api::Generation text = model.start("the cat", {.max_new = 50});
  text.next();
  std::thread other([&] { text.cancel(); });
  other.join();
  EXPECT_EQ(text.wait().ended, api::Ended::cancelled);
  { const api::Generation dropped = model.start("the cat", {.max_new = 50}); }
  EXPECT_EQ(model.generate("the cat", {.max_new = 4}).tokens.size(), 4U) << "what was dropped does not stay";
}

TEST(ApiGenerate, SaysWhatIsWrong) {
  const test::SmallModel small;
  const api::Model model = small.open();
  expect_error([&] { model.generate("x", {.temperature = -1}); }, {"temperature", "-1"});
  expect_error([&] { model.generate("x", {.max_new = 0}); }, {"max_new is 0"});
  expect_error([&] { model.generate(Ids{1, 99999}); }, {"99999"});
  expect_error([&] { model.generate("\xff"); }, {"UTF-8"});
  expect_error([&] { model.generate(api::Text::pair("a", "b")); }, {"target"});
  expect_error([&] { model.generate("x", {.json_schema = "{"}); }, {"json_schema"});
  expect_error([&] { api::Model("/no/such/model"); }, {"/no/such/model"});
  expect_error([&] { small.open({.texts = 0}); }, {"texts is 0"});
  EXPECT_EQ(model.generate("the", {.max_new = 2}).tokens.size(), 2U) << "and is still usable";
}

TEST(ApiModel, ClosedAndMovedFromSaySo) {
  const test::SmallModel small;
  api::Model model = small.open();
  const api::Model same = model;
  const api::Tokenizer tokenizer = model.tokenizer();
  api::Generation text = model.start("the cat", {.max_new = 50});
  text.next();
  model.close();
  EXPECT_TRUE(same.closed()) << "copies are the same model";
  EXPECT_THROW(same.generate("x"), ClosedError);
  EXPECT_THROW(same.read("x"), ClosedError);
  EXPECT_THROW(same.info(), ClosedError);
  EXPECT_THROW(text.wait(), ClosedError);
  text.cancel();
  model.close();
  EXPECT_FALSE(tokenizer.encode("the cat").empty()) << "the tokenizer is its own";

  api::Model first = small.open();
  const api::Model second = std::move(first);
  EXPECT_THROW(first.generate("x"), ClosedError);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(second.generate("the", {.max_new = 2}).tokens.size(), 2U);
}

TEST(ApiModel, OneThreadAtATimeWaitsForAText) {
  const test::SmallModel small;
  const api::Model model = small.open();
  api::Generation text = model.start("the cat", {.max_new = 3});
  // A pass of another thread is held up, so that next() has to wait.
  std::atomic<bool> inside_pass = false, go_on = false;
  std::thread reader([&] {
    model.read("the", {.see = {{"embed", [&](const std::string&, api::Shape, std::span<const float>) {
                                  inside_pass = true;
                                  inside_pass.notify_all();
                                  go_on.wait(false);
                                }}}});
  });
  inside_pass.wait(false);
  std::atomic<bool> waiting = false;
  std::thread first([&] {
    waiting = true;
    text.wait();
  });
  while (!waiting) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_THROW(text.next(), BusyError);
  go_on = true;
  go_on.notify_all();
  first.join();
  reader.join();
  EXPECT_EQ(text.result().tokens.size(), 3U);
}

}  // namespace
}  // namespace qkv

// Text comes out as decoding all tokens at once gives it, in whole characters, and ends where it should.
#include "infer/text_run.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temp_folder.h"
#include "kernels/tables.h"
#include "model/initialise.h"
#include "support/pass.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

// Random weights behind a small tokenizer; its vocabulary is rounded up, and it ends with a token that is plain text.
class TextRun : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int32_t kEos = 470;
  static constexpr int64_t kContext = 96;

  TextRun() {
    const Json config = {{"model_type", "llama"},       {"vocab_size", 608},      {"hidden_size", 32},
                         {"intermediate_size", 64},     {"num_hidden_layers", 2}, {"num_attention_heads", 4},
                         {"num_key_value_heads", 2},    {"rms_norm_eps", 1e-5},   {"max_position_embeddings", kContext},
                         {"bos_token_id", 0},           {"eos_token_id", kEos},   {"rope_theta", 10000.0},
                         {"tie_word_embeddings", false}};
    ThreadPool pool(1);
    write_new_model(folder_.path() / "model", config, {.seed = 3}, pool);
    model_ = Checkpoint::open(folder_.path() / "model").model();
    runner_.emplace(*model_, engine_,
                    RunOptions{.precision = Precision::f32(), .cache = DType::f32, .positions = 1024});
  }

  TextRequest request(std::string_view prompt, uint64_t seed) const {
    TextRequest made;
    made.options.prompt = prompt_ids(tokenizer_, model_->spec(), prompt);
    made.options.sampling = {.temperature = 1.2, .seed = seed};
    made.options.max_new = 40;
    return made;
  }

  struct Came {
    std::vector<std::string> pieces;
    WrittenText written;
    int ends = 0;
  };
  void submit(Scheduler& scheduler, TextRequest request, Came& came) {
    request.on_text = [&came](std::string_view text) {
      came.pieces.emplace_back(text);
      return true;
    };
    request.on_end = [&came](const WrittenText& written) {
      came.written = written;
      ++came.ends;
    };
    submit_text(scheduler, tokenizer_, std::move(request));
  }
  Came alone(TextRequest request) {
    Scheduler scheduler(*runner_);
    Came came;
    submit(scheduler, std::move(request), came);
    scheduler.run();
    return came;
  }

  // What a text is: everything decoded at once, without what the prompt alone gives.
  std::string decoded(std::vector<int32_t> ids) const {
    std::erase_if(ids, [&](int32_t id) { return !tokenizer_.has(id); });
    std::string bytes = tokenizer_.decode(ids, {.skip_specials = true});
    return take_utf8(bytes, MoreBytes::no);
  }
  std::string right_text(const std::vector<int32_t>& prompt, const WrittenText& written) const {
    std::vector<int32_t> all = prompt;
    for (const Choice& choice : written.tokens) {
      if (choice.id != kEos) all.push_back(choice.id);
    }
    const std::string before = decoded(prompt), whole = decoded(all);
    EXPECT_TRUE(whole.starts_with(before));
    return whole.substr(before.size());
  }

  Tokenizer tokenizer_ = Tokenizer::load(test::golden("tokenizers") / GetParam());
  TempFolder folder_;
  Engine engine_{kernels::best_table(), {.threads = 2}};
  std::unique_ptr<Model> model_;
  std::optional<Runner> runner_;
};

TEST_P(TextRun, ManyAtOnceAreWhatDecodingTheirTokensGives) {
  const char* prompts[] = {"", "one two", "你好，世界", "床前明月光 👍🏽", "e\u0301 and 👩‍👩‍👧",
                           "a"};
  constexpr size_t kTexts = 30;
  Scheduler scheduler(*runner_, {.most_active = 7});
  std::vector<Came> came(kTexts);
  std::vector<TextRequest> requests;
  for (size_t n = 0; n < kTexts; ++n) {
    requests.push_back(request(prompts[n % std::size(prompts)], n));
    submit(scheduler, requests.back(), came[n]);
  }
  scheduler.run();
  int held = 0;
  for (size_t n = 0; n < kTexts; ++n) {
    const WrittenText& written = came[n].written;
    std::string joined;
    for (const std::string& piece : came[n].pieces) {
      EXPECT_TRUE(is_utf8(piece) && !piece.empty()) << n;
      joined += piece;
    }
    EXPECT_EQ(came[n].ends, 1) << n;
    EXPECT_EQ(joined, written.text) << n;
    EXPECT_EQ(written.text, right_text(requests[n].options.prompt, written)) << n;
    EXPECT_EQ(written.prompt_tokens, static_cast<int64_t>(requests[n].options.prompt.size())) << n;
    EXPECT_TRUE(written.ended == Ended::length || written.tokens.back().id == kEos) << n;
    held += came[n].pieces.size() < written.tokens.size();
  }
  EXPECT_GT(held, 0) << "no token was ever a part of a character, special or unknown";
}

TEST_P(TextRun, EndsBeforeAStopStringHoweverItIsCut) {
  const TextRequest plain = request("床前", 11);
  const std::string whole = alone(plain).written.text;
  ASSERT_GT(whole.size(), 20U) << whole;
  int stopped = 0;
  for (size_t begin = 0; begin + 4 < whole.size(); begin += 3) {
    const std::string stop = whole.substr(begin, 4);
    if (!is_utf8(stop)) continue;
    TextRequest stopping = plain;
    stopping.stop = {"never written", stop};
    const Came came = alone(stopping);
    EXPECT_EQ(came.written.text, whole.substr(0, whole.find(stop))) << stop;
    EXPECT_EQ(came.written.stop, stop);
    EXPECT_EQ(came.written.ended, Ended::stopped);
    std::string joined;
    for (const std::string& piece : came.pieces) joined += piece;
    EXPECT_EQ(joined, came.written.text);
    ++stopped;
  }
  EXPECT_GT(stopped, 2);
  // One that never comes changes nothing, though its beginning was held back at the end.
  TextRequest other = plain;
  other.stop = {whole.substr(whole.size() - 1) + "never written"};
  if (is_utf8(other.stop[0])) {
    EXPECT_EQ(alone(other).written.text, whole);
  }
}

TEST_P(TextRun, TheTokenThatEndsATextIsNotShown) {
  for (const bool own : {true, false}) {  // the model's own, or one that was asked for
    TextRequest ending = request("one", 5);
    const int32_t end = own ? kEos : 460;
    ending.options.sampling.logit_bias = {{end, 100}};
    if (!own) ending.options.eos = std::vector<int32_t>{end};
    const Came came = alone(ending);
    EXPECT_EQ(came.written.text, "");
    EXPECT_EQ(came.written.tokens.size(), 1U);
    EXPECT_EQ(came.written.ended, Ended::stopped);
    EXPECT_EQ(came.pieces.size(), 0U);
  }
}

// As in transformers: the end tokens of generation_config.json take the place of those of config.json.
TEST_P(TextRun, GivenEndTokensReplaceTheModelsOwn) {
  TextRequest other = request("one", 5);
  other.options.sampling.logit_bias = {{kEos, 100}};
  other.options.eos = std::vector<int32_t>{460};
  other.options.max_new = 3;
  EXPECT_EQ(alone(other).written.ended, Ended::length);
  EXPECT_EQ(alone(other).written.tokens.size(), 3U);
}

TEST_P(TextRun, WhoWantsNoMoreGetsNoMore) {
  TextRequest plain = request("one two", 8);
  Scheduler scheduler(*runner_);
  std::string got;
  WrittenText written;
  plain.on_text = [&](std::string_view text) {
    got += text;
    return false;
  };
  plain.on_end = [&](const WrittenText& text) { written = text; };
  submit_text(scheduler, tokenizer_, plain);
  scheduler.run();
  EXPECT_EQ(written.ended, Ended::cancelled);
  EXPECT_EQ(got, written.text);
  EXPECT_LT(written.tokens.size(), 40U);
}

TEST_P(TextRun, AContextOfItsOwnEndsATextOrRefusesAPrompt) {
  TextRequest plain = request("one two three four", 8);
  const auto length = static_cast<int64_t>(plain.options.prompt.size());
  plain.options.context = length + 7;
  plain.options.eos.emplace();
  const Came came = alone(plain);
  EXPECT_EQ(came.written.ended, Ended::context);
  EXPECT_EQ(came.written.tokens.size(), 7U);
  plain.options.context = length;
  expect_error([&] { alone(plain); }, {std::to_string(length) + " tokens", "room for " + std::to_string(length)});
  plain.options.context = 0;
  plain.options.prompt.assign(200, 5);
  expect_error([&] { alone(plain); }, {"200 tokens", "room for 96"});
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, TextRun, testing::Values("qwen2", "llama2"),
                         [](const auto& tokenizer) { return std::string(tokenizer.param); });

TEST(TextOfStories, IsWordForWordWhatWasPublished) {
  QKV_NEED_SHARED(folder, "models/stories260K");
  const std::string page = read_file(folder / "EXPECTED.md", 1 << 20);
  const size_t begin = page.find("Once upon"), list = page.find("The 160 ids after <s>: ");
  const std::string story = page.substr(begin, page.find_last_not_of("\n", list - 1) + 1 - begin);
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const auto model = Checkpoint::open(folder).model();
  const Engine engine(kernels::best_table(), {.threads = 2});
  Runner runner(*model, engine, {.precision = Precision::f32(), .cache = DType::f32});
  Scheduler scheduler(runner);
  // From nothing; from its own beginning, whose next word has a space before it; until a word.
  const std::string opening = "Once upon a time, there was a little girl named";
  std::map<std::string, WrittenText> written;
  const auto submit = [&](const std::string& prompt, std::vector<std::string> stop, const char* name) {
    TextRequest request{.stop = std::move(stop), .on_end = [&, name](const WrittenText& w) { written[name] = w; }};
    request.options.prompt = prompt_ids(tokenizer, model->spec(), prompt);
    request.options.sampling.temperature = 0;
    request.options.max_new = 140;
    submit_text(scheduler, tokenizer, std::move(request));
  };
  submit("", {}, "whole");
  submit(opening, {}, "rest");
  submit(opening, {"Tom", "ball"}, "ball");
  const std::string in_bytes = "Lily said 早👍";  // its last tokens are bytes, which decoders hold back
  submit(in_bytes, {}, "bytes");
  scheduler.run();
  std::vector<int32_t> all = prompt_ids(tokenizer, model->spec(), in_bytes);
  for (const Choice& choice : written["bytes"].tokens) all.push_back(choice.id);
  EXPECT_EQ(in_bytes + written["bytes"].text, tokenizer.decode(all, {.skip_specials = true}));
  EXPECT_EQ(written["whole"].text, story.substr(0, written["whole"].text.size()));
  EXPECT_GT(written["whole"].text.size(), 300U);
  EXPECT_TRUE(written["rest"].text.starts_with(" Lily. She")) << written["rest"].text;
  EXPECT_EQ(opening + written["rest"].text, story.substr(0, opening.size() + written["rest"].text.size()));
  EXPECT_EQ(opening + written["ball"].text, story.substr(0, story.find("ball")));
  EXPECT_EQ(written["ball"].stop, "ball");
}

}  // namespace
}  // namespace qkv

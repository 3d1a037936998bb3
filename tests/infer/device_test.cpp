// Generation on a device whose memory the host cannot touch, and its limits.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "infer/beam_runner.h"
#include "infer/likelihood.h"
#include "infer/scheduler.h"
#include "infer/whole_pass.h"
#include "model/checkpoint/checkpoint.h"
#include "support/guarded_device.h"
#include "support/pass.h"

namespace qkv {
namespace infer_device_test {

using Ids = std::vector<int32_t>;

class DeviceRun : public testing::TestWithParam<const char*> {
 protected:
  Checkpoint checkpoint_ = Checkpoint::open(test::golden(GetParam()));
  const ModelSpec& spec_ = checkpoint_.spec;

  Ids source(uint32_t n) const { return spec_.has_source() ? test::some_ids(5 + n, n + 1, spec_.vocabulary) : Ids(); }
  Ids prompt(uint32_t n) const {
    return decoder_prompt(spec_.has_source() ? Ids() : test::some_ids(3 + 2 * n, n + 1, spec_.vocabulary), spec_);
  }
};

TEST_P(DeviceRun, WritesWhatTheHostWrites) {
  for (const DType cache : {DType::f32, DType::bf16, DType::i8}) {
    const auto [device, host] = test::on_both([&](const Engine& engine) {
      const auto model = checkpoint_.model(engine.device());
      Runner runner(*model, engine,
                    {.precision = Precision::bf16(), .cache = cache, .positions = 512, .sources = 256, .chunk = 4});
      Scheduler scheduler(runner, {.most_active = 2});
      std::vector<Ids> texts(3);
      for (uint32_t n = 0; n < texts.size(); ++n) {
        SessionOptions options{.prompt = prompt(n), .source = source(n), .max_new = 8};
        options.sampling = {.temperature = n == 0 ? 0.0 : 0.9, .seed = n};
        scheduler.submit({.options = std::move(options), .on_end = [&, n](const Session& s) { texts[n] = s.ids(); }});
      }
      scheduler.run();
      return texts;
    });
    EXPECT_EQ(device, host) << name_of(cache);
    EXPECT_GT(device.front().size(), prompt(0).size());
  }
}

TEST_P(DeviceRun, SearchesAndJudgesAsTheHostDoes) {
  const auto [device, host] = test::on_both([&](const Engine& engine) {
    const auto model = checkpoint_.model(engine.device());
    Runner runner(*model, engine, {.precision = Precision::f32(), .cache = DType::f32, .positions = 512});
    const std::vector<BeamRequest> requests{{.prompt = spec_.has_source() ? Ids() : prompt(0), .source = source(0)},
                                            {.prompt = spec_.has_source() ? Ids() : prompt(1), .source = source(1)}};
    std::vector<std::pair<Ids, double>> found;
    for (const BeamRunner::Hypotheses& of_text :
         beam_search(runner, requests, {.beams = 3, .max_length = 12, .eos = spec_.tokens.eos})) {
      for (const BeamSearch::Hypothesis& h : of_text) found.emplace_back(h.ids, h.score);
    }
    const std::vector<TokenText> texts{{.ids = test::some_ids(9, 3, spec_.vocabulary), .source = source(2)}};
    return std::pair{found, log_probabilities(runner, texts)};
  });
  EXPECT_EQ(device, host);
}

INSTANTIATE_TEST_SUITE_P(Goldens, DeviceRun, testing::Values("llama", "gemma2", "mixtral", "marian"),
                         [](const auto& family) { return std::string(family.param); });

TEST(DeviceMemory, OfTheDeviceDecides) {
  test::GuardedEngine guarded;
  const Checkpoint checkpoint = Checkpoint::open(test::golden("llama"));
  const auto model = checkpoint.model(guarded.device);
  const RunOptions options{.precision = Precision::bf16(), .positions = 64};
  const MemoryNeed need = Runner::need(*model, guarded.engine, options);
  guarded.device.free = need.total() - 1;
  expect_error([&] { Runner(*model, guarded.engine, options); }, {"needs", "are free on guarded"});
  const RunOptions longer{.precision = Precision::bf16(), .positions = 4096};
  guarded.device.free = Runner::need(*model, guarded.engine, longer).total() - 1;
  try {
    Runner(*model, guarded.engine, longer);
    FAIL() << "a byte is missing";
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("about 4095 positions would fit"), std::string::npos) << error.hint();
  }
  guarded.device.free = need.total();
  {
    Runner runner(*model, guarded.engine, options);
    const Runner::Part part{.sequence = runner.start(), .ids = std::vector<int32_t>{1, 2, 3}};
    runner.pass({&part, 1});
  }
  // The weights are there now; a second run needs no more of them.
  guarded.device.free = need.cache + need.pass;
  Runner(*model, guarded.engine, options);
  guarded.device.free -= 1;
  expect_error([&] { Runner(*model, guarded.engine, options); }, {"needs", "are free on guarded"});
}

// gpt2 and bloom have a tied head, and no tables of angles, which no plan counts.
TEST(DeviceMemory, IsTakenAsPlanned) {
  for (const char* family : {"gpt2", "bloom"}) {
    for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
      SCOPED_TRACE(std::string(family) + " " + name_of(precision.compute));
      test::GuardedEngine guarded;
      const auto model = Checkpoint::open(test::golden(family)).model(guarded.device);
      const int64_t words = model->spec().vocabulary, before = guarded.device.taken;
      const RunOptions options{.precision = precision, .cache = precision.compute, .positions = 512, .chunk = 64};
      const MemoryNeed need = Runner::need(*model, guarded.engine, options);
      Runner runner(*model, guarded.engine, options);
      const Ids ids = test::some_ids(64, 1, words);
      const Runner::Part whole{.sequence = runner.start(), .ids = ids, .logits = 64};
      runner.pass({&whole, 1});
      // A head of bf16 is the last to be converted: it is not there yet beside the largest master.
      const int64_t on_device = need.total() - options.chunk * words * size_of(DType::f32);
      EXPECT_LE(guarded.device.most - before, on_device);
      EXPECT_GT(guarded.device.most - before, on_device - on_device / 20);
      // Nor do many sequences with almost all of their logits take more.
      const int64_t taken = guarded.device.taken;
      std::vector<Runner::Part> parts;
      for (size_t n = 0; n < 8; ++n) {
        parts.push_back(
            {.sequence = runner.start(), .ids = std::span(ids).subspan(8 * n, 8), .logits = n == 0 ? 7 : 8});
      }
      runner.pass(parts);
      EXPECT_EQ(guarded.device.taken, taken);
    }
  }
}

}  // namespace infer_device_test
}  // namespace qkv

// PyTorch modules loaded from their state dicts, against PyTorch's outputs.
#include "model/torch_modules.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "kernels/tables.h"
#include "support/pass.h"
#include "support/safetensors_numbers.h"

namespace qkv::test {
namespace {

// A wrong norm epsilon costs as little as 9e-12 here, so the bound is tighter than for whole models.
constexpr double kNmse = 2e-12;

std::vector<std::filesystem::path> files(const std::string& name) {
  std::vector<std::filesystem::path> all{golden("pieces/" + name)};
  if (const auto large = shared("golden/pieces/" + name)) all.push_back(*large);
  return all;
}

struct Recorded : Pass {
  explicit Recorded(const std::filesystem::path& path)
      : Pass({.kernels = &kernels::best_table()}), recorded(GoldenFile::read(path)) {}
  Tensor vectors(const std::string& name) {
    const Golden& g = recorded.at(name);
    return input(g.values, g.shape).flatten_to(2);
  }
  Rows rows(const std::string& name) {
    const Shape& s = recorded.at(name).shape;
    return Rows::batch(cx, s[0], s[1]);
  }
  double off(const Tensor& got, const std::string& name) { return nmse(to_host(got), recorded.at(name).values); }

  GoldenFile recorded;
};

double transformer_off(const std::filesystem::path& path, bool norm_first) {
  Recorded run(path);
  const auto module = TorchTransformer::load(path, {.heads = 4, .norm_first = norm_first});
  const Rows source = run.rows("io.src"), target = run.rows("io.tgt");
  const Tensor out = module.forward(run.cx, {run.vectors("io.src"), source}, {run.vectors("io.tgt"), target});
  return run.off(out, "io.out");
}

TEST(TorchTransformer, ComputesWhatTorchComputes) {
  for (const bool norm_first : {false, true}) {
    const std::string name = norm_first ? "nn_transformer_prenorm.safetensors" : "nn_transformer_postnorm.safetensors";
    for (const auto& path : files(name)) {
      EXPECT_LE(transformer_off(path, norm_first), kNmse) << path;
      EXPECT_GT(transformer_off(path, !norm_first), 1e-3) << path << ": the other order of norms must be seen";
    }
  }
}

TEST(TorchAttention, ComputesWhatTorchComputes) {
  for (const auto& path : files("attention.safetensors")) {
    for (const std::string name : {"mha", "causal"}) {
      Recorded run(path);
      const auto module = TorchAttention::load(path, {.heads = 4, .causal = name == "causal", .prefix = name + "."});
      const Rows rows = run.rows(name + ".x");
      EXPECT_LE(run.off(module.forward(run.cx, run.vectors(name + ".x"), rows), name + ".out"), kNmse) << name;
    }
  }
}

TEST(TorchModules, SayWhatIsWrong) {
  const auto attention = golden("pieces/attention.safetensors");
  expect_error([&] { TorchAttention::load(attention, {.heads = 4, .prefix = "other."}); },
               {"has no tensor 'other.W_query'"});
  expect_error([&] { TorchAttention::load(attention, {.heads = 5, .prefix = "mha."}); },
               {"do not divide into 5 heads"});
  expect_error([&] { TorchTransformer::load(attention, {.heads = 4}); },
               {"has no tensor 'encoder.layers.0.linear1.weight'"});
}

}  // namespace
}  // namespace qkv::test

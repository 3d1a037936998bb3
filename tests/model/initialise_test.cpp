#include "model/initialise.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <fstream>

#include "base/expect_error.h"
#include "base/file.h"
#include "io/floats.h"
#include "io/safetensors_folder.h"
#include "kernels/tables.h"
#include "model/families/presets.h"
#include "support/pass.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

Json small_gpt2() {
  return {{"model_type", "gpt2"}, {"vocab_size", 500}, {"n_positions", 64},
          {"n_embd", 64},         {"n_layer", 8},      {"n_head", 4}};
}

struct Moments {
  double mean = 0, deviation = 0, most = 0;
};

Moments moments_of(const WeightSpec& weight, uint64_t seed) {
  std::vector<float> numbers(static_cast<size_t>(weight.shape.count()));
  initial_numbers(weight, seed, 0, numbers);
  Moments m;
  double squares = 0;
  for (const float x : numbers) {
    m.mean += double{x};
    squares += double{x} * double{x};
    m.most = std::max(m.most, double{std::abs(x)});
  }
  const auto n = static_cast<double>(numbers.size());
  m.mean /= n;
  m.deviation = std::sqrt(squares / n - m.mean * m.mean);
  return m;
}

// Mean and deviation of n draws are within five standard errors.
void expect_moments(const WeightSpec& weight, double deviation, double kurtosis) {
  const Moments m = moments_of(weight, 3);
  const auto n = static_cast<double>(weight.shape.count());
  EXPECT_NEAR(m.mean, 0, 5 * deviation / std::sqrt(n)) << weight.name;
  EXPECT_NEAR(m.deviation, deviation, 5 * deviation * std::sqrt((kurtosis - 1) / (4 * n))) << weight.name;
}

TEST(Initialise, Gpt2StartsAsPublished) {
  int matrices = 0;
  for (const WeightSpec& weight : weight_list(read_spec(Config(small_gpt2(), "config.json")))) {
    const bool norm = weight.part == Part::norm, bias = weight.name.ends_with(".bias");
    if (norm || bias) {
      const Moments m = moments_of(weight, 3);
      EXPECT_EQ(m.mean, norm && !bias ? 1 : 0) << weight.name;
      EXPECT_EQ(m.deviation, 0) << weight.name;
      continue;
    }
    const bool writes = weight.name.ends_with("attn.o") || weight.name.ends_with("mlp.down");
    expect_moments(weight, writes ? 0.02 / std::sqrt(2 * 8.0) : 0.02, 3);
    ++matrices;
  }
  EXPECT_EQ(matrices, 2 + 8 * 6);
}

TEST(Initialise, TheTransformerOf2017StartsAsPublished) {
  Json config = preset_config("transformer-base");
  config.update(
      {{"vocab_size", 400}, {"d_model", 64}, {"intermediate_size", 128}, {"encoder_layers", 2}, {"decoder_layers", 2}});
  for (const WeightSpec& weight : weight_list(read_spec(Config(config, "config.json")))) {
    if (weight.part == Part::norm || weight.name.ends_with(".bias")) continue;
    if (weight.part == Part::embedding) {
      expect_moments(weight, 1 / std::sqrt(64.0), 3);
      continue;
    }
    const double bound = std::sqrt(6.0 / static_cast<double>(weight.shape[0] + weight.shape[1]));  // Glorot and Bengio
    expect_moments(weight, bound / std::sqrt(3.0), 1.8);
    EXPECT_LE(moments_of(weight, 3).most, bound * (1 + 1e-6)) << weight.name;
  }
}

TEST(Initialise, T5StartsAsPublished) {
  const Json config{{"model_type", "t5"}, {"vocab_size", 300}, {"d_model", 64},   {"d_kv", 8},
                    {"num_heads", 4},     {"d_ff", 256},       {"num_layers", 2}, {"feed_forward_proj", "relu"}};
  const std::map<std::string, double> deviations{{"enc.layers.1.attn.q", 1 / std::sqrt(64.0 * 8)},
                                                 {"enc.layers.1.attn.k", 1 / std::sqrt(64.0)},
                                                 {"dec.layers.0.cross.v", 1 / std::sqrt(64.0)},
                                                 {"dec.layers.1.cross.o", 1 / std::sqrt(4.0 * 8)},
                                                 {"dec.layers.1.mlp.up", 1 / std::sqrt(64.0)},
                                                 {"dec.layers.1.mlp.down", 1 / std::sqrt(256.0)},
                                                 {"dec.relative", 1 / std::sqrt(64.0)},
                                                 {"embed", 1}};
  size_t seen = 0;
  for (const WeightSpec& weight : weight_list(read_spec(Config(config, "config.json")))) {
    const auto at = deviations.find(weight.name);
    if (at == deviations.end()) continue;
    expect_moments(weight, at->second, 3);
    ++seen;
  }
  EXPECT_EQ(seen, deviations.size());
}

TEST(Initialise, NumbersDependOnSeedNameAndPlaceOnly) {
  const WeightSpec a{.name = "layers.0.attn.q", .shape = {32, 32}, .init = {Init::Kind::normal, 1}};
  WeightSpec b = a;
  b.name = "layers.1.attn.q";
  const auto draw = [](const WeightSpec& weight, uint64_t seed, int64_t first, size_t count) {
    std::vector<float> out(count);
    initial_numbers(weight, seed, first, out);
    return out;
  };
  const std::vector<float> whole = draw(a, 1, 0, 1024);
  EXPECT_EQ(draw(a, 1, 100, 50), std::vector<float>(whole.begin() + 100, whole.begin() + 150));
  EXPECT_NE(draw(b, 1, 0, 1024), whole);
  EXPECT_NE(draw(a, 2, 0, 1024), whole);
}

// No file may grow past a megabyte.
class SmallFilesOnly {
 public:
  SmallFilesOnly() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_FSIZE, &small);
  }
  SmallFilesOnly(const SmallFilesOnly&) = delete;
  SmallFilesOnly& operator=(const SmallFilesOnly&) = delete;
  ~SmallFilesOnly() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

class NewModel : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(root_); }
  fs::path write(const std::string& name, const Json& config, const NewModelOptions& options, int threads = 1) {
    ThreadPool pool(threads);
    write_new_model(root_ / name, config, options, pool);
    return root_ / name;
  }
  static std::map<std::string, std::vector<float>> numbers_in(const fs::path& folder) {
    const SafetensorsFolder file = SafetensorsFolder::open(folder);
    std::map<std::string, std::vector<float>> all;
    for (const StoredTensor& tensor : file.entries()) {
      std::vector<float> values(tensor.bytes.size() / (tensor.dtype == "F32" ? 4 : 2));
      decode_floats(tensor.dtype, tensor.bytes, values);
      all[tensor.name] = values;
    }
    return all;
  }

  fs::path root_ = [] {
    fs::path path = fs::temp_directory_path() / ("qkv-new-" + std::to_string(getpid()));
    fs::create_directories(path);
    return path;
  }();
};

TEST_F(NewModel, IsTheSameWithAnyThreads) {
  const fs::path one = write("one", small_gpt2(), {.seed = 5}, 1), three = write("three", small_gpt2(), {.seed = 5}, 3);
  EXPECT_EQ(read_file(one / "model.safetensors", 1 << 24), read_file(three / "model.safetensors", 1 << 24));
}

TEST_F(NewModel, Bf16RoundsTheSameNumbers) {
  const auto exact = numbers_in(write("f32", small_gpt2(), {.seed = 5}));
  const auto rounded = numbers_in(write("bf16", small_gpt2(), {.seed = 5, .dtype = "BF16"}));
  ASSERT_EQ(exact.size(), rounded.size());
  for (const auto& [name, values] : exact) {
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(rounded.at(name)[i], static_cast<float>(test::round_to(DType::bf16, double{values[i]}))) << name;
    }
  }
}

// What is written is read back as the weights that were drawn, however the family lays its tensors out.
TEST_F(NewModel, EveryFamilyReadsBackWhatWasDrawn) {
  for (const auto& entry : fs::directory_iterator(test::golden(""))) {
    if (!fs::exists(entry.path() / "config.json")) continue;
    const std::string name = entry.path().filename();
    const Json config = parse_json(read_file(entry.path() / "config.json", 1 << 20), name);
    const Checkpoint made = Checkpoint::open(write(name, config, {.seed = 9}));
    const Weights weights = made.weights(cpu_device());
    for (const WeightSpec& weight : weight_list(made.spec)) {
      std::vector<float> drawn(static_cast<size_t>(weight.shape.count()));
      initial_numbers(weight, 9, 0, drawn);
      const test::Numbers read = test::to_host(weights.at(weight.name).master());
      ASSERT_EQ(read, test::Numbers(drawn.begin(), drawn.end())) << name << " " << weight.name;
    }
    EXPECT_EQ(made.config["architectures"].size(), 1U);
    fs::remove_all(root_ / name);
  }
}

TEST_F(NewModel, RefusesAFolderThatExists) {
  write("taken", small_gpt2(), {.seed = 1});
  expect_error([&] { write("taken", small_gpt2(), {.seed = 2}); }, {"taken", "exists"});
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 1);
}

TEST_F(NewModel, RefusesWhatTheDiskCannotHold) {
  const SmallFilesOnly guard;  // if it is not refused, it must not fill the disk
  Json config = small_gpt2();
  config.update({{"vocab_size", 2'000'000'000}, {"n_embd", 65536}});
  expect_error([&] { write("huge", config, {}); }, {"huge", "needs 52", " bytes but the disk has "});
  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(NewModel, ABadConfigLeavesNothing) {
  Json config = small_gpt2();
  config["n_head"] = 0;
  expect_error([&] { write("bad", config, {}); }, {"config.json", "heads"});
  EXPECT_TRUE(fs::is_empty(root_));
}

}  // namespace
}  // namespace qkv

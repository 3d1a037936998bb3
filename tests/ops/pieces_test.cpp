// torch's nn.MultiheadAttention and nn.Transformer, and the textbook causal attention class, composed from ops.
#include <gtest/gtest.h>

#include <functional>

#include "weighted_pass.h"

namespace qkv::test {
namespace pieces_test {

constexpr int64_t kHeads = 4;

// Ten times tighter than correctness.md asks: the stream here has variance 1 and more, where a wrong norm epsilon costs
// only 9e-12 to 3e-11. We measure at most 2e-13.
constexpr double kNmse = 2e-12;
static_assert(kNmse <= kGoldenNmse);

enum class Mistake : uint8_t { none, heads_swapped, epsilon, other_orientation };

struct Setting {
  const char* name;
  const Kernels* kernels;
  Precision precision;
  double nmse, worst;
  bool allows(const Distance& off) const { return off.nmse <= nmse && off.worst <= worst; }
};

constexpr double kAny = 1e30;

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const Kernels* table : kernels::all_tables()) {
    all.push_back({"f32", table, Precision::f32(), kNmse, kGoldenWorst});
    all.push_back({"f64", table, Precision::f64(), kNmse, kGoldenWorst});  // the golden itself is f32
    all.push_back({"bf16", table, Precision::bf16(), 5e-4, kAny});
  }
  return all;
}

// The committed set and, where the shared one is there, its larger twin.
std::vector<std::filesystem::path> files(const std::string& name) {
  std::vector<std::filesystem::path> all{golden("pieces/" + name)};
  if (const auto large = shared("golden/pieces/" + name)) all.push_back(*large);
  return all;
}

class Piece : public WeightedPass {
 public:
  Piece(const GoldenFile& file, const Setting& setting, Mistake mistake)
      : WeightedPass(file, {.kernels = setting.kernels, .precision = setting.precision}), mistake_(mistake) {}

  struct Heads {
    Tensor z, pattern;  // [B T, C], [B, H, T, S]
  };
  Heads attend(const Tensor& q, const Tensor& k, const Tensor& v, const Rows& rows, bool causal) {
    ops::AttentionOptions options{.causal = causal};
    if (mistake_ == Mistake::heads_swapped) options.kv_map = cx.upload(std::vector<int32_t>{1, 0, 2, 3});
    const Tensor heads = ops::split_heads(q, kHeads).flatten_to(3), keys = ops::split_heads(k, kHeads).flatten_to(3);
    const auto attended = ops::attention(cx, heads, keys, ops::split_heads(v, kHeads), rows, options);
    const Tensor pattern = ops::attention_pattern(cx, heads, keys, attended.lse, rows, options);
    const auto batch = static_cast<int64_t>(rows.list.size());
    return {ops::merge_heads(attended.z),
            pattern.view({batch, rows.rows / batch, kHeads, rows.longest_keys}).transposed(1, 2)};
  }

  // in_proj stacks W_Q, W_K and W_V.
  Heads torch_attention(const std::string& name, const Tensor& x, const Tensor& memory, const Rows& rows, bool causal) {
    const Golden &w = weights().at(name + "in_proj_weight"), &b = weights().at(name + "in_proj_bias");
    const int64_t width = w.shape[1];
    const auto project = [&](const Tensor& from, int64_t part) {
      return linear(from, weight(name + "w", rows_of(w, part * width, width)),
                    &weight(name + "b", rows_of(b, part * width, width)));
    };
    Heads heads = attend(project(x, 0), project(memory, 1), project(memory, 2), rows, causal);
    heads.z = linear(heads.z, name + "out_proj");
    return heads;
  }

  Tensor norm(const std::string& name, const Tensor& x) {
    return ops::layer_norm(cx, x,
                           {.weight = &weight(name + ".weight"),
                            .bias = &weight(name + ".bias"),
                            .eps = mistake_ == Mistake::epsilon ? 1e-6 : 1e-5});
  }

  // One residual branch: the norm before it, or after the sum.
  Tensor around(bool norm_first, const std::string& norm_name, const Tensor& x,
                const std::function<Tensor(const Tensor&)>& branch) {
    return norm_first ? ops::add(cx, x, branch(norm(norm_name, x))) : norm(norm_name, ops::add(cx, x, branch(x)));
  }

  Tensor feed_forward(const std::string& layer, const Tensor& x) {
    return linear(ops::activation(cx, linear(x, layer + "linear1"), ops::act::relu), layer + "linear2");
  }

  Tensor transformer(bool norm_first) {
    const Golden &src = weights().at("io.src"), &tgt = weights().at("io.tgt");
    const Rows source = Rows::batch(cx, src.shape[0], src.shape[1]);
    const Rows target = Rows::batch(cx, tgt.shape[0], tgt.shape[1]);
    const Rows across = Rows::cross(cx, target, source);

    Tensor memory = input_of(src).flatten_to(2), y = input_of(tgt).flatten_to(2);
    for (const std::string layer : {"encoder.layers.0.", "encoder.layers.1."}) {
      memory = around(norm_first, layer + "norm1", memory,
                      [&](const Tensor& x) { return torch_attention(layer + "self_attn.", x, x, source, false).z; });
      memory = around(norm_first, layer + "norm2", memory, [&](const Tensor& x) { return feed_forward(layer, x); });
    }
    memory = norm("encoder.norm", memory);
    for (const std::string layer : {"decoder.layers.0.", "decoder.layers.1."}) {
      y = around(norm_first, layer + "norm1", y,
                 [&](const Tensor& x) { return torch_attention(layer + "self_attn.", x, x, target, true).z; });
      y = around(norm_first, layer + "norm2", y, [&](const Tensor& x) {
        return torch_attention(layer + "multihead_attn.", x, memory, across, false).z;
      });
      y = around(norm_first, layer + "norm3", y, [&](const Tensor& x) { return feed_forward(layer, x); });
    }
    return norm("decoder.norm", y);
  }

  Heads multihead() {
    const Golden& x = weights().at("mha.x");
    const Tensor rows = input_of(x).flatten_to(2);
    return torch_attention("mha.", rows, rows, Rows::batch(cx, x.shape[0], x.shape[1]), false);
  }

  // W_query, W_key and W_value are stored as nn.Linear keeps them, y = x W^T: the other way round does not match.
  Heads causal() {
    const Golden& g = weights().at("causal.x");
    const Tensor x = input_of(g).flatten_to(2);
    const auto project = [&](const std::string& name) {
      const Golden& w = weights().at("causal." + name);
      return linear(x, weight(name, mistake_ == Mistake::other_orientation ? transpose(w) : w));
    };
    Heads heads =
        attend(project("W_query"), project("W_key"), project("W_value"), Rows::batch(cx, g.shape[0], g.shape[1]), true);
    heads.z = linear(heads.z, "causal.out_proj");
    return heads;
  }

 private:
  Mistake mistake_;
};

struct Compared {
  std::string what;
  Distance distance;
};

std::vector<Compared> compare(const GoldenFile& file, const std::string& piece, const Setting& setting,
                              Mistake mistake = Mistake::none) {
  Piece pass(file, setting, mistake);
  const auto heads = [&](const std::string& prefix, const Piece::Heads& got) -> std::vector<Compared> {
    return {{"out", distance(to_host(got.z), file.at(prefix + "out"))},
            {"weights", distance(to_host(got.pattern), file.at(prefix + "weights"))}};
  };
  if (piece == "multihead") return heads("mha.", pass.multihead());
  if (piece == "causal") return heads("causal.", pass.causal());
  return {{"out", distance(to_host(pass.transformer(piece == "prenorm")), file.at("io.out"))}};
}

std::string file_of(const std::string& piece) {
  return piece.ends_with("norm") ? "nn_transformer_" + piece + ".safetensors" : "attention.safetensors";
}

class Pieces : public testing::TestWithParam<const char*> {};

TEST_P(Pieces, MatchTorch) {
  for (const auto& path : files(file_of(GetParam()))) {
    const GoldenFile file = GoldenFile::read(path);
    for (const Setting& setting : settings()) {
      for (const auto& [what, off] : compare(file, GetParam(), setting)) {
        EXPECT_TRUE(setting.allows(off)) << path << ", " << setting.kernels->name << " in " << setting.name << ": "
                                         << what << " has " << off;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Pieces, testing::Values("multihead", "causal", "prenorm", "postnorm"),
                         [](const auto& piece) { return std::string(piece.param); });

// The bounds are only worth something if they catch these.
void expect_caught(const std::string& piece, Mistake mistake) {
  for (const auto& path : files(file_of(piece))) {
    const GoldenFile file = GoldenFile::read(path);
    const Setting f32 = settings().front();
    for (const auto& [what, off] : compare(file, piece, f32, mistake)) {
      EXPECT_FALSE(f32.allows(off)) << path << ": " << what << " has " << off;
    }
  }
}

TEST(PiecesBounds, CatchTwoHeadsThatChangedPlaces) {
  for (const char* piece : {"multihead", "causal", "prenorm", "postnorm"}) expect_caught(piece, Mistake::heads_swapped);
}

TEST(PiecesBounds, CatchAnEpsilonOfAnotherSize) {
  for (const char* piece : {"prenorm", "postnorm"}) expect_caught(piece, Mistake::epsilon);
}

TEST(PiecesBounds, CatchProjectionsTheOtherWayRound) {
  expect_caught("causal", Mistake::other_orientation);
}

}  // namespace pieces_test
}  // namespace qkv::test

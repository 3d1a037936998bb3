// Dropout masks are a function of the place: no two stacks, layers or sites of a model share one.
#include <gtest/gtest.h>

#include <map>

#include "ops/ops.h"
#include "support/pass.h"

namespace qkv {
namespace {

TEST(DropoutPlaces, DoNotShareMasks) {
  std::map<test::Numbers, std::string> seen;
  for (const Stack stack : {Stack::decoder, Stack::encoder, Stack::cross}) {
    for (const int16_t layer : {int16_t{0}, int16_t{1}, int16_t{2}}) {
      for (const Site site : {Site::embed, Site::attn_out, Site::mlp_out}) {
        test::Pass pass;
        pass.cx.training = true;
        pass.cx.rng = {.seed = 3, .step = 5};
        const Tensor ones = pass.input(test::Numbers(512, 1.0), {4, 128});
        const test::Numbers mask =
            test::to_host(ops::dropout(pass.cx, ones, {.p = 0.5F, .place = {stack, layer}, .site = site}));
        const std::string name =
            fmt::format("stack {} layer {} site {}", static_cast<int>(stack), layer, static_cast<int>(site));
        const auto [at, fresh] = seen.emplace(mask, name);
        EXPECT_TRUE(fresh) << name << " has the mask of " << at->second;
      }
    }
  }
}

}  // namespace
}  // namespace qkv

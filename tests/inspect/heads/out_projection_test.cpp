// W_O is split so that the parts of all heads sum to the whole.
#include "inspect/heads/out_projection.h"

#include <gtest/gtest.h>

#include "inspect/tiny.h"
#include "support/pass.h"

namespace qkv {
namespace {

TEST(OutProjection, PartsOfHeadsSumToTheWhole) {
  for (const char* name : {"gpt2", "marian", "deepseek_v3"}) {
    const Checkpoint checkpoint = Checkpoint::open(test::golden(name));
    const auto model = checkpoint.model();
    for (const Place place : all_attentions(checkpoint.spec)) {
      const OutProjection out(checkpoint.spec, place);
      const std::vector<float> w = host_floats(model->weights().at(out.weight()).master());
      ASSERT_EQ(std::ssize(w), checkpoint.spec.width * out.columns());
      std::vector<double> z(static_cast<size_t>(out.columns()));
      for (size_t i = 0; i < z.size(); ++i) z[i] = std::sin(static_cast<double>(i));
      const std::vector<std::vector<double>> alone = out.one_head_each(z);
      ASSERT_EQ(std::ssize(alone), out.heads());
      const auto row_times = [&](const std::vector<double>& x) {  // row 1 of W_O
        double sum = 0;
        for (size_t i = 0; i < x.size(); ++i) sum += x[i] * static_cast<double>(w[x.size() + i]);
        return sum;
      };
      double all = 0;
      for (int64_t h = 0; h < out.heads(); ++h) {
        const std::span<const float> part = out.of_head(w, 1, h);
        ASSERT_EQ(std::ssize(part), out.value_width());
        double of_head = 0;
        for (size_t e = 0; e < part.size(); ++e) {
          of_head += static_cast<double>(part[e]) * z[static_cast<size_t>(h) * part.size() + e];
        }
        EXPECT_NEAR(of_head, row_times(alone[static_cast<size_t>(h)]), 1e-12) << name_of(checkpoint.spec, place);
        all += of_head;
      }
      EXPECT_NEAR(all, row_times(z), 1e-12);
    }
  }
}

}  // namespace
}  // namespace qkv

// Parameter counts against the published ones.
#include "model/families/presets.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "model/describe/summary.h"
#include "model/families/family.h"

namespace qkv {
namespace {

ModelSummary summary_of(const std::string& preset) {
  return summarise(read_spec(Config(preset_config(preset), preset)));
}

TEST(Presets, HaveTheirPublishedNumberOfParameters) {
  const std::map<std::string_view, int64_t> published{
      {"transformer-base", 63'082'496},
      {"transformer-big", 214'245'376},
      {"gpt2", 124'439'808},
      {"gpt2-medium", 354'823'168},
      {"gpt2-large", 774'030'080},
      {"gpt2-xl", 1'557'611'200},
      {"tinyllama-1.1b", 1'100'048'384},
      {"llama-7b", 6'738'415'616},
      {"llama2-70b", 68'976'648'192},
      {"llama3-8b", 8'030'261'248},
      {"qwen3-0.6b", 596'049'920},
      {"mixtral-8x7b", 46'702'792'704},
      {"deepseek-v3", 671'026'404'352 + 14'848},
  };
  EXPECT_EQ(preset_names().size(), published.size());
  for (const std::string_view name : preset_names()) {
    EXPECT_EQ(summary_of(std::string(name)).parameters, published.at(name)) << name;
  }
}

TEST(Presets, HaveTheirPublishedActiveParameters) {
  EXPECT_EQ(summary_of("mixtral-8x7b").active, 12'879'925'248);                       // "12.9B"
  EXPECT_NEAR(static_cast<double>(summary_of("deepseek-v3").active), 37.5e9, 0.3e9);  // "37B"
  EXPECT_EQ(summary_of("gpt2").active, 124'439'808);
}

TEST(Presets, HaveTheirPublishedCache) {
  EXPECT_EQ(2 * summary_of("deepseek-v3").cache.per_token, 70'272);  // its paper: 70.272 KB a token
  EXPECT_TRUE(summary_of("deepseek-v3").cache.latent);
  EXPECT_EQ(2 * summary_of("llama3-8b").cache.per_token, 2 * 2 * 32 * 8 * 128);
  EXPECT_EQ(summary_of("transformer-base").cache.per_source_token, 6 * 2 * 512);
}

TEST(Presets, AnUnknownNameIsAnErrorWithTheNearest) {
  const std::optional<Error> error = error_of([] { preset_config("lama3-8b"); });
  ASSERT_TRUE(error);
  EXPECT_NE(error->message().find("'lama3-8b'"), std::string::npos) << error->what();
  EXPECT_NE(error->hint().find("did you mean llama3-8b"), std::string::npos) << error->what();
  EXPECT_NE(error->hint().find("deepseek-v3"), std::string::npos) << error->what();
}

}  // namespace
}  // namespace qkv

// What the model that ships promises: heads with jobs that nobody gave them, in both languages; none without training.
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "base/temp_folder.h"
#include "inspect/heads/head_labels.h"
#include "inspect/heads/head_roles.h"
#include "model/initialise.h"
#include "open/world_texts.h"
#include "support/pass.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLength = 256;

fs::path shipped_world() {
  return test::golden("").parent_path().parent_path().parent_path() / "models" / "world";
}

// Roles by name, and the labels of `names` (all if it is empty) that gold labels and patching show.
std::set<std::string> jobs_of(const fs::path& folder, const std::string& data, int64_t role_tokens,
                              int64_t label_tokens, const std::vector<std::string>& names) {
  const OpenModel model(folder.string(), {.looks = true});
  CollectedTexts collected(model.spec(), {.tokens = role_tokens, .length = kLength});
  add_world(model, data, collected);
  const std::vector<TokenText> texts = collected.take();
  Reader reader(model.model(), model.engine(), {.precision = model.precision()});
  std::set<std::string> found;
  for (const HeadScore& head : head_roles(reader, &model.tokenizer(), texts, {}).heads) {
    for (const Role& role : roles_of(head)) found.emplace(role.rule->name);
  }
  std::vector<LabelledText> stories;
  for (const AnnotatedText& story : labelled_world(model, data, {.tokens = label_tokens})) {
    stories.push_back(labelled(story));
  }
  const LabelOptions options{.length = kLength, .names = names};
  for (const LabelScore& label : label_scores(reader, model.tokenizer(), stories, options).labels) {
    if (label.found()) found.insert(label.name);
  }
  return found;
}

// What docs/models.md claims for all samples. A verb's subject has a head that looks there, but it carries nothing.
TEST(ShippedWorld, HasHeadsWithJobs) {
  const std::vector<std::string> names{"coreference of a pronoun", "nsubj"};
  const std::set<std::string> english = jobs_of(shipped_world(), "world", 12000, 40000, names),
                              chinese = jobs_of(shipped_world(), "world:zh", 12000, 40000, names);
  for (const char* job :
       {"previous token", "induction", "induction on random tokens", "first token", "coreference of a pronoun"}) {
    EXPECT_TRUE(english.contains(job)) << job;
    EXPECT_TRUE(chinese.contains(job)) << job << " in Chinese";
  }
  EXPECT_FALSE(english.contains("nsubj"));
}

TEST(ShippedWorld, HasNoneWithoutTraining) {
  const TempFolder folder;
  const fs::path untrained = folder.path() / "untrained", world = shipped_world();
  ThreadPool pool(2);
  write_new_model(untrained, parse_json(read_file(world / "config.json", 1 << 20), "config.json"), {.seed = 1}, pool);
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"}) fs::copy_file(world / file, untrained / file);
  EXPECT_EQ(jobs_of(untrained, "world", 5000, 5000, {}), std::set<std::string>());
  EXPECT_EQ(jobs_of(untrained, "world:zh", 5000, 5000, {}), std::set<std::string>());
}

}  // namespace
}  // namespace qkv

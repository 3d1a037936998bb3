// Stories of the built-in world that no recipe trains on, as texts of a model: what heads are measured on.
#pragma once

#include <string>
#include <vector>

#include "open/open_model.h"
#include "world/story.h"

namespace qkv {

inline constexpr uint64_t kWorldSeed = 20260101, kFirstStory = 1'000'000;

// Takes texts until there are enough tokens.
class CollectedTexts {
 public:
  struct Most {
    int64_t tokens = 0;  // in all
    int64_t length = 0;  // of one text; longer ones are cut, or left out
  };
  CollectedTexts(const ModelSpec& spec, const Most& most);

  bool full() const { return read_ >= tokens_; }
  int64_t longest() const { return longest_; }

  void add(TokenText text);
  void add_cut(TokenText text);
  void add_pair(TokenText pair);  // cannot be cut; one that is too long is left out

  std::vector<TokenText> take() { return std::move(texts_); }

 private:
  int64_t tokens_, longest_, read_ = 0;
  std::vector<TokenText> texts_;
};

// Stories with their gold labels, until there are enough tokens. `data`: "world" or "world:zh", and kinds.
struct LabelledStories {
  int64_t tokens = 0;
  uint64_t skip = 0;  // stories
};
std::vector<AnnotatedText> labelled_world(const OpenModel& model, const std::string& data, const LabelledStories& most);

// "world", "world:zh" or, for a model that translates, "world:pairs"; then kinds of stories (docs/world.md):
// "world:zh:echo".
void add_world(const OpenModel& model, const std::string& data, CollectedTexts& to);

}  // namespace qkv

#include "open/world_texts.h"

#include <algorithm>

#include "base/error.h"
#include "world/world.h"

namespace qkv {
namespace {

// Chinese to English.
void add_sentence_pairs(const OpenModel& model, const Story& story, CollectedTexts& to) {
  for (size_t s = 0; s < story.english.sentences.size() && !to.full(); ++s) {
    const auto part = [&](const AnnotatedText& t) {
      return t.text.substr(t.sentences[s].begin, t.sentences[s].end - t.sentences[s].begin);
    };
    to.add_pair(model.encode(part(story.chinese), part(story.english)));
  }
}

// "world:zh:echo": the language, then the kinds of stories (docs/world.md).
struct WorldData {
  bool chinese = false, pairs = false;
  std::vector<std::string> kinds;

  explicit WorldData(std::string_view data) {
    for (size_t colon = data.find(':'); colon != std::string_view::npos;) {
      data.remove_prefix(colon + 1);
      colon = data.find(':');
      const std::string_view part = data.substr(0, colon);
      if (kinds.empty() && !chinese && !pairs && (part == "zh" || part == "pairs")) {
        (part == "zh" ? chinese : pairs) = true;
      } else {
        kinds.emplace_back(part);
      }
    }
  }
};

}  // namespace

CollectedTexts::CollectedTexts(const ModelSpec& spec, const Most& most)
    : tokens_(most.tokens), longest_(spec.context > 0 ? std::min(most.length, spec.context) : most.length) {}

void CollectedTexts::add(TokenText text) {
  if (text.ids.size() < 2 || full()) return;
  read_ += std::ssize(text.ids);
  texts_.push_back(std::move(text));
}

void CollectedTexts::add_cut(TokenText text) {
  if (std::ssize(text.ids) > longest_) text.ids.resize(static_cast<size_t>(longest_));
  add(std::move(text));
}

void CollectedTexts::add_pair(TokenText pair) {
  if (std::max(std::ssize(pair.ids), std::ssize(pair.source)) <= longest_) add(std::move(pair));
}

std::vector<AnnotatedText> labelled_world(const OpenModel& model, const std::string& data,
                                          const LabelledStories& most) {
  const auto [chinese, pairs, kinds] = WorldData(data);
  QKV_CHECK(!pairs, data, " are pairs of sentences, which have no labels", Hint("use world or world:zh"));
  const World world(kWorldSeed, kinds);
  std::vector<AnnotatedText> texts;
  int64_t tokens = 0;
  for (uint64_t i = kFirstStory + most.skip; tokens < most.tokens; ++i) {
    texts.push_back(world.story(i).in(chinese ? Language::chinese : Language::english));
    tokens += std::ssize(model.tokenizer().encode(texts.back().text));
  }
  return texts;
}

void add_world(const OpenModel& model, const std::string& data, CollectedTexts& to) {
  const auto [chinese, pairs, kinds] = WorldData(data);
  const World world(kWorldSeed, kinds);
  const ModelSpec& spec = model.spec();
  const bool translates = spec.has_source();
  QKV_CHECK(pairs == translates, "a ", spec.family, translates ? " translates" : " reads texts alone", ", but ", data,
            " was given", Hint(translates ? "use world:pairs" : "use world or world:zh"));
  for (uint64_t i = kFirstStory; !to.full(); ++i) {
    if (translates) {
      add_sentence_pairs(model, world.story(i), to);
    } else {
      to.add_cut(model.encode(world.text(i, chinese ? Language::chinese : Language::english)));
    }
  }
}

}  // namespace qkv

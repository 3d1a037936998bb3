#include "train/corpus.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/function_ref.h"
#include "base/path.h"
#include "base/progress.h"
#include "text/unicode/utf8.h"
#include "world/labels.h"
#include "world/world.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

// An Error if so many stories and their tokens, about as many bytes again, cannot fit on the disk.
void check_space(const fs::path& folder, int64_t stories, FunctionRef<std::string(int64_t index)> story) {
  const int64_t looked_at = std::min<int64_t>(stories, 100);
  size_t bytes = 0;
  for (int64_t i = 0; i < looked_at; ++i) bytes += story(i).size();
  const double each = static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(looked_at, 1));
  const double need = 2 * each * static_cast<double>(stories);
  const auto have = static_cast<double>(fs::space(folder).available);
  const auto gigabytes = [](double count) { return fmt::format("{:.1f} GB", count / 1e9); };
  QKV_CHECK(need <= have, stories, " stories and their tokens need about ", gigabytes(need), " but the disk of ",
            folder.parent_path().parent_path().string(), " has ", gigabytes(have), " free",
            Hint("set data.stories to less, or put the run on another disk"));
}

// Stories of the built-in world, one per line; or pairs of sentences. A story depends on its number alone, so all threads
// make some and the file does not depend on how many there are.
Corpus world_corpus(const Recipe& recipe, const fs::path& folder, ThreadPool& pool) {
  const bool pairs = recipe.data.world == "pairs";
  const fs::path path = folder / (pairs ? "world.tsv" : "world.txt");
  const World world(recipe.seed, recipe.data.kinds);
  const auto story = [&](int64_t i) {
    const auto index = static_cast<uint64_t>(i);
    if (pairs) return to_pairs(world.story(index));
    const bool chinese = recipe.data.world == "zh" || (recipe.data.world == "both" && i % 2 == 1);
    return world.text(index, chinese ? Language::chinese : Language::english) + '\n';
  };
  check_space(folder, recipe.data.stories, story);
  Progress progress("writing stories", recipe.data.stories);
  AtomicFile file(path);
  constexpr int64_t kShare = 64;  // stories of one task
  std::vector<std::string> shares(static_cast<size_t>(pool.threads()) * 16);
  for (int64_t first = 0; first < recipe.data.stories;) {
    const int64_t last = std::min(recipe.data.stories, first + std::ssize(shares) * kShare);
    pool.run((last - first + kShare - 1) / kShare, [&](int64_t task, int) {
      std::string& share = shares[static_cast<size_t>(task)];
      share.clear();
      const int64_t begin = first + task * kShare;
      for (int64_t i = begin; i < std::min(last, begin + kShare); ++i) share += story(i);
    });
    for (int64_t at = first; at < last; at += kShare) {
      file.write(std::as_bytes(std::span(shares[static_cast<size_t>((at - first) / kShare)])));
    }
    progress.update(first = last);
  }
  file.commit();
  progress.finish();
  return {.train = {path.string()},
          .source = {.format = pairs ? DataFormat::tsv : DataFormat::text, .cut = DocumentCut::line}};
}

bool is_text(const Recipe& recipe) {
  return recipe.data.format == "text" && recipe.objective != Recipe::Objective::chat;
}

// The end of each text is for validation; the cut is at a character boundary. (Of lines that are pairs, objects or
// conversations those at the end are held out when they are packed.)
Corpus tail_corpus(const Recipe& recipe, const fs::path& folder, Corpus corpus) {
  std::vector<std::string> train, validation;
  for (const std::string& file : corpus.train) {
    const std::string text = read_file(file, size_t{1} << 32);
    QKV_CHECK(is_utf8(text), file, ": is not UTF-8", Hint("convert it first"));
    auto cut = static_cast<size_t>(static_cast<double>(text.size()) * (1 - recipe.data.validation));
    while (cut < text.size() && is_utf8_continuation(text[cut])) ++cut;
    const std::string name = std::to_string(train.size());
    for (const auto& [list, part, prefix] : {std::tuple{&train, std::string_view(text).substr(0, cut), "train-"},
                                             {&validation, std::string_view(text).substr(cut), "validation-"}}) {
      const fs::path path = folder / (prefix + name + ".txt");
      write_file_atomic(path, std::as_bytes(std::span(part)));
      list->push_back(path.string());
    }
  }
  corpus.train = std::move(train);
  corpus.validation = std::move(validation);
  corpus.validation_source = corpus.source;
  return corpus;
}

void check_text_file(const std::string& file, const char* hint) {
  const PathKind kind = kind_of_path(file);
  QKV_CHECK(kind != PathKind::absent, file, ": there is no such file", Hint(hint));
  QKV_CHECK(kind == PathKind::file, file, ": is a folder, a pipe or a device but must be a file",
            Hint("texts to train on are read more than once: copy them to a file first"));
  QKV_CHECK(!fs::is_empty(file), file, ": is empty", Hint("give a file with text in it"));
}

SourceOptions source_of(const Recipe& recipe) {
  const std::string &format = recipe.data.format, &cut = recipe.data.document;
  const bool pairs = recipe.data.world == "pairs";
  return {.format = pairs || format == "tsv" ? DataFormat::tsv
                    : format == "jsonl"      ? DataFormat::jsonl
                                             : DataFormat::text,
          .cut = cut == "line"   ? DocumentCut::line
                 : cut == "file" ? DocumentCut::file
                                 : DocumentCut::blank_line,
          .cut_option = "data.document"};
}

}  // namespace

Corpus corpus_of(const Recipe& recipe, const fs::path& folder, ThreadPool& pool) {
  for (const std::string& file : recipe.data.validation_files) {
    check_text_file(file, "data.validation_files names the files to check with");
  }
  for (const std::string& file : recipe.data.files) check_text_file(file, "data.files names the files to train on");
  Corpus corpus{.train = recipe.data.files, .source = source_of(recipe)};
  const bool own_validation = !recipe.data.validation_files.empty();
  if (!recipe.data.world.empty()) {
    corpus = world_corpus(recipe, folder, pool);
  } else if (recipe.data.tail && !own_validation && is_text(recipe)) {
    return tail_corpus(recipe, folder, std::move(corpus));
  }
  corpus.validation = recipe.data.validation_files;
  corpus.validation_source = source_of(recipe);
  return corpus;
}

}  // namespace qkv

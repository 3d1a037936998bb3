#include "see/movie_texts.h"

#include <optional>

#include "base/path.h"
#include "see/look_report.h"
#include "text/tokenizer/display_spans.h"

namespace qkv::app {

std::vector<std::string> movie_texts(const std::filesystem::path& run, const std::vector<int32_t>& tokens) {
  std::vector<std::string> texts;
  const std::filesystem::path folder = run / "prepared" / "tokenizer";
  std::optional<Tokenizer> tokenizer;
  if (is_there(folder)) tokenizer.emplace(Tokenizer::load(folder));
  for (const int32_t id : tokens) {
    std::string text = tokenizer ? display_spans(*tokenizer, {&id, 1}).text : "";
    if (text.find("\xEF\xBF\xBD") != std::string::npos) text.clear();  // a part of a character: no word to show
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace qkv::app

#include "common/texts.h"

namespace qkv::app {

void add_text_options(Command command, TextOptions& options) {
  command
      .add_option(
          "--data FILE", options.data,
          "A text file (for a model that translates: lines of source<TAB>target), or the built-in stories: world, "
          "world:zh, world:pairs, or with a kind of story, as world:echo")
      .known({"world", "world:zh", "world:pairs"})
      .required();
  command.add_option("--tokens", options.tokens, "Most tokens to read")
      .between(int64_t{2}, int64_t{1} << 40)
      .show_default();
  command.add_option("--window", options.length, "Tokens of one text at most; longer ones are cut")
      .between(int64_t{2}, int64_t{1} << 30)
      .show_default();
}

api::Data library_data(const TextOptions& options) {
  api::Data data(options.data);
  data.tokens = options.tokens;
  data.window = options.length;
  return data;
}

std::vector<TokenText> read_texts(const OpenModel& model, const TextOptions& options) {
  return options.ids ? api::texts_of_ids(model, library_data(options)) : api::texts_of(model, library_data(options));
}

std::vector<TokenText> read_scored_texts(const OpenModel& model, const TextOptions& options) {
  return api::scored_texts_of(model, library_data(options));
}

}  // namespace qkv::app

#include "common/texts.h"

#include "base/error.h"

namespace qkv::app {

void add_text_options(Command command, TextOptions& options) {
  command
      .add_option(
          "--data FILE", options.data,
          "A text file (for a model that translates: lines of source<TAB>target), or the built-in stories: world, "
          "world:zh, world:pairs, or with a kind of story, as world:echo; otherwise world, or world:pairs")
      .known({"world", "world:zh", "world:pairs"});
  command.add_option("--tokens", options.tokens, "Most tokens to read")
      .between(int64_t{2}, int64_t{1} << 40)
      .show_default();
  command.add_option("--window", options.length, "Tokens of one text at most; longer ones are cut")
      .between(int64_t{2}, int64_t{1} << 30)
      .show_default();
}

Option add_ids_option(Command command, TextOptions& options) {
  return command.add_flag("--ids", options.ids,
                          "--data has token ids, a text a line; for a model that translates source<TAB>target");
}

void choose_data(const ModelSpec& spec, TextOptions& options) {
  QKV_CHECK(!options.ids || !options.data.empty(), "--ids without --data",
            Hint("--data FILE has the ids, a text a line"));
  if (options.data.empty()) options.data = api::usual_data(spec);
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
  return api::scored_texts(model, read_texts(model, options));
}

}  // namespace qkv::app

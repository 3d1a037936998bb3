#include "open/convert_tokenizer.h"

#include <utility>

#include "text/tokenizer/files/gguf_tokenizer.h"

namespace qkv {

ConvertOptions with_tokenizer(ConvertOptions options) {
  options.tokenizer_keys = [](GgufMetadata& out, const std::filesystem::path& folder, const ModelSpec& spec) {
    return add_gguf_tokenizer(
        out, folder,
        {.vocabulary = spec.vocabulary, .bos = spec.tokens.bos, .pad = spec.tokens.pad, .eos = spec.tokens.eos});
  };
  options.tokenizer_files = [](const Gguf& file, std::map<std::string, std::string>& made) {
    Notes notes;
    for (MadeFile& one : tokenizer_files_of(file, notes)) made[one.name] = std::move(one.text);
    return notes;
  };
  return options;
}

}  // namespace qkv

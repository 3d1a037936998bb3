// Options of commands that write text: how tokens are chosen and where a text ends.
#pragma once

#include <qkv/generate.h>

#include <string>
#include <vector>

#include "common/command.h"
#include "infer/text_choices.h"

namespace qkv::app {

struct TextFlags : TextChoices {
  std::vector<std::string> biases;  // ID=VALUE
  std::string json_schema;          // a file
};

void add_text_flags(Command command, TextFlags& flags);

// What --help says about them.
inline constexpr const char* kTextFlagsHelp =
    "Tokens are chosen as generation_config.json beside the model says; options override it. Without either the most "
    "likely token is taken. Any of --temperature, --top-k, --top-p, --min-p and --typical-p turns on sampling.";

// As the library takes them.
v1::GenerateOptions generate_options(const TextFlags& flags);

}  // namespace qkv::app

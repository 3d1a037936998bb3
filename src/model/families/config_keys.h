// Keys of a new model's config.json that would have no effect.
#pragma once

#include "model/families/config.h"

namespace qkv {

// Requires a config that read_spec() has read. Throws an Error, with the nearest key that is read, if it has a key that
// its family does not read, unless transformers writes that key and its value does not change the computation.
void check_config_keys(const Config& config);
// The same, before the vocabulary is known: the config is read with any.
void check_keys_of_new_model(const Json& config, const std::string& what);
// Whether the family of this config reads the key.
bool family_reads(const Json& config, const std::string& what, const char* key);

}  // namespace qkv

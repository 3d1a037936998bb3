// Base64 as tokenizer files use it: RFC 4648's alphabet, padded, nothing else in between.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// An Error that starts with `what` if the text is not base64.
std::string decode_base64(std::string_view text, std::string_view what);
std::string encode_base64(std::string_view bytes);

}  // namespace qkv

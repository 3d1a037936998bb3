// Base64 as in tokenizer files: RFC 4648 alphabet, padded, no white space.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// If the text is not base64: an Error that starts with `what`.
std::string decode_base64(std::string_view text, std::string_view what);
std::string encode_base64(std::string_view bytes);

}  // namespace qkv

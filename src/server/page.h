// The page at GET / and what belongs to it (web/serve), made a part of the program by cmake (qkv_embed_serve_page).
#pragma once

#include <span>
#include <string_view>

namespace qkv::server {

struct PageFile {
  std::string_view path, type, text;
};
std::span<const PageFile> page_files();

// Nothing from elsewhere, no code outside the files, no frames.
inline constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace qkv::server

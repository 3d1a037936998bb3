// JSON from files and requests: strict, bounded, and every failure says which text, where in it, and what to do.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace qkv {

using Json = nlohmann::json;

struct JsonLimits {
  int depth = 64;
  size_t bytes = 100'000'000;
};

// RFC 8259 with UTF-8, one value, no key twice in an object, and only numbers a double can hold.
Json parse_json(std::string_view text, std::string_view what, JsonLimits limits = {});

// The known word that was probably meant, for hints; empty if none is near.
std::string nearest_key(std::string_view word, std::span<const std::string_view> known);

}  // namespace qkv

// Server-sent events: the frames of a streamed answer.
#pragma once

#include <string>
#include <string_view>

#include "text/chat/ordered_json.h"

namespace qkv::server {

inline constexpr const char* kSsePing = ": ping\n\n";
inline constexpr const char* kSseDone = "data: [DONE]\n\n";

// JSON on one line; what is not UTF-8 becomes U+FFFD.
inline std::string sse(const OrderedJson& json) {
  return "data: " + json_text(json, -1) + "\n\n";
}

inline std::string sse(std::string_view event, const OrderedJson& json) {
  return "event: " + std::string(event) + "\n" + sse(json);
}

}  // namespace qkv::server

// Who may talk to the server from a browser. A page of another site must not reach it by a name that it lets point here
// (DNS rebinding: the Host header), nor read its answers (the Origin header).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/http.h"

namespace qkv::server {

struct OriginRules {
  std::vector<std::string> hosts;  // names beyond localhost and IP addresses, which no other site can take
  std::vector<std::string> cors;   // origins whose pages may call; "*": all
};

// An IP address, localhost or one of the names, with or without a port. Exactly one Host header is required.
bool host_allowed(const HttpHead& head, const OriginRules& rules);

// An address that only this machine reaches: 127.*, ::1, localhost.
bool is_loopback(std::string_view host);

enum class OriginIs { absent, same, allowed, foreign };
OriginIs judge_origin(const HttpHead& head, const OriginRules& rules);

// The headers that let a browser hand the answer to the page; nothing unless the origin is allowed.
Headers cors_headers(const HttpHead& head, const OriginRules& rules);

}  // namespace qkv::server

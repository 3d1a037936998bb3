#include "server/http/origin.h"

#include <arpa/inet.h>

#include <algorithm>

namespace qkv::server {
namespace {

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

bool is_address(const std::string& text) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, text.c_str(), bytes) == 1 || inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

struct HostAndPort {
  std::string host, port;  // an IPv6 address without its brackets
  bool valid = false;
};

HostAndPort split_host(std::string_view text) {
  HostAndPort made;
  std::string_view rest;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == text.npos) return made;
    made.host = lower_case(text.substr(1, end - 1));
    rest = text.substr(end + 1);
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    made.host = lower_case(text.substr(0, colon));
    rest = text.substr(colon);
  }
  if (made.host.ends_with('.')) made.host.pop_back();
  made.valid = !made.host.empty() && (rest.empty() || rest.front() == ':');
  if (!rest.empty()) made.port = rest.substr(1);
  made.valid =
      made.valid && std::all_of(made.port.begin(), made.port.end(), [](char c) { return c >= '0' && c <= '9'; });
  return made;
}

std::string usual_port(const std::string& port, bool secure) {
  return !port.empty() ? port : secure ? "443" : "80";
}

// Behind a proxy that ends TLS we are asked without it: the page's scheme may be either, its port that of its scheme.
bool is_same(const HttpHead& head, const std::string& origin) {
  const bool https = origin.starts_with("https://"), http = origin.starts_with("http://");
  if (!https && !http) return false;
  const HostAndPort from = split_host(origin.substr(https ? 8 : 7)), to = split_host(head.header("Host"));
  return from.valid && to.valid && from.host == to.host &&
         usual_port(from.port, https) == usual_port(to.port, https || head.secure);
}

}  // namespace

bool host_allowed(const HttpHead& head, const OriginRules& rules) {
  if (head.count("Host") != 1) return false;
  const HostAndPort host = split_host(head.header("Host"));
  if (!host.valid) return false;
  if (host.host == "localhost" || is_address(host.host)) return true;
  return std::any_of(rules.hosts.begin(), rules.hosts.end(),
                     [&](const std::string& name) { return lower_case(name) == host.host; });
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || (host.starts_with("127.") && is_address(std::string(host)));
}

OriginIs judge_origin(const HttpHead& head, const OriginRules& rules) {
  if (head.count("Origin") == 0) return OriginIs::absent;
  const std::string origin = lower_case(head.header("Origin"));
  if (is_same(head, origin)) return OriginIs::same;  // also where it is listed: the server's own page may do more
  const bool listed = std::any_of(rules.cors.begin(), rules.cors.end(), [&](const std::string& allowed) {
    return allowed == "*" || lower_case(allowed) == origin;
  });
  return listed ? OriginIs::allowed : OriginIs::foreign;
}

Headers cors_headers(const HttpHead& head, const OriginRules& rules) {
  if (judge_origin(head, rules) != OriginIs::allowed) return {};
  return {{"Access-Control-Allow-Origin", std::string(head.header("Origin"))},
          {"Vary", "Origin"},
          {"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
          {"Access-Control-Allow-Headers", "Authorization, Content-Type"},
          {"Access-Control-Expose-Headers", "X-Request-Id, Retry-After"},
          {"Access-Control-Max-Age", "600"}};
}

}  // namespace qkv::server

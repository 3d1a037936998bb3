#include "server/http/http.h"

#include <algorithm>
#include <cctype>

namespace qkv::server {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::string_view HttpHead::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (same_name(key, name)) return value;
  }
  return {};
}

size_t HttpHead::count(std::string_view name) const {
  return static_cast<size_t>(
      std::count_if(headers.begin(), headers.end(), [&](const auto& header) { return same_name(header.first, name); }));
}

std::string wrong_framing(const HttpHead& head, bool http11) {
  const size_t lengths = head.count("Content-Length"), encodings = head.count("Transfer-Encoding");
  if (lengths > 1) return "there is more than one Content-Length";
  if (encodings == 0) return "";
  if (encodings > 1) return "there is more than one Transfer-Encoding";
  if (!same_name(head.header("Transfer-Encoding"), "chunked")) return "the only Transfer-Encoding read is chunked";
  if (lengths > 0) return "Transfer-Encoding and Content-Length exclude one another";
  return http11 ? "" : "HTTP/1.0 has no Transfer-Encoding";
}

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Other";
  }
}

}  // namespace qkv::server

#include "server/http/api_keys.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace qkv::server {
namespace {

constexpr size_t kShortestKey = 16, kLongestKey = 512, kLargestKeyFile = 1 << 20;

std::vector<std::string> keys_between(std::string_view text, std::string_view separators) {
  std::vector<std::string> keys;
  for (size_t at = 0; (at = text.find_first_not_of(separators, at)) != text.npos;) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    keys.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return keys;
}

}  // namespace

ApiKeys::Digest ApiKeys::digest_of(std::string_view key) {
  const std::string hex = sha256_hex(std::as_bytes(std::span(key)));
  Digest digest;
  std::copy_n(hex.begin(), digest.size(), digest.begin());
  return digest;
}

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    QKV_CHECK(key.size() >= kShortestKey && key.size() <= kLongestKey, "API key ", i + 1, " has ", key.size(),
              " characters but must have from ", kShortestKey, " to ", kLongestKey,
              Hint("openssl rand -hex 24  makes a good one"));
    QKV_CHECK(std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; }), "API key ", i + 1,
              " has a character that no HTTP header can hold", Hint("letters, digits and punctuation of ASCII"));
    digests_.push_back(digest_of(key));
  }
}

std::optional<int32_t> ApiKeys::match(std::string_view authorization) const {
  constexpr std::string_view kScheme = "bearer ";
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const bool bearer =
      authorization.size() > kScheme.size() &&
      std::equal(kScheme.begin(), kScheme.end(), authorization.begin(), [&](char a, char b) { return a == lower(b); });
  if (!bearer) return std::nullopt;
  const Digest given = digest_of(authorization.substr(kScheme.size()));
  int32_t found = -1;
  for (size_t i = 0; i < digests_.size(); ++i) {  // all of them, always
    const bool same = CRYPTO_memcmp(given.data(), digests_[i].data(), given.size()) == 0;
    found = same ? static_cast<int32_t>(i) : found;
  }
  if (found < 0) return std::nullopt;
  return found;
}

std::vector<std::string> keys_in_file(const std::filesystem::path& file) {
  std::vector<std::string> keys = keys_between(read_file(file, kLargestKeyFile), "\r\n");
  for (std::string& key : keys) {
    const size_t end = key.find_last_not_of(" \t");
    key.resize(end == key.npos ? 0 : end + 1);
  }
  std::erase_if(keys, [](const std::string& key) { return key.empty() || key.front() == '#'; });
  QKV_CHECK(!keys.empty(), file.string(), " has no API key", Hint("one on each line; lines with # are comments"));
  return keys;
}

std::vector<std::string> keys_in_text(std::string_view text) {
  return keys_between(text, ", \t\r\n");
}

}  // namespace qkv::server

// API keys: one per line of a file, or in the environment. Kept and compared as SHA-256, in a time that depends neither
// on the key given nor on which one it equals.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::server {

class ApiKeys {
 public:
  ApiKeys() = default;
  // Each of 16 to 512 printable characters; anything else is an Error that does not say the key.
  explicit ApiKeys(const std::vector<std::string>& keys);

  bool empty() const { return digests_.empty(); }
  size_t size() const { return digests_.size(); }
  // Of "Authorization: Bearer KEY": the number of the key, or none if it is not one of these.
  std::optional<int32_t> match(std::string_view authorization) const;

 private:
  using Digest = std::array<char, 64>;  // hexadecimal
  static Digest digest_of(std::string_view key);
  std::vector<Digest> digests_;
};

// Lines of the file that are neither empty nor begin with #.
std::vector<std::string> keys_in_file(const std::filesystem::path& file);
// Separated by commas or spaces.
std::vector<std::string> keys_in_text(std::string_view text);

}  // namespace qkv::server

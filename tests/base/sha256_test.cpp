#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace qkv {
namespace sha256_test {

std::string sum_of(std::string_view text) {
  Sha256 plain = Sha256::plain();
  plain.update(std::as_bytes(std::span(text)));
  const std::string sum = sha256_hex(std::as_bytes(std::span(text)));
  EXPECT_EQ(plain.hex(), sum);
  return sum;
}

// FIPS 180-4's examples and NIST's longer ones.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(sum_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sum_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sum_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sum_of("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
                   "mnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sum_of(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Computed with coreutils' sha256sum: the lengths around the end of a block.
TEST(Sha256, LengthsAroundABlock) {
  EXPECT_EQ(sum_of(std::string(55, 'q')), "85528b5baff5639cb8e7daca79d085ac29ac0978e873ed7527158616b2b6c379");
  EXPECT_EQ(sum_of(std::string(56, 'q')), "f8ce2f8d6990c639668fe404262f35ed72d8bb145ad6bae786af7284447386df");
  EXPECT_EQ(sum_of(std::string(63, 'q')), "9b49777003a4143d8c3f4d3002eb631c6bda8b030a3ccc87f8a21d5f61c89e87");
  EXPECT_EQ(sum_of(std::string(64, 'q')), "ee8e658590c9a5e119400a774415a01db104de1ee6e2c29ec69aa73ef46544d2");
  EXPECT_EQ(sum_of(std::string(65, 'q')), "2b6c3f7f12b1b12fc5409626dc4e5302d8d37082cbeddea7755eac43aba039c8");
}

TEST(Sha256, PiecesMakeTheSameSum) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text.push_back(static_cast<char>(i * 31));
  for (size_t cut = 0; cut <= text.size(); cut += 13) {
    Sha256 sum;
    sum.update(std::as_bytes(std::span(text).first(cut)));
    sum.update(std::as_bytes(std::span(text).subspan(cut, (text.size() - cut) / 2)));
    sum.update(std::as_bytes(std::span(text).subspan(cut + (text.size() - cut) / 2)));
    EXPECT_EQ(sum.hex(), sum_of(text)) << cut;
  }
}

}  // namespace sha256_test
}  // namespace qkv

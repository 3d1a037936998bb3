// One broken GGUF file per defect, and what its error must say.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/gguf.h"
#include "io/gguf_bytes.h"
#include "io/safetensors_bytes.h"

namespace qkv {
namespace gguf_corrupt_test {

using test::array;
using test::bytes_of;
using test::gguf_head;
using test::gguf_of;
using test::key;
using test::padded;
using test::tensor_info;
using test::text;
using test::u32;
using test::u64;

struct Corrupt {
  std::string defect;
  std::string file;
  std::string says;
};

void PrintTo(const Corrupt& c, std::ostream* out) {  // NOLINT: gtest's name
  *out << c.defect;
}

std::string nested(int depth) {
  std::string out = array(0, 1, "a");
  for (int i = 1; i < depth; ++i) out = array(9, 1, out);
  return out;
}

std::string with_key(const std::string& k) {
  return gguf_of({k}, {}, "");
}

std::string with_tensor(const test::GgufTensor& t, const std::string& data = std::string(32, 'd')) {
  return gguf_of({}, {t}, data);
}

std::string aligned_to(const std::string& kind_and_value) {
  return gguf_head(0, 1) + text("general.alignment") + kind_and_value;
}

std::vector<Corrupt> corrupt_heads() {
  const std::string room(4096, '\0');
  return {
      {"no_bytes", "", "the magic 'GGUF' needs 4 bytes at byte 0 but only 0 are left"},
      {"three_bytes", "GGU", "but only 3 are left"},
      {"only_magic", "GGUF", "the version needs 4 bytes at byte 4 but only 0 are left"},
      {"no_counts", "GGUF" + u32(3), "the number of tensors needs 8 bytes"},
      {"no_number_of_keys", "GGUF" + u32(3) + u64(0), "the number of keys needs 8 bytes at byte 16"},
      {"another_format", "PK\x03\x04" + room, "must start with 'GGUF' but starts with 'PK"},
      {"safetensors", test::file_of("{}", "") + room, "must start with 'GGUF'"},
      {"lower_case", "gguf" + u32(3) + room, "starts with 'gguf'"},
      {"version_0", gguf_head(0, 0, 0), "is GGUF version 0 but this reader knows 2 and 3"},
      {"version_1", gguf_head(0, 0, 1), "is GGUF version 1 but"},
      {"version_4", gguf_head(0, 0, 4), "is GGUF version 4 but"},
      {"version_2_32_less_1", gguf_head(0, 0, UINT32_MAX), "is GGUF version 4294967295"},
      {"big_endian", gguf_head(0, 0, 0x03000000), "is big endian"},
      {"tensors_one_of_none", gguf_head(1, 0), "said to hold 1 tensors but may hold at most 0 in its 0 bytes"},
      {"tensors_2_31", gguf_head(1ull << 31, 0) + room, "said to hold 2147483648 tensors but may hold at most 163"},
      {"tensors_2_64_less_1", gguf_head(UINT64_MAX, 0) + room, "18446744073709551615 tensors but may hold at most 163"},
      {"tensors_wrap_when_multiplied", gguf_head(UINT64_MAX / 25 + 2, 0) + room, "tensors but may hold at most 163"},
      {"tensors_past_the_limit", gguf_head(100'001, 0) + std::string(25 * 100'001, '\0'), "may hold at most 100000"},
      {"keys_one_of_none", gguf_head(0, 1), "said to hold 1 keys but may hold at most 0"},
      {"keys_2_63", gguf_head(0, 1ull << 63) + room, "9223372036854775808 keys but may hold at most 292"},
      {"keys_past_the_limit", gguf_head(0, 100'001) + std::string(14 * 100'001, '\0'), "may hold at most 100000"},
      {"fewer_keys_than_said", gguf_head(0, 2) + key("a", 8, text("long enough for two keys")), "key 1 needs 8 bytes"},
      {"fewer_tensors_than_said", gguf_head(2, 0) + tensor_info({.name = "a name long enough for two"}),
       "tensor 1 needs 8 bytes"},
      {"bytes_after_the_keys", with_key(key("a", 4, u32(1))) + std::string(33, '\0'),
       "tensors end at byte 64 but the file has 74"},
  };
}

std::vector<Corrupt> corrupt_keys() {
  return {
      {"key_empty", with_key(key("", 4, u32(1))), "key 0 is empty"},
      {"key_longer_than_file", gguf_head(0, 1) + u64(50) + std::string(20, 'k'), "key 0 needs 50 bytes"},
      {"key_too_long", with_key(key(std::string(65536, 'k'), 4, u32(1))), "said to have 65536 bytes but may have at"},
      {"key_2_64_less_1", gguf_head(0, 1) + u64(UINT64_MAX) + std::string(20, 'k'),
       "18446744073709551615 bytes but may"},
      {"key_steers_a_terminal", with_key(key("\x1B[2J", 13, u32(1))), "'\\u001b[2J' is of kind 13"},
      {"kind_13", with_key(key("a", 13, u64(1))), "key 'a' is of kind 13 but the last known kind is 12"},
      {"kind_2_32_less_1", with_key(key("a", UINT32_MAX, u64(1))), "is of kind 4294967295"},
      {"value_cut", gguf_head(0, 1) + key("abc", 10, "1234567"), "key 'abc' needs 8 bytes at byte 39 but only 7"},
      {"flag_2", with_key(key("a", 7, "\x02")), "key 'a' must hold 0 or 1 but holds 2"},
      {"flags_255", with_key(key("a", 9, array(7, 3, std::string("\0\1\xFF", 3)))), "must hold 0 or 1 but holds 255"},
      {"text_past_the_end", with_key(key("a", 8, u64(1) + "")), "key 'a' needs 1 bytes"},
      {"text_2_64_less_1", with_key(key("a", 8, u64(UINT64_MAX))), "needs 18446744073709551615 bytes"},
      {"text_2_63", with_key(key("a", 8, u64(1ull << 63) + "abc")), "needs 9223372036854775808 bytes"},
      {"array_of_kind_13", with_key(key("a", 9, array(13, 1, u64(1)))), "is of kind 13"},
      {"array_without_count", with_key(key("a", 9, u32(4) + "1234")), "key 'a' needs 8 bytes"},
      {"array_one_too_many", with_key(key("a", 9, array(4, 2, u32(1) + "123"))),
       "said to hold 2 of kind u32 but only 7 bytes are left"},
      {"array_2_64_less_1", with_key(key("a", 9, array(0, UINT64_MAX, "abc"))), "18446744073709551615 of kind u8"},
      {"array_wraps_when_multiplied", with_key(key("a", 9, array(10, 1ull << 61, u64(0)))),
       "2305843009213693952 of kind u64 but only 8"},
      {"array_of_texts_too_many", with_key(key("a", 9, array(8, 3, text("a") + text("b")))),
       "3 of kind text but only 18"},
      {"array_of_texts_last_cut", with_key(key("a", 9, array(8, 2, text("ab") + u64(3) + "ab"))), "needs 3 bytes"},
      {"array_of_arrays_too_many", with_key(key("a", 9, array(9, 2, array(0, 1, "a")))), "2 of kind array but only 13"},
      {"array_nested_5", with_key(key("a", 9, nested(5))), "holds arrays nested more than 4 deep"},
      {"array_nested_1000", with_key(key("a", 9, nested(1000))), "holds arrays nested more than 4 deep"},
      {"key_twice", gguf_of({key("a", 4, u32(1)), key("b", 4, u32(1)), key("a", 8, text("x"))}, {}, ""),
       "key 'a' appears twice"},
      {"alignment_0", aligned_to(u32(4) + u32(0)), "general.alignment is 0 but must be a power of two from 8 to 4096"},
      {"alignment_1", aligned_to(u32(4) + u32(1)), "general.alignment is 1 but"},
      {"alignment_24", aligned_to(u32(4) + u32(24)), "general.alignment is 24 but"},
      {"alignment_8192", aligned_to(u32(4) + u32(8192)), "general.alignment is 8192 but"},
      {"alignment_2_31", aligned_to(u32(4) + u32(1ull << 31)), "general.alignment is 2147483648 but"},
      {"alignment_u64", aligned_to(u32(10) + u64(32)), "general.alignment must be u32 but is u64"},
      {"alignment_text", aligned_to(u32(8) + text("32")), "general.alignment must be u32 but is text"},
  };
}

std::vector<Corrupt> corrupt_tensors() {
  return {
      {"name_empty", with_tensor({.name = ""}), "tensor 0 has no name"},
      {"name_65", with_tensor({.name = std::string(65, 'n')}), "said to have 65 bytes but may have at most 64"},
      {"name_2_64_less_1", gguf_head(1, 0) + u64(UINT64_MAX) + std::string(40, 'n'),
       "18446744073709551615 bytes but may"},
      {"dims_5", with_tensor({.dims = {1, 1, 1, 1, 1}}), "tensor 'x' has 5 dimensions but may have at most 4"},
      {"dims_2_32_less_1", gguf_head(1, 0) + text("x") + u32(UINT32_MAX) + std::string(40, '\0'),
       "has 4294967295 dimensions"},
      {"dim_2_63", with_tensor({.dims = {1ull << 63}}), "tensor 'x': a dimension is 9223372036854775808"},
      {"dim_2_64_less_1", with_tensor({.dims = {UINT64_MAX}}), "a dimension is 18446744073709551615"},
      {"dims_wrap_to_0", with_tensor({.dims = {1ull << 32, 1ull << 32}}), "does not fit in 64 bits"},
      {"dims_wrap_before_0", with_tensor({.dims = {1ull << 62, 1ull << 62, 0}}), "does not fit in 64 bits"},
      {"bits_wrap", with_tensor({.dims = {1ull << 60}, .type = 0}), "does not fit in 64 bits"},
      {"end_wraps", with_tensor({.dims = {(1ull << 61) - 1}}), "ends at byte 2305843009213694015 but the file has 96"},
      {"type_4", with_tensor({.type = 4}), "tensor 'x' is of type number 4, which this reader does not know"},
      {"type_iq2", with_tensor({.dims = {256}, .type = 16}), "is of type IQ2_XXS, which"},
      {"type_2_32_less_1", with_tensor({.type = UINT32_MAX}), "is of type number 4294967295"},
      {"rows_not_whole_blocks", with_tensor({.dims = {33}, .type = 8}),
       "rows of 33 elements but the type holds blocks of 32"},
      {"rows_not_whole_super_blocks", with_tensor({.dims = {32, 8}, .type = 12}), "rows of 32 elements but"},
      {"offset_1", with_tensor({.offset = 1}), "begins at byte 1 of the data but the one before it ends at 0"},
      {"offset_32", with_tensor({.offset = 32}, std::string(64, 'd')), "begins at byte 32 of the data but"},
      {"offset_2_64_less_32", with_tensor({.offset = UINT64_MAX - 31}), "begins at byte 18446744073709551584"},
      {"overlap", gguf_of({}, {{.name = "a", .dims = {64}}, {.name = "b", .offset = 32}}, std::string(96, 'd')),
       "'b' begins at byte 32 of the data but the one before it ends at 64"},
      {"hole", gguf_of({}, {{.name = "a"}, {.name = "b", .offset = 64}}, std::string(96, 'd')),
       "'b' begins at byte 64 of the data but the one before it ends at 32"},
      {"same_bytes_twice", gguf_of({}, {{.name = "a"}, {.name = "b"}}, std::string(64, 'd')),
       "'b' begins at byte 0 of the data but the one before it ends at 32"},
      {"out_of_order", gguf_of({}, {{.name = "a", .offset = 32}, {.name = "b"}}, std::string(64, 'd')),
       "'a' begins at byte 32"},
      {"data_missing", with_tensor({}, ""), "tensor 'x', I8 [1], ends at byte 65 but the file has 64"},
      {"data_cut_by_one", with_tensor({.dims = {8, 4}, .type = 0}, std::string(127, 'd')),
       "F32 [4, 8], ends at byte 224 but the file has 223"},
      {"larger_than_the_file", with_tensor({.dims = {1'000'000}, .type = 0}), "ends at byte 4000064"},
      {"bytes_after_the_last", with_tensor({}, std::string(33, 'd')), "tensors end at byte 96 but the file has 97"},
      {"tensor_twice", gguf_of({}, {{.name = "a"}, {.name = "a", .offset = 32}}, std::string(64, 'd')),
       "tensor 'a' appears twice"},
      {"description_cut", gguf_head(1, 0) + tensor_info({.name = "long enough a name"}).substr(0, 40),
       "tensor 'long enough a name' needs"},
      {"no_padding_before_the_data", gguf_head(1, 0) + tensor_info({}) + "d", "ends at byte 65 but the file has 58"},
  };
}

class GgufCorrupt : public testing::TestWithParam<Corrupt> {};

TEST_P(GgufCorrupt, IsRefusedWithItsReason) {
  const Corrupt& c = GetParam();
  const std::vector<char> file(c.file.begin(), c.file.end());  // exactly as long, for AddressSanitizer
  try {
    (void)Gguf::parse(std::as_bytes(std::span(file)), "bad.gguf");
    FAIL() << "the file was taken, but should say: " << c.says;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::input);
    EXPECT_TRUE(error.message().starts_with("bad.gguf: ")) << error.message();
    EXPECT_NE(error.message().find(c.says), std::string::npos) << error.message() << "\nshould say: " << c.says;
    EXPECT_FALSE(error.hint().empty()) << error.message();
    EXPECT_LT(error.message().size(), 600u) << error.message();
  }
}

const auto defect_of = [](const auto& param) { return param.param.defect; };
INSTANTIATE_TEST_SUITE_P(Head, GgufCorrupt, testing::ValuesIn(corrupt_heads()), defect_of);
INSTANTIATE_TEST_SUITE_P(Key, GgufCorrupt, testing::ValuesIn(corrupt_keys()), defect_of);
INSTANTIATE_TEST_SUITE_P(Tensor, GgufCorrupt, testing::ValuesIn(corrupt_tensors()), defect_of);

TEST(GgufTaken, AreTheFilesTheBrokenOnesStartFrom) {
  for (const std::string& file :
       {gguf_head(0, 0), gguf_head(0, 0, 2), with_key(key("a", 9, nested(4))), with_key(key("a", 7, "\x01")),
        aligned_to(u32(4) + u32(8)), padded(aligned_to(u32(4) + u32(4096)), 4096), with_tensor({}),
        with_tensor({}, "d"), with_tensor({.name = std::string(64, 'n')}), with_tensor({.dims = {}}),
        with_tensor({.dims = {0}}, ""), with_tensor({.dims = {1, 1, 1, 1}}),
        with_tensor({.dims = {32}, .type = 8}, padded(std::string(34, 'd')))}) {
    EXPECT_NO_THROW((void)Gguf::parse(bytes_of(file), "good.gguf"));
  }
}

}  // namespace gguf_corrupt_test
}  // namespace qkv

// One broken file per defect, and what its error must say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "io/safetensors.h"
#include "io/safetensors_bytes.h"

namespace qkv {
namespace safetensors_corrupt_test {

using test::Described;
using test::described;
using test::file_of;
using test::header_of;
using test::length_field;

struct Corrupt {
  std::string defect;
  std::string file;
  std::string says;
};

void PrintTo(const Corrupt& c, std::ostream* out) {
  *out << c.defect;
}  // NOLINT: gtest's name

std::string tensor(const std::string& name, const std::string& fields) {
  return fmt::format("{{\"{}\":{{{}}}}}", name, fields);
}

std::vector<Corrupt> corrupt_files() {
  const Described good{"x", "F32", {2}, 0, 8};
  const std::string good_text = described(good);
  const std::string data = "8 bytes.";
  const std::string nested = std::string(100, '[') + std::string(100, ']');
  const std::string long_name(5000, 'n');

  return {
      // the length field
      {"no_bytes", "", "has 0 bytes but"},
      {"seven_bytes", length_field(2).substr(0, 7), "has 7 bytes but a safetensors file starts with 8"},
      {"length_zero", length_field(0), "must start with '{' but is empty"},
      {"length_zero_with_data", length_field(0) + "{}", "must start with '{' but is empty"},
      {"length_one_past_the_end", length_field(3) + "{}", "said to have 3 bytes but only 2 follow"},
      {"length_2_31", length_field(1ull << 31) + "{}", "2147483648 bytes but may have at most 100000000"},
      {"length_2_64_less_1", length_field(UINT64_MAX) + "{}", "18446744073709551615 bytes but may have at most"},
      {"length_2_64_less_8", length_field(UINT64_MAX - 7) + "{}", "bytes but may have at most"},
      {"length_limit_not_in_file", length_field(100'000'000) + "{}", "said to have 100000000 bytes but only 2 follow"},
      {"length_over_limit", length_field(100'000'001) + "{}", "may have at most 100000000"},
      {"length_big_endian", std::string("\0\0\0\0\0\0\0\2{}", 10), "may have at most 100000000"},

      // around the header
      {"header_is_an_array", file_of("[]", ""), "must start with '{' but starts with '['"},
      {"header_starts_with_space", file_of(" {}", ""), "must start with '{' but starts with ' '"},
      {"header_starts_with_bom", file_of("\xEF\xBB\xBF{}", ""), "must start with '{' but starts with '\\xef'"},
      {"header_starts_with_escape", file_of("\x1B{}", ""), "starts with '\\u001b'"},
      {"padded_with_newline", file_of("{}\n", ""), "must end with '}' and spaces but ends with '\\u000a'"},
      {"padded_with_tab", file_of("{} \t ", ""), "must end with '}' and spaces"},
      {"padded_with_zero", file_of(std::string("{}\0", 3), ""), "ends with '\\u0000'"},
      {"hidden_behind_zero", file_of(std::string("{}\0{}", 5), ""), "(byte 2): a zero byte"},
      {"second_value_in_header", file_of("{}{}", ""), "not valid JSON"},
      {"comment_in_header", file_of("{/* */}", ""), "not valid JSON"},
      {"trailing_comma", file_of("{" + good_text + ",}", data), "not valid JSON"},
      {"unclosed_object", file_of("{" + good_text, data), "not valid JSON"},
      {"one_brace", file_of("{", ""), "must end with '}'"},
      {"broken_utf8_in_name", file_of("{\"\xFF\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", ""),
       "UTF-8"},
      {"overlong_utf8_in_name", file_of("{\"\xC0\x80\":{}}", ""), "UTF-8"},
      {"surrogate_in_utf8", file_of("{\"\xED\xA0\x80\":{}}", ""), "UTF-8"},
      {"lone_surrogate_escape", file_of(R"({"\ud800":{}})", ""), "not valid JSON"},
      {"nested_too_deep", file_of("{\"x\":" + nested + "}", ""), "nested more than 64"},
      {"duplicate_tensor", file_of(header_of({good, good}), data), "'x' appears twice"},
      {"duplicate_tensor_by_escape", file_of("{" + good_text + R"(,"\u0078":{}})", data), "'x' appears twice"},
      {"duplicate_metadata", file_of(R"({"__metadata__":{},"__metadata__":{}})", ""), "'__metadata__' appears twice"},
      {"duplicate_metadata_key", file_of(R"({"__metadata__":{"a":"1","a":"2"}})", ""), "'a' appears twice"},
      {"duplicate_field", file_of(tensor("x", R"("dtype":"U8","dtype":"I8","shape":[0],"data_offsets":[0,0])"), ""),
       "'dtype' appears twice"},

      // metadata
      {"metadata_is_text", file_of(R"({"__metadata__":"pt"})", ""),
       "__metadata__ must be an object but its type is string"},
      {"metadata_is_null", file_of(R"({"__metadata__":null})", ""),
       "__metadata__ must be an object but its type is null"},
      {"metadata_holds_number", file_of(R"({"__metadata__":{"step":7}})", ""), "'step' is number"},
      {"metadata_holds_object", file_of(R"({"__metadata__":{"a":{}}})", ""), "'a' is object"},

      // one tensor's description
      {"tensor_is_a_number", file_of(R"({"x":1})", ""), "must be described by an object but its type is number"},
      {"tensor_is_an_array", file_of(R"({"x":["U8",[0],[0,0]]})", ""), "must be described by an object"},
      {"no_dtype", file_of(tensor("x", R"("shape":[0],"data_offsets":[0,0])"), ""), "tensor 'x' has no dtype"},
      {"no_shape", file_of(tensor("x", R"("dtype":"U8","data_offsets":[0,0])"), ""), "tensor 'x' has no shape"},
      {"no_data_offsets", file_of(tensor("x", R"("dtype":"U8","shape":[0])"), ""), "tensor 'x' has no data_offsets"},
      {"unknown_field", file_of(tensor("x", R"("dtype":"U8","shape":[0],"data_offsets":[0,0],"strides":[1])"), ""),
       "has a field 'strides' that this reader does not know"},
      {"unknown_dtype", file_of(header_of({{"x", "F31", {2}, 0, 8}}), data), "dtype 'F31' is not known"},
      {"dtype_in_lower_case", file_of(header_of({{"x", "f32", {2}, 0, 8}}), data), "dtype 'f32' is not known"},
      {"dtype_empty", file_of(header_of({{"x", "", {2}, 0, 8}}), data), "dtype '' is not known"},
      {"dtype_is_a_number", file_of(tensor("x", R"("dtype":4,"shape":[0],"data_offsets":[0,0])"), ""),
       "dtype must be a string but its type is number"},
      {"shape_is_a_number", file_of(tensor("x", R"("dtype":"U8","shape":8,"data_offsets":[0,8])"), data),
       "shape must be an array but its type is number"},
      {"shape_negative", file_of(tensor("x", R"("dtype":"U8","shape":[-8],"data_offsets":[0,8])"), data), "holds -8"},
      {"shape_twice_negative", file_of(tensor("x", R"("dtype":"U8","shape":[-2,-4],"data_offsets":[0,8])"), data),
       "holds -2"},
      {"shape_fraction", file_of(tensor("x", R"("dtype":"U8","shape":[8.0],"data_offsets":[0,8])"), data), "holds 8.0"},
      {"shape_exponent", file_of(tensor("x", R"("dtype":"U8","shape":[8e0],"data_offsets":[0,8])"), data), "holds 8.0"},
      {"shape_text", file_of(tensor("x", R"("dtype":"U8","shape":["8"],"data_offsets":[0,8])"), data), "holds string"},
      {"shape_nested", file_of(tensor("x", R"("dtype":"U8","shape":[[8]],"data_offsets":[0,8])"), data), "holds array"},
      {"shape_null", file_of(tensor("x", R"("dtype":"U8","shape":[null],"data_offsets":[0,8])"), data), "holds null"},
      {"shape_2_63", file_of(header_of({{"x", "U8", {1ull << 63}, 0, 8}}), data), "a dimension is 9223372036854775808"},
      {"shape_2_64", file_of(tensor("x", R"("dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,8])"), data),
       "must hold whole numbers from 0 but holds 1.8446744073709552e+19"},
      {"shape_product_wraps_to_size", file_of(header_of({{"x", "U8", {1ull << 32, 1ull << 32, 8}, 0, 8}}), data),
       "does not fit in 64 bits"},
      {"shape_times_bits_wraps_to_zero", file_of(header_of({{"x", "F64", {1ull << 58}, 0, 0}}), ""),
       "does not fit in 64 bits"},
      {"shape_wraps_before_zero", file_of(header_of({{"x", "U8", {1ull << 62, 1ull << 62, 0}, 0, 0}}), ""),
       "does not fit in 64 bits"},
      {"shape_wraps_after_zero", file_of(header_of({{"x", "U8", {0, 1ull << 62, 1ull << 62}, 0, 0}}), ""),
       "does not fit in 64 bits"},
      {"half_a_byte", file_of(header_of({{"x", "F4", {3}, 0, 1}}), "z"), "12 bits, which is not a whole number"},
      {"three_quarters_of_a_byte", file_of(header_of({{"x", "F6_E2M3", {1}, 0, 1}}), "z"), "6 bits, which is not"},

      // one tensor's offsets
      {"offsets_are_text", file_of(tensor("x", R"("dtype":"U8","shape":[8],"data_offsets":"0,8")"), data),
       "data_offsets must be an array but its type is string"},
      {"offsets_empty", file_of(tensor("x", R"("dtype":"U8","shape":[8],"data_offsets":[])"), data), "but holds 0"},
      {"offsets_single", file_of(tensor("x", R"("dtype":"U8","shape":[8],"data_offsets":[8])"), data), "but holds 1"},
      {"offsets_three", file_of(tensor("x", R"("dtype":"U8","shape":[8],"data_offsets":[0,8,8])"), data),
       "but holds 3"},
      {"offset_negative", file_of(tensor("x", R"("dtype":"U8","shape":[8],"data_offsets":[-8,0])"), data),
       "data_offsets must hold whole numbers from 0 but holds -8"},
      {"offset_fraction", file_of(tensor("x", R"("dtype":"U8","shape":[8],"data_offsets":[0,8.5])"), data),
       "holds 8.5"},
      {"offsets_backwards", file_of(header_of({{"x", "U8", {8}, 8, 0}}), data), "begins at byte 8 but ends at 0"},
      {"end_past_the_data", file_of(header_of({{"x", "U8", {9}, 0, 9}}), data), "ends at byte 9 but the data has 8"},
      {"end_2_64_less_1", file_of(header_of({{"x", "U8", {8}, 0, UINT64_MAX}}), data),
       "ends at byte 18446744073709551615 but the data has 8"},
      {"both_offsets_far_out", file_of(header_of({{"x", "U8", {0}, 1ull << 62, 1ull << 62}}), ""),
       "but the data has 0"},
      {"shape_larger_than_span", file_of(header_of({{"x", "F32", {3}, 0, 8}}), data),
       "F32 [3] needs 12 bytes but data_offsets give it 8"},
      {"shape_smaller_than_span", file_of(header_of({{"x", "F32", {1}, 0, 8}}), data),
       "F32 [1] needs 4 bytes but data_offsets give it 8"},
      {"empty_shape_with_bytes", file_of(header_of({{"x", "F32", {4, 0}, 0, 8}}), data), "needs 0 bytes"},
      {"long_shape_is_shortened", file_of(header_of({{"x", "U8", std::vector<uint64_t>(5000, 1), 0, 8}}), data),
       "U8 [1, 1, 1, 1, 1, 1, 1, 1, ...] needs 1 bytes"},
      {"long_name_is_shortened", file_of(header_of({{long_name, "U8", {1}, 0, 8}}), data), "bytes]...nnn"},

      // the tensors together
      {"data_without_tensors", file_of("{}", data), "tensors end at byte 0 but the data has 8"},
      {"data_after_last_tensor", file_of(header_of({good}), data + "!"), "tensors end at byte 8 but the data has 9"},
      {"hole_at_the_start", file_of(header_of({{"x", "U8", {4}, 4, 8}}), data), "ends at 0: a hole"},
      {"hole_in_the_middle", file_of(header_of({{"x", "U8", {2}, 0, 2}, {"y", "U8", {4}, 4, 8}}), data),
       "'y' begins at byte 4 but the one before it ends at 2: a hole"},
      {"overlap_by_one", file_of(header_of({{"x", "U8", {5}, 0, 5}, {"y", "U8", {4}, 4, 8}}), data),
       "'y' begins at byte 4 but the one before it ends at 5: they overlap"},
      {"same_bytes_twice", file_of(header_of({{"x", "U8", {8}, 0, 8}, {"y", "U8", {8}, 0, 8}}), data), "they overlap"},
      {"inside_another", file_of(header_of({{"x", "U8", {8}, 0, 8}, {"y", "U8", {2}, 3, 5}}), data), "they overlap"},
      {"empty_tensor_inside_another", file_of(header_of({{"x", "U8", {8}, 0, 8}, {"e", "U8", {0}, 3, 3}}), data),
       "they overlap"},
      {"data_cut_by_one", file_of(header_of({good}), data.substr(1)), "ends at byte 8 but the data has 7"},
  };
}

class SafetensorsCorrupt : public testing::TestWithParam<Corrupt> {};

TEST_P(SafetensorsCorrupt, IsRefusedWithItsReason) {
  const Corrupt& c = GetParam();
  try {
    (void)Safetensors::parse(test::bytes_of(c.file), "bad.safetensors");
    FAIL() << "the file was taken, but should say: " << c.says;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::input);
    EXPECT_TRUE(error.message().starts_with("bad.safetensors: ")) << error.message();
    EXPECT_NE(error.message().find(c.says), std::string::npos) << error.message() << "\nshould say: " << c.says;
    EXPECT_FALSE(error.hint().empty()) << error.message();
    EXPECT_LT(error.message().size(), 600u) << error.message();
  }
}

INSTANTIATE_TEST_SUITE_P(File, SafetensorsCorrupt, testing::ValuesIn(corrupt_files()),
                         [](const auto& param) { return param.param.defect; });

}  // namespace safetensors_corrupt_test
}  // namespace qkv

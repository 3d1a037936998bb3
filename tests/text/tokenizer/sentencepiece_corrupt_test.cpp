// .model files with one defect each, and the error messages.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

#include "base/expect_error.h"
#include "text/tokenizer/charsmap_bytes.h"
#include "text/tokenizer/sentencepiece/sentencepiece.h"
#include "text/tokenizer/sentencepiece_bytes.h"

namespace qkv::test {
namespace {

Tokenizer read(const std::string& bytes) {
  return Tokenizer(parts_of_sentencepiece(SentencePieceModel::parse(bytes, "m.model")));
}

struct Broken {
  const char* name;
  std::string bytes;
  std::vector<std::string_view> says;
};

std::string with_piece(const std::string& more) {
  ModelBytes model;
  model.pieces += more;
  return model.bytes();
}
std::string with_trainer(std::string fields) {
  return ModelBytes{.trainer = std::move(fields)}.bytes();
}
std::string with_normalizer(std::string fields) {
  return ModelBytes{.normalizer = std::move(fields)}.bytes();
}
std::string with_rest(std::string fields) {
  return ModelBytes{.rest = std::move(fields)}.bytes();
}
std::string only(std::string pieces) {
  return ModelBytes{.pieces = std::move(pieces)}.bytes();
}

std::vector<Broken> broken_files() {
  const std::string unk = piece_field("<unk>", 0, kUnknown);
  const std::string ten(9, '\x80');
  return {
      {"empty_file", "", {"has no pieces"}},
      {"not_a_protobuf", "hello, world", {"field 13 at byte 2 has wire type 4"}},
      {"no_pieces", only(""), {"m.model: has no pieces"}},
      {"length_beyond_the_file",
       ModelBytes{}.bytes() + "\x0a\x7f" + "abc",
       {"field 1 says it has 127 bytes but 3 are left"}},
      {"length_of_2_31",
       ModelBytes{}.bytes() + "\x0a" + varint(uint64_t{1} << 31),
       {"2147483648 bytes but 0 are left"}},
      {"length_of_2_64",
       ModelBytes{}.bytes() + "\x0a" + varint(UINT64_MAX),
       {"18446744073709551615 bytes but 0 are left"}},
      {"length_beyond_the_piece",
       bytes_field(1,
                   "\x0a\x09"
                   "a"),
       {"piece 0: field 1 says it has 9 bytes but 1 are left"}},
      {"varint_cut_short", ModelBytes{}.bytes() + "\x0a\x80", {"ends inside the number that starts at byte"}},
      {"varint_of_eleven_bytes", ModelBytes{}.bytes() + ten + "\x80\x01", {"does not fit in 64 bits"}},
      {"varint_of_70_bits", ModelBytes{}.bytes() + ten + "\x7f", {"does not fit in 64 bits"}},
      {"field_zero", ModelBytes{}.bytes() + std::string("\x02\x00", 2), {"field number 0 at byte"}},
      {"field_too_large", ModelBytes{}.bytes() + varint(uint64_t{1} << 40), {"field number 137438953472"}},
      {"group", ModelBytes{}.bytes() + "\x0b", {"field 1", "wire type 3 (a group)"}},
      {"end_of_group", ModelBytes{}.bytes() + "\x0c", {"wire type 4"}},
      {"wire_type_7", ModelBytes{}.bytes() + "\x0f", {"wire type 7"}},
      {"fixed64_cut_short",
       ModelBytes{}.bytes() + "\xa1\x06"
                              "abc",
       {"says it has 8 bytes but 3 are left"}},
      {"pieces_as_number",
       with_rest(varint_field(1, 5)),
       {"'pieces' (field 1) is a varint on the wire but must be bytes"}},
      {"score_as_number", bytes_field(1, bytes_field(1, "a") + varint_field(2, 1)), {"piece 0: 'score'", "a varint"}},
      {"score_as_bytes", bytes_field(1, bytes_field(2, "abcd")), {"'score'", "bytes with a length", "4 bytes"}},
      {"type_as_float", bytes_field(1, float_field(3, 1)), {"'type' (field 3) is 4 bytes"}},
      {"type_0", with_piece(piece_field("x", 0, 0)), {"piece 8: 'type' is 0 but must lie in [1, 6]"}},
      {"type_7", with_piece(piece_field("x", 0, 7)), {"'type' is 7"}},
      {"type_minus_one", with_piece(piece_field("x", 0, UINT64_MAX)), {"'type' is -1"}},
      {"type_beyond_32_bits",
       with_piece(piece_field("x", 0, uint64_t{1} << 33)),
       {"'type' is 8589934592 but must lie in"}},
      {"score_nan", with_piece(piece_field("x", std::nanf(""))), {"piece 8 'x' has the score nan"}},
      {"score_infinite", with_piece(piece_field("x", -std::numeric_limits<float>::infinity())), {"the score -inf"}},
      {"duplicate_piece", with_piece(piece_field("ab", -9)), {"pieces 6 and 8 are both 'ab'"}},
      {"duplicate_control", with_piece(piece_field("<s>", 0, kControl)), {"pieces 1 and 8 are both '<s>'"}},
      {"empty_piece", with_piece(piece_field("", 0)), {"piece 8 is empty"}},
      {"piece_without_text", with_piece(bytes_field(1, float_field(2, 1))), {"piece 8 is empty"}},
      {"piece_with_nul", with_piece(piece_field(std::string_view("a\0b", 3), 0)), {"piece 8", "NUL"}},
      {"piece_too_long", with_piece(piece_field(std::string(9000, 'x'), 0)), {"longer than 7999 bytes"}},
      {"no_unknown", only(piece_field("a", 0)), {"none of the 1 pieces is of type unknown"}},
      {"two_unknown", with_piece(piece_field("<unk2>", 0, kUnknown)), {"pieces 0 and 8 are both of type unknown"}},
      {"model_type_0", with_trainer(varint_field(3, 0)), {"trainer_spec: 'model_type' is 0 but must be 1 (unigram)"}},
      {"model_type_5", with_trainer(varint_field(3, 5)), {"'model_type' is 5"}},
      {"model_type_as_text", with_trainer(bytes_field(3, "bpe")), {"'model_type'", "bytes with a length"}},
      {"byte_piece_without_fallback", with_piece(piece_field("<0x41>", 0, kByte)), {"is a byte but the model says"}},
      {"fallback_without_bytes", with_trainer(varint_field(35, 1)), {"byte fallback but has no piece for byte 0"}},
      {"byte_of_minus_one",
       ModelBytes{.pieces = unk + piece_field("<0x-1>", 0, kByte), .trainer = varint_field(35, 1)}.bytes(),
       {"piece 1 '<0x-1>' is of type byte but must be one of <0x00> to <0xFF>"}},
      {"byte_of_256",
       ModelBytes{.pieces = unk + piece_field("<0x100>", 0, kByte), .trainer = varint_field(35, 1)}.bytes(),
       {"'<0x100>' is of type byte"}},
      {"charsmap_too_short", with_normalizer(bytes_field(2, "abc")), {"normalizer_spec: a character map of 3 bytes"}},
      {"charsmap_beyond_its_end",
       with_normalizer(bytes_field(2, std::string("\xff\xff\xff\xff", 4) + std::string(64, '\0'))),
       {"its trie has 4294967295 bytes but 64 follow"}},
      {"charsmap_leads_out",
       with_normalizer(bytes_field(2, std::string("\x04\0\0\0", 4) + std::string("\0\xfc\xff\xff", 4))),
       {"leads to unit 4194303 but has 1"}},
      {"normalizer_as_number", with_rest(varint_field(3, 1)), {"'normalizer_spec' (field 3) is a varint"}},
      {"denormalizer", with_rest(bytes_field(5, bytes_field(2, "abcd"))), {"denormalizer_spec", "not supported"}},
      {"self_test_fails",
       with_rest(bytes_field(4, bytes_field(1, bytes_field(1, "ab") + bytes_field(2, "a b")))),
       {"self-test says that 'ab' is 'a b' but it is"}},
      {"self_test_cut_short",
       with_rest(bytes_field(4, bytes_field(1,
                                            "\x0a\x05"
                                            "a"))),
       {"sample 0: field 1 says it has 5 bytes"}},
  };
}

TEST(SentencePieceCorrupt, SaysWhatIsWrong) {
  const std::vector<Broken> files = broken_files();
  EXPECT_GE(files.size(), 45U);
  for (const Broken& file : files) {
    SCOPED_TRACE(file.name);
    const auto error = error_of([&] { read(file.bytes); });
    ASSERT_TRUE(error.has_value()) << "was taken";
    EXPECT_EQ(error->kind(), Error::Kind::input);
    EXPECT_FALSE(error->hint().empty());
    EXPECT_TRUE(error->message().starts_with("m.model: ")) << error->message();
    for (const std::string_view part : file.says) {
      EXPECT_NE(error->message().find(part), std::string::npos) << "'" << part << "' is not in: " << error->message();
    }
  }
}

TEST(SentencePieceCorrupt, TheWholeModelIsFine) {
  const Tokenizer model = read(ModelBytes{}.bytes());
  EXPECT_EQ(model.encode("ab b!?"), (std::vector<int32_t>{7, 3, 5, 0}));
  EXPECT_EQ(model.decode(std::vector<int32_t>{1, 7, 3, 5, 0, 2}), "ab b \u2047 ");
  EXPECT_EQ(model.decode(std::vector<int32_t>{1, 7, 0, 2}, {.skip_specials = true}), "ab");
  EXPECT_EQ(model.named().bos, 1);
  EXPECT_EQ(model.named().eos, 2);
  EXPECT_EQ(model.named().pad, std::nullopt);
  EXPECT_EQ(model.named().unk, 0);
  expect_error([&] { model.decode(std::vector<int32_t>{8}); }, {"m.model: no token has the id 8"});
  expect_error([&] { model.decode(std::vector<int32_t>{-1}); }, {"id -1"});
}

// One leading space is dropped, or all of them if the model removes extra spaces.
TEST(SentencePieceCorrupt, SpacesAtTheFront) {
  const std::vector<int32_t> ids{1, 3, 7};
  EXPECT_EQ(read(ModelBytes{}.bytes()).decode(ids), "ab");
  EXPECT_EQ(read(with_normalizer(varint_field(4, 0))).decode(ids), " ab");
  EXPECT_EQ(read(with_normalizer(varint_field(3, 0) + varint_field(4, 0))).decode(ids), "  ab");
}

// Characters that are only parts of pieces are unknown too, and join runs of unknown characters.
TEST(SentencePieceCorrupt, UnknownCharactersRunTogether) {
  for (const uint64_t kind : {1U, 2U, 4U}) {
    ModelBytes model{.trainer = varint_field(3, kind)};
    model.pieces += piece_field("<ud>", 0, kUserDefined);
    const Tokenizer tokenizer = read(model.bytes());
    EXPECT_EQ(tokenizer.encode("b<u!?<ud>"), (std::vector<int32_t>{3, 5, 0, 8})) << kind;
  }
}

// SentencePiece reads an invalid byte as U+FFFD, even if its map replaces a literal U+FFFD.
TEST(SentencePieceCorrupt, StrayBytesAreNotMapped) {
  ModelBytes model{.normalizer = bytes_field(2, Charsmap(std::map<std::string, std::string>{{"\ufffd", "a"}}).bytes())};
  const Tokenizer tokenizer = read(model.bytes());
  EXPECT_EQ(tokenizer.encode("b\ufffd"), (std::vector<int32_t>{3, 5, 4}));
  EXPECT_EQ(tokenizer.encode("b\xff"), (std::vector<int32_t>{3, 5, 0}));
  EXPECT_EQ(tokenizer.encode_full("b\xff").replaced_bytes, 1U);
}

// Unknown fields are skipped.
TEST(SentencePieceCorrupt, UnknownFieldsArePassedOver) {
  ModelBytes model{.trainer = bytes_field(999, "what") + varint_field(1000, UINT64_MAX)};
  model.rest = bytes_field(200, "\x0a\xff") + float_field(201, 1) + varint(uint64_t{202} << 3 | 1) + "12345678";
  EXPECT_EQ(read(model.bytes()).vocab_size(), 8);
}

std::string whole_model(uint64_t kind) {
  ModelBytes model{.trainer = varint_field(3, kind) + varint_field(35, 1),
                   .normalizer = bytes_field(2, Charsmap(std::map<std::string, std::string>{{"A", "a"}}).bytes())};
  model.pieces += byte_pieces() + piece_field("a b", 0, kUserDefined) + piece_field("ba", -1, kUnused);
  model.rest = bytes_field(4, bytes_field(1, bytes_field(1, "") + bytes_field(2, "")));
  return model.bytes();
}

void read_and_use(const std::string& bytes) {
  const auto error = error_of([&] {
    const Tokenizer model = read(bytes);
    const std::string text = "ab Aa b\xff\xe7\xa6\x8f  ba";
    const Encoding encoded = model.encode_full(text, {.unit = OffsetUnit::bytes});
    ASSERT_EQ(encoded.ids, model.encode(text));
    for (const Offset& offset : encoded.offsets) {
      ASSERT_LE(offset.begin, offset.end);
      ASSERT_LE(offset.end, text.size());
    }
    (void)model.decode(encoded.ids);
  });
  if (error) {
    ASSERT_EQ(error->kind(), Error::Kind::input) << error->what();
  }
}

TEST(SentencePieceCorrupt, EveryCutIsReadOrRefused) {
  for (const uint64_t kind : {1U, 2U, 3U, 4U}) {
    const std::string whole = whole_model(kind);
    read_and_use(whole);
    for (size_t size = 0; size < whole.size(); size += size < 300 || size + 60 > whole.size() ? 1U : 97U)
      read_and_use(whole.substr(0, size));
  }
}

TEST(SentencePieceCorrupt, EveryFlippedByteIsReadOrRefused) {
  EXPECT_TRUE(rc::check([] {
    std::string bytes = whole_model(*rc::gen::inRange<uint64_t>(1, 5));
    const auto flips = *rc::gen::inRange(1, 6);
    for (int i = 0; i < flips; ++i) bytes[*rc::gen::inRange<size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
    read_and_use(bytes);
  }));
}

}  // namespace
}  // namespace qkv::test

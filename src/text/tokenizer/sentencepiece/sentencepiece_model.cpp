#include "text/tokenizer/sentencepiece/sentencepiece_model.h"

#include <array>
#include <cmath>
#include <unordered_map>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/seeded_hash.h"
#include "text/tokenizer/models/unknown_runs.h"
#include "text/tokenizer/sentencepiece/protobuf.h"

namespace qkv {
namespace {

constexpr const char* kBadModel = "the file is damaged or not a SentencePiece model; fetch it again";
constexpr size_t kLongestSentencePiece = 8000;  // SentencePiece's own limit

// Field numbers, and names in error messages, are those of sentencepiece_model.proto.
SentencePieceModel::Piece read_piece(std::string_view bytes, const std::string& what) {
  SentencePieceModel::Piece piece;
  ProtobufReader reader(bytes, what);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        piece.text = reader.bytes("piece");
        break;
      case 2:
        piece.score = reader.number("score");
        break;
      case 3: {
        const int32_t type = reader.integer("type");
        QKV_CHECK(type >= 1 && type <= 6, what, ": 'type' is ", type, " but must lie in [1, 6]", Hint(kBadModel));
        piece.type = static_cast<SentencePieceModel::Type>(type);
        break;
      }
      default:
        break;
    }
  }
  return piece;
}

void read_trainer(std::string_view bytes, const std::string& what, SentencePieceModel& model) {
  ProtobufReader reader(bytes, what);
  while (reader.next()) {
    switch (reader.field()) {
      case 3: {
        const int32_t kind = reader.integer("model_type");
        QKV_CHECK(kind >= 1 && kind <= 4, what, ": 'model_type' is ", kind,
                  " but must be 1 (unigram), 2 (bpe), 3 (word) or 4 (char)", Hint(kBadModel));
        model.kind = static_cast<SentencePieceModel::Kind>(kind);
        break;
      }
      case 24:
        model.whitespace_as_suffix = reader.boolean("treat_whitespace_as_suffix");
        break;
      case 35:
        model.byte_fallback = reader.boolean("byte_fallback");
        break;
      case 44:
        model.unk_surface = reader.bytes("unk_surface");
        break;
      case 46:
        model.bos_piece = reader.bytes("bos_piece");
        break;
      case 47:
        model.eos_piece = reader.bytes("eos_piece");
        break;
      case 48:
        model.pad_piece = reader.bytes("pad_piece");
        break;
      default:
        break;
    }
  }
}

void read_normalizer(std::string_view bytes, const std::string& what, SentencePieceModel& model) {
  ProtobufReader reader(bytes, what);
  while (reader.next()) {
    switch (reader.field()) {
      case 2: {
        const std::string_view map = reader.bytes("precompiled_charsmap");
        model.charsmap.reset();
        model.charsmap_bytes = map;
        if (!map.empty()) model.charsmap = Precompiled::parse(map, what);
        break;
      }
      case 3:
        model.add_dummy_prefix = reader.boolean("add_dummy_prefix");
        break;
      case 4:
        model.remove_extra_whitespaces = reader.boolean("remove_extra_whitespaces");
        break;
      case 5:
        model.escape_whitespaces = reader.boolean("escape_whitespaces");
        break;
      default:
        break;
    }
  }
}

void read_self_test(std::string_view bytes, const std::string& what, SentencePieceModel& model) {
  ProtobufReader reader(bytes, what);
  while (reader.next()) {
    if (reader.field() != 1) continue;
    SentencePieceModel::Sample sample;
    ProtobufReader inner(reader.bytes("samples"), what + ": sample " + std::to_string(model.self_test.size()));
    while (inner.next()) {
      if (inner.field() == 1) sample.input = inner.bytes("input");
      if (inner.field() == 2) sample.expected = inner.bytes("expected");
    }
    model.self_test.push_back(std::move(sample));
  }
}

void refuse_denormalizer(std::string_view bytes, const std::string& what) {
  ProtobufReader reader(bytes, what);
  while (reader.next()) {
    QKV_CHECK(reader.field() != 2 || reader.bytes("precompiled_charsmap").empty(), what,
              ": the model changes text after decoding (denormalizer_spec), which is not supported",
              Hint("train the model without denormalization rules"));
  }
}

}  // namespace

SentencePieceModel SentencePieceModel::parse(std::string_view bytes, std::string_view name) {
  SentencePieceModel model;
  model.name = name;
  ProtobufReader reader(bytes, name);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        model.pieces.push_back(
            read_piece(reader.bytes("pieces"), model.name + ": piece " + std::to_string(model.pieces.size())));
        break;
      case 2:
        read_trainer(reader.bytes("trainer_spec"), model.name + ": trainer_spec", model);
        break;
      case 3:
        read_normalizer(reader.bytes("normalizer_spec"), model.name + ": normalizer_spec", model);
        break;
      case 4:
        read_self_test(reader.bytes("self_test_data"), model.name + ": self_test_data", model);
        break;
      case 5:
        refuse_denormalizer(reader.bytes("denormalizer_spec"), model.name + ": denormalizer_spec");
        break;
      default:
        break;
    }
  }
  model.check_pieces();
  return model;
}

void SentencePieceModel::check_pieces() {
  narrow<int32_t>(pieces.size(), name + ": number of pieces");
  QKV_CHECK(!pieces.empty(), name, ": has no pieces", Hint(kBadModel));
  // Only normal, user-defined and unused pieces match text; the others are just names.
  std::unordered_map<std::string_view, int32_t, SeededHash> matched, reserved;
  std::array<bool, 256> bytes_seen{};
  unk_id = -1;
  for (int32_t id = 0; id < static_cast<int32_t>(pieces.size()); ++id) {
    const Piece& piece = pieces[static_cast<size_t>(id)];
    QKV_CHECK(
        !piece.text.empty() && piece.text.size() < kLongestSentencePiece && piece.text.find('\0') == std::string::npos,
        name, ": piece ", id, " is ", piece.text.empty() ? "empty" : "longer than 7999 bytes or has a NUL in it",
        Hint(kBadModel));
    QKV_CHECK(std::isfinite(piece.score), name, ": piece ", id, " ", printable(piece.text), " has the score ",
              piece.score, " but it must be finite", Hint(kBadModel));
    const bool matches = piece.type == Type::normal || piece.type == Type::user_defined || piece.type == Type::unused;
    auto& map = matches ? matched : reserved;
    const auto [first, is_new] = map.emplace(piece.text, id);
    QKV_CHECK(is_new, name, ": pieces ", first->second, " and ", id, " are both ", printable(piece.text),
              Hint(kBadModel));
    if (piece.type == Type::unknown) {
      QKV_CHECK(unk_id < 0, name, ": pieces ", unk_id, " and ", id, " are both of type unknown", Hint(kBadModel));
      unk_id = id;
    }
    if (piece.type == Type::byte) {
      QKV_CHECK(byte_fallback, name, ": piece ", id, " ", printable(piece.text),
                " is a byte but the model says it has no byte fallback", Hint(kBadModel));
      const int byte = byte_of_token(piece.text);
      QKV_CHECK(byte >= 0, name, ": piece ", id, " ", printable(piece.text),
                " is of type byte but must be one of <0x00> to <0xFF>", Hint(kBadModel));
      bytes_seen[static_cast<size_t>(byte)] = true;
    }
  }
  QKV_CHECK(unk_id >= 0, name, ": none of the ", pieces.size(), " pieces is of type unknown", Hint(kBadModel));
  for (size_t byte = 0; byte < 256 && byte_fallback; ++byte) {
    QKV_CHECK(bytes_seen[byte], name, ": says it has byte fallback but has no piece for byte ", byte, Hint(kBadModel));
  }
  const auto control = [&](const std::string& text) {
    const auto found = reserved.find(text);
    const bool is_control = found != reserved.end() && pieces[static_cast<size_t>(found->second)].type == Type::control;
    return is_control ? found->second : -1;
  };
  bos_id = control(bos_piece);
  eos_id = control(eos_piece);
  pad_id = control(pad_piece);
}

}  // namespace qkv

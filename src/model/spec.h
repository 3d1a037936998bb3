// The description of a model: read from its config, checked in full, and what every part of it is built from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/place.h"
#include "nn/spec.h"

namespace qkv {

struct PositionSpec {
  enum class Kind : uint8_t { none, learned, sinusoidal } kind = Kind::none;
  int64_t count = 0;   // rows of a learned table
  int64_t offset = 0;  // position p uses row p + offset (2 in BART)
  // A padding token uses row offset - 1, whatever its position; among sinusoids that row is zero.
  std::optional<int32_t> padding;
  ops::Sinusoid order = ops::Sinusoid::halves;
};

// Embedding, layers and the last norm.
struct StackSpec {
  std::vector<LayerSpec> layers;
  PositionSpec positions;
  int64_t token_types = 0;  // rows of the type table; 0: none (BERT has 2)
  bool embedding_norm = false;
  bool final_norm = true;
  double embedding_factor = 1;
  float embedding_dropout = 0;
};

struct HeadSpec {
  bool tied = false;       // the token embeddings are the head's weight
  bool bias = false;       // on the logits
  bool transform = false;  // BERT: dense, activation and norm before the logits
  bool transform_bias = true;
  Activation act;     // of the transform
  double factor = 1;  // on the input of the head (T5, Granite)
  double softcap = 0;
};

// The published initialisation.
struct InitSpec {
  enum class Kind : uint8_t {
    normal,  // every matrix normal with `std`
    gpt2,    // the same, but output projections divided by sqrt(2 layers)
    t5,      // by the input width
    xavier,  // uniform; embeddings normal with width^-1/2: the 2017 Transformer
  } kind = Kind::normal;
  double std = 0.02;
};

struct TokenIds {
  std::optional<int32_t> bos, pad, decoder_start, forced_eos;
  std::vector<int32_t> eos;
};

struct ModelSpec {
  enum class Kind : uint8_t { decoder_only, encoder_only, encoder_decoder } kind = Kind::decoder_only;
  std::string family;
  int64_t vocabulary = 0, width = 0;
  int64_t source_vocabulary = 0;  // of the encoder, if the two stacks have an embedding each; 0: shared
  int64_t context = 0;            // longest sequence; 0: unknown
  DType dtype = DType::f32;       // of the stored weights
  NormSpec norm;                  // of the last norm, of embeddings and head
  StackSpec encoder, decoder;     // an encoder-only model has only the first, a decoder-only model only the second
  HeadSpec head;
  InitSpec init;
  TokenIds tokens;
  bool heads_cut = false;  // heads or experts were cut: the family's config cannot express it, only qkv can load it

  bool has_source() const { return kind == Kind::encoder_decoder; }  // the encoder reads a text of its own
  // The stack the head is on: the encoder of an encoder-only model, otherwise the decoder.
  Stack main() const { return kind == Kind::encoder_only ? Stack::encoder : Stack::decoder; }
  const StackSpec& main_stack() const { return kind == Kind::encoder_only ? encoder : decoder; }
};

const char* name_of(ModelSpec::Kind kind);

// An Error unless the spec is consistent. `what` names the file in the message.
void validate(const ModelSpec& spec, const std::string& what);

}  // namespace qkv

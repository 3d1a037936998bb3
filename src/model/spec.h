// What a model is, before any of it exists: a plain description, read from a file and checked in full.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/layer.h"

namespace qkv {

struct PositionSpec {
  enum class Kind : uint8_t { none, learned, sinusoidal } kind = Kind::none;
  int64_t count = 0;   // rows of a learned table
  int64_t offset = 0;  // position p uses row p + offset (BART says 2)
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
  Activation act;          // of the transform
  double factor = 1;       // on what enters the head (T5)
  double softcap = 0;
};

// The published way to draw the first weights.
struct InitSpec {
  enum class Kind : uint8_t {
    normal,  // every matrix normal with `std`
    gpt2,    // the same, but what writes to the stream smaller by sqrt(2 layers)
    t5,      // by the width of what enters
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
  int64_t source_vocabulary = 0;  // encoder-decoders whose two sides have an embedding each; 0: they share one
  int64_t context = 0;            // positions it was made for; 0: no limit is known
  DType dtype = DType::f32;       // as its weights are stored
  NormSpec norm;                  // of the last norm, of embeddings and head
  StackSpec encoder, decoder;     // an encoder-only model has only the first, a decoder-only model only the second
  HeadSpec head;
  InitSpec init;
  TokenIds tokens;
  bool heads_cut = false;  // heads or experts differ from what the family's config can say: only qkv can load it

  // The stack that speaks: an encoder alone, otherwise the decoder.
  bool has_source() const { return kind == Kind::encoder_decoder; }  // an encoder reads a text of its own
  Stack main() const { return kind == Kind::encoder_only ? Stack::encoder : Stack::decoder; }
  const StackSpec& main_stack() const { return kind == Kind::encoder_only ? encoder : decoder; }
};

const char* name_of(ModelSpec::Kind kind);

// An Error unless everything about it fits together. `what` names the file for the message.
void validate(const ModelSpec& spec, const std::string& what);

}  // namespace qkv

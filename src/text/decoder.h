// Decoders: the texts of tokens become the text again. Each takes a list of strings and leaves another.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/matcher.h"

namespace qkv {

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

using DecoderPtr = std::unique_ptr<const Decoder>;

struct StripDecoderOptions {
  std::string content = " ";   // one character
  size_t start = 0, stop = 0;  // at most so many of it at each end
};

struct MetaspaceDecoderOptions {
  std::string replacement = "\xe2\x96\x81";  // ▁
  bool drop_first = true;                    // marks in the first token were added, not written
};

struct WordPieceDecoderOptions {
  std::string prefix = "##";
  bool cleanup = true;
};

struct CtcDecoderOptions {
  std::string pad_token = "<pad>";
  std::string word_delimiter_token = "|";
  bool cleanup = true;
};

DecoderPtr byte_level_decoder();
DecoderPtr byte_fallback_decoder();
DecoderPtr fuse_decoder();
DecoderPtr replace_decoder(Matcher wanted, std::string replacement);
DecoderPtr strip_decoder(StripDecoderOptions options);
DecoderPtr metaspace_decoder(MetaspaceDecoderOptions options);
DecoderPtr word_piece_decoder(WordPieceDecoderOptions options);
DecoderPtr bpe_decoder(std::string suffix);
DecoderPtr ctc_decoder(CtcDecoderOptions options);
DecoderPtr decoder_sequence(std::vector<DecoderPtr> steps);

}  // namespace qkv

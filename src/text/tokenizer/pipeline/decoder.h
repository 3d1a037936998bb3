// Decoders: the texts of tokens become the text again. Tokens go in one by one and come out as soon as nothing that
// follows can change them, so a whole text and a stream are decoded by the same code.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "text/tokenizer/pipeline/matcher.h"

namespace qkv {

class Decoder {
 public:
  // A token's text or, where tokens are fused into one, a part of it.
  struct Part {
    std::string text;
    size_t source = 0;               // the number of the token it comes from, as counted on the way in
    bool first = true, last = true;  // of the parts of its token
  };
  using Sink = FunctionRef<void(Part)>;

  // One list of tokens on its way. It may refer to its decoder.
  class Run {
   public:
    virtual ~Run() = default;
    virtual void take(Part part, Sink out) = 0;
    virtual void finish(Sink out) = 0;  // after the last token
  };

  virtual ~Decoder() = default;
  virtual std::unique_ptr<Run> start() const = 0;
};

using DecoderPtr = std::unique_ptr<const Decoder>;

// A run that needs its tokens whole.
class WholeTokenRun : public Decoder::Run {
 public:
  void take(Decoder::Part part, Decoder::Sink out) final;
  void finish(Decoder::Sink) override {}

 protected:
  virtual void take_token(Decoder::Part token, Decoder::Sink out) = 0;

 private:
  Decoder::Part held_ = {.text = "", .source = 0};
};

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

DecoderPtr spaced_decoder();  // tokens with spaces between
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

// Decoders: token texts to text. Tokens go in one by one and come out as soon as no later token can change them, so
// whole lists and streams are decoded by the same code.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "text/tokenizer/pipeline/growth_limit.h"
#include "text/tokenizer/pipeline/matcher.h"

namespace qkv {

class Decoder {
 public:
  // The text of a token or, if tokens are fused into one, a part of it.
  struct Part {
    std::string text;
    size_t source = 0;               // index of its input token
    bool first = true, last = true;  // part of its token
  };
  using Sink = FunctionRef<void(Part)>;

  // The decoding state of one list of tokens. It may refer to its decoder.
  class Run {
   public:
    virtual ~Run() = default;
    virtual void take(Part part, Sink out) = 0;
    virtual void finish(Sink out) = 0;  // after the last token
  };

  virtual ~Decoder() = default;
  // The limit outlives the run; null: none.
  virtual std::unique_ptr<Run> start(GrowthLimit* limit) const = 0;
  virtual size_t steps() const { return 1; }
};

using DecoderPtr = std::unique_ptr<const Decoder>;

// A run that collects the parts of each token before processing it.
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
  size_t start = 0, stop = 0;  // how many to remove at most at each end
};

struct MetaspaceDecoderOptions {
  std::string replacement = "\xe2\x96\x81";  // ▁
  bool drop_first = true;                    // the mark at the start of the first token was added by the pre-tokenizer
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

DecoderPtr spaced_decoder();  // tokens joined by spaces
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

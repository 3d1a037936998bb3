#include "text/tokenizer/pipeline/decoder.h"

#include <array>
#include <optional>
#include <type_traits>
#include <utility>

#include "text/tokenizer/models/byte_alphabet.h"
#include "text/tokenizer/models/unknown_runs.h"
#include "text/tokenizer/pipeline/replace_all.h"
#include "text/unicode/utf8.h"

namespace qkv {

using Part = Decoder::Part;
using Sink = Decoder::Sink;

void WholeTokenRun::take(Part part, Sink out) {
  if (part.first && part.last) return take_token(std::move(part), out);
  if (part.first) held_ = {.text = "", .source = part.source};
  held_.text += part.text;
  if (part.last) take_token(std::exchange(held_, {}), out);
}

namespace {

// A decoder that starts an R with these options, and with the limit if the R can make a token longer.
template <class R, class Options>
class RunDecoder final : public Decoder {
 public:
  explicit RunDecoder(Options options) : options_(std::move(options)) {}
  std::unique_ptr<Run> start(GrowthLimit* limit) const override {
    if constexpr (std::is_constructible_v<R, const Options&, GrowthLimit*>) {
      return std::make_unique<R>(options_, limit);
    } else {
      return std::make_unique<R>(options_);
    }
  }

 private:
  Options options_;
};

struct NoOptions {};

// Hugging Face's cleanup: no space before punctuation, "do n't" becomes "don't".
void clean_up(std::string& text) {
  using Change = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Change, 11> kChanges{{{" .", "."},
                                             {" ?", "?"},
                                             {" !", "!"},
                                             {" ,", ","},
                                             {" ' ", "'"},
                                             {" n't", "n't"},
                                             {" 'm", "'m"},
                                             {" do not", " don't"},
                                             {" 's", "'s"},
                                             {" 've", "'ve"},
                                             {" 're", "'re"}}};
  for (const auto& [from, to] : kChanges) replace_all(text, from, to);
}

class SpacedRun final : public WholeTokenRun {
 public:
  explicit SpacedRun(const NoOptions&) {}

 private:
  void take_token(Part token, Sink out) override {
    if (!is_first_) token.text.insert(0, " ");
    is_first_ = false;
    out(std::move(token));
  }
  bool is_first_ = true;
};

// All tokens become parts of one token.
class FuseRun : public Decoder::Run {
 public:
  explicit FuseRun(const NoOptions&) {}
  void take(Part part, Sink out) override {
    part.first = std::exchange(is_first_, false);
    part.last = false;
    source_ = part.source;
    out(std::move(part));
  }
  void finish(Sink out) override { out({.text = "", .source = source_, .first = is_first_, .last = true}); }

 private:
  bool is_first_ = true;
  size_t source_ = 0;
};

class ByteLevelRun final : public FuseRun {
 public:
  using FuseRun::FuseRun;
  void take(Part part, Sink out) override {
    std::string bytes;
    if (append_letters_as_bytes(part.text, bytes)) part.text = std::move(bytes);
    FuseRun::take(std::move(part), out);
  }
};

// A run of byte tokens becomes one token, or one U+FFFD per byte if it is not UTF-8. Known only at the end of the run.
class ByteFallbackRun final : public WholeTokenRun {
 public:
  explicit ByteFallbackRun(const NoOptions&) {}
  void finish(Sink out) override { give(out); }

 private:
  void take_token(Part token, Sink out) override {
    if (const int byte = byte_of_token(token.text); byte >= 0) {
      bytes_ += static_cast<char>(byte);
      sources_.push_back(token.source);
      return;
    }
    give(out);
    out(std::move(token));
  }

  void give(Sink out) {
    const bool is_text = is_utf8(bytes_);
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (is_text) {
        out({.text = bytes_.substr(i, 1), .source = sources_[i], .first = i == 0, .last = i + 1 == bytes_.size()});
      } else {
        out({.text = std::string(kReplacementCharacter), .source = sources_[i]});
      }
    }
    bytes_.clear();
    sources_.clear();
  }

  std::string bytes_;
  std::vector<size_t> sources_;
};

struct ReplaceRunOptions {
  Matcher wanted;
  std::string replacement;
};

class ReplaceRun final : public WholeTokenRun {
 public:
  ReplaceRun(const ReplaceRunOptions& options, GrowthLimit* limit) : options_(options), limit_(limit) {}

 private:
  void take_token(Part token, Sink out) override {
    std::string text;
    options_.wanted.scan(token.text, [&](size_t begin, size_t end, bool is_match) {
      if (limit_) limit_->spend(is_match ? options_.replacement.size() : end - begin, "the decoder Replace");
      is_match ? text += options_.replacement : text.append(token.text, begin, end - begin);
    });
    token.text = std::move(text);
    out(std::move(token));
  }
  const ReplaceRunOptions& options_;
  GrowthLimit* limit_;
};

class StripStartRun final : public Decoder::Run {
 public:
  explicit StripStartRun(const StripDecoderOptions& options) : options_(options) {}
  void take(Part part, Sink out) override {
    if (part.first) left_ = options_.start;
    std::string_view text = part.text;
    for (; left_ > 0 && text.starts_with(options_.content); --left_) text.remove_prefix(options_.content.size());
    if (!text.empty()) left_ = 0;
    part.text = std::string(text);
    out(std::move(part));
  }
  void finish(Sink) override {}

 private:
  const StripDecoderOptions& options_;
  size_t left_ = 0;  // how many may still be removed
};

class StripBothEndsRun final : public WholeTokenRun {
 public:
  explicit StripBothEndsRun(const StripDecoderOptions& options) : options_(options) {}

 private:
  void take_token(Part token, Sink out) override {
    const std::string& content = options_.content;
    std::string_view text = token.text;
    for (size_t i = 0; i < options_.start && text.starts_with(content); ++i) text.remove_prefix(content.size());
    for (size_t i = 0; i < options_.stop && text.ends_with(content); ++i) text.remove_suffix(content.size());
    token.text = std::string(text);
    out(std::move(token));
  }
  const StripDecoderOptions& options_;
};

class MetaspaceRun final : public WholeTokenRun {
 public:
  explicit MetaspaceRun(const MetaspaceDecoderOptions& options) : options_(options) {}

 private:
  void take_token(Part token, Sink out) override {
    replace_all(token.text, options_.replacement, is_first_ && options_.drop_first ? "" : " ");
    is_first_ = false;
    out(std::move(token));
  }
  const MetaspaceDecoderOptions& options_;
  bool is_first_ = true;
};

class WordPieceRun final : public WholeTokenRun {
 public:
  explicit WordPieceRun(const WordPieceDecoderOptions& options) : options_(options) {}

 private:
  void take_token(Part token, Sink out) override {
    std::string& text = token.text;
    if (!is_first_) text.starts_with(options_.prefix) ? text.erase(0, options_.prefix.size()) : text.insert(0, " ");
    is_first_ = false;
    if (options_.cleanup) clean_up(text);
    out(std::move(token));
  }
  const WordPieceDecoderOptions& options_;
  bool is_first_ = true;
};

// The word suffix becomes a space, except on the last token, so each token waits for the next one.
class WordSuffixRun final : public WholeTokenRun {
 public:
  explicit WordSuffixRun(const std::string& suffix) : suffix_(suffix) {}
  void finish(Sink out) override { give("", out); }

 private:
  void take_token(Part token, Sink out) override {
    give(" ", out);
    waiting_ = std::move(token);
  }
  void give(std::string_view end, Sink out) {
    if (!waiting_) return;
    replace_all(waiting_->text, suffix_, end);
    out(std::move(*waiting_));
    waiting_.reset();
  }
  const std::string& suffix_;
  std::optional<Part> waiting_;
};

class CtcRun final : public WholeTokenRun {
 public:
  explicit CtcRun(const CtcDecoderOptions& options) : options_(options) {}

 private:
  void take_token(Part token, Sink out) override {
    if (previous_ == token.text) return;
    previous_ = token.text;
    replace_all(token.text, options_.pad_token, "");
    if (options_.cleanup) {
      clean_up(token.text);
      replace_all(token.text, options_.word_delimiter_token, " ");
    }
    if (!token.text.empty()) out(std::move(token));
  }
  const CtcDecoderOptions& options_;
  std::optional<std::string> previous_;
};

class DecoderSequence final : public Decoder {
 public:
  explicit DecoderSequence(std::vector<DecoderPtr> steps) : steps_(std::move(steps)) {}
  std::unique_ptr<Run> start(GrowthLimit* limit) const override { return std::make_unique<Steps>(steps_, limit); }
  size_t steps() const override { return count_steps(steps_); }

 private:
  class Steps final : public Run {
   public:
    Steps(const std::vector<DecoderPtr>& steps, GrowthLimit* limit) {
      for (const DecoderPtr& step : steps) runs_.push_back(step->start(limit));
    }
    void take(Part part, Sink out) override { pass(0, std::move(part), out); }
    void finish(Sink out) override {
      for (size_t i = 0; i < runs_.size(); ++i) {
        runs_[i]->finish([&](Part part) { pass(i + 1, std::move(part), out); });
      }
    }

   private:
    void pass(size_t step, Part part, Sink out) {
      if (step == runs_.size()) return out(std::move(part));
      runs_[step]->take(std::move(part), [&](Part next) { pass(step + 1, std::move(next), out); });
    }
    std::vector<std::unique_ptr<Run>> runs_;
  };

  std::vector<DecoderPtr> steps_;
};

template <class R, class Options>
DecoderPtr made(Options options) {
  return std::make_unique<RunDecoder<R, Options>>(std::move(options));
}

}  // namespace

DecoderPtr spaced_decoder() {
  return made<SpacedRun>(NoOptions{});
}
DecoderPtr byte_level_decoder() {
  return made<ByteLevelRun>(NoOptions{});
}
DecoderPtr byte_fallback_decoder() {
  return made<ByteFallbackRun>(NoOptions{});
}
DecoderPtr fuse_decoder() {
  return made<FuseRun>(NoOptions{});
}
DecoderPtr replace_decoder(Matcher wanted, std::string replacement) {
  return made<ReplaceRun>(ReplaceRunOptions{std::move(wanted), std::move(replacement)});
}
DecoderPtr strip_decoder(StripDecoderOptions options) {
  if (options.stop == 0) return made<StripStartRun>(std::move(options));
  return made<StripBothEndsRun>(std::move(options));
}
DecoderPtr metaspace_decoder(MetaspaceDecoderOptions options) {
  return made<MetaspaceRun>(std::move(options));
}
DecoderPtr word_piece_decoder(WordPieceDecoderOptions options) {
  return made<WordPieceRun>(std::move(options));
}
DecoderPtr bpe_decoder(std::string suffix) {
  return made<WordSuffixRun>(std::move(suffix));
}
DecoderPtr ctc_decoder(CtcDecoderOptions options) {
  return made<CtcRun>(std::move(options));
}
DecoderPtr decoder_sequence(std::vector<DecoderPtr> steps) {
  check_steps(count_steps(steps), "decoder");
  return std::make_unique<DecoderSequence>(std::move(steps));
}

}  // namespace qkv

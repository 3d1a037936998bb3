#include "text/decoder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/byte_alphabet.h"
#include "text/unknown_runs.h"
#include "text/utf8.h"

namespace qkv {
namespace {

using Texts = std::vector<std::string>;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  std::string out;
  size_t at = 0;
  for (size_t found = text.find(from); found != text.npos; found = text.find(from, at)) {
    out.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  if (at > 0) text = out.append(text, at);
}

// English as it is written: no space before a sign, "don't" in one.
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

std::string joined(const Texts& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return all;
}

class ByteLevel final : public Decoder {
 public:
  void apply(Texts& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) {
      if (!append_spelled(token, all)) all += token;
    }
    tokens.assign(1, std::move(all));
  }
};

class ByteFallback final : public Decoder {
 public:
  void apply(Texts& tokens) const override {
    Texts out;
    std::string bytes;
    const auto give = [&] {
      if (bytes.empty()) return;
      if (is_utf8(bytes)) {
        out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), std::string(kReplacementCharacter));
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const int byte = byte_of_token(token); byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      give();
      out.push_back(std::move(token));
    }
    give();
    tokens = std::move(out);
  }
};

class Fuse final : public Decoder {
 public:
  void apply(Texts& tokens) const override { tokens.assign(1, joined(tokens)); }
};

class Replace final : public Decoder {
 public:
  Replace(Matcher wanted, std::string replacement) : wanted_(std::move(wanted)), replacement_(std::move(replacement)) {}

  void apply(Texts& tokens) const override {
    for (std::string& token : tokens) {
      std::string out;
      wanted_.scan(token, [&](size_t begin, size_t end, bool is_match) {
        is_match ? out += replacement_ : out.append(token, begin, end - begin);
      });
      token = std::move(out);
    }
  }

 private:
  Matcher wanted_;
  std::string replacement_;
};

class Strip final : public Decoder {
 public:
  explicit Strip(StripDecoderOptions options) : options_(std::move(options)) {}

  void apply(Texts& tokens) const override {
    const std::string& content = options_.content;
    for (std::string& token : tokens) {
      std::string_view left = token;
      for (size_t i = 0; i < options_.start && left.starts_with(content); ++i) left.remove_prefix(content.size());
      for (size_t i = 0; i < options_.stop && left.ends_with(content); ++i) left.remove_suffix(content.size());
      token = std::string(left);
    }
  }

 private:
  StripDecoderOptions options_;
};

class Metaspace final : public Decoder {
 public:
  explicit Metaspace(MetaspaceDecoderOptions options) : options_(std::move(options)) {}

  void apply(Texts& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], options_.replacement, i == 0 && options_.drop_first ? "" : " ");
    }
  }

 private:
  MetaspaceDecoderOptions options_;
};

class WordPieceDecoder final : public Decoder {
 public:
  explicit WordPieceDecoder(WordPieceDecoderOptions options) : options_(std::move(options)) {}

  void apply(Texts& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) token.starts_with(options_.prefix) ? token.erase(0, options_.prefix.size()) : token.insert(0, " ");
      if (options_.cleanup) clean_up(token);
    }
  }

 private:
  WordPieceDecoderOptions options_;
};

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  void apply(Texts& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
  }

 private:
  std::string suffix_;
};

class Ctc final : public Decoder {
 public:
  explicit Ctc(CtcDecoderOptions options) : options_(std::move(options)) {}

  void apply(Texts& tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      replace_all(token, options_.pad_token, "");
      if (!options_.cleanup) continue;
      clean_up(token);
      replace_all(token, options_.word_delimiter_token, " ");
    }
    std::erase(tokens, "");
  }

 private:
  CtcDecoderOptions options_;
};

class Sequence final : public Decoder {
 public:
  explicit Sequence(std::vector<DecoderPtr> steps) : steps_(std::move(steps)) {}
  void apply(Texts& tokens) const override {
    for (const DecoderPtr& step : steps_) step->apply(tokens);
  }

 private:
  std::vector<DecoderPtr> steps_;
};

}  // namespace

DecoderPtr byte_level_decoder() {
  return std::make_unique<ByteLevel>();
}
DecoderPtr byte_fallback_decoder() {
  return std::make_unique<ByteFallback>();
}
DecoderPtr fuse_decoder() {
  return std::make_unique<Fuse>();
}
DecoderPtr replace_decoder(Matcher wanted, std::string replacement) {
  return std::make_unique<Replace>(std::move(wanted), std::move(replacement));
}
DecoderPtr strip_decoder(StripDecoderOptions options) {
  return std::make_unique<Strip>(std::move(options));
}
DecoderPtr metaspace_decoder(MetaspaceDecoderOptions options) {
  return std::make_unique<Metaspace>(std::move(options));
}
DecoderPtr word_piece_decoder(WordPieceDecoderOptions options) {
  return std::make_unique<WordPieceDecoder>(std::move(options));
}
DecoderPtr bpe_decoder(std::string suffix) {
  return std::make_unique<BpeDecoder>(std::move(suffix));
}
DecoderPtr ctc_decoder(CtcDecoderOptions options) {
  return std::make_unique<Ctc>(std::move(options));
}
DecoderPtr decoder_sequence(std::vector<DecoderPtr> steps) {
  return std::make_unique<Sequence>(std::move(steps));
}

}  // namespace qkv

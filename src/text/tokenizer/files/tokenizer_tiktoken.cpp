// tiktoken's rank files: one token per line, base64 and rank. Two neighbours merge if their concatenation is a token,
// lowest rank first. Pattern and special tokens are not in the file; they follow from its name or size.
#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/seeded_hash.h"
#include "text/tokenizer/files/base64.h"
#include "text/tokenizer/files/tokenizer_files.h"
#include "text/tokenizer/models/bpe.h"
#include "text/tokenizer/models/byte_alphabet.h"

namespace qkv {
namespace {

constexpr size_t kLongestToken = 1024;  // bytes; real ones stay below 130. Every split of a token into two is tried

struct Special {
  std::string_view token;
  int32_t id;
};

struct KnownRanks {
  std::string_view name;  // prefix of the file name
  size_t tokens;
  Pattern pattern;
  std::array<Special, 6> specials;  // the first is the end-of-text token
};

constexpr std::array kEncodings{
    KnownRanks{"r50k", 50256, Pattern::gpt2, {{{"<|endoftext|>", 50256}}}},
    KnownRanks{"p50k", 50280, Pattern::gpt2, {{{"<|endoftext|>", 50256}}}},
    KnownRanks{"cl100k",
               100256,
               Pattern::llama3,
               {{{"<|endoftext|>", 100257},
                 {"<|fim_prefix|>", 100258},
                 {"<|fim_middle|>", 100259},
                 {"<|fim_suffix|>", 100260},
                 {"<|endofprompt|>", 100276}}}},
    KnownRanks{"o200k", 199998, Pattern::gpt4o, {{{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}}},
    KnownRanks{"llama3",
               128000,
               Pattern::llama3,
               {{{"<|end_of_text|>", 128001},
                 {"<|begin_of_text|>", 128000},
                 {"<|start_header_id|>", 128006},
                 {"<|end_header_id|>", 128007},
                 {"<|eot_id|>", 128009}}}},
    KnownRanks{"qwen",
               151643,
               Pattern::qwen2,
               {{{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}}}},
};

struct Ranked {
  std::string bytes;
  uint32_t rank;
};

std::vector<Ranked> read_ranks(std::string_view text, const std::string& what) {
  std::vector<Ranked> tokens;
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::string where = what + ", line " + std::to_string(number);
    const size_t space = line.find(' ');
    QKV_CHECK(space != line.npos, where, ": ", printable(line), " is not a token and its rank",
              Hint("tiktoken's files have base64, a space and a number on each line"));
    Ranked token{.bytes = decode_base64(line.substr(0, space), where), .rank = 0};
    const std::string_view digits = line.substr(space + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), token.rank);
    QKV_CHECK(error == std::errc() && end == digits.data() + digits.size(), where, ": the rank is ", printable(digits),
              " but must be a number below 2^32", Hint("the file is damaged; fetch it again"));
    QKV_CHECK(!token.bytes.empty() && token.bytes.size() <= kLongestToken, where, ": a token of ", token.bytes.size(),
              " bytes, but they have 1 to ", kLongestToken, Hint("the file is damaged; fetch it again"));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

const KnownRanks& encoding_of(const std::filesystem::path& file, size_t tokens) {
  const std::string name = file.filename().string();
  for (const KnownRanks& encoding : kEncodings) {
    if (name.starts_with(encoding.name)) return encoding;
  }
  for (const KnownRanks& encoding : kEncodings) {
    if (tokens == encoding.tokens) return encoding;
  }
  std::string known;
  for (const KnownRanks& encoding : kEncodings) known.append(known.empty() ? "" : ", ").append(encoding.name);
  QKV_FAIL(file.string(), ": ", tokens,
           " tokens, which is no known encoding, and the file does not say how text is cut",
           Hint("let the file's name start with one of ", known));
}

}  // namespace

bool is_tiktoken(std::string_view start) {
  const std::string_view line = start.substr(0, start.find('\n'));
  const size_t space = line.find(' ');
  return space != line.npos && space > 0 && space + 1 < line.size() &&
         line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == space &&
         line.find_first_not_of("0123456789\r", space + 1) == line.npos;
}

TokenizerParts parts_of_tiktoken(const std::filesystem::path& file) {
  const std::string what = file.string();
  std::vector<Ranked> tokens = read_ranks(read_file(file, kLargestTokenizerFile), what);
  std::ranges::sort(tokens, {}, &Ranked::rank);
  const KnownRanks& encoding = encoding_of(file, tokens.size());

  Vocab vocab;
  vocab.reserve(tokens.size(), 16 * tokens.size());
  std::vector<std::string> letters;
  std::unordered_map<std::string_view, size_t, SeededHash> places;
  for (size_t i = 0; i < tokens.size(); ++i) {
    letters.push_back(bytes_to_letters(tokens[i].bytes));
    const auto [first, is_new] = places.emplace(tokens[i].bytes, i);
    QKV_CHECK(is_new, what, ": ranks ", tokens[first->second].rank, " and ", tokens[i].rank, " are the same token",
              Hint("the file is damaged; fetch it again"));
    vocab.add(letters.back(), tokens[i].rank, {.what = what, .tokens = tokens.size()});
  }
  QKV_CHECK(Bpe::has_all_bytes(vocab), what, ": not every byte is a token", Hint("the file is damaged or cut short"));

  const auto give_merges = [&](Bpe::TakeMerge take) {
    for (const Ranked& token : tokens) {
      const std::string_view bytes = token.bytes;
      for (size_t cut = 1; cut < bytes.size(); ++cut) {
        const auto left = places.find(bytes.substr(0, cut)), right = places.find(bytes.substr(cut));
        if (left == places.end() || right == places.end()) continue;
        take(letters[left->second], letters[right->second], token.rank);
      }
    }
  };
  size_t merges = 0;
  give_merges([&](std::string_view, std::string_view, uint32_t) { ++merges; });
  TokenizerParts parts{.what = what, .accepts_raw_bytes = true};
  parts.model = std::make_unique<Bpe>(std::move(vocab), Bpe::Merges{merges, give_merges},
                                      BpeOptions{.what = what, .byte_level = true, .ignore_merges = true});
  parts.pre_tokenizer = pattern_pre_tokenizer(encoding.pattern, what);
  parts.decoder = byte_level_decoder();
  for (const Special& special : encoding.specials) {
    if (special.token.empty()) continue;
    parts.added.push_back(
        {.id = special.id, .content = std::string(special.token), .normalized = false, .special = true});
  }
  parts.named.eos = encoding.specials[0].id;
  return parts;
}

}  // namespace qkv

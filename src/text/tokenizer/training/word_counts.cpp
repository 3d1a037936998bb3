#include "text/tokenizer/training/word_counts.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/path.h"
#include "base/printable.h"
#include "text/tokenizer/hash.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

constexpr size_t kBatch = size_t{4} << 20;  // text counted at a time
constexpr size_t kChunk = size_t{1} << 18;  // text one thread splits at a time
constexpr size_t kTextBlock = size_t{1} << 16;

// At most `most` bytes, ending at a character boundary if there is one.
size_t whole_chars(std::string_view text, size_t most) {
  if (text.size() <= most) return text.size();
  size_t end = most;
  while (end > most - 3 && is_utf8_continuation(text[end])) --end;
  return end;
}

}  // namespace

uint32_t WordCounts::hash_of(std::string_view word) {
  return static_cast<uint32_t>(hash_bytes(word));
}

const char* WordCounts::Part::keep(std::string_view word) {
  if (word.size() > text_left) {
    text_left = std::max(kTextBlock, word.size());
    texts.push_back(std::make_unique_for_overwrite<char[]>(text_left));
  }
  // Blocks are filled from the end: text_left is both the free space and the end of the next word.
  char* const to = texts.back().get() + (text_left -= word.size());
  std::memcpy(to, word.data(), word.size());
  return to;
}

void WordCounts::Part::grow() {
  std::vector<Slot> old(slots.empty() ? 64 : slots.size() * 2);
  old.swap(slots);
  const size_t mask = slots.size() - 1;
  for (const Slot& slot : old) {
    if (slot.entry == 0) continue;
    size_t at = (slot.hash >> kPartBits) & mask;
    while (slots[at].entry != 0) at = (at + 1) & mask;
    slots[at] = slot;
  }
}

void WordCounts::Part::add(std::string_view word, uint32_t hash, uint64_t count) {
  if (entries.size() * 3 >= slots.size() * 2) grow();
  const size_t mask = slots.size() - 1;
  size_t at = (hash >> kPartBits) & mask;
  for (; slots[at].entry != 0; at = (at + 1) & mask) {
    if (slots[at].hash != hash) continue;
    Entry& entry = entries[slots[at].entry - 1];
    if (std::string_view(entry.text, entry.bytes) != word) continue;
    QKV_CHECK(!__builtin_add_overflow(entry.count, count, &entry.count), "the count of word ", printable(word),
              " does not fit in 64 bits", Hint("count a part of the corpus"));
    return;
  }
  QKV_CHECK(entries.size() < UINT32_MAX - 1, "the corpus has more than ", entries.size(), " distinct words",
            Hint("train on a part of it"));
  entries.push_back({keep(word), static_cast<uint32_t>(word.size()), count});
  slots[at] = {hash, static_cast<uint32_t>(entries.size())};
}

void WordCounts::add(std::string_view word, uint64_t count) {
  QKV_CHECK(!word.empty() && word.size() <= kLongestWord, "a word of ", word.size(), " bytes, but words have 1 to ",
            kLongestWord, Hint("cut it"));
  const uint32_t hash = hash_of(word);
  parts_[hash & (kParts - 1)].add(word, hash, count);
}

size_t WordCounts::size() const {
  size_t size = 0;
  for (const Part& part : parts_) size += part.entries.size();
  return size;
}

std::vector<Word> WordCounts::words() const& {
  std::vector<Word> words;
  words.reserve(size());
  for (const Part& part : parts_) {
    for (const Entry& entry : part.entries) words.push_back({{entry.text, entry.bytes}, entry.count});
  }
  return words;
}

WordCounter::WordCounter(WordCounterOptions options, ThreadPool& pool) : options_(std::move(options)), pool_(pool) {
  for (const std::string& special : options_.specials) {
    QKV_CHECK(!special.empty(), "a special token is empty", Hint("leave it out"));
    longest_special_ = std::max(longest_special_, special.size());
  }
}

void WordCounter::add_text(std::string_view text) {
  while (!text.empty()) {
    const size_t now = std::min(text.size(), kBatch);
    buffer_.append(text.substr(0, now));
    text.remove_prefix(now);
    if (buffer_.size() >= kBatch) count_buffer(false);
  }
}

void WordCounter::end_document() {
  count_buffer(true);
}

void WordCounter::add_file(const std::filesystem::path& path, const std::function<void(size_t bytes)>& on_read) {
  std::ifstream in(path, std::ios::binary);
  QKV_CHECK(in, printable(path.string()), ": cannot be opened: ", std::strerror(errno), Hint(errno_hint(errno)));
  std::string block(size_t{1} << 20, '\0');
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())), in.gcount() > 0) {
    const auto bytes = static_cast<size_t>(in.gcount());
    add_text({block.data(), bytes});
    if (on_read) on_read(bytes);
  }
  QKV_CHECK(in.eof(), printable(path.string()), ": cannot be read: ", std::strerror(errno),
            Hint("it must be a text file, not a folder"));
  end_document();
}

WordCounts WordCounter::take() {
  end_document();
  return std::exchange(counts_, {});
}

// The first special at or after `from`, the longest if several start there. A special is searched again only after its
// known position was passed, so that a rare one does not cost a scan of the buffer each time.
WordCounter::Span WordCounter::next_special(size_t from) {
  Span best{std::string::npos, std::string::npos};
  for (size_t i = 0; i < special_at_.size(); ++i) {
    const std::string& special = options_.specials[i];
    size_t& at = special_at_[i];
    if (at < from) at = buffer_.find(special, from);
    if (at == std::string::npos) continue;
    if (at < best.begin || (at == best.begin && at + special.size() > best.end)) best = {at, at + special.size()};
  }
  return best;
}

size_t WordCounter::cut_buffer(bool last) {
  const std::string_view text = buffer_;
  chunks_.clear();
  special_at_.clear();
  for (const std::string& special : options_.specials) special_at_.push_back(buffer_.find(special));
  const auto take_chunk = [&](size_t begin, size_t end) {
    if (begin != end) chunks_.push_back(text.substr(begin, end - begin));
  };
  // From here on, a special may start that the next text completes.
  const size_t sure =
      last ? text.size() : text.size() - std::min(text.size(), std::max<size_t>(longest_special_, 1) - 1);
  size_t at = 0;
  while (true) {
    Span special = next_special(at);
    // A special that starts there may turn out to be a longer one.
    if (special.begin != std::string::npos && special.begin >= sure) special.begin = std::string::npos;
    const size_t end = special.begin == std::string::npos ? sure : special.begin;
    while (end > at && end - at > kChunk) {
      const std::string_view window = text.substr(at, kChunk);
      const size_t cut = last_cut(options_.pattern, window);
      const size_t bytes = cut != 0 ? cut : whole_chars(text.substr(at, end - at), kChunk);
      take_chunk(at, at + bytes);
      at += bytes;
    }
    if (special.begin == std::string::npos) break;
    take_chunk(at, special.begin);
    at = special.end;
  }
  if (!last) return at;
  take_chunk(at, text.size());
  return text.size();
}

void WordCounter::split_chunk(std::string_view chunk, Pieces& pieces) const {
  split_pattern(options_.pattern, chunk, [&](size_t begin, size_t end) {
    std::string_view piece = chunk.substr(begin, end - begin);
    while (!piece.empty()) {
      const std::string_view word = piece.substr(0, whole_chars(piece, WordCounts::kLongestWord));
      piece.remove_prefix(word.size());
      const uint32_t hash = WordCounts::hash_of(word);
      pieces[hash & (WordCounts::kParts - 1)].push_back({word.data(), static_cast<uint32_t>(word.size()), hash});
    }
  });
}

void WordCounter::group_chunks() {
  shares_.clear();
  size_t bytes = kChunk;
  for (size_t i = 0; i < chunks_.size(); ++i) {
    if (bytes >= kChunk) {
      shares_.push_back({i, i});
      bytes = 0;
    }
    bytes += chunks_[i].size();
    shares_.back().end = i + 1;
  }
  if (pieces_.size() < shares_.size()) pieces_.resize(shares_.size());
}

void WordCounter::count_buffer(bool last) {
  const size_t done = cut_buffer(last);
  group_chunks();
  pool_.run(static_cast<int64_t>(shares_.size()), [&](int64_t i, int) {
    const auto share = static_cast<size_t>(i);
    for (auto& part : pieces_[share]) part.clear();
    for (size_t chunk = shares_[share].begin; chunk < shares_[share].end; ++chunk) {
      split_chunk(chunks_[chunk], pieces_[share]);
    }
  });
  // Each part adds its words in the order of the text, so the result does not depend on the threads.
  pool_.run(static_cast<int64_t>(WordCounts::kParts), [&](int64_t i, int) {
    const auto part = static_cast<size_t>(i);
    for (size_t share = 0; share < shares_.size(); ++share) {
      for (const Piece& piece : pieces_[share][part]) {
        counts_.parts_[part].add({piece.text, piece.bytes}, piece.hash, 1);
      }
    }
  });
  buffer_.erase(0, done);
}

}  // namespace qkv

// Word counts of a corpus, the input of tokenizer training. Texts are streamed; memory holds the distinct words and a
// few megabytes. Counts and word order do not depend on the number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "text/tokenizer/pipeline/patterns.h"

namespace qkv {

struct Word {
  std::string_view text;
  uint64_t count;
};

class WordCounts {
 public:
  // A piece of text longer than this is counted as several words, cut between characters.
  static constexpr size_t kLongestWord = 4096;

  void add(std::string_view word, uint64_t count = 1);
  size_t size() const;
  // The views are valid as long as this object.
  std::vector<Word> words() const&;
  std::vector<Word> words() const&& = delete;

 private:
  friend class WordCounter;

  struct Entry {
    const char* text;
    uint32_t bytes;
    uint64_t count;
  };
  struct Slot {
    uint32_t hash = 0;
    uint32_t entry = 0;  // index + 1; 0: free
  };
  // Shard: the words whose hashes share the low bits.
  struct Part {
    void add(std::string_view word, uint32_t hash, uint64_t count);
    void grow();
    const char* keep(std::string_view word);

    std::vector<Slot> slots;
    std::vector<Entry> entries;
    std::vector<std::unique_ptr<char[]>> texts;
    size_t text_left = 0;
  };
  static constexpr uint32_t kPartBits = 4;
  static constexpr size_t kParts = size_t{1} << kPartBits;

  static uint32_t hash_of(std::string_view word);

  std::array<Part, kParts> parts_;
};

struct WordCounterOptions {
  Pattern pattern = Pattern::gpt2;
  std::vector<std::string> specials;  // the text is split at them; they are not counted
};

class WordCounter {
 public:
  WordCounter(WordCounterOptions options, ThreadPool& pool);

  // Appends to the current document.
  void add_text(std::string_view text);
  void end_document();
  // Adds a file as one document, read in blocks; on_read gets the bytes of each block.
  void add_file(const std::filesystem::path& path, const std::function<void(size_t bytes)>& on_read);

  // Returns the counts and resets the counter.
  WordCounts take();

 private:
  struct Piece {
    const char* text;
    uint32_t bytes;
    uint32_t hash;
  };
  using Pieces = std::array<std::vector<Piece>, WordCounts::kParts>;
  struct Span {
    size_t begin, end;
  };

  void count_buffer(bool last);
  size_t cut_buffer(bool last);  // fills chunks_; returns where the uncut rest starts
  Span next_special(size_t from);
  void group_chunks();
  void split_chunk(std::string_view chunk, Pieces& pieces) const;

  WordCounterOptions options_;
  ThreadPool& pool_;
  size_t longest_special_ = 0;
  std::vector<size_t> special_at_;  // next position of each in the buffer
  std::string buffer_;
  std::vector<std::string_view> chunks_;
  std::vector<Span> shares_;    // chunks that one thread splits together
  std::vector<Pieces> pieces_;  // of each share
  WordCounts counts_;
};

}  // namespace qkv

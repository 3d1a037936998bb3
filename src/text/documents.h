// Reads documents one at a time from text, JSONL or TSV files or from standard input. Memory is bounded by the longest
// document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

enum class DataFormat { text, jsonl, tsv };

// What ends a document of plain text.
enum class DocumentCut { line, blank_line, file };

struct SourceOptions {
  DataFormat format = DataFormat::text;
  DocumentCut cut = DocumentCut::blank_line;
  std::string field = "text";              // JSONL
  std::string source_field, target_field;  // JSONL of pairs: both, instead of field
  size_t max_bytes = size_t{64} << 20;     // of a document or line; a longer one is an Error
  // How the caller's user says `cut` and `field`, for hints; null: there is no way to say it.
  const char *cut_option = nullptr, *field_option = nullptr;

  bool pairs() const { return format == DataFormat::tsv || (format == DataFormat::jsonl && !source_field.empty()); }
};

struct Document {
  std::string text;
  std::string target;  // of a pair
  size_t file = 0;     // which of the files it is from
  uint64_t line = 0;   // its first line there, from 1
  double before = 0;   // the share of the file's bytes before it; 0 where the size is unknown (a pipe)
};

class LineReader;

// Texts must be UTF-8. A byte order mark at the start of a file and carriage returns at line ends are removed. Empty
// documents are skipped. Of TSV, up to one line in a hundred may fail to be a pair: it is skipped with a warning.
// Errors name the file and the line.
class DocumentReader {
 public:
  // "-" is standard input.
  DocumentReader(std::vector<std::string> files, SourceOptions options);
  ~DocumentReader();

  bool next(Document& document);  // false at the end

  uint64_t bytes_read() const;
  uint64_t total_bytes() const { return total_bytes_; }  // 0 if unknown (a pipe)
  uint64_t skipped() const { return skipped_; }

 private:
  bool next_in_file(Document& document);
  bool next_text(std::string& text);
  void parse_json_line(const std::string& line, Document& document);
  bool parse_tsv_line(std::string_view line, Document& document);
  void check_tsv() const;
  void check_utf8(std::string_view text);
  std::string place(uint64_t line) const;

  std::vector<std::string> files_;
  SourceOptions options_;
  size_t next_file_ = 0;
  std::unique_ptr<LineReader> reader_;
  std::string line_;
  uint64_t first_line_ = 0;      // of the document being read
  uint64_t first_byte_ = 0;      // in its file
  std::vector<uint64_t> sizes_;  // of the files; 0: unknown
  uint64_t earlier_bytes_ = 0, total_bytes_ = 0, skipped_ = 0;
  uint64_t tsv_lines_ = 0, tsv_wrong_ = 0;
  std::string first_wrong_;  // place and problem of the first malformed TSV line
};

}  // namespace qkv

#include "text/documents.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/expect_error.h"
#include "base/temp_folder.h"

namespace qkv {
namespace {

using Texts = std::vector<std::string>;

Texts read_all(const std::vector<std::string>& files, const SourceOptions& options) {
  DocumentReader reader(files, options);
  Texts out;
  for (Document document; reader.next(document);)
    out.push_back(options.pairs() ? document.text + " => " + document.target : document.text);
  return out;
}

Texts read_text(std::string_view text, const SourceOptions& options) {
  const TempFolder folder;
  return read_all({folder.write("x", text).string()}, options);
}

template <class... Parts>
void expect_refused(std::string_view text, const SourceOptions& options, const Parts&... parts) {
  const TempFolder folder;
  const std::string path = folder.write("数据.txt", text).string();
  expect_error([&] { read_all({path}, options); }, {path, parts...});
}

TEST(DocumentReader, CutsTextAtBlankLines) {
  EXPECT_EQ(read_text("one\ntwo\n\nthree\n", {}), (Texts{"one\ntwo", "three"}));
  EXPECT_EQ(read_text("\n\n one \n \t \n\n\nthree", {}), (Texts{" one ", "three"}));
  EXPECT_EQ(read_text("一\r\n二\r\n\r\n三\r\n", {}), (Texts{"一\n二", "三"}));
  EXPECT_EQ(read_text("", {}), Texts{});
  EXPECT_EQ(read_text("\n\n\n", {}), Texts{});
}

TEST(DocumentReader, CutsTextAtLinesOrFiles) {
  EXPECT_EQ(read_text("one\n\ntwo\r\nthree", {.cut = DocumentCut::line}), (Texts{"one", "two", "three"}));
  const TempFolder folder;
  const auto a = folder.write("a", "one\r\n\ntwo\n").string(), b = folder.write("b", " \n").string();
  const auto c = folder.write("c", "three").string();
  EXPECT_EQ(read_all({a, b, c}, {.cut = DocumentCut::file}), (Texts{"one\r\n\ntwo\n", "three"}));
  EXPECT_EQ(read_all({a, c}, {}), (Texts{"one", "two", "three"}));  // the end of a file ends the document
}

TEST(DocumentReader, AByteOrderMarkIsNoText) {
  EXPECT_EQ(read_text("\xEF\xBB\xBF你好", {.cut = DocumentCut::line}), Texts{"你好"});
  EXPECT_EQ(read_text("\xEF\xBB\xBF你好\tHi\n", {.format = DataFormat::tsv}), Texts{"你好 => Hi"});
}

// Blocks are 256 kB: lines end before, at and after block boundaries.
TEST(DocumentReader, LinesLongerThanABlock) {
  for (const size_t size : std::initializer_list<size_t>{(1 << 18) - 1, 1 << 18, (1 << 18) + 1, 1'000'000}) {
    const std::string line(size, 'x');
    EXPECT_EQ(read_text(line + "\nend\n", {.cut = DocumentCut::line}), (Texts{line, "end"})) << size;
    EXPECT_EQ(read_text(line + "\n\nend", {}), (Texts{line, "end"})) << size;
  }
}

TEST(DocumentReader, ReadsPipes) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text(300'000, 'y');
  std::thread writer([&] {
    for (const std::string& piece : {text, std::string("\n\nthe e"), std::string("nd")})
      EXPECT_EQ(::write(ends[1], piece.data(), piece.size()), std::ssize(piece));
    ::close(ends[1]);
  });
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  DocumentReader reader({path}, {});
  EXPECT_EQ(reader.total_bytes(), 0U);
  Document document;
  EXPECT_TRUE(reader.next(document));
  EXPECT_EQ(document.text, text);
  EXPECT_TRUE(reader.next(document));
  EXPECT_EQ(document.text, "the end");
  EXPECT_FALSE(reader.next(document));
  EXPECT_FALSE(reader.next(document));
  EXPECT_EQ(reader.bytes_read(), text.size() + 9);
  writer.join();
  ::close(ends[0]);
}

TEST(DocumentReader, ReadsJsonl) {
  const SourceOptions plain{.format = DataFormat::jsonl};
  EXPECT_EQ(read_text("{\"text\": \"a\\nb\", \"id\": 1}\n\n{\"text\": \"\\u4f60\"}\r\n", plain), (Texts{"a\nb", "你"}));
  SourceOptions pairs{.format = DataFormat::jsonl, .source_field = "en", .target_field = "zh"};
  EXPECT_EQ(read_text(R"({"en": "hi", "zh": "嗨"})", pairs), Texts{"hi => 嗨"});
  const TempFolder folder;
  DocumentReader reader({folder.write("x", "{\"text\": \"\"}\n{\"text\": \" \"}\n").string()}, plain);
  Document document;
  EXPECT_FALSE(reader.next(document));
  EXPECT_EQ(reader.skipped(), 2U);
}

TEST(DocumentReader, BadJsonlNamesTheLine) {
  const SourceOptions plain{.format = DataFormat::jsonl};
  expect_refused("{\"text\": \"a\"}\n{\"text\": \n", plain, "line 2", "not valid JSON");
  expect_refused("{\"txt\": \"a\"}\n", plain, "line 1", "no field 'text'");
  expect_refused("{\"text\": 7}\n", plain, "line 1", "number", "must be a text");
  expect_refused("[1]\n", plain, "line 1", "must be a JSON object");
  expect_refused(std::string(100'000, '['), plain, "line 1", "nested");
  expect_error([] { DocumentReader({}, {.format = DataFormat::jsonl, .source_field = "en"}); }, {"target field"});
}

TEST(DocumentReader, BadTsvNamesTheLine) {
  const SourceOptions tsv{.format = DataFormat::tsv};
  EXPECT_EQ(read_text("a b\tc\r\n\nd\te", tsv), (Texts{"a b => c", "d => e"}));
  expect_refused("a\tb\nnone\n", tsv, "line 2", "1 column but");
  expect_refused("a\tb\tc\n", tsv, "line 1", "3 columns");
  expect_refused("a\tb\n\n \tc\n", tsv, "line 3", "the source is empty");
  expect_refused("a\t\n", tsv, "line 1", "the target is empty");
}

TEST(DocumentReader, LeavesOutOneTsvLineInAHundred) {
  const SourceOptions tsv{.format = DataFormat::tsv};
  std::string good;
  for (int i = 0; i < 99; ++i) good += "a\tb\n";
  EXPECT_EQ(read_text("a\tb\tc\n" + good, tsv).size(), 99U);
  EXPECT_EQ(read_text(good + "alone\n" + good + "x\t\n", tsv).size(), 198U);
  expect_refused("a\tb\tc\n" + good + "alone\n", tsv, "line 1", "3 columns", "2 of 101 lines");
  std::string none;
  for (int i = 0; i < 300; ++i) none += "alone\n";
  expect_refused(none, tsv, "line 1", "1 column", "101 of 101 lines");
}

TEST(DocumentReader, WhatIsNotUtf8NamesItsLine) {
  expect_refused("one\n\ntwo\nth\xC4ree\n", {}, "line 4", "not UTF-8", "\\xc4");
  expect_refused("\xC4\xE3\xBA\xC3\n", {.cut = DocumentCut::line}, "line 1", "not UTF-8");  // 你好 in GBK
  expect_refused("ok\nbad \xED\xA0\x80\n", {.cut = DocumentCut::file}, "line 2", "not UTF-8");
  expect_refused("a\tb\xFF\n", {.format = DataFormat::tsv}, "line 1", "not UTF-8");
}

TEST(DocumentReader, TooLongADocumentIsAnErrorNotMemory) {
  const SourceOptions by_line{.cut = DocumentCut::line, .max_bytes = 1000};
  EXPECT_EQ(read_text(std::string(1000, 'x'), by_line).size(), 1U);
  expect_refused("one\n" + std::string(1001, 'x'), by_line, "line 2", "longer than 1000 bytes");
  const std::string paragraph = std::string(500, 'x') + "\n" + std::string(499, 'y');
  EXPECT_EQ(read_text(paragraph, {.max_bytes = 1000}), Texts{paragraph});
  expect_refused("a\n\n" + paragraph + "zz\n", {.max_bytes = 1000}, "line 4", "longer than 1000 bytes");
  expect_refused(paragraph + "zz", {.cut = DocumentCut::file, .max_bytes = 1000}, "longer than 1000 bytes");
  // An endless line: an Error as soon as the limit is reached.
  expect_error([] { read_all({"/dev/zero"}, {.max_bytes = 1 << 20}); }, {"/dev/zero", "line 1", "1048576"});
}

TEST(DocumentReader, MissingFilesAndFoldersAreErrorsAtOnce) {
  const TempFolder folder;
  expect_error([&] { DocumentReader({folder.path().string()}, {}); }, {"is a folder"});
  expect_error([&] { DocumentReader({(folder.path() / "none").string()}, {}); }, {"none", "No such file"});
}

}  // namespace
}  // namespace qkv

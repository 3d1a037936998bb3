#include "data/dataset_pack.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "base/expect_error.h"
#include "data/dataset_bytes.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

int entries(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), {}));
}

std::string document(int i) {
  return "文" + std::to_string(i) + std::string(static_cast<size_t>(i * 7 % 23), 'x');
}

std::string documents(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += document(i) + "\n\n";
  return text;
}

TEST(Pack, KeepsDocumentsInOrder) {
  const TempFolder folder;
  const auto a = folder.write("a", "one\n\ntwo\nlines\n"), b = folder.write("b", "三");
  const Packed packed = pack_bytes({.files = {a.string(), b.string()}, .out = folder.path() / "out"});
  const PackedDataset data(folder.path() / "out");
  const PackedSplit& train = data.of(Split::train);
  EXPECT_EQ(row_of(train), "one|two\nlines|三|");
  EXPECT_EQ(train.documents(), 3U);
  EXPECT_EQ(train.text_bytes(), 3U + 9 + 3);
  EXPECT_EQ(train.start(0), 0U);
  EXPECT_EQ(train.start(1), 4U);
  EXPECT_EQ(train.start(2), 14U);
  EXPECT_EQ(train.start(3), 18U);
  EXPECT_EQ(train.entry_at(3), 0U);
  EXPECT_EQ(train.entry_at(4), 1U);
  EXPECT_EQ(train.entry_at(17), 2U);
  EXPECT_EQ(data.of(Split::validation).tokens(), 0U);
  EXPECT_EQ(data.manifest().tokenizer, "test bytes");
  EXPECT_EQ(data.manifest().end_token, kByteEnd);
  EXPECT_EQ(data.manifest().begin_token, std::nullopt);
  EXPECT_EQ(to_json_text(data.manifest()), to_json_text(packed.manifest));
  EXPECT_EQ(entries(folder.path()), 3);  // no temporaries
}

TEST(Pack, ManyShardsReadAsOneRow) {
  const TempFolder folder;
  const auto file = folder.write("x", documents(100));
  pack_bytes({.files = {file.string()}, .out = folder.path() / "one"});
  pack_bytes({.files = {file.string()}, .out = folder.path() / "many", .shard_bytes = 600});
  const PackedDataset one(folder.path() / "one"), many(folder.path() / "many");
  ASSERT_EQ(one.manifest().of(Split::train).shards.size(), 1U);
  ASSERT_GT(many.manifest().of(Split::train).shards.size(), 4U);
  const PackedSplit &a = one.of(Split::train), &b = many.of(Split::train);
  EXPECT_EQ(row_of(a), row_of(b));
  ASSERT_EQ(a.entries(), b.entries());
  for (uint64_t i = 0; i <= a.entries(); ++i) EXPECT_EQ(a.start(i), b.start(i));
  for (uint64_t t = 0; t < a.tokens(); ++t) {
    EXPECT_EQ(a.entry_at(t), b.entry_at(t));
    EXPECT_LE(b.start(b.entry_at(t)), t);
    EXPECT_GT(b.start(b.entry_at(t) + 1), t);
  }
  std::vector<int32_t> x(150), y(150);
  for (uint64_t t = 0; t + x.size() <= a.tokens(); t += 13) {
    a.copy(t, x);
    b.copy(t, y);
    EXPECT_EQ(x, y) << t;
  }
}

TEST(Pack, LargeVocabulariesTakeFourBytes) {
  const TempFolder folder;
  const auto file = folder.write("x", documents(10));
  for (const auto& [vocabulary, bytes] : {std::pair{65'536, 2}, {65'537, 4}}) {
    const fs::path out = folder.path() / std::to_string(vocabulary);
    pack_bytes({.files = {file.string()}, .out = out}, vocabulary);
    const PackedDataset data(out);
    EXPECT_EQ(fs::file_size(out / "train-00000.tokens"), data.of(Split::train).tokens() * static_cast<uint64_t>(bytes));
    EXPECT_EQ(row_of(data.of(Split::train)).substr(0, 10), (document(0) + '|' + document(1)).substr(0, 10));
  }
}

TEST(Pack, PairsAreTwoEntries) {
  const TempFolder folder;
  const auto file = folder.write("x.tsv", "one\t一\ntwo\t二\n");
  pack_bytes({.files = {file.string()}, .out = folder.path() / "out", .source = {.format = DataFormat::tsv}});
  const PackedDataset data(folder.path() / "out");
  const PackedSplit& train = data.of(Split::train);
  EXPECT_TRUE(train.pairs());
  EXPECT_EQ(row_of(train), "one|一|two|二|");
  EXPECT_EQ(train.documents(), 2U);
  EXPECT_EQ(train.entries(), 4U);
  EXPECT_EQ(train.text_bytes(), 12U);
}

TEST(Pack, TheSameBytesWithAnyNumberOfThreads) {
  const TempFolder folder;
  const auto file = folder.write("x", documents(5000));
  for (const int threads : {1, 3}) {
    pack_bytes({.files = {file.string()}, .out = folder.path() / std::to_string(threads), .validation = 0.1}, 257,
               threads);
  }
  for (const char* name : {"manifest.json", "train-00000.tokens", "train-00000.index", "validation-00000.tokens"})
    EXPECT_EQ(read_file(folder.path() / "1" / name, 1 << 24), read_file(folder.path() / "3" / name, 1 << 24)) << name;
}

std::multiset<std::string> documents_of(const PackedSplit& split) {
  std::multiset<std::string> out;
  for (uint64_t i = 0; i < split.entries(); ++i) {
    std::vector<int32_t> ids(split.length(i));
    split.copy(split.start(i), ids);
    out.insert(text_of(ids));
  }
  return out;
}

TEST(Pack, ValidationIsDisjointAndAFunctionOfTheSeed) {
  const TempFolder folder;
  const auto file = folder.write("x", documents(3000) + documents(3000));  // every text twice
  const auto packed = [&](const char* name, uint64_t seed) {
    pack_bytes({.files = {file.string()}, .out = folder.path() / name, .validation = 0.1, .seed = seed});
    return std::make_unique<PackedDataset>(folder.path() / name);
  };
  const auto a = packed("a", 1), b = packed("b", 1), c = packed("c", 2);
  const auto train = documents_of(a->of(Split::train)), validation = documents_of(a->of(Split::validation));
  EXPECT_EQ(train.size() + validation.size(), 6000U);
  EXPECT_NEAR(static_cast<double>(validation.size()), 600.0, 140.0);  // 4 standard deviations of 2 * binomial
  for (const std::string& text : validation) {
    EXPECT_EQ(train.count(text), 0U) << text;
    EXPECT_EQ(validation.count(text), 2U) << text;  // both copies in the same split
  }
  EXPECT_EQ(documents_of(b->of(Split::validation)), validation);
  EXPECT_NE(documents_of(c->of(Split::validation)), validation);
}

TEST(Pack, RefusesWhatIsThereAndWhatIsEmpty) {
  const TempFolder folder;
  const auto file = folder.write("x", "text"), empty = folder.write("empty", "\n\n");
  const auto out = folder.path() / "out";
  fs::create_directory(out);
  expect_error([&] { pack_bytes({.files = {file.string()}, .out = out}); }, {out.string(), "exists already"});
  fs::remove(out);
  expect_error([&] { pack_bytes({.files = {empty.string()}, .out = out}); }, {"no documents"});
  expect_error([&] { pack_bytes({.files = {}, .out = out}); }, {"no files"});
  expect_error([&] { pack_bytes({.files = {file.string()}, .out = out, .validation = 1.0}); }, {"is 1"});
  expect_error([&] { pack_bytes({.files = {file.string()}, .out = out}, 100); }, {"256", "vocabulary has 100"});
  EXPECT_EQ(entries(folder.path()), 2);  // nothing remains, not even temporaries
}

TEST(Pack, ABadLineLeavesNothing) {
  const TempFolder folder;
  const auto file = folder.write("x.tsv", "a\tb\nbroken\n");
  const auto out = folder.path() / "out";
  expect_error([&] { pack_bytes({.files = {file.string()}, .out = out, .source = {.format = DataFormat::tsv}}); },
               {file.string(), "line 2"});
  EXPECT_EQ(entries(folder.path()), 1);
}

// The child packs from an endless pipe and is killed in the middle.
TEST(Pack, AKilledRunLeavesNothingThatLooksFinished) {
  const TempFolder folder;
  const auto out = folder.path() / "out";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      pack_bytes({.files = {"/dev/fd/" + std::to_string(ends[0])}, .out = out, .shard_bytes = 20'000});
    } catch (...) {
    }
    ::_exit(0);
  }
  const std::string text = documents(1000);
  size_t shards = 0;
  for (int i = 0; i < 2000 && shards < 4; ++i) {  // until the child has written some
    ASSERT_EQ(::write(ends[1], text.data(), text.size()), std::ssize(text));
    shards = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
      shards += entry.path().extension() == ".tokens";
  }
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_GE(shards, 4U);
  EXPECT_FALSE(fs::exists(out));
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    EXPECT_NE(entry.path().filename(), "manifest.json");
  const auto file = folder.write("x", "text");
  pack_bytes({.files = {file.string()}, .out = out});  // leftovers do not matter
  EXPECT_EQ(row_of(PackedDataset(out).of(Split::train)), "text|");
}

TEST(Pack, AFullDiskIsAnErrorAndLeavesNothing) {
  const TempFolder folder;
  const auto file = folder.write("x", documents(2000));
  std::fflush(nullptr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20'000, 20'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto error = error_of([&] { pack_bytes({.files = {file.string()}, .out = folder.path() / "out"}); });
    ::_exit(error && error->message().find(std::strerror(EFBIG)) != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(entries(folder.path()), 1);
}

class DamagedDataset : public testing::Test {
 protected:
  void SetUp() override {
    const auto file = folder_.write("x", documents(50));
    pack_bytes({.files = {file.string()}, .out = out_, .shard_bytes = 600});
    manifest_ = read_file(out_ / "manifest.json", 1 << 20);
  }
  void rewrite(const fs::path& name, std::string_view text) {
    write_file_atomic(out_ / name, std::as_bytes(std::span(text)));
  }
  void expect_refused(std::initializer_list<std::string_view> parts) {
    expect_error([&] { PackedDataset{out_}; }, parts);
  }
  void expect_manifest_refused(std::string_view from, std::string_view to,
                               std::initializer_list<std::string_view> parts) {
    std::string text = manifest_;
    const size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << from;
    rewrite("manifest.json", text.replace(at, from.size(), to));
    SCOPED_TRACE(to);
    expect_refused(parts);
  }
  TempFolder folder_;
  fs::path out_ = folder_.path() / "out";
  std::string manifest_;
};

TEST_F(DamagedDataset, FilesCutOrMissing) {
  const std::string tokens = read_file(out_ / "train-00001.tokens", 1 << 20);
  for (const size_t size : {size_t{0}, tokens.size() - 1, tokens.size() - 2}) {
    rewrite("train-00001.tokens", tokens.substr(0, size));
    expect_refused({"train-00001.tokens", std::to_string(size) + " bytes", std::to_string(tokens.size())});
  }
  rewrite("train-00001.tokens", tokens);
  const std::string index = read_file(out_ / "train-00002.index", 1 << 20);
  rewrite("train-00002.index", index + '\0');
  expect_refused({"train-00002.index", std::to_string(index.size())});
  fs::remove(out_ / "train-00002.index");
  expect_refused({"train-00002.index"});
  fs::remove(out_ / "manifest.json");
  expect_refused({"no manifest.json"});
}

TEST_F(DamagedDataset, IndexThatDoesNotRise) {
  const std::string good = read_file(out_ / "train-00000.index", 1 << 20);
  const auto with = [&](size_t entry, uint32_t value) {
    std::string bad = good;
    std::memcpy(bad.data() + 4 * entry, &value, 4);
    rewrite("train-00000.index", bad);
  };
  with(0, 1);
  expect_refused({"train-00000.index", "from 1"});
  with(good.size() / 4 - 1, UINT32_MAX);
  expect_refused({"train-00000.index", "4294967295"});
  with(2, UINT32_MAX);
  expect_refused({"train-00000.index", "has no tokens"});
  with(2, 0);
  expect_refused({"train-00000.index", "has no tokens"});
  uint32_t first_end = 0;
  std::memcpy(&first_end, good.data() + 4, 4);
  with(2, first_end);
  expect_refused({"train-00000.index", "entry 1 has no tokens"});
}

TEST_F(DamagedDataset, ManifestsThatLie) {
  expect_manifest_refused("\"version\": 1", "\"version\": 2", {"version is 2"});
  expect_manifest_refused("qkv-data", "other", {"format is 'other'"});
  expect_manifest_refused("\"text\"", "\"texts\"", {"kind is 'texts'"});
  expect_manifest_refused("\"u16\"", "\"u32\"", {"dtype is 'u32'"});
  expect_manifest_refused("\"vocabulary\": 257", "\"vocabulary\": 16777217", {"vocabulary is 16777217"});
  expect_manifest_refused("\"end_token\": 256", "\"end_token\": 257", {"end_token is 257"});
  expect_manifest_refused("train-00001", "../../secret", {"shard 1", "file is '../../secret'"});
  expect_manifest_refused("\"documents\": 50", "\"documents\": 51", {"51"});
  expect_manifest_refused("\"documents\": 50", "\"documents\": -1", {"documents must be a number"});
  expect_manifest_refused("\"text_bytes\"", "\"bytes\"", {"text_bytes is missing"});
  expect_manifest_refused("\"shards\": [", "\"shards\": [[", {"not valid JSON"});
  // Overflowing sums: two shards whose sizes add up to the totals modulo 2^64.
  std::string text = manifest_;
  const auto number_after = [&](size_t from, std::string_view key) {
    const size_t at = text.find(key, from) + key.size();
    return std::pair(at, text.find_first_of(",\n", at) - at);
  };
  const auto [at, size] = number_after(text.find("train-00000"), "\"tokens\": ");
  rewrite("manifest.json", text.replace(at, size, "18446744073709551615"));
  expect_refused({"does not fit in 64 bits"});
}

TEST_F(DamagedDataset, TokensBeyondTheVocabularyAndFlippedBits) {
  std::string tokens = read_file(out_ / "train-00001.tokens", 1 << 20);
  tokens[5] = static_cast<char>(tokens[5] ^ 0x40);  // the high byte of the third token
  rewrite("train-00001.tokens", tokens);
  const PackedDataset data(out_);
  expect_error([&] { row_of(data.of(Split::train)); }, {"train-00001.tokens", "vocabulary has 257"});
  const auto damaged = data.of(Split::train).damaged_files([](uint64_t) {});
  ASSERT_EQ(damaged.size(), 1U);
  EXPECT_NE(damaged[0].find("train-00001.tokens"), std::string::npos);
}

TEST_F(DamagedDataset, NoneIsDamagedAtFirst) {
  const PackedDataset data(out_);
  uint64_t bytes = 0;
  EXPECT_TRUE(data.of(Split::train).damaged_files([&](uint64_t done) { bytes = done; }).empty());
  EXPECT_EQ(bytes, data.of(Split::train).tokens() * 2 + 4 * (50 + data.manifest().of(Split::train).shards.size()));
}

}  // namespace
}  // namespace qkv

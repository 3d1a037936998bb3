#include "text/tokenizer/training/unigram_trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <unordered_map>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/philox.h"
#include "support/pass.h"
#include "support/peak_memory.h"
#include "text/tokenizer/training/bpe_trainer.h"
#include "text/tokenizer/training/unigram_corpus.h"
#include "text/unicode/characters.h"

namespace qkv {
namespace {

using Scores = std::map<std::string, double>;

Scores scores_of(const TrainedUnigram& model) {
  Scores scores;
  for (const UnigramPiece& piece : model.pieces) EXPECT_TRUE(scores.emplace(piece.text, piece.score).second);
  return scores;
}

// Calls visit with every segmentation of the word into pieces, and its score.
void each_segmentation(const std::string& word, const Scores& scores, std::vector<std::string>& path, double score,
                       const std::function<void(const std::vector<std::string>&, double)>& visit) {
  if (word.empty()) return visit(path, score);
  for (size_t bytes = 1; bytes <= word.size(); ++bytes) {
    const auto piece = scores.find(word.substr(0, bytes));
    if (piece == scores.end()) continue;
    path.push_back(piece->first);
    each_segmentation(word.substr(bytes), scores, path, score + piece->second, visit);
    path.pop_back();
  }
}

// The log-probability of the text, summed over all segmentations.
double log_likelihood(const Scores& scores, std::string_view text) {
  const std::unordered_map<std::string_view, double> lookup(scores.begin(), scores.end());
  std::vector<double> log_before(text.size() + 1, -INFINITY);
  log_before[0] = 0;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    if (log_before[begin] == -INFINITY) continue;
    for (size_t end = begin + 1; end <= std::min(text.size(), begin + 64); ++end) {
      const auto piece = lookup.find(text.substr(begin, end - begin));
      if (piece == lookup.end()) continue;
      const double a = log_before[end], b = log_before[begin] + piece->second;
      log_before[end] = std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
      if (a == -INFINITY) log_before[end] = b;
    }
  }
  return log_before[text.size()];
}

std::string with_marks(std::string_view text) {
  std::string marked;
  for (const char c : text) marked += c == ' ' ? std::string("\u2581") : std::string(1, c);
  return marked;
}

WordCounts words_of(std::string_view text, ThreadPool& pool) {
  WordCounter counter({}, pool);
  counter.add_text(text);
  return counter.take();
}

WordCounts toy() {
  WordCounts words;
  words.add("abab", 5);
  words.add("abc", 3);
  words.add(" bca", 7);
  words.add("人民人", 2);
  return words;
}

TEST(UnigramCorpus, ExpectationsEqualEverySegmentationByHand) {
  ThreadPool pool(2);
  const WordCounts words = toy();
  const UnigramCorpus corpus(words, {});
  Scores scores;
  std::vector<double> probability(corpus.pieces());
  std::vector<std::string> texts;
  for (uint32_t piece = 0; piece < corpus.pieces(); ++piece) {
    texts.push_back(corpus.text(piece));
    probability[piece] = 0.02 + 0.01 * piece;
    scores[texts.back()] = std::log(probability[piece]);
  }
  // Strings at two positions, whole words seen twice, every character.
  const std::set<std::string> right = {"a",  "b",  "c",    "\u2581", "人",        "民",
                                       "ab", "bc", "abab", "abc",    "\u2581bca", "人民人"};
  EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()), right);

  std::map<std::string, double> expected_by_hand;
  double log_by_hand = 0;
  for (const Word& word : words.words()) {
    const std::string marked = with_marks(word.text);
    const auto count = static_cast<double>(word.count);
    std::vector<std::string> path;
    double total = 0;
    each_segmentation(marked, scores, path, 0, [&](const auto&, double score) { total += std::exp(score); });
    each_segmentation(marked, scores, path, 0, [&](const auto& pieces, double score) {
      for (const std::string& piece : pieces) expected_by_hand[piece] += count * std::exp(score) / total;
    });
    log_by_hand += count * std::log(total);
  }
  std::vector<double> expected(corpus.pieces());
  EXPECT_NEAR(corpus.add_expected_counts(probability, expected, pool), log_by_hand, 1e-9 * std::abs(log_by_hand));
  for (uint32_t piece = 0; piece < corpus.pieces(); ++piece) {
    EXPECT_NEAR(expected[piece], expected_by_hand[texts[piece]], 1e-12) << texts[piece];
  }
}

// "wxyz" occurs in one word only: it is a seed as a whole word, if the longest piece may have four characters.
TEST(UnigramCorpus, AWordOfExactlyTheLongestLengthIsASeed) {
  WordCounts words;
  words.add("wxyz", 2);
  words.add("abcde", 2);
  const auto has = [&](const std::string& text, uint32_t longest) {
    const UnigramCorpus corpus(words, {.longest = longest});
    for (uint32_t piece = 0; piece < corpus.pieces(); ++piece) {
      if (corpus.text(piece) == text) return true;
    }
    return false;
  };
  EXPECT_FALSE(has("wxyz", 3));
  EXPECT_TRUE(has("wxyz", 4)) << "four characters are not more than four";
  EXPECT_FALSE(has("abcde", 4));
  EXPECT_TRUE(has("abcde", 5));
}

TEST(UnigramCorpus, BestPathsAreTheBestByHand) {
  ThreadPool pool(1);
  const WordCounts words = toy();
  const UnigramCorpus corpus(words, {});
  Scores scores;
  std::vector<double> score(corpus.pieces());
  for (uint32_t piece = 0; piece < corpus.pieces(); ++piece) {
    score[piece] = -1 - 10 * static_cast<double>(uniform01(random_u32({4, 2}, 0, piece)));
    scores[corpus.text(piece)] = score[piece];
  }
  std::map<std::string, double> times, without;
  const auto best_of = [&](const std::string& word, const Scores& allowed) {
    std::vector<std::string> path, best;
    double best_score = -INFINITY;
    each_segmentation(word, allowed, path, 0, [&](const auto& pieces, double total) {
      if (total > best_score) best = pieces, best_score = total;
    });
    return best;
  };
  for (const Word& word : words.words()) {
    for (const std::string& piece : best_of(with_marks(word.text), scores)) times[piece] += double(word.count);
  }
  std::vector<UnigramCorpus::Use> use(corpus.pieces());
  corpus.add_best_path_use(score, use, pool);
  for (uint32_t piece = 0; piece < corpus.pieces(); ++piece) {
    const std::string text = corpus.text(piece);
    EXPECT_EQ(use[piece].times, times[text]) << text;
    Scores others = scores;
    others.erase(text);
    std::vector<std::string> path;
    for (const uint32_t other : corpus.best_split_of(piece, score)) path.insert(path.begin(), corpus.text(other));
    EXPECT_EQ(path, best_of(text, others)) << text;
  }
}

TEST(UnigramTrainer, CoversEveryCharacterAndSumsToOne) {
  QKV_NEED_SHARED(folder, "text");
  const std::string text =
      read_file(folder / "en/tinyshakespeare.txt", 10'000'000).substr(0, 100'000) + "罕   \xF0\x9F\x91\x8D once";
  ThreadPool pool(2);
  const TrainedUnigram model = train_unigram(words_of(text, pool), {.pieces = 600}, pool);
  EXPECT_EQ(model.pieces.size(), 600U);
  const Scores scores = scores_of(model);
  for (const char* once : {"罕", "\xF0\x9F\x91\x8D", "\u2581", "\n", "e"}) EXPECT_TRUE(scores.contains(once)) << once;
  double sum = 0;
  for (const auto& [piece, score] : scores) {
    sum += std::exp(score);
    EXPECT_EQ(piece.find("\u2581", 1), std::string::npos) << piece;  // a space is only at the start of a piece
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_GT(log_likelihood(scores, with_marks(text)), -INFINITY);
}

TEST(UnigramTrainer, NoPieceIsLongerThanAsked) {
  ThreadPool pool(2);
  std::string text;
  for (int i = 0; i < 40; ++i) text += "在自己的花园里种了一棵树。她在自己的花园里。 gardening gardens\n";
  const auto longest = [&](size_t asked) {
    size_t most = 0;
    for (const UnigramPiece& piece :
         train_unigram(words_of(text, pool), {.pieces = 60, .max_token_length = asked}, pool).pieces) {
      size_t characters = 0;
      for (const char c : piece.text) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
      most = std::max(most, characters);
    }
    return most;
  };
  EXPECT_GT(longest(0), 4U);
  EXPECT_EQ(longest(2), 2U);
  EXPECT_EQ(longest(4), 4U);
}

TEST(UnigramTrainer, IsAtLeastAsGoodAsHuggingFaceOnTheirText) {
  QKV_NEED_SHARED(folder, "tokenizers/small");
  const Json theirs = parse_json(read_file(folder / "unigram/tokenizer.json", 10'000'000), "tokenizer.json");
  Scores their_scores;
  for (const Json& piece : theirs.at("model").at("vocab")) their_scores[piece[0]] = piece[1];
  for (const char* special : {"<pad>", "</s>", "<unk>"}) their_scores.erase(special);

  // As normalized by the reference: full-width characters made narrow. Each line is a separate text.
  std::string text = " " + read_file(folder / "training_text.txt", 1'000'000);
  for (const auto& [from, to] : {std::pair{"，", ","}, {"；", ";"}, {"\n", " "}}) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;) {
      text.replace(at, std::string_view(from).size(), to);
    }
  }
  ASSERT_GT(log_likelihood(their_scores, with_marks(text)), -INFINITY);
  ThreadPool pool(2);
  const TrainedUnigram model = train_unigram(words_of(text, pool), {.pieces = their_scores.size()}, pool);
  ASSERT_LE(model.pieces.size(), their_scores.size());
  const double ours = log_likelihood(scores_of(model), with_marks(text));
  EXPECT_GE(ours, log_likelihood(their_scores, with_marks(text)));
  EXPECT_NEAR(ours, model.log_likelihood, 1e-9 * std::abs(ours));
}

// Baseline: a unigram model over BPE's vocabulary of the same size, with BPE's token frequencies.
TEST(UnigramTrainer, IsAtLeastAsGoodAsBpe) {
  QKV_NEED_SHARED(folder, "text");
  const std::string text = read_file(folder / "en/tinyshakespeare.txt", 10'000'000).substr(0, 200'000);
  ThreadPool pool(2);
  const WordCounts words = words_of(text, pool);
  const size_t characters = std::set<char>(text.begin(), text.end()).size();
  constexpr size_t kLearnt = 1000;
  const BpeModel bpe = train_bpe(words_of(text, pool), {.vocab = 256 + kLearnt});
  std::map<std::pair<std::string, std::string>, size_t> rank;
  for (size_t i = 0; i < bpe.merges.size(); ++i) {
    rank[{bpe.tokens[bpe.merges[i].first], bpe.tokens[bpe.merges[i].second]}] = i;
  }
  std::map<std::string, double> times;
  double all = 0;
  for (const Word& word : words.words()) {
    std::vector<std::string> tokens;
    for (const char c : word.text) tokens.emplace_back(1, c);
    while (true) {
      size_t best = SIZE_MAX, at = 0;
      for (size_t i = 0; i + 1 < tokens.size(); ++i) {
        const auto merge = rank.find({tokens[i], tokens[i + 1]});
        if (merge != rank.end() && merge->second < best) best = merge->second, at = i;
      }
      if (best == SIZE_MAX) break;
      tokens[at] += tokens[at + 1];
      tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(at) + 1);
    }
    for (const std::string& token : tokens) times[token] += double(word.count), all += double(word.count);
  }
  double bpe_log_likelihood = 0;
  for (const auto& [token, count] : times) bpe_log_likelihood += count * std::log(count / all);
  const TrainedUnigram model = train_unigram(words, {.pieces = kLearnt + characters}, pool);
  EXPECT_GE(model.log_likelihood, bpe_log_likelihood);
}

TEST(UnigramTrainer, SameBitsForAnyNumberOfThreads) {
  std::string text;
  for (uint64_t i = 0; i < 60'000; ++i) text += "aabcde \n"[random_u32({5, 1}, 0, i) % 8];
  std::vector<std::pair<std::string, double>> first;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    std::vector<std::pair<std::string, double>> pieces;
    for (const auto& [piece, score] : train_unigram(words_of(text, pool), {.pieces = 150}, pool).pieces) {
      pieces.emplace_back(piece, score);
    }
    if (threads == 1) first = pieces;
    EXPECT_EQ(pieces.size(), 150U);
    EXPECT_EQ(pieces, first) << threads;
  }
}

TEST(UnigramTrainer, ExtremeCounts) {
  WordCounts words;
  words.add("ab", uint64_t{1} << 62);
  words.add("xyzw", 1);
  std::string rare;
  for (char c = '!'; c < '!' + 24; ++c) rare += c;  // 24 characters seen once in 2^63
  words.add(rare, 1);
  ThreadPool pool(1);
  const TrainedUnigram model = train_unigram(words, {.pieces = 40}, pool);
  EXPECT_TRUE(std::isfinite(model.log_likelihood));
  const Scores scores = scores_of(model);
  EXPECT_GT(scores.at("ab"), -0.1);
}

TEST(UnigramTrainer, BadCorpora) {
  ThreadPool pool(1);
  expect_error([&] { train_unigram(toy(), {.pieces = 5}, pool); }, {"5 pieces", "6 characters"});
  EXPECT_TRUE(train_unigram({}, {.pieces = 100}, pool).pieces.empty());
  WordCounts stray;
  stray.add("a\xFF\xFE", 3);
  const TrainedUnigram model = train_unigram(stray, {.pieces = 100}, pool);
  EXPECT_EQ(model.stray_bytes, 6U);
  EXPECT_TRUE(scores_of(model).contains("\xEF\xBF\xBD"));
}

// Too many characters are refused before the corpus is made, which takes a hundred times the memory of the words.
TEST(UnigramTrainer, TooManyCharactersAreRefusedBeforeTheWork) {
  WordCounts words;
  for (uint32_t code = 0x4E00; code < 0x4E00 + 20'000; ++code) {
    std::string word;
    for (uint32_t i = 0; i < 24; ++i) word += utf8_of(0x4E00 + (code * 7 + i * 131) % 20'000);
    words.add(word, 2);
  }
  EXPECT_EQ(distinct_characters(words), 20'000U);
  ThreadPool pool(1);
  expect_error([&] { train_unigram(words, {.pieces = 19'999}, pool); }, {"19999", "20000 characters"});
  bool refused = false;
  const size_t peak = test::peak_memory([&] { train_unigram(words, {.pieces = 19'999}, pool); }, &refused);
  EXPECT_TRUE(refused);
  EXPECT_LE(peak, size_t{8} << 20);
}

TEST(UnigramTrainer, CountsCharactersAsItsCorpusDoes) {
  WordCounts words;
  for (const char* word : {" a\u2581", "b\xFF\uFFFD", "a b"}) words.add(word);
  EXPECT_EQ(distinct_characters(words), 4U);  // a, b, the space and U+FFFD
}

}  // namespace
}  // namespace qkv

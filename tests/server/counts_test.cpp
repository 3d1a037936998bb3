// What the server counts: texts that wait, calls of a stream, times.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "infer/scheduler.h"
#include "server/answers/answer.h"
#include "server/metrics.h"
#include "server/models/embedding_queue.h"
#include "support/pass.h"

namespace qkv::server {
namespace counts_test {

// Texts of a job that were in a pass already do not wait any more, and are not taken back a second time.
TEST(ServerCounts, ACancelledJobGivesBackWhatStillWaits) {
  const OpenModel model(test::golden("llama").string(), {.threads = 1});
  const std::vector<int32_t> text{1, 5, 7, 2, 9};
  for (const int passes : {0, 1, 2}) {
    EmbeddingQueue queue(model, 8, 4);  // one text a pass, four may wait
    const EmbeddingQueue::Job three{.texts = {text, text, text}, .on_end = [](const Vectors&, std::exception_ptr) {}};
    const EmbeddingQueue::Ticket ticket = queue.submit(three);
    EXPECT_THROW(queue.submit(three), QueueFull);
    for (int n = 0; n < passes; ++n) EXPECT_TRUE(queue.step());
    queue.cancel(ticket);
    EXPECT_FALSE(queue.step()) << "nothing is left after " << passes << " passes";
    size_t made = 0;
    const EmbeddingQueue::Job six{.texts = {text, text, text, text, text, text},
                                  .on_end = [&](const Vectors& vectors, std::exception_ptr) { made = vectors.size(); }};
    EXPECT_NO_THROW(queue.submit(six)) << "an empty queue takes any job, after " << passes << " passes";
    EXPECT_THROW(queue.submit(three), QueueFull);
    while (queue.step()) {
    }
    EXPECT_EQ(made, 6U);
    EXPECT_NO_THROW(queue.submit(three));
  }
}

// The calls of a stream are numbered through, whatever pieces they come in; each text has its own numbers.
TEST(ServerCounts, CallsOfAStreamAreNumberedThrough) {
  const std::unique_ptr<AnswerForm> form =
      chat_form({.id = "1", .model = "m", .tokenizer = Tokenizer::load(test::golden("tokenizers/qwen2"))});
  const std::vector<WrittenChoice> choices{{.index = 0}, {.index = 1}};
  form->begin(choices);
  const auto indices = [&](size_t choice, size_t calls) {
    AnswerPiece piece;
    for (size_t n = 0; n < calls; ++n) piece.calls.push_back({.id = "c", .name = "f", .arguments = "{}"});
    const std::string event = form->add(choices[choice], piece);
    const Json chunk = parse_json(event.substr(std::string_view("data: ").size()), "an event");
    std::vector<int64_t> found;
    for (const Json& call : chunk["choices"][0]["delta"]["tool_calls"]) found.push_back(call["index"]);
    return found;
  };
  EXPECT_EQ(indices(0, 1), (std::vector<int64_t>{0}));
  EXPECT_EQ(indices(0, 2), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(indices(1, 1), (std::vector<int64_t>{0}));
  EXPECT_EQ(indices(0, 1), (std::vector<int64_t>{3}));
}

// Prometheus' "le" is less or equal: a time on the edge is below it.
TEST(ServerCounts, ATimeOnAnEdgeIsInTheBucketBelow) {
  Histogram times;
  times.add(0.005);
  times.add(0.0050001);
  times.add(30);
  times.add(31);
  const std::string text = times.text("t", "m=\"x\"");
  for (const char* line :
       {"t_bucket{m=\"x\",le=\"0.0025\"} 0\n", "t_bucket{m=\"x\",le=\"0.005\"} 1\n",
        "t_bucket{m=\"x\",le=\"0.01\"} 2\n", "t_bucket{m=\"x\",le=\"10\"} 2\n", "t_bucket{m=\"x\",le=\"30\"} 3\n",
        "t_bucket{m=\"x\",le=\"+Inf\"} 4\n", "t_count{m=\"x\"} 4\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace counts_test
}  // namespace qkv::server

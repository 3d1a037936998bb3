// One request while its texts are written.
//
//   engine's thread   the scheduler's callbacks put tokens and texts into the mailbox
//   writer's thread   takes them out, reads tool calls, makes JSON, hands bytes to the exchange
// Neither waits for the other, and nobody waits for the client.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "server/answers/answer.h"
#include "server/http/http.h"
#include "server/look/generation_look.h"
#include "server/metrics.h"
#include "server/requests/generation_request.h"
#include "server/work_queue.h"

namespace qkv::server {

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  struct Parts {
    ServedModel& model;
    std::shared_ptr<Exchange> exchange;
    std::unique_ptr<AnswerForm> form;
    WorkQueue& writer;
    Metrics& metrics;
    std::function<void()> wake;  // the engine
    int32_t owner = 0;           // whose prefixes it may share
    std::chrono::steady_clock::time_point came;
  };
  Generation(GenerationRequest request, Parts parts);

  // Submits all texts, or none: an Error or QueueFull.
  void start();
  void cancel();                      // the client left
  void abort(const ApiError& error);  // ends it with this error

 private:
  using Clock = std::chrono::steady_clock;
  struct Text {  // used by the writer's thread alone
    WrittenChoice choice;
    ToolReader tools;
  };
  struct Mail {
    size_t index = 0;
    std::string text = {};
    std::vector<Choice> tokens = {};
    bool ended = false;
    Ended how = Ended::not_yet;
    std::string error = {};
    int64_t written = 0, cached = 0;
    std::shared_ptr<const LookPart> look = {};  // comes before the text
    bool beside = false;                        // `ended` is not of the text, but of a cut or an attribution of it
  };

  TextRequest text_request_of(size_t index, size_t prompt);
  TextRequest plain_request_of(size_t index, size_t prompt) const;
  TextRequest cut_request_of(size_t index, size_t prompt);
  void submit(TextRequest request);
  void attribute(size_t index, const WrittenText& written);
  void cancel_texts();
  void post(Mail mail);
  void drain();
  void take(Mail& mail);
  void end_text(const Mail& mail);
  void finish();

  GenerationRequest request_;
  Parts parts_;
  std::vector<Text> texts_;
  std::optional<GenerationLook> look_;
  std::vector<std::pair<int32_t, std::string>> marks_;  // of tool calls
  std::shared_ptr<const void> attributions_;            // room for those of its texts
  size_t unfinished_ = 0;
  bool over_ = false;  // the exchange has its answer

  std::mutex mutex_;  // guards what follows
  std::vector<Mail> mailbox_;
  bool draining_ = false, cancelled_ = false;
  std::optional<ApiError> aborted_;
  std::vector<Scheduler::Ticket> tickets_;
};

}  // namespace qkv::server

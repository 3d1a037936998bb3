// Texts to vectors: the states before the head, pooled over the tokens of a text and scaled to length 1.
// Works on encoders, decoders and the encoders of encoder-decoders.
#pragma once

#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "open/open_model.h"

namespace qkv::server {

enum class Pooling { mean, first, last };

using Vectors = std::vector<std::vector<float>>;

class EmbeddingQueue {
 public:
  struct Job {
    std::vector<std::vector<int32_t>> texts;
    Pooling pooling = Pooling::mean;
    std::function<void(Vectors, std::exception_ptr)> on_end;  // once, by step(), unless it is cancelled
  };
  using Ticket = int64_t;

  EmbeddingQueue(const OpenModel& model, int64_t most_rows, size_t most_waiting);
  int64_t most_tokens() const { return most_rows_; }  // of a text
  int64_t bytes() const;                              // of a pass, computed without running one

  // From any thread; QueueFull if too many texts wait.
  Ticket submit(Job job);
  void cancel(Ticket ticket);
  bool step();  // one pass; false if there was nothing to do

 private:
  struct Running {
    Ticket ticket = 0;
    Job job;
    Vectors made;
    size_t next = 0;  // text
  };
  void take_inbox();
  void finish(const std::map<const Running*, std::exception_ptr>& failed);
  std::vector<float> pass(const std::vector<std::vector<int32_t>>& texts);
  Tensor states(Context& cx, const std::vector<int32_t>& ids, const std::vector<int32_t>& lengths) const;

  const OpenModel& model_;
  int64_t most_rows_;
  size_t most_waiting_;
  Arena arena_;
  std::mutex mutex_;  // guards inbox_, cancelled_, waiting_, next_ticket_
  std::list<Running> inbox_;
  std::set<Ticket> cancelled_;
  size_t waiting_ = 0;  // texts
  Ticket next_ticket_ = 1;
  std::list<Running> running_;
};

// What a model's vectors are usually made of: the mean of an encoder's states, the last state of a decoder.
Pooling usual_pooling(const ModelSpec& spec);

}  // namespace qkv::server

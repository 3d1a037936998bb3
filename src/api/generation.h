// The inside of qkv::Generation (include/qkv/generate.h): filled by whichever thread steps the model, emptied by its own.
#pragma once

#include <qkv/generate.h>

#include <atomic>
#include <mutex>

#include "api/inside.h"
#include "infer/text_run.h"

namespace qkv::v1 {

struct Generation::Impl {
  explicit Impl(std::shared_ptr<Model::Impl> of) : model(std::move(of)) {}

  // Moves out what has come; ended() says whether more can.
  Piece take();
  bool has_news() const;

  const std::shared_ptr<Model::Impl> model;
  Scheduler::Ticket ticket = 0;
  std::atomic<bool> in_use = false;

  mutable std::mutex mutex;  // guards what follows
  Piece news;
  Generated so_far;
};

// Everything but the prompt, its ends and callbacks. `schema_from` names the schema in errors.
TextRequest request_of(const OpenModel& model, const GenerateOptions& options,
                       std::string_view schema_from = "json_schema");

// A request of one's own, prompt and all; its callbacks are those of the Generation. What chat needs beyond start().
Generation start_request(const Model& model, TextRequest request);

// How a prompt of this model begins.
void set_prompt(const OpenModel& model, const Text& prompt, SessionOptions& to);

}  // namespace qkv::v1

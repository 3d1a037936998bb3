// The "look" of one request: probes for its texts, and what they saw as JSON, whole or as events.
#pragma once

#include <memory>

#include "server/look/look_json.h"
#include "server/models/served_model.h"

namespace qkv::server {

// One thing that was seen.
struct LookPart {
  std::optional<TokenLook> token = {};
  std::optional<TextLook> text = {};
  std::optional<LookForm::CutText> cut = {};
  std::optional<FoundAttribution> attribution = {};
};

class GenerationLook {
 public:
  GenerationLook(LookRequest request, const ServedModel& model, size_t texts);

  bool cuts() const { return !form_.request().cut.empty(); }
  const std::optional<LookAttribute>& attribute() const { return form_.request().attribute; }
  size_t beside() const { return (cuts() ? 1U : 0U) + (attribute() ? 1U : 0U); }  // sessions beside each text
  // Gives the text a probe; null if nothing is to be seen of it. An ApiError if it may get too long.
  std::shared_ptr<LookProbe> watch(SessionOptions& options) const;
  // Makes it the text that is written without the cut heads.
  void cut(SessionOptions& options) const;

  // The attribution asked for, of a text that was written.
  AttributionQueue::Job attribution_of(std::vector<int32_t> prompt, std::span<const Choice> tokens) const;

  // Of the writer's thread: the events of a stream.
  std::string begin() const;
  std::string event(size_t index, const LookPart& part) const;
  // Or the whole.
  void add(size_t index, const LookPart& part);
  OrderedJson whole() &&;

 private:
  OrderedJson json_of(const LookPart& part) const;

  const ServedModel& model_;
  LookForm form_;
  OrderedJson texts_ = OrderedJson::array();
};

}  // namespace qkv::server

// What was seen in a text as JSON: numbers as they are, or as base64 frames (docs/serving.md).
#pragma once

#include <span>
#include <string>

#include "server/look/look_probe.h"
#include "server/models/attribution_queue.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv::server {

class LookForm {
 public:
  LookForm(LookRequest request, const ModelSpec& spec, Tokenizer tokenizer);

  const LookRequest& request() const { return request_; }
  OrderedJson heads() const;  // the names that stand for the axis of heads
  OrderedJson token(const TokenLook& look) const;
  OrderedJson text(const TextLook& look) const;
  struct CutText {
    std::string text, finish_reason;
    std::vector<int32_t> ids;
    bool failed = false;  // nothing of it is shown
  };
  OrderedJson cut(const CutText& written) const;
  OrderedJson attribution(const FoundAttribution& found) const;

 private:
  OrderedJson array(std::span<const float> values, const std::vector<int64_t>& shape, bool whole = false) const;
  OrderedJson rung(const Rung& rung, size_t level) const;

  LookRequest request_;
  std::vector<std::string> names_, cut_names_;
  Tokenizer tokenizer_;
};

// The double with the shortest decimal that reads back as this float.
double short_double(float value);

}  // namespace qkv::server

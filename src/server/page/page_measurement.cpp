#include "server/page/page_measurement.h"

#include "base/error.h"

namespace qkv::server {

OrderedJson PageMeasurements::ask(const std::string& name, Measure measure) {
  const auto [found, fresh] = all_.try_emplace(name);
  if (!fresh) return found->second.answer;
  OrderedJson& answer = found->second.answer;  // a map's entries stay where they are
  thread_.when_idle([this, &answer, measure = std::move(measure)] {
    try {
      OrderedJson result = measure([this, &answer](size_t done) {
        answer["done"] = done;
        thread_.serve_waiting();
        return true;
      });
      answer = {{"state", "ready"}};
      answer.update(result);
    } catch (const Error& error) {
      answer = {{"state", "failed"}, {"error", error.message()}};
    }
  });
  return answer;
}

}  // namespace qkv::server

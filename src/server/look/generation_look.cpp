#include "server/look/generation_look.h"

#include <algorithm>

#include "inspect/cut/ablation.h"
#include "server/http/sse.h"

namespace qkv::server {
namespace {

// The heads of one text write nothing.
class CutSession : public SessionProbe {
 public:
  CutSession(const ModelSpec& spec, std::vector<HeadId> heads)
      : cut_(spec, {.heads = std::move(heads), .ablation = Ablation::zero}) {}
  bool begin(int64_t, int64_t) override { return true; }
  Ask ask(Place place, Site site) const override { return cut_.ask(place, site); }
  void visit(Context& cx, const Tap& tap, Tensor& x) override { cut_.visit(cx, tap, x); }

 private:
  CutProbe cut_;
};

LookRequest for_each_text(LookRequest request, size_t texts) {
  request.bytes /= static_cast<int64_t>(texts);
  return request;
}

}  // namespace

GenerationLook::GenerationLook(LookRequest request, const ServedModel& model, size_t texts)
    : model_(model), form_(for_each_text(std::move(request), texts), model.model().spec(), model.model().tokenizer()) {
  for (size_t i = 0; i < texts; ++i) {
    texts_.push_back({{"index", i}});
    if (form_.request().probes()) texts_.back()["tokens"] = OrderedJson::array();
  }
}

std::shared_ptr<LookProbe> GenerationLook::watch(SessionOptions& options) const {
  const LookRequest& request = form_.request();
  if (!request.probes()) return nullptr;
  const int64_t prompt = std::ssize(options.prompt), context = model_.context();
  check_look(request, options.max_new > 0 ? std::min(prompt + options.max_new, context) : context);
  auto probe = std::make_shared<LookProbe>(model_.model().model(), request, prompt);
  options.probe = probe;
  options.shares_prefixes = !request.whole_maps();
  return probe;
}

void GenerationLook::cut(SessionOptions& options) const {
  options.probe = std::make_shared<CutSession>(model_.model().spec(), form_.request().cut);
  options.shares_prefixes = false;
}

AttributionQueue::Job GenerationLook::attribution_of(std::vector<int32_t> prompt,
                                                     std::span<const Choice> tokens) const {
  const LookAttribute& asked = *attribute();
  AttributionQueue::Job job{.ids = std::move(prompt), .target = asked.target, .against = asked.against};
  const auto row = static_cast<size_t>(asked.position.value_or(std::ssize(job.ids) - 1));
  for (const Choice& token : tokens) job.ids.push_back(token.id);
  job.has_row = row < job.ids.size();
  if (!job.target && row + 1 < job.ids.size()) job.target = job.ids[row + 1];
  job.ids.resize(row + 1);
  return job;
}

std::string GenerationLook::begin() const {
  return sse("look", {{"heads", form_.heads()}});
}

OrderedJson GenerationLook::json_of(const LookPart& part) const {
  if (part.token) return form_.token(*part.token);
  OrderedJson ends = part.text ? form_.text(*part.text) : OrderedJson::object();
  if (part.cut) ends["cut"] = form_.cut(*part.cut);
  if (part.attribution) ends["attribute"] = form_.attribution(*part.attribution);
  return ends;
}

std::string GenerationLook::event(size_t index, const LookPart& part) const {
  OrderedJson event = json_of(part);
  event["index"] = index;
  return sse("look", event);
}

void GenerationLook::add(size_t index, const LookPart& part) {
  OrderedJson seen = json_of(part);
  if (part.token) {
    texts_[index]["tokens"].push_back(std::move(seen));
  } else {
    texts_[index].update(seen);
  }
}

OrderedJson GenerationLook::whole() && {
  return {{"heads", form_.heads()}, {"choices", std::move(texts_)}};
}

}  // namespace qkv::server

#include "server/page/page_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/path.h"
#include "inspect/report/heads_report.h"
#include "model/checkpoint/checkpoint.h"
#include "open/builtin_models.h"
#include "open/world_texts.h"

namespace qkv::server {
namespace {

constexpr int64_t kRoleTokens = 6000, kRoleLength = 128, kLabelTokens = 20000;
constexpr int64_t kRowsBetween = 256;  // of a pass in the background: a request waits for one of them

// What a model knows, if the recipe it was trained with lies beside it or above it: stories of these languages and kinds.
std::vector<std::string> known_world(const std::filesystem::path& model) {
  std::vector<std::string> data{"world", "world:zh"};
  std::filesystem::path folder = model;
  for (int i = 0; i < 3 && !folder.empty(); ++i, folder = folder.parent_path()) {
    const std::filesystem::path file = folder / "recipe.json";
    if (!is_there(file)) continue;
    const Json recipe = parse_json(read_file(file, 1 << 20), "recipe.json");
    const std::string language = recipe.value("/data/world"_json_pointer, std::string());
    if (language == "en") data = {"world"};
    if (language == "zh") data = {"world:zh"};
    const Json kinds = recipe.value("/data/kinds"_json_pointer, Json::array());
    for (std::string& each : data) {
      for (const Json& kind : kinds) each += ":" + kind.get<std::string>();
    }
    break;
  }
  return data;
}

}  // namespace

PageModel::PageModel(std::string name, std::string path, const OpenOptions& open, PageThread& thread)
    : name_(std::move(name)), path_(std::move(path)), open_(open), thread_(thread) {}

const OpenModel& PageModel::opened() {
  if (!opened_) {
    OpenOptions open = open_;
    open.looks = true;
    opened_ = std::make_unique<OpenModel>(path_, open);
  }
  return *opened_;
}

const ModelSpec& PageModel::spec() {
  if (opened_) return opened_->spec();
  if (!spec_) spec_ = Checkpoint::open(find_model(path_)).spec;
  return *spec_;
}

const std::vector<std::string>& PageModel::world_data() {
  if (world_data_.empty())
    world_data_ = spec().has_source() ? std::vector<std::string>{"world:pairs"} : known_world(find_model(path_));
  return world_data_;
}

const std::vector<TokenText>& PageModel::texts() {
  if (!texts_.empty()) return texts_;
  const auto share = static_cast<int64_t>(world_data().size());
  for (const std::string& data : world_data()) {
    CollectedTexts some(spec(), {.tokens = kRoleTokens / share, .length = kRoleLength});
    add_world(opened(), data, some);
    for (TokenText& text : some.take()) texts_.push_back(std::move(text));
  }
  return texts_;
}

std::shared_ptr<const HeadOutputs> PageModel::outputs() {
  if (!outputs_) {
    Reader reader(model(), engine(), {.precision = precision()});
    outputs_ = measure_outputs(reader, texts(), Ablation::mean);
  }
  return outputs_;
}

std::unique_ptr<CutProbe> PageModel::probe_of(const Cut& cut) {
  if (cut.heads.empty() && cut.experts.empty()) return nullptr;
  return std::make_unique<CutProbe>(spec(), cut, cut.heads.empty() ? nullptr : outputs());
}

void PageModel::measure_roles() {
  if (roles_state_ != State::none) return;
  roles_state_ = State::measuring;
  thread_.when_idle([this] {
    try {
      Reader reader(model(), engine(), {.precision = precision(), .rows = kRowsBetween});
      roles_ = head_roles(reader, opened().has_tokenizer() ? &opened().tokenizer() : nullptr, texts(),
                          {.finished = [this](size_t done) {
                            roles_done_ = done;
                            thread_.serve_waiting();
                            return true;
                          }});
      roles_state_ = State::ready;
      thread_.serve_waiting();
      outputs();
      thread_.serve_waiting();
      measure_labels(reader);
    } catch (const Error& error) {
      roles_error_ = error.message();
      if (roles_state_ == State::measuring) roles_state_ = State::failed;
    }
    labels_done_ = true;
  });
}

// By the rule of `qkv heads --labels world`, in every language whose stories it knows. Stories are no sentence pairs.
void PageModel::measure_labels(Reader& reader) {
  if (spec().has_source() || !opened().has_tokenizer()) return;
  for (const std::string& data : world_data()) {
    std::vector<LabelledText> texts;
    for (const AnnotatedText& story : labelled_world(opened(), data, {.tokens = kLabelTokens})) {
      texts.push_back(labelled(story));
    }
    try {
      labels_.push_back({data, label_scores(reader, opened().tokenizer(), texts, {.finished = [this](size_t) {
                                              thread_.serve_waiting();
                                              return true;
                                            }})});
    } catch (const Error&) {  // its stories have too few of every label
    }
  }
}

// Those of its attention, then those of labels; the same one in two languages counts once.
OrderedJson PageModel::roles_of(size_t head) const {
  OrderedJson roles = qkv::roles_json(roles_->heads[head]);
  for (const Labels& labels : labels_) {
    for (OrderedJson& role : label_roles_json(labels.scores, head)) {
      const bool known =
          std::ranges::any_of(roles, [&](const OrderedJson& one) { return one["name"] == role["name"]; });
      if (known) continue;
      role["data"] = labels.data;
      roles.push_back(std::move(role));
    }
  }
  return roles;
}

OrderedJson PageModel::roles_json() {
  switch (roles_state_) {
    case State::ready: {
      OrderedJson made{{"state", "ready"}};
      made.update(to_json(HeadsReport{.model = name_,
                                      .data = fmt::format("{}", fmt::join(world_data(), ", ")),
                                      .spec = &spec(),
                                      .roles = *roles_}));
      for (size_t i = 0; i < roles_->heads.size(); ++i) made["heads"][i]["roles"] = roles_of(i);
      made["labels"] = labels_done_ ? "ready" : "measuring";
      return made;
    }
    case State::failed:
      return {{"state", "failed"}, {"error", roles_error_}};
    default:
      return {{"state", "measuring"}, {"done", roles_done_}, {"of", texts_.size()}};
  }
}

void PageModel::add_roles(Json& heads) {
  if (!roles_) return;
  for (size_t i = 0; i < roles_->heads.size(); ++i) {
    const std::string name = name_of(spec(), roles_->heads[i].id);
    for (Json& of_report : heads) {
      if (of_report["name"] == name) of_report["roles"] = Json(roles_of(i));
    }
  }
}

void PageModels::add(const std::string& name, const std::string& path, const OpenOptions& open) {
  models_.push_back(std::make_unique<PageModel>(name, path, open, thread_));
}

PageModel* PageModels::find(const std::string& name) {
  const auto found = std::find_if(models_.begin(), models_.end(), [&](const auto& m) { return m->name() == name; });
  return found == models_.end() ? nullptr : found->get();
}

}  // namespace qkv::server

// A model as the page looks into it: opened at its first use, with what was measured of it. Of the page's thread alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inspect/cut/ablation.h"
#include "inspect/heads/head_labels.h"
#include "inspect/heads/head_roles.h"
#include "open/open_model.h"
#include "server/page/page_thread.h"
#include "text/chat/ordered_json.h"

namespace qkv::server {

class PageModel {
 public:
  PageModel(std::string name, std::string path, const OpenOptions& open, PageThread& thread);

  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  const OpenOptions& open_options() const { return open_; }
  // As every command that looks has it: in f32 unless it is large or --dtype says otherwise, so that every number can be
  // worked out again from the numbers before it.
  const OpenModel& opened();
  const Model& model() { return opened().model(); }
  Model& own_model() { return (opened(), opened_->own_model()); }
  const Engine& engine() { return opened().engine(); }
  const ModelSpec& spec();  // needs no weights
  Precision precision() { return opened().precision(); }
  bool is_open() const { return opened_ != nullptr; }
  // Texts to begin with, in one language; the best first once they were tried.
  std::vector<std::string>& examples(bool chinese) { return chinese ? examples_zh_ : examples_en_; }

  // Which held-out stories of the built-in world roles and cuts are measured on: those it knows, else all.
  const std::vector<std::string>& world_data();
  const std::vector<TokenText>& texts();
  // Means of what the heads write on them, for cuts. Measured at the first call.
  std::shared_ptr<const HeadOutputs> outputs();
  // A probe that makes these cuts; null if there are none.
  std::unique_ptr<CutProbe> probe_of(const Cut& cut);

  // Between passes of a long answer (PageThread).
  void give_way() { thread_.give_way(); }

  // Roles of the heads, measured in the background; then those that gold labels of the world's stories show.
  enum class State : uint8_t { none, measuring, ready, failed };
  State roles_state() const { return roles_state_; }
  void measure_roles();
  const RoleScores* roles() const { return roles_ ? &*roles_ : nullptr; }
  OrderedJson roles_json();  // {"state": ...} and, when ready, the report of qkv heads
  // A report's heads get "roles" once they are known.
  void add_roles(Json& heads);

 private:
  void measure_labels(Reader& reader);
  OrderedJson roles_of(size_t head) const;

  std::string name_, path_;
  OpenOptions open_;
  PageThread& thread_;
  std::optional<ModelSpec> spec_;  // until it is opened
  std::unique_ptr<OpenModel> opened_;
  std::vector<std::string> examples_en_, examples_zh_;
  std::vector<std::string> world_data_;
  std::vector<TokenText> texts_;
  std::shared_ptr<const HeadOutputs> outputs_;
  State roles_state_ = State::none;
  std::optional<RoleScores> roles_;
  std::string roles_error_;
  size_t roles_done_ = 0;
  struct Labels {
    std::string data;  // "world:zh"
    LabelScores scores;
  };
  std::vector<Labels> labels_;
  bool labels_done_ = false;
};

// The models of the page by name, in order; the first is the default.
class PageModels {
 public:
  explicit PageModels(PageThread& thread) : thread_(thread) {}
  void add(const std::string& name, const std::string& path, const OpenOptions& open);
  PageModel* find(const std::string& name);
  const std::vector<std::unique_ptr<PageModel>>& all() const { return models_; }

 private:
  PageThread& thread_;
  std::vector<std::unique_ptr<PageModel>> models_;
};

}  // namespace qkv::server

#include "inspect/watch/snapshot.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/path.h"
#include "io/safetensors.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestPlan = 64 << 20;
constexpr const char *kPlan = "watch.json", *kEnding = ".safetensors";
constexpr std::string_view kStep = "step-";

std::string file_name(int64_t step) {
  return fmt::format("{}{:08}{}", kStep, step, kEnding);
}

template <class T>
OutgoingTensor tensor_of(const char* name, const char* dtype, std::vector<int64_t> shape, std::vector<T> values) {
  return {name, dtype, std::move(shape),
          [values = std::move(values)](ByteSink sink) { sink(std::as_bytes(std::span(values))); }};
}

// The values of a tensor, which must have this shape.
template <class T>
std::vector<T> numbers(const Safetensors& file, const char* name, const char* dtype,
                       const std::vector<int64_t>& shape) {
  const StoredTensor& stored = file.at(name);
  QKV_CHECK(stored.dtype == dtype && stored.shape.size() == shape.size(), file.name(), ": '", name, "' is ",
            stored.dtype, " of ", stored.shape.size(), " dimensions but a snapshot has ", dtype, " of ", shape.size(),
            Hint("the file is damaged or of another version: train again with --watch"));
  for (size_t i = 0; i < shape.size(); ++i) {
    QKV_CHECK(shape[i] < 0 || stored.shape[i] == shape[i], file.name(), ": dimension ", i, " of '", name, "' is ",
              stored.shape[i], " but ", kPlan, " says ", shape[i],
              Hint("the snapshot is of another run: remove it from the folder"));
  }
  std::vector<T> values(stored.bytes.size() / sizeof(T));
  std::memcpy(values.data(), stored.bytes.data(), stored.bytes.size());
  for (const T value : values) {
    QKV_CHECK(std::isfinite(static_cast<double>(value)), file.name(), ": '", name, "' holds ", value,
              " where a number should be", Hint("the file is damaged: remove it from the folder"));
  }
  return values;
}

int64_t count_in(const Safetensors& file, double value) {
  QKV_CHECK(value >= 0 && value <= 0x1p53, file.name(), ": a count is ", value, " but must be 0 or more",
            Hint("the file is damaged: remove it from the folder"));
  return static_cast<int64_t>(value);
}

double number_in(const Safetensors& file, const std::string& key) {
  const auto at = file.metadata().find(key);
  double value = 0;
  const char* text = at == file.metadata().end() ? nullptr : at->second.c_str();
  const bool good =
      text != nullptr && std::from_chars(text, text + at->second.size(), value).ptr == text + at->second.size();
  QKV_CHECK(good && std::isfinite(value), file.name(), ": its metadata say '",
            text != nullptr ? at->second : std::string("nothing"), "' for ", key, " where a number should be",
            Hint("the file is not a snapshot, or damaged: remove it from the folder"));
  return value;
}

// Roles are stored as sums and counts [heads, roles, texts]; roles measured on fewer texts are padded with 0.
constexpr int64_t kOfRoles = static_cast<int64_t>(kWatchedRoles);

bool is_synthetic(size_t role) {
  return role == static_cast<size_t>(WatchedRole::duplicate) || role == static_cast<size_t>(WatchedRole::induction);
}

void write_snapshot(const fs::path& path, const Snapshot& s, const WatchPlan& plan) {
  const auto heads = std::ssize(plan.heads), weights = std::ssize(plan.weights), tokens = std::ssize(plan.tokens);
  const int64_t most = std::max(plan.texts, plan.synthetic);
  std::vector<double> role_sums, importance, texts, positions;
  std::vector<int32_t> role_counts;
  for (const auto& head : s.roles) {
    for (const std::vector<TextSum>& role : head) {
      for (size_t t = 0; t < static_cast<size_t>(most); ++t) {
        role_sums.push_back(t < role.size() ? role[t].sum : 0);
        role_counts.push_back(t < role.size() ? static_cast<int32_t>(role[t].count) : 0);
      }
    }
  }
  for (const auto& i : s.importance) {
    importance.insert(importance.end(), {i.sum, i.squares, static_cast<double>(i.examples)});
  }
  for (const auto& t : s.texts) {
    texts.insert(texts.end(),
                 {t.loss, t.unigram, t.bigram, static_cast<double>(t.targets), static_cast<double>(t.after)});
  }
  for (const TextSum& p : s.positions) positions.insert(positions.end(), {p.sum, static_cast<double>(p.count)});
  const std::vector<OutgoingTensor> all{
      tensor_of("roles.sum", "F64", {heads, kOfRoles, most}, std::move(role_sums)),
      tensor_of("roles.count", "I32", {heads, kOfRoles, most}, std::move(role_counts)),
      tensor_of("importance", "F64", {heads, 3}, std::move(importance)),
      tensor_of("sketches", "F32", {weights, Snapshot::kSketch}, s.sketches),
      tensor_of("update", "F32", {weights}, s.update),
      tensor_of("embedding", "F32", {tokens, plan.width}, s.embedding),
      tensor_of("texts", "F64", {plan.texts, 5}, std::move(texts)),
      tensor_of("positions", "F64", {std::ssize(s.positions), 2}, std::move(positions))};
  write_safetensors(path, all,
                    {{"step", std::to_string(s.step)},
                     {"watch_seconds", fmt::format("{}", s.watch_seconds)},
                     {"train_seconds", fmt::format("{}", s.train_seconds)}});
}

Json to_json(const WatchPlan& plan) {
  return {{"steps", plan.steps},         {"heads", plan.heads},    {"weights", plan.weights},
          {"tokens", plan.tokens},       {"width", plan.width},    {"texts", plan.texts},
          {"synthetic", plan.synthetic}, {"rows", plan.rows},      {"repeated", plan.repeated},
          {"held_out", plan.held_out},   {"counted", plan.counted}};
}

void write_plan(const fs::path& folder, const WatchPlan& plan) {
  const std::string text = to_json(plan).dump(1) + "\n";
  write_file_atomic(folder / kPlan, std::as_bytes(std::span(text)));
}

WatchPlan plan_from(const Json& json, const std::string& what) {
  try {
    WatchPlan plan{.steps = json.at("steps"),
                   .heads = json.at("heads"),
                   .weights = json.at("weights"),
                   .tokens = json.at("tokens"),
                   .width = json.at("width"),
                   .texts = json.at("texts"),
                   .synthetic = json.at("synthetic"),
                   .rows = json.at("rows"),
                   .repeated = json.at("repeated"),
                   .held_out = json.at("held_out"),
                   .counted = json.at("counted")};
    for (const int64_t n : {plan.width, plan.texts, plan.synthetic}) {
      QKV_CHECK(n >= 0 && n < (1 << 24), what, ": a size is ", n, " but must be from 0 to ", 1 << 24,
                Hint("the file is damaged: train again with --watch"));
    }
    return plan;
  } catch (const Json::exception& e) {
    QKV_FAIL(what, " is not what qkv train --watch writes: ", e.what(),
             Hint("the file is damaged or of another version: train again with --watch"));
  }
}

}  // namespace

const char* name_of(WatchedRole role) {
  static constexpr std::array<const char*, kWatchedRoles> kNames{"previous", "duplicate", "induction",
                                                                 "first",    "entropy",   "distance"};
  return kNames[static_cast<size_t>(role)];
}

Estimate Snapshot::Importance::estimate() const {
  if (examples == 0) return {};
  const auto n = static_cast<double>(examples);
  const double mean = sum / n, variance = std::max(0.0, squares / n - mean * mean);
  const double half = examples > 1 ? student_t(examples - 1) * std::sqrt(variance / (n - 1)) : 0;
  return {.mean = mean, .low = mean - half, .high = mean + half, .n = examples, .texts = examples};
}

std::vector<int64_t> snapshot_steps(int64_t total, int64_t most) {
  most = std::max<int64_t>(most, 4);
  const auto spaced = [&](double octaves, int64_t apart) {
    std::vector<int64_t> steps{0};
    while (steps.back() < total && std::ssize(steps) <= most) {
      const int64_t further = std::llround((std::exp2(octaves) - 1) * static_cast<double>(steps.back()));
      steps.push_back(std::min(total, steps.back() + std::max<int64_t>(1, std::min(further, apart))));
    }
    return steps;
  };
  for (double octaves = 0.25;; octaves *= 2) {
    for (int64_t apart = std::max<int64_t>(1, total / most); apart < 2 * total; apart += apart / 8 + 1) {
      std::vector<int64_t> steps = spaced(octaves, apart);
      if (std::ssize(steps) <= most) return steps;
    }
  }
}

bool WatchFolder::exists(const fs::path& run) {
  return is_there(in(run) / kPlan);
}

WatchFolder WatchFolder::create(const fs::path& run, WatchPlan plan) {
  fs::create_directories(in(run));
  write_plan(in(run), plan);
  return {in(run), std::move(plan)};
}

void WatchFolder::plan_steps(std::vector<int64_t> steps) {
  wait();
  plan_.steps = std::move(steps);
  write_plan(folder_, plan_);
}

WatchFolder WatchFolder::open(const fs::path& run) {
  QKV_CHECK(is_there(run), "there is no ", run.string(), Hint("name the folder of a run: qkv train ... --out RUN"));
  QKV_CHECK(exists(run), run.string(), " has no snapshots: ", (in(run) / kPlan).string(), " is not there",
            Hint("they are taken during training:  qkv train RECIPE --watch --out RUN"));
  const fs::path file = in(run) / kPlan;
  return {in(run), plan_from(parse_json(read_file(file, kLargestPlan), file.string()), file.string())};
}

std::vector<int64_t> WatchFolder::steps() const {
  std::vector<int64_t> found;
  for (const fs::path& entry : folder_entries(folder_)) {
    const std::string name = entry.filename();
    if (!name.starts_with(kStep) || !name.ends_with(kEnding)) continue;
    int64_t step = 0;
    const auto [at, code] = std::from_chars(name.data() + kStep.size(), name.data() + name.size(), step);
    if (code == std::errc() && file_name(step) == name) found.push_back(step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

Snapshot WatchFolder::read(int64_t step) const {
  const Safetensors file = Safetensors::open(folder_ / file_name(step));
  const auto heads = std::ssize(plan_.heads), weights = std::ssize(plan_.weights), tokens = std::ssize(plan_.tokens);
  const int64_t most = std::max(plan_.texts, plan_.synthetic);
  Snapshot s{.step = count_in(file, number_in(file, "step")),
             .watch_seconds = number_in(file, "watch_seconds"),
             .train_seconds = number_in(file, "train_seconds")};
  QKV_CHECK(s.step == step, file.name(), " is of step ", s.step, ", not of ", step,
            Hint("the file was renamed: remove it from the folder"));
  const auto sums = numbers<double>(file, "roles.sum", "F64", {heads, kOfRoles, most});
  const auto counts = numbers<int32_t>(file, "roles.count", "I32", {heads, kOfRoles, most});
  s.roles.resize(static_cast<size_t>(heads));
  for (size_t h = 0, at = 0; h < s.roles.size(); ++h) {
    for (size_t r = 0; r < kWatchedRoles; ++r) {
      const auto texts = static_cast<size_t>(is_synthetic(r) ? plan_.synthetic : plan_.texts);
      for (size_t t = 0; t < static_cast<size_t>(most); ++t, ++at) {
        const int64_t count = count_in(file, counts[at]);  // what pads is checked too
        if (t < texts) s.roles[h][r].push_back({sums[at], count});
      }
    }
  }
  const auto importance = numbers<double>(file, "importance", "F64", {heads, 3});
  for (size_t i = 0; i < importance.size(); i += 3) {
    s.importance.push_back({importance[i], importance[i + 1], count_in(file, importance[i + 2])});
  }
  s.sketches = numbers<float>(file, "sketches", "F32", {weights, Snapshot::kSketch});
  s.update = numbers<float>(file, "update", "F32", {weights});
  s.embedding = numbers<float>(file, "embedding", "F32", {tokens, plan_.width});
  const auto texts = numbers<double>(file, "texts", "F64", {plan_.texts, 5});
  for (size_t i = 0; i < texts.size(); i += 5) {
    s.texts.push_back(
        {texts[i], texts[i + 1], texts[i + 2], count_in(file, texts[i + 3]), count_in(file, texts[i + 4])});
  }
  const auto positions = numbers<double>(file, "positions", "F64", {-1, 2});
  for (size_t i = 0; i < positions.size(); i += 2) {
    s.positions.push_back({positions[i], count_in(file, positions[i + 1])});
  }
  return s;
}

void WatchFolder::write(Snapshot snapshot) {
  wait();
  writing_ = std::async(std::launch::async, [path = folder_ / file_name(snapshot.step), plan = plan_,
                                             s = std::move(snapshot)] { write_snapshot(path, s, plan); });
}

void WatchFolder::wait() {
  if (writing_.valid()) writing_.get();
}

void WatchFolder::remove_after(int64_t step) {
  wait();
  for (const int64_t taken : steps()) {
    if (taken > step) fs::remove(folder_ / file_name(taken));
  }
}

}  // namespace qkv

// Several ranks get the same bits as a single one, at every ZeRO level.
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "base/expect_error.h"
#include "core/host_values.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "train/trainer.h"

namespace qkv {
namespace {

// Ranks as threads of one process, exchanging bytes through shared memory.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size), barrier_(size), table_(static_cast<size_t>(size)) {}

  class Seat final : public Comm {
   public:
    Seat(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
    const char* name() const override { return "threads"; }
    int rank() const override { return rank_; }
    int size() const override { return meeting_.size_; }
    void abort_all() override { FAIL() << "a rank ended all"; }
    void barrier() override { meeting_.barrier_.arrive_and_wait(); }
    std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
      put({std::vector<std::byte>(mine.begin(), mine.end())});
      std::vector<std::vector<std::byte>> all;
      for (const auto& each : meeting_.table_) all.push_back(each[0]);
      barrier();
      return all;
    }
    void exchange(std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
      std::vector<std::vector<std::byte>> parts;
      for (const auto& part : send) parts.emplace_back(part.begin(), part.end());
      put(std::move(parts));
      for (size_t r = 0; r < receive.size(); ++r) {
        const std::vector<std::byte>& from = meeting_.table_[r][static_cast<size_t>(rank_)];
        ASSERT_EQ(from.size(), receive[r].size());
        std::copy(from.begin(), from.end(), receive[r].begin());
      }
      barrier();
    }

   private:
    void put(std::vector<std::vector<std::byte>> parts) {
      meeting_.table_[static_cast<size_t>(rank_)] = std::move(parts);
      barrier();
    }
    Meeting& meeting_;
    int rank_;
  };

 private:
  int size_;
  std::barrier<> barrier_;
  std::vector<std::vector<std::vector<std::byte>>> table_;
};

struct Outcome {
  std::map<std::string, std::vector<float>> weights, states;
  std::vector<double> losses, norms, balances;
  bool operator==(const Outcome&) const = default;
};

constexpr int64_t kMicroBatches = 4, kSteps = 3;

TrainBatch batch_for(const ModelSpec& spec, int64_t step, int64_t micro) {
  TrainBatch batch;
  uint32_t seed = static_cast<uint32_t>(step * 100 + micro);
  const int32_t length = static_cast<int32_t>(5 + (step + micro * 3) % 7);  // unequal on purpose
  const auto next = [&] {
    seed = seed * 1664525 + 1013904223;
    return static_cast<int32_t>(seed >> 8) % static_cast<int32_t>(spec.vocabulary);
  };
  for (int32_t i = 0; i < length; ++i) {
    batch.ids.push_back(next());
    batch.targets.push_back(next());
  }
  batch.lengths = {length};
  batch.counted = length;
  return batch;
}

Outcome train(const std::string& family, Comm& comm, const OptimizerSpec& rule, int zero) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden(family)).model();
  Optimizer optimizer(model->spec(), model->weights(), rule, comm, zero);
  Arena arena(engine.device()), gradients(engine.device());
  const DataParallel::Range part = optimizer.data_parallel().micro_batch_range(kMicroBatches);
  Outcome out;
  for (int64_t s = 0; s < kSteps; ++s) {
    std::vector<TrainBatch> batches;
    for (int64_t m = 0; m < part.count; ++m) batches.push_back(batch_for(model->spec(), s, part.first + m));
    const StepResult result = train_step(engine, arena, gradients, *model, optimizer, batches,
                                         {.precision = Precision::bf16(),
                                          .loss = {.balance = family == "mixtral" ? 0.02 : 0},
                                          .lr = 1e-2,
                                          .clip = 1,
                                          .step = static_cast<uint64_t>(s)});
    out.losses.push_back(result.loss);
    out.norms.push_back(result.grad_norm);
    out.balances.push_back(result.balance);
  }
  for (const auto& [name, weight] : model->weights()) out.weights[name] = host_floats(weight.master());
  optimizer.gather_states();
  for (const Optimizer::State& state : optimizer.states()) out.states[state.name] = host_floats(state.tensor);
  optimizer.drop_gathered();
  return out;
}

// Counts the heads whose importance it is told during backward.
class ImportanceProbe : public Probe {
 public:
  Ask ask(Place, Site site) const override { return site == Site::attn_z ? Ask::importance : Ask::none; }
  void visit(Context&, const Tap&, Tensor&) override {}
  void visit_importance(Context&, const Tap&, const Tensor& z_dz) override { heads += z_dz.dim(1); }

  int64_t heads = 0;
};

TEST(Step, TellsImportanceBesideABalanceLoss) {
  const auto told = [](double balance) {
    const Engine engine(kernels::best_table(), {.threads = 1});
    const auto model = Checkpoint::open(test::golden("mixtral")).model();
    Optimizer optimizer(model->spec(), model->weights(), {.kind = OptimizerSpec::Kind::adamw}, self_comm(), 0);
    Arena arena(engine.device()), gradients(engine.device());
    ImportanceProbe probe;
    const std::vector<TrainBatch> batches{batch_for(model->spec(), 0, 0)};
    train_step(engine, arena, gradients, *model, optimizer, batches,
               {.precision = Precision::f32(), .loss = {.balance = balance}, .lr = 1e-2, .probe = &probe});
    return probe.heads;
  };
  EXPECT_GT(told(0), 0);
  EXPECT_EQ(told(0.02), told(0));
}

TEST(Ranks, GiveTheBitsOfOneAlone) {
  const OptimizerSpec rules[] = {{.kind = OptimizerSpec::Kind::adamw}, {.kind = OptimizerSpec::Kind::muon}};
  for (const std::string family : {"llama", "mixtral"}) {
    for (const OptimizerSpec& rule : rules) {
      const Outcome right = train(family, self_comm(), rule, 0);
      for (const int size : {2, 4}) {
        for (const int zero : {0, 1, 2}) {
          Meeting meeting(size);
          std::vector<Outcome> got(static_cast<size_t>(size));
          std::vector<std::thread> ranks;
          for (int r = 0; r < size; ++r) {
            ranks.emplace_back([&, r] {
              Meeting::Seat seat(meeting, r);
              got[static_cast<size_t>(r)] = train(family, seat, rule, zero);
            });
          }
          for (std::thread& rank : ranks) rank.join();
          EXPECT_EQ(got[0].balances, right.balances) << family << ", " << size << " ranks: the balance loss differs";
          EXPECT_TRUE(got[0] == right) << family << ", " << name_of(rule.kind) << ", " << size << " ranks, zero "
                                       << zero;
          for (const Outcome& other : got)
            EXPECT_TRUE(other.weights == right.weights) << size << " ranks, zero " << zero;
        }
      }
    }
  }
}

// Held-out texts of unequal length, one of them with nothing to predict.
class SomeTexts : public TrainData {
 public:
  explicit SomeTexts(const ModelSpec& spec) : spec_(spec) {}
  TrainBatch micro_batch(int64_t step, int64_t micro) const override { return batch_for(spec_, step, micro); }
  int64_t validation_batches() const override { return 7; }
  TrainBatch validation_batch(int64_t i) const override {
    TrainBatch batch = batch_for(spec_, 50, i);
    if (i == 3) {
      batch.targets.assign(batch.targets.size(), TrainBatch::kIgnored);
      batch.counted = 0;
    }
    return batch;
  }

 private:
  const ModelSpec& spec_;
};

TEST(Ranks, DivideAnEvaluationAndAgreeOnIt) {
  const auto evaluated = [](Comm& comm) {
    const Engine engine(kernels::best_table(), {.threads = 1});
    const auto model = Checkpoint::open(test::golden("llama")).model();
    const SomeTexts data(model->spec());
    const Recipe recipe;
    return Trainer(engine, recipe, *model, data, comm).evaluate();
  };
  const EvalResult right = evaluated(self_comm());
  EXPECT_EQ(right.counted, 6 + 9 + 5 + 11 + 7 + 10);  // the lengths of batch_for, without the fourth
  EXPECT_GT(right.loss, 0);
  for (const int size : {2, 4}) {
    Meeting meeting(size);
    std::vector<EvalResult> got(static_cast<size_t>(size));
    std::vector<std::thread> ranks;
    for (int r = 0; r < size; ++r) {
      ranks.emplace_back([&, r] {
        Meeting::Seat seat(meeting, r);
        got[static_cast<size_t>(r)] = evaluated(seat);
      });
    }
    for (std::thread& rank : ranks) rank.join();
    for (const EvalResult& each : got) {
      EXPECT_EQ(each.loss, right.loss) << size << " ranks";
      EXPECT_EQ(each.counted, right.counted) << size << " ranks";
    }
  }
}

TEST(Ranks, AreAPowerOfTwoThatDividesTheMicroBatches) {
  DataParallel::check_ranks(1, 1);
  DataParallel::check_ranks(4, 8);
  expect_error([] { DataParallel::check_ranks(3, 4); }, {"3 ranks", "power of two"});
  expect_error([] { DataParallel::check_ranks(4, 2); }, {"2 micro-batches", "4 ranks"});
}

}  // namespace
}  // namespace qkv

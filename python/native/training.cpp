// Training: a recipe to its end, or step by step.
#include "bindings.h"

namespace qkv_python {
namespace {

py::dict report_of(const qkv::StepReport& report) {
  return py::dict("step"_a = report.step, "of"_a = report.of, "loss"_a = report.loss, "lr"_a = report.lr,
                  "grad_norm"_a = report.grad_norm, "tokens"_a = report.tokens, "seconds"_a = report.seconds);
}

py::dict report_of(const qkv::EvaluationReport& report) {
  return py::dict("step"_a = report.step, "loss"_a = report.loss, "perplexity"_a = report.perplexity,
                  "bits_per_byte"_a = report.bits_per_byte, "best"_a = report.best);
}

// What a function raises, and Ctrl-C, end the run after its step: it is saved, and the exception goes on then.
class Told {
 public:
  Told(py::object on_step, py::object on_evaluation)
      : on_step_(std::move(on_step)), on_evaluation_(std::move(on_evaluation)) {}

  bool step(const qkv::StepReport& report) {
    if (raised_) return false;
    try {
      signals_.check();
      if (on_step_.is_none()) return true;
      const py::gil_scoped_acquire hold;
      return !on_step_(report_of(report)).is(py::bool_(false));
    } catch (const py::error_already_set&) {
      raised_ = std::current_exception();
      return false;
    }
  }
  void evaluation(const qkv::EvaluationReport& report) {
    if (raised_ || on_evaluation_.is_none()) return;
    try {
      const py::gil_scoped_acquire hold;
      on_evaluation_(report_of(report));
    } catch (const py::error_already_set&) {
      raised_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  py::object on_step_, on_evaluation_;
  Signals signals_;
  std::exception_ptr raised_;
};

py::dict train(const py::dict& values) {
  const Options options(values);
  qkv::TrainOptions how;
  how.device = open_options(options).device;
  options.take("recipe", how.recipe, "a str").take("out", how.out, "a str").take("from", how.from, "a str");
  options.take("data", how.data, "a list of str").take("set", how.set, "a list of str as 'schedule.warmup=20'");
  options.take("resume", how.resume, "True or False").number("threads", how.threads);
  Told told(options.get("on_step"), options.get("on_evaluation"));
  how.on_step = [&](const qkv::StepReport& report) { return told.step(report); };
  how.on_evaluation = [&](const qkv::EvaluationReport& report) { told.evaluation(report); };
  qkv::Trained trained;
  {
    const py::gil_scoped_release free;
    trained = qkv::train(how);
  }
  told.rethrow();
  return py::dict("steps"_a = trained.steps, "tokens"_a = trained.tokens, "best_loss"_a = trained.best_loss,
                  "finished"_a = trained.finished, "best"_a = to_str(trained.best), "last"_a = to_str(trained.last));
}

qkv::Trainer make_trainer(const std::string& path, const py::dict& values) {
  const Options options(values);
  const qkv::OpenOptions open = open_options(options);
  qkv::TrainerOptions how;
  how.device = open.device;
  how.threads = open.threads;
  if (open.precision != qkv::Precision::automatic) how.precision = open.precision;
  options.take("optimizer", how.optimizer, "a str").real("beta1", how.beta1).real("beta2", how.beta2);
  options.real("eps", how.eps).real("momentum", how.momentum).real("decay", how.decay).real("clip", how.clip);
  options.real("smoothing", how.smoothing).take("frozen", how.frozen, "a list of str").number("seed", how.seed);
  const py::gil_scoped_release free;
  return qkv::Trainer(path, how);
}

qkv::Batch batch_of(const py::tuple& given) {  // texts, targets, sources
  return {.texts = rows_of_ids(given[0], "the texts"),
          .targets = rows_of_ids(given[1], "the targets"),
          .sources = rows_of_ids(given[2], "the sources")};
}

}  // namespace

void add_training(py::module_& module) {
  module.def("train", train);
  module.def("recipes", &qkv::recipes);
  module.def("new_model", &qkv::new_model, py::call_guard<py::gil_scoped_release>());
  py::class_<qkv::Trainer>(module, "Trainer")
      .def(py::init(&make_trainer))
      .def("step",
           [](qkv::Trainer& self, const py::tuple& given, double lr) {
             const qkv::Batch batch = batch_of(given);
             qkv::StepReport report;
             {
               const py::gil_scoped_release free;
               report = self.step(batch, lr);
             }
             return report_of(report);
           })
      .def("loss",
           [](qkv::Trainer& self, const py::tuple& given) {
             const qkv::Batch batch = batch_of(given);
             const py::gil_scoped_release free;
             return self.loss(batch);
           })
      .def("steps", &qkv::Trainer::steps)
      .def("weights",
           [](const qkv::Trainer& self) {
             py::list out;
             for (const qkv::Trainer::Weight& one : self.weights()) {
               out.append(py::make_tuple(one.name, one.shape, one.trained));
             }
             return out;
           })
      .def("weight",
           [](const qkv::Trainer& self, const std::string& name) {
             qkv::Array array;
             {
               const py::gil_scoped_release free;
               array = self.weight(name);
             }
             return owned(std::move(array.values), array.shape);
           })
      .def("save", &qkv::Trainer::save, py::call_guard<py::gil_scoped_release>());
}

}  // namespace qkv_python

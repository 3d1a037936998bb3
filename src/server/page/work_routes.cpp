// /page/jobs, /page/training and /page/labs: work that is started from the page, and what becomes of it.
#include "labs/lab.h"
#include "server/jobs/knobs.h"
#include "server/jobs/lab_job.h"
#include "server/page/page_routes.h"

namespace qkv::server {
namespace {

void answer_state(const Jobs& jobs, const std::shared_ptr<Exchange>& exchange) {
  exchange->respond(json_response(jobs.state()));
}

}  // namespace

void page_jobs(Jobs& jobs, const Fields&, const std::shared_ptr<Exchange>& exchange) {
  OrderedJson made = jobs.state(), recipes = OrderedJson::array();
  for (const Json& recipe : jobs.options().recipes) {
    recipes.push_back(
        {{"name", recipe.value("name", "")}, {"about", recipe.value("about", "")}, {"knobs", knobs_of(recipe)}});
  }
  made["recipes"] = std::move(recipes);
  made["can_start"] = !jobs.options().program.empty();
  exchange->respond(json_response(made));
}

void page_job_events(Jobs& jobs, const Fields&, const std::shared_ptr<Exchange>& exchange) {
  jobs.listen(exchange);
}

void page_job_movie(Jobs& jobs, const Fields&, const std::shared_ptr<Exchange>& exchange) {
  const std::shared_ptr<const std::string> movie = jobs.movie();
  if (!movie) throw ApiError(404, "no training has taken a snapshot yet");
  exchange->respond({.body = *movie});
}

void page_labs(Jobs& jobs, const Fields&, const std::shared_ptr<Exchange>& exchange) {
  OrderedJson all = OrderedJson::array();
  for (const Lab* lab : all_labs()) {
    OrderedJson one = lab_json(*lab);
    one["here"] = jobs.lab_report(lab->name);
    all.push_back(std::move(one));
  }
  exchange->respond(json_response({{"labs", std::move(all)}}));
}

void page_train(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange) {
  jobs.train(fields.text("recipe", {1, 100}).value_or("demo"), fields);
  answer_state(jobs, exchange);
}

void page_pause(Jobs& jobs, const Fields&, const std::shared_ptr<Exchange>& exchange) {
  jobs.pause();
  answer_state(jobs, exchange);
}

void page_resume(Jobs& jobs, const Fields&, const std::shared_ptr<Exchange>& exchange) {
  jobs.resume();
  answer_state(jobs, exchange);
}

void page_stop_training(Jobs& jobs, const Fields&, const std::shared_ptr<Exchange>& exchange) {
  jobs.stop(Job::Kind::training);
  answer_state(jobs, exchange);
}

void page_run_lab(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange) {
  jobs.run_lab(fields.need_text("name", {1, 100}), fields.whole("seeds", {Lab::kFewestSeeds, 100}).value_or(0));
  answer_state(jobs, exchange);
}

void page_stop_lab(Jobs& jobs, const Fields&, const std::shared_ptr<Exchange>& exchange) {
  jobs.stop(Job::Kind::lab);
  answer_state(jobs, exchange);
}

}  // namespace qkv::server

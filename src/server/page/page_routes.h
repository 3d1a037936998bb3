// The routes of the page: a table of functions. Each checks the fields it takes; an ApiError or Error is what the client
// is told.
#pragma once

#include <list>

#include "inspect/look/head_maps.h"
#include "server/http/api_error.h"
#include "server/jobs/jobs.h"
#include "server/page/page_forms.h"
#include "server/page/page_measurement.h"
#include "server/page/page_model.h"
#include "server/requests/fields.h"

namespace qkv::server {

// What a request wants to be looked at: "text" (or "ids"), "target" and "cut".
struct PageText {
  PageModel& model;
  TokenText text = {};
  std::string title = {};
  Cut cut = {};
};

// The attentions whose maps were asked for last: the next tile of one costs no pass.
class MapCache {
 public:
  const LayerMaps& get(const PageText& asked, Place place);
  // Whether one pass over this text is enough for all its attentions; whether it was made.
  bool keeps_all(const PageText& asked) const;
  bool has(const PageText& asked) const;
  // What a pass kept.
  void put(const PageText& asked, MapsReading& maps);

 private:
  static constexpr size_t kMostBytes = size_t{512} << 20;
  static constexpr int64_t kLongText = 512;  // tokens
  struct Entry {
    std::string model;
    TokenText text;
    Cut cut;
    Place place;
    std::unique_ptr<LayerMaps> maps;
  };
  static bool is_of(const Entry& entry, const PageText& asked);
  void drop_old();
  std::list<Entry> entries_;  // the last used first
};

// What routes work with.
struct PageParts {
  PageThread thread;
  PageModels models{thread};
  MapCache maps;
  PageMeasurements measurements{thread};
  PageForms forms;
};

// Routes that look into models: on the page's thread.
using PageLook = HttpResponse (*)(PageParts& page, const Fields& fields);

OrderedJson page_models_json(PageParts& page);
HttpResponse page_models(PageParts& page, const Fields& fields);
HttpResponse page_look(PageParts& page, const Fields& fields);
HttpResponse page_write(PageParts& page, const Fields& fields);
HttpResponse page_cut(PageParts& page, const Fields& fields);
HttpResponse page_roles(PageParts& page, const Fields& fields);
HttpResponse page_story(PageParts& page, const Fields& fields);
HttpResponse page_update(PageParts& page, const Fields& fields);
HttpResponse page_weight(PageParts& page, const Fields& fields);
HttpResponse page_tile(PageParts& page, const Fields& fields);
HttpResponse page_overview(PageParts& page, const Fields& fields);
HttpResponse page_examples(PageParts& page, const Fields& fields);
HttpResponse page_twins(PageParts& page, const Fields& fields);
HttpResponse page_experts(PageParts& page, const Fields& fields);
HttpResponse page_decode(PageParts& page, const Fields& fields);
HttpResponse page_compare(PageParts& page, const Fields& fields);
HttpResponse page_sums(PageParts& page, const Fields& fields);

// Routes about work that was started, or starts it: by a reader's thread, at once.
using PageWork = void (*)(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange);

void page_jobs(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange);
void page_job_events(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange);
void page_job_movie(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange);
void page_labs(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange);
void page_train(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange);
void page_pause(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange);
void page_resume(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange);
void page_stop_training(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange);
void page_run_lab(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange);
void page_stop_lab(Jobs& jobs, const Fields& fields, const std::shared_ptr<Exchange>& exchange);

// --- what they have in common ----------------------------------------------------------------------------------------

// "model", or the first; 404 if there is none of this name.
PageModel& page_model_of(PageParts& page, const Fields& fields);

PageText page_text_of(PageParts& page, const Fields& fields);
Cut page_cut_of(PageModel& model, const Fields& fields);

// "head": one of the model's; 404 otherwise.
HeadId page_head_of(PageModel& model, const Fields& fields);
// "rows": [a, b] and the like, half-open; everything if it is not there.
struct PageRange {
  int64_t first = 0, end = 0;
};
PageRange page_range_of(const Fields& fields, std::string_view name, int64_t count);

// The report's numbers are finite, or it is an Error.
HttpResponse report_response(const Json& report);

struct PageWritten {
  std::string text;
  Json tokens = Json::array();
  const char* finish = "length";
};
struct PageWriteOptions {
  Sampling sampling{.temperature = 0};
  int64_t max_new = 24;
};
PageWritten page_write_text(const PageText& asked, const PageWriteOptions& options, Probe* probe);

// A look report of a text; the token whose story is told is chosen where none is asked for.
Json page_look_report(const PageText& asked, std::optional<int64_t> token, MapCache* maps = nullptr,
                      bool thumbs = true);

}  // namespace qkv::server

// The routes of the page: a table of functions. Each checks the fields it takes; an ApiError or Error is what the client
// is told.
#pragma once

#include "server/http/api_error.h"
#include "server/page/page_model.h"
#include "server/requests/fields.h"

namespace qkv::server {

// What routes work with.
struct PageParts {
  PageThread thread;
  PageModels models{thread};
};

// Routes that look into models: on the page's thread.
using PageLook = HttpResponse (*)(PageParts& page, const Fields& fields);

HttpResponse page_models(PageParts& page, const Fields& fields);
HttpResponse page_look(PageParts& page, const Fields& fields);
HttpResponse page_write(PageParts& page, const Fields& fields);
HttpResponse page_cut(PageParts& page, const Fields& fields);
HttpResponse page_roles(PageParts& page, const Fields& fields);

// --- what they have in common ----------------------------------------------------------------------------------------

// "model", or the first; 404 if there is none of this name.
PageModel& page_model_of(PageParts& page, const Fields& fields);

// What a request wants to be looked at: "text" (or "ids"), "target" and "cut".
struct PageText {
  PageModel& model;
  TokenText text;
  std::string title;
  Cut cut;
};
PageText page_text_of(PageParts& page, const Fields& fields);
Cut page_cut_of(PageModel& model, const Fields& fields);

// The report's numbers are finite, or it is an Error.
HttpResponse report_response(const Json& report);

// A look report of a text; the token whose story is told is chosen where none is asked for.
Json page_look_report(const PageText& asked, std::optional<int64_t> token);

}  // namespace qkv::server

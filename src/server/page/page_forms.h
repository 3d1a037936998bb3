// A model in other forms than the page looks at: rounded to bf16, or its matrices in 8 or 4 bits.
#pragma once

#include <list>

#include "server/page/page_model.h"

namespace qkv::server {

class PageForms {
 public:
  static constexpr std::string_view kNames[] = {"exact", "bf16", "q8", "q4"};
  // "exact" is the model as the page has it. Quantised ones are made here, at the first question; two are kept.
  const OpenModel& get(PageModel& model, const std::string& form);

 private:
  struct Entry {
    std::string name, form;
    std::unique_ptr<OpenModel> opened;
  };
  std::list<Entry> entries_;  // the last used first
};

}  // namespace qkv::server

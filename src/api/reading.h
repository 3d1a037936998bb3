// A probe that shows taps to functions of a user, who may change what they see.
#pragma once

#include <qkv/look.h>

#include <map>
#include <memory>

#include "inspect/cut/ablation.h"
#include "inspect/taps/taps.h"
#include "inspect/texts/reading.h"
#include "open/open_model.h"

namespace qkv::v1 {

class FunctionProbe : public ReadingProbe {
 public:
  // An Error for a tap this model does not have, and for one that cannot be changed.
  FunctionProbe(const ModelSpec& spec, const ReadOptions& options);

  std::vector<Array>& arrays() { return arrays_; }

  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place place, Site site) const override;
  void visit(Context& cx, const Tap& tap, Tensor& x) override;

 private:
  struct Wanted {
    bool keep = false;
    std::vector<const See*> see = {};
    std::vector<const Edit*> edit = {};
  };
  using Key = std::tuple<Stack, int16_t, Site>;
  static Key key_of(Place place, Site site) { return {place.stack, place.layer, site}; }
  Wanted& wanted(const TapId& tap) { return wanted_[key_of(tap.place, tap.site)]; }

  const ModelSpec& spec_;
  std::map<Key, Wanted> wanted_;
  std::vector<Array> arrays_;
};

// A cut of the library as one of a model: names read, outputs measured where they are needed.
struct MeasuredCut {
  qkv::Cut cut;
  std::shared_ptr<const HeadOutputs> outputs;
};
MeasuredCut measured_cut(Reader& reader, const OpenModel& model, const Cut& cut);
qkv::Cut parsed_cut(const ModelSpec& spec, const Cut& cut);
// What a cut is measured on, unless it says so.
Data data_of(const ModelSpec& spec, const Cut& cut);

}  // namespace qkv::v1

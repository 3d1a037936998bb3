#include "infer/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/memory.h"
#include "core/host_values.h"
#include "model/weight_memory.h"

namespace qkv {
namespace {

// Passes that are recorded: decoding, a row for each of so many texts, or several rows of few (drafts, short texts).
constexpr int64_t kMostRecorded = 256, kMostRecordedOfFew = 64;

int64_t context_of(const ModelSpec& spec) {
  constexpr int64_t kUnlimited = int64_t{1} << 20;  // models such as T5 name no limit
  return spec.context > 0 ? spec.context : kUnlimited;
}

RunOptions completed(RunOptions options, const ModelSpec& spec) {
  constexpr int64_t kUnknownContext = 2048;
  QKV_CHECK(spec.kind != ModelSpec::Kind::encoder_only, "a ", spec.family, " reads whole texts and writes none",
            Hint("to generate text take a decoder or an encoder-decoder"));
  if (options.positions == 0) options.positions = spec.context > 0 ? spec.context : kUnknownContext;
  if (options.sources == 0) options.sources = options.positions;
  QKV_CHECK(options.positions > 0 && options.chunk > 0, "a run of ", options.positions, " positions in chunks of ",
            options.chunk, Hint("both are 1 or more"));
  options.chunk = std::min({options.chunk, options.positions, context_of(spec)});
  return options;
}

// As the embedding checks them, before they are uploaded.
void check_ids(std::span<const int32_t> ids, int64_t limit) {
  for (size_t i = 0; i < ids.size(); ++i) {
    QKV_CHECK(ids[i] >= 0 && ids[i] < limit, "embedding: ids[", i, "] is ", ids[i], " but must be in [0, ", limit, ")",
              Hint("check the tokenizer or the index list against the size of the table"));
  }
}

// Of what a pass uploads, beside that of a pass of one short sequence: as many sequences as rows, each with a page table as
// wide as that of the longest.
int64_t most_inputs(const KvPages& pages, int64_t rows, int64_t longest) {
  const auto width = std::bit_ceil(static_cast<uint64_t>(KvCache::pages_for(longest)));
  const int64_t tables = std::ssize(pages.tables) * static_cast<int64_t>(width) * size_of(DType::i32);
  return rows * (static_cast<int64_t>(sizeof(Segment)) + tables);
}

}  // namespace

std::vector<int32_t> decoder_prompt(std::vector<int32_t> given, const ModelSpec& spec) {
  if (!given.empty() || !spec.has_source()) return given;
  QKV_CHECK(spec.tokens.decoder_start.has_value(), "the ", spec.family,
            " does not say which token its target starts with, and no prompt was given",
            Hint("config.json should have decoder_start_token_id"));
  return {*spec.tokens.decoder_start};
}

int64_t bytes_in_pass(const Param& weight, DType compute) {
  return (weight.format().plain() ? Format(compute) : weight.format()).bytes_for(weight.shape());
}

MemoryNeed Runner::need(const Model& model, const Engine& engine, const RunOptions& given) {
  const ModelSpec& spec = model.spec();
  const RunOptions options = completed(given, spec);
  MemoryNeed need;
  const WeightMemory weights = weight_memory(model, engine.kernels(), options.precision);
  need.weights = weights.kept;
  const std::vector<KvLayout> own = kv_layouts(spec), across = source_layouts(spec);
  const auto bytes = engine.device().stream() != nullptr ? &KvCache::allocated_bytes : &KvCache::bytes_for;
  need.cache = bytes(own, options.cache, options.positions);
  if (!across.empty()) need.cache += bytes(across, options.cache, options.sources);

  // A dry pass: no kernels, an arena that only counts, and a cache of one chunk that is never written.
  Arena arena(engine.device(), 0, Arena::Mode::plan);
  Context cx{.kernels = Kernels::none(), .exec = engine.exec(), .arena = arena, .precision = options.precision};
  KvCache cache(engine.device(), own, {.dtype = options.cache, .positions = options.chunk});
  const KvCache::Part part{.id = cache.start(), .count = static_cast<int32_t>(options.chunk)};
  const KvPages pages = cache.append(cx, {&part, 1});
  std::optional<KvCache> sources;
  KvPages source_pages;
  if (!across.empty()) {
    sources.emplace(engine.device(), across, KvCache::Options{.dtype = options.cache, .positions = options.chunk});
    const KvCache::Part source{.id = sources->start(), .count = part.count};
    source_pages = sources->look(cx, {&source, 1});
  }
  const auto ints = [&] { return cx.constant({options.chunk}, DType::i32); };
  const Tensor ids = ints(), rows = ints();
  ints();  // the highest
  const Tensor states = model.next_states(cx, ids, pages, across.empty() ? nullptr : &source_pages);
  model.head().forward(cx, ops::gather_rows(cx, states, rows));
  need.arena = arena.peak() + most_inputs(pages, options.chunk, std::min(options.positions, context_of(spec)));
  if (!across.empty()) {
    need.arena += most_inputs(source_pages, options.chunk, std::min(options.sources, context_of(spec)));
  }
  need.pass = need.arena + options.chunk * spec.vocabulary * size_of(DType::f32) + weights.before;
  return need;
}

MemoryNeed Runner::fitting(const Model& model, const Engine& engine, const RunOptions& options) {
  const MemoryNeed need = Runner::need(model, engine, options);
  const int64_t have = engine.device().free_bytes() + weight_memory(model, engine.kernels(), options.precision).held;
  if (need.total() <= have) return need;
  const int64_t left = have - need.weights - need.pass, each = std::max<int64_t>(need.cache / options.positions, 1);
  QKV_FAIL("this run needs ", in_gibibytes(need.total()), " (weights ", in_gibibytes(need.weights),
           ", keys and values of ", options.positions, " positions ", in_gibibytes(need.cache), ", a pass ",
           in_gibibytes(need.pass), ") but ", in_gibibytes(have), " are free on ", engine.device().name(),
           Hint(left >= each * KvCache::kPage ? fmt::format("about {} positions would fit; ", left / each) : "",
                "use a shorter context, keys and values in 8 bits, a quantised model, or --device cpu"));
}

Runner::Runner(const Model& model, const Engine& engine, const RunOptions& options)
    : Runner(model, engine, options, fitting(model, engine, completed(options, model.spec()))) {}

Runner::Runner(const Model& model, const Engine& engine, const RunOptions& options, const MemoryNeed& need)
    : model_(&model),
      engine_(&engine),
      options_(completed(options, model.spec())),
      arena_(engine.device(), need.arena),
      cache_(engine.device(), kv_layouts(model.spec()), {.dtype = options_.cache, .positions = options_.positions}),
      recorder_(engine.device()) {
  const std::vector<KvLayout> across = source_layouts(model.spec());
  if (!across.empty()) {
    sources_.emplace(engine.device(), across, KvCache::Options{.dtype = options_.cache, .positions = options_.sources});
  }
}

int64_t Runner::context() const {
  return context_of(model_->spec());
}

// Of the next pass.
Context Runner::pass_context(Probe* probe) {
  arena_.rewind({});
  Context cx = engine_->context(arena_, options_.precision);
  cx.probe = probe != nullptr ? probe : options_.probe;
  cx.recordable = engine_->device().can_record();
  return cx;
}

bool Runner::uses_long_rope(int64_t reach) const {
  const auto beyond = [&](const LayerSpec& layer) {
    const std::optional<RopeSpec>& rope = layer.attention.rope;
    return rope && rope->scaling.kind == ops::RopeScaling::Kind::longrope &&
           static_cast<double>(reach) > rope->scaling.original_context;
  };
  const std::vector<LayerSpec>& layers = model_->spec().decoder.layers;
  return std::any_of(layers.begin(), layers.end(), beyond);
}

Runner::Sequence Runner::start() {
  QKV_CHECK(!sources_, "a ", model_->spec().family, " translates, but no source was given",
            Hint("give what the encoder is to read"));
  return {.own = cache_.start()};
}

Runner::Sequence Runner::start(std::span<const int32_t> source) {
  const std::vector<int32_t> ids(source.begin(), source.end());
  return start(std::span(&ids, 1)).front();
}

std::vector<Runner::Sequence> Runner::start(std::span<const std::vector<int32_t>> sources) {
  QKV_CHECK(sources_.has_value(), "a ", model_->spec().family, " has no encoder to read a source with",
            Hint("give the text as its prompt"));
  std::vector<Sequence> made;
  std::vector<KvCache::Part> parts;
  std::vector<int32_t> ids, lengths;
  for (const std::vector<int32_t>& source : sources) {
    QKV_CHECK(!source.empty(), "source ", made.size(), " of ", sources.size(), " has no tokens",
              Hint("an encoder reads at least one"));
    QKV_CHECK(static_cast<int64_t>(source.size()) <= context(), "a source of ", source.size(),
              " tokens is too long: this model reads ", context(), Hint("cut it into sentences"));
    made.push_back({.own = cache_.start(), .source = sources_->start()});
    parts.push_back({.id = made.back().source, .count = static_cast<int32_t>(source.size())});
    ids.insert(ids.end(), source.begin(), source.end());
    lengths.push_back(parts.back().count);
  }
  Context cx = pass_context();
  const int64_t words = model_->spec().source_vocabulary;
  if (cx.recordable) check_ids(ids, words > 0 ? words : vocabulary());
  const KvPages pages = sources_->append(cx, parts);
  const Rows rows = Rows::ragged(cx, lengths);
  static_cast<const EncoderDecoder&>(*model_).cache_source(cx, cx.upload(ids), rows, pages);
  return made;
}

Runner::Sequence Runner::fork(const Sequence& from, int64_t length) {
  Sequence made{.own = cache_.fork(from.own, length)};
  if (from.source >= 0) made.source = sources_->fork(from.source, sources_->length(from.source));
  return made;
}

void Runner::end(const Sequence& s) {
  cache_.end(s.own);
  if (s.source >= 0) sources_->end(s.source);
}

std::span<const float> Runner::pass(std::span<const Part> parts, Probe* probe) {
  return pass(parts, Wanted::logits, probe).logits;
}

Runner::Result Runner::pass(std::span<const Part> parts, Wanted what, Probe* probe) {
  std::vector<KvCache::Part> own, across;
  std::vector<int32_t> ids, wanted;
  for (const Part& part : parts) {
    const auto count = static_cast<int32_t>(part.ids.size());
    const int64_t reach = std::clamp<int64_t>(part.reach, 0, INT32_MAX);
    own.push_back({part.sequence.own, count, part.request, static_cast<int32_t>(reach)});
    if (sources_) across.push_back({part.sequence.source, count, part.request});
    ids.insert(ids.end(), part.ids.begin(), part.ids.end());
    for (int64_t i = std::min<int64_t>(part.logits, count); i > 0; --i) {
      wanted.push_back(static_cast<int32_t>(static_cast<int64_t>(ids.size()) - i));
    }
  }
  Context cx = pass_context(probe);
  if (cx.recordable) check_ids(ids, vocabulary());
  // All inputs first: what follows works on memory of the device alone, and can be recorded.
  const KvPages pages = cache_.append(cx, own);
  const KvPages source_pages = sources_ ? sources_->look(cx, across) : KvPages{};
  const Tensor tokens = cx.upload(ids), rows = wanted.size() < ids.size() ? cx.upload(wanted) : Tensor();
  const bool finds_highest = what == Wanted::highest && !wanted.empty() && cx.kernels.first_highest != nullptr;
  const Tensor highest = finds_highest ? cx.constant({std::ssize(wanted)}, DType::i32) : Tensor();
  const auto run = [&] {
    const Tensor states = model_->next_states(cx, tokens, pages, sources_ ? &source_pages : nullptr);
    if (wanted.empty()) return Tensor();
    const Tensor logits = model_->head().forward(cx, rows.defined() ? ops::gather_rows(cx, states, rows) : states);
    if (finds_highest && logits.dtype() == DType::f32) cx.kernels.first_highest(cx.exec, {.ids = highest, .x = logits});
    return logits;
  };
  const auto result = [&](const Tensor& logits) -> Result {
    if (finds_highest && logits.dtype() == DType::f32) {
      const std::span<const int32_t> found = ids_on_host(highest);
      if (std::ranges::find(found, -1) == found.end()) return {.highest = found};
    }
    return {.logits = on_host(logits)};
  };
  // A recording is of short texts: their angles are not those of a long one.
  const auto reach = std::ranges::max_element(pages.rows.reach);
  const bool is_long = reach != pages.rows.reach.end() && uses_long_rope(*reach);
  const bool recorded = std::ssize(ids) <= (ids.size() == parts.size() ? kMostRecorded : kMostRecordedOfFew);
  if (cx.probe != nullptr || is_long || !recorded) return result(run());
  PassRecorder::Key key{static_cast<int64_t>(Param::changes()),
                        arena_.used(),
                        std::ssize(ids),
                        std::ssize(parts),
                        std::ssize(wanted),
                        finds_highest ? 1 : 0};
  for (const KvPages* p : {&pages, &source_pages}) {
    for (const Tensor& table : p->tables) key.push_back(table.dim(1));
  }
  return result(recorder_.run(key, run));
}

// Both are valid until the next pass.
std::span<const float> Runner::on_host(const Tensor& logits) {
  if (!logits.defined()) return {};
  auto* host = reinterpret_cast<float*>(room_on_host(logits_, DType::f32, logits.count()));
  if (logits.dtype() == DType::f32) {
    logits.device().download(host, logits.data(), logits.count() * size_of(DType::f32));
  } else {
    std::ranges::copy(host_floats(logits), host);
  }
  return {host, static_cast<size_t>(logits.count())};
}
std::span<const int32_t> Runner::ids_on_host(const Tensor& ids) {
  auto* host = reinterpret_cast<int32_t*>(room_on_host(highest_, DType::i32, ids.count()));
  ids.device().download(host, ids.data(), ids.count() * size_of(DType::i32));
  return {host, static_cast<size_t>(ids.count())};
}

std::byte* Runner::room_on_host(Storage& room, DType dtype, int64_t count) {
  if (!room.defined() || room.bytes() < count * size_of(dtype)) {
    room = Storage(engine_->device().host_memory(), dtype, count);
  }
  return room.data();
}

std::span<const float> Runner::prefill(Part part) {
  QKV_ASSERT(part.logits <= options_.chunk, part.logits, " rows of logits of a chunk of ", options_.chunk);
  const auto chunk = static_cast<size_t>(options_.chunk);
  std::span<const int32_t> rest = part.ids;
  while (rest.size() > chunk) {
    // Rows with logits stay in the last pass.
    const size_t now =
        std::min(chunk, rest.size() - static_cast<size_t>(std::min<int64_t>(part.logits, options_.chunk)));
    const Part some{
        .sequence = part.sequence, .ids = rest.first(now), .logits = 0, .request = part.request, .reach = part.reach};
    pass({&some, 1});
    rest = rest.subspan(now);
  }
  part.ids = rest;
  return pass({&part, 1});
}

}  // namespace qkv

#include "nn/kv_cache.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace qkv {
namespace {

// Bytes of one page of one layer.
int64_t page_bytes(const KvLayout& layer, DType dtype) {
  const int64_t scales = dtype == DType::i8 ? 2 * layer.kv_heads * size_of(DType::f32) : 0;
  return KvCache::kPage * (layer.kv_heads * (layer.width + layer.value_width) * size_of(dtype) + scales);
}

}  // namespace

KvCache::KvCache(Device& device, std::vector<KvLayout> layers, const Options& options)
    : pages_(pages_for(options.positions)) {
  const DType dtype = options.dtype;
  QKV_CHECK(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f64 || dtype == DType::i8, "a cache of ",
            dtype, " keys and values", Hint("they are kept in f32, bf16 or i8"));
  QKV_CHECK(options.positions > 0 && pages_ * kPage <= INT32_MAX, "a cache of ", options.positions, " positions",
            Hint("a cache holds 1 to 2^31 - 1 positions"));
  const auto take = [&](DType type, const Shape& shape) {
    return Tensor(storage_.emplace_back(device, type, shape), shape);
  };
  for (size_t i = 0; i < layers.size(); ++i) {
    const KvLayout& l = layers[i];
    auto set = std::find_if(sets_.begin(), sets_.end(), [&](const Set& s) { return s.window == l.window; });
    if (set == sets_.end()) {
      set = sets_.insert(sets_.end(), Set{.window = l.window});
      set->uses.resize(static_cast<size_t>(pages_), 0);
      for (int64_t p = pages_ - 1; p >= 0; --p) set->free.push_back(static_cast<int32_t>(p));
    }
    set->layers.push_back(i);
    Layer& made = layers_.emplace_back();
    made.set = static_cast<size_t>(set - sets_.begin());
    made.k = take(dtype, {pages_, kPage, l.kv_heads, l.width});
    made.v = take(dtype, {pages_, kPage, l.kv_heads, l.value_width});
    if (dtype == DType::i8) {
      made.k_scales = take(DType::f32, {pages_, kPage, l.kv_heads});
      made.v_scales = take(DType::f32, {pages_, kPage, l.kv_heads});
    }
  }
}

int64_t KvCache::bytes_for(std::span<const KvLayout> layers, DType dtype, int64_t positions) {
  int64_t bytes = 0;
  for (const KvLayout& l : layers) {
    // The first and last page of a window may be partly used.
    const int64_t pages = l.window > 0 ? std::min(pages_for(positions), pages_for(l.window) + 2) : pages_for(positions);
    bytes += pages * page_bytes(l, dtype);
  }
  return bytes;
}

int64_t KvCache::allocated_bytes(std::span<const KvLayout> layers, DType dtype, int64_t positions) {
  int64_t bytes = 0;
  for (const KvLayout& l : layers) bytes += pages_for(positions) * page_bytes(l, dtype);
  return bytes;
}

KvCache::Sequence& KvCache::sequence(Id id) {
  return const_cast<Sequence&>(std::as_const(*this).sequence(id));
}
const KvCache::Sequence& KvCache::sequence(Id id) const {
  QKV_ASSERT(id >= 0 && static_cast<size_t>(id) < sequences_.size() && sequences_[static_cast<size_t>(id)].live,
             "the cache has no sequence ", id);
  return sequences_[static_cast<size_t>(id)];
}

KvCache::Id KvCache::start() {
  auto place = std::find_if(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return !s.live; });
  if (place == sequences_.end()) place = sequences_.insert(sequences_.end(), Sequence{});
  *place = {.live = true, .tables = std::vector<std::vector<int32_t>>(sets_.size())};
  return static_cast<Id>(place - sequences_.begin());
}

void KvCache::end(Id id) {
  truncate(id, 0);
  sequence(id).live = false;
}

void KvCache::truncate(Id id, int64_t length) {
  Sequence& s = sequence(id);
  QKV_ASSERT(length >= 0 && length <= s.length, "a sequence of ", s.length, " positions cannot be cut to ", length);
  QKV_ASSERT(can_fork(id, length), "a window has left behind what position ", length, " of ", s.length, " looks at");
  for (size_t set = 0; set < sets_.size(); ++set) {
    std::vector<int32_t>& table = s.tables[set];
    while (static_cast<int64_t>(table.size()) > pages_for(length)) {
      drop_page(set, table.back());
      table.pop_back();
    }
  }
  s.length = length;
}

bool KvCache::can_fork(Id from, int64_t length) const {
  const Sequence& s = sequence(from);
  if (length < 0 || length > s.length) return false;
  if (length == 0) return true;
  for (size_t set = 0; set < sets_.size(); ++set) {
    const int64_t window = sets_[set].window;
    const int64_t oldest = window > 0 ? std::max<int64_t>(length - window + 1, 0) : 0;
    // Windows free pages from the front, so checking the oldest is enough.
    if (oldest < length && s.tables[set][static_cast<size_t>(oldest / kPage)] == kGone) return false;
  }
  return true;
}

KvCache::Id KvCache::fork(Id from, int64_t length) {
  QKV_ASSERT(can_fork(from, length), "a sequence of ", this->length(from), " positions cannot be forked at ", length);
  const Id id = start();
  const Sequence& parent = sequence(from);
  Sequence& child = sequence(id);
  child.length = length;
  for (size_t set = 0; set < sets_.size(); ++set) {
    child.tables[set].assign(parent.tables[set].begin(), parent.tables[set].begin() + pages_for(length));
    for (const int32_t page : child.tables[set]) {
      if (page != kGone) ++sets_[set].uses[static_cast<size_t>(page)];
    }
  }
  return id;
}

int32_t KvCache::take_page(size_t set) {
  Set& pages = sets_[set];
  QKV_CHECK(!pages.free.empty(), "the cache is full: all of its ", pages_, " pages of ", kPage, " positions are taken",
            Hint("give it more positions, or end a sequence"));
  const int32_t page = pages.free.back();
  pages.free.pop_back();
  pages.uses[static_cast<size_t>(page)] = 1;
  return page;
}

void KvCache::drop_page(size_t set, int32_t page) {
  if (page == kGone) return;
  if (--sets_[set].uses[static_cast<size_t>(page)] == 0) sets_[set].free.push_back(page);
}

// Pages to allocate before `count` positions can be written: new ones, and a copy of a shared last one.
int64_t KvCache::pages_missing(const Sequence& s, size_t set, int64_t count) const {
  const auto have = static_cast<int64_t>(s.tables[set].size());
  const bool writes_last = count > 0 && s.length % kPage != 0;
  const bool shared = writes_last && sets_[set].uses[static_cast<size_t>(s.tables[set].back())] > 1;
  return pages_for(s.length + count) - have + (shared ? 1 : 0);
}

bool KvCache::fits(Id id, int64_t count) const {
  for (size_t set = 0; set < sets_.size(); ++set) {
    if (pages_missing(sequence(id), set, count) > static_cast<int64_t>(sets_[set].free.size())) return false;
  }
  return true;
}

int64_t KvCache::pages_used() const {
  size_t most = 0;
  for (const Set& set : sets_) most = std::max(most, set.uses.size() - set.free.size());
  return static_cast<int64_t>(most);
}

void KvCache::copy_page(size_t set, int32_t from, int32_t to) {
  const auto copy = [&](const Tensor& t) {
    if (!t.defined()) return;
    const Tensor source = t.slice(0, from, 1), target = t.slice(0, to, 1);
    t.device().copy(target.data(), source.data(), t.format().bytes_for(source.count()));
  };
  for (const size_t i : sets_[set].layers) {
    for (const Tensor* t : {&layers_[i].k, &layers_[i].v, &layers_[i].k_scales, &layers_[i].v_scales}) copy(*t);
  }
}

void KvCache::own_last_page(Sequence& s, size_t set) {
  int32_t& last = s.tables[set].back();
  if (sets_[set].uses[static_cast<size_t>(last)] == 1) return;
  const int32_t own = take_page(set);
  copy_page(set, last, own);
  drop_page(set, last);
  last = own;
}

void KvCache::make_room(Sequence& s, int64_t count) {
  if (count == 0) return;
  for (size_t set = 0; set < sets_.size(); ++set) {
    std::vector<int32_t>& table = s.tables[set];
    if (const int64_t window = sets_[set].window; window > 0) {
      // The next row attends from length - window + 1 on; earlier pages are free.
      const int64_t gone = std::max<int64_t>(s.length - window + 1, 0) / kPage;
      for (int64_t p = gone - 1; p >= 0 && table[static_cast<size_t>(p)] != kGone; --p) {
        drop_page(set, table[static_cast<size_t>(p)]);
        table[static_cast<size_t>(p)] = kGone;
      }
    }
    if (s.length % kPage != 0) own_last_page(s, set);
    while (static_cast<int64_t>(table.size()) < pages_for(s.length + count)) table.push_back(take_page(set));
  }
  s.length += count;
}

// The page tables of some sequences, one row each.
Tensor KvCache::table_of(Context& cx, std::span<const Part> parts, size_t set, int64_t longest) const {
  const int64_t needed = std::max<int64_t>(pages_for(longest), 1);
  const int64_t width = cx.recordable ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(needed))) : needed;
  std::vector<int32_t> table(parts.size() * static_cast<size_t>(width), kGone);
  for (size_t n = 0; n < parts.size(); ++n) {
    const std::vector<int32_t>& own = sequence(parts[n].id).tables[set];
    std::copy(own.begin(), own.end(), table.begin() + static_cast<int64_t>(n) * width);
  }
  return cx.upload(table).view({static_cast<int64_t>(parts.size()), width});
}

KvPages KvCache::append(Context& cx, std::span<const Part> parts) {
  std::vector<Segment> list;
  std::vector<int32_t> reach;
  int64_t rows = 0;
  for (const Part& part : parts) {
    Sequence& s = sequence(part.id);
    const auto before = static_cast<int32_t>(s.length);
    make_room(s, part.count);
    list.push_back({.request = part.request,
                    .first_row = static_cast<int32_t>(rows),
                    .rows = part.count,
                    .keys = static_cast<int32_t>(s.length),
                    .position = before});
    reach.push_back(std::max(part.reach, static_cast<int32_t>(s.length)));
    rows += part.count;
  }
  KvPages pages{.cache = this, .rows = Rows::make(cx, list, rows, Rows::kPaged)};
  pages.rows.reach = std::move(reach);
  for (size_t set = 0; set < sets_.size(); ++set) {
    pages.tables.push_back(table_of(cx, parts, set, pages.rows.longest_keys));
    std::vector<int32_t> slots;
    slots.reserve(static_cast<size_t>(rows));
    for (size_t n = 0; n < parts.size(); ++n) {
      const std::vector<int32_t>& table = sequence(parts[n].id).tables[set];
      for (int64_t at = list[n].position; at < list[n].keys; ++at) {
        slots.push_back(static_cast<int32_t>(table[static_cast<size_t>(at / kPage)] * kPage + at % kPage));
      }
    }
    pages.slots.push_back(cx.upload(slots));
  }
  return pages;
}

KvPages KvCache::look(Context& cx, std::span<const Part> parts) const {
  std::vector<Segment> list;
  int64_t rows = 0;
  for (const Part& part : parts) {
    list.push_back({.request = part.request,
                    .first_row = static_cast<int32_t>(rows),
                    .rows = part.count,
                    .keys = static_cast<int32_t>(length(part.id))});
    rows += part.count;
  }
  KvPages pages{.cache = this, .rows = Rows::make(cx, std::move(list), rows, Rows::kPaged)};
  for (size_t set = 0; set < sets_.size(); ++set) {
    pages.tables.push_back(table_of(cx, parts, set, pages.rows.longest_keys));
  }
  return pages;
}

}  // namespace qkv

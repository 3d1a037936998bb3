// The KV cache: keys and values of many sequences, in pages that sequences can share.
//
//   sequence a   [page 0][page 1][page 2 ..]      a page: kPage positions of all layers with the same window
//   sequence b   [page 0][page 1][page 7 ..]      forked from a: shared pages are stored once and copied on write
//
// Layers with a sliding window have their own pages and free those that have left the window.
#pragma once

#include <span>
#include <vector>

#include "core/context.h"

namespace qkv {

// What one layer caches per position.
struct KvLayout {
  int64_t kv_heads = 0, width = 0, value_width = 0;
  int64_t window = 0;  // 0: no window
};

class KvCache;

// The pages one pass reads and writes.
struct KvPages {
  const KvCache* cache = nullptr;
  Rows rows;                   // of the pass, with paged keys
  std::vector<Tensor> tables;  // for each set of pages, i32 [segments, pages]
  std::vector<Tensor> slots;   // i32 [N]: where to write the rows' keys and values; none if the pass only reads
};

class KvCache {
 public:
  static constexpr int64_t kPage = 32;
  static constexpr int64_t pages_for(int64_t positions) { return (positions + kPage - 1) / kPage; }
  static constexpr int64_t whole_pages(int64_t positions) { return pages_for(positions) * kPage; }  // in positions

  struct Options {
    DType dtype = DType::f32;  // f32, bf16, or i8 with a scale for each head of a position
    int64_t positions = 0;     // of all sequences together; memory is used only as they are written
  };
  KvCache(Device& device, std::vector<KvLayout> layers, const Options& options);

  // Bytes of all pages that `positions` positions of one sequence need.
  static int64_t bytes_for(std::span<const KvLayout> layers, DType dtype, int64_t positions);
  // Bytes a cache allocates: also pages that windows leave behind. The host takes those only once they are written.
  static int64_t allocated_bytes(std::span<const KvLayout> layers, DType dtype, int64_t positions);

  using Id = int32_t;
  Id start();
  void end(Id id);
  int64_t length(Id id) const { return sequence(id).length; }
  void truncate(Id id, int64_t length);
  // A new sequence that shares the first `length` positions of another. Not possible if a window has freed pages that
  // position `length` attends to.
  Id fork(Id from, int64_t length);
  bool can_fork(Id from, int64_t length) const;

  // Whether there are free pages for `count` more positions.
  bool fits(Id id, int64_t count) const;
  // Pages in use in the fullest set, and pages of a set.
  int64_t pages_used() const;
  int64_t pages() const { return pages_; }

  struct Part {
    Id id = 0;
    int32_t count = 0;    // rows
    int32_t request = 0;  // the request they belong to; taps report it
    int32_t reach = 0;    // final length of the sequence; see Rows::reach
  };
  // The next positions of some sequences: the pass writes them, then attends to them. An Error if they do not fit.
  KvPages append(Context& cx, std::span<const Part> parts);
  // For rows that attend to whole sequences and write nothing: cross-attention.
  KvPages look(Context& cx, std::span<const Part> parts) const;

  // For attention, by layer.
  struct Layer {
    Tensor k, v;                // [P, page, G, D], [P, page, G, E]
    Tensor k_scales, v_scales;  // f32 [P, page, G] where the pages are i8
    size_t set = 0;             // index of its tables and slots in KvPages
  };
  const Layer& layer(int64_t i) const { return layers_[static_cast<size_t>(i)]; }

 private:
  // Layers with the same window share page numbers.
  struct Set {
    int64_t window = 0;
    std::vector<size_t> layers;
    std::vector<int32_t> uses;  // of each page
    std::vector<int32_t> free;
  };
  struct Sequence {
    bool live = false;
    int64_t length = 0;
    std::vector<std::vector<int32_t>> tables;  // for each set, a page or kGone
  };
  static constexpr int32_t kGone = -1;

  Sequence& sequence(Id id);
  const Sequence& sequence(Id id) const;
  int64_t pages_missing(const Sequence& s, size_t set, int64_t count) const;
  int32_t take_page(size_t set);
  void drop_page(size_t set, int32_t page);
  void make_room(Sequence& s, int64_t count);
  void own_last_page(Sequence& s, size_t set);
  void copy_page(size_t set, int32_t from, int32_t to);
  Tensor table_of(Context& cx, std::span<const Part> parts, size_t set, int64_t longest) const;

  int64_t pages_;
  std::vector<Layer> layers_;
  std::vector<Storage> storage_;
  std::vector<Set> sets_;
  std::vector<Sequence> sequences_;
};

}  // namespace qkv

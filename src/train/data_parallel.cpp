#include "train/data_parallel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "ops/optim.h"

namespace qkv {
namespace {

int64_t bytes_of(const Param& weight) {
  return weight.shape().count() * size_of(DType::f32);
}

void check_power_of_two(int ranks) {
  QKV_CHECK(std::has_single_bit(static_cast<unsigned>(ranks)), ranks, " ranks: their number must be a power of two",
            Hint("start 1, 2, 4, 8 ... of them"));
}

void check_divides(int ranks, int64_t micro_batches) {
  QKV_CHECK(micro_batches % ranks == 0, micro_batches, " micro-batches cannot be divided evenly among ", ranks,
            " ranks", Hint("set micro_batches to a multiple of the ranks"));
}

}  // namespace

void DataParallel::check_ranks(int ranks, int64_t micro_batches) {
  check_power_of_two(ranks);
  check_divides(ranks, micro_batches);
}

DataParallel::DataParallel(Comm& comm, std::vector<Param*> weights, int zero)
    : comm_(comm), weights_(std::move(weights)), owner_(weights_.size(), 0), zero_(zero) {
  QKV_CHECK(zero >= 0 && zero <= 2, "zero is ", zero, " but must be 0, 1 or 2", Hint("see docs/scale.md"));
  check_power_of_two(comm.size());
  std::vector<size_t> order(weights_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bytes_of(*weights_[a]) > bytes_of(*weights_[b]); });
  std::vector<int64_t> load(static_cast<size_t>(comm.size()), 0);
  for (const size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    owner_[i] = static_cast<int>(least - load.begin());
    *least += bytes_of(*weights_[i]);
  }
}

DataParallel::Range DataParallel::micro_batch_range(int64_t micro_batches) const {
  check_divides(comm_.size(), micro_batches);
  const int64_t count = micro_batches / comm_.size();
  return {.first = comm_.rank() * count, .count = count};
}

// The weights of each owner, one after the other, on the device of the weights.
class DataParallel::ByOwner {
 public:
  explicit ByOwner(const DataParallel& all) : all_(all), counts_(static_cast<size_t>(all.comm_.size()), 0) {
    for (size_t i = 0; i < all.weights_.size(); ++i) {
      offsets_.push_back(counts_[owner(i)]);
      counts_[owner(i)] += all.weights_[i]->shape().count();
    }
  }
  Device& device() const { return all_.weights_.front()->device(); }
  Storage room(size_t rank) const { return {device(), DType::f32, std::max<int64_t>(counts_[rank], 1)}; }
  std::span<std::byte> bytes(const Storage& of, size_t rank) const {
    return {of.data(), static_cast<size_t>(counts_[rank] * size_of(DType::f32))};
  }
  Tensor numbers(const Storage& of, size_t rank) const {
    return Tensor(of, Shape{std::max<int64_t>(counts_[rank], 1)});
  }
  // Where weight i lies among those of its owner.
  std::byte* at(const Storage& of, size_t i) const { return of.data() + offsets_[i] * size_of(DType::f32); }
  size_t owner(size_t i) const { return static_cast<size_t>(all_.owner_[i]); }

 private:
  const DataParallel& all_;
  std::vector<int64_t> counts_, offsets_;
};

// Every rank sends what it owns to all; rooms[r] becomes what rank r owns.
void DataParallel::all_gather(const ByOwner& by, const Storage& mine, std::vector<Storage>& rooms) const {
  std::vector<std::span<const std::byte>> send(rooms.size(), by.bytes(mine, static_cast<size_t>(comm_.rank())));
  std::vector<std::span<std::byte>> receive;
  for (size_t r = 0; r < rooms.size(); ++r) receive.push_back(by.bytes(rooms[r], r));
  comm_.exchange_on(by.device(), send, receive);
}

int64_t DataParallel::exchanged_bytes() const {
  int64_t all = 0, mine = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    all += bytes_of(*weights_[i]);
    if (owner_[i] == comm_.rank()) mine += bytes_of(*weights_[i]);
  }
  return alone() ? 0 : all + comm_.size() * mine;
}

void DataParallel::sum_gradients(Context& cx) const {
  if (alone() || weights_.empty()) return;
  const auto ranks = static_cast<size_t>(comm_.size()), me = static_cast<size_t>(comm_.rank());
  const ByOwner by(*this);
  Device& device = by.device();
  std::vector<Storage> out, in;
  for (size_t r = 0; r < ranks; ++r) {
    out.push_back(by.room(r));
    in.push_back(by.room(me));
  }
  for (size_t i = 0; i < weights_.size(); ++i) {
    const Tensor gradient = weights_[i]->gradient();
    std::byte* to = by.at(out[by.owner(i)], i);
    if (gradient.defined()) {
      device.copy(to, gradient.data(), bytes_of(*weights_[i]));
    } else {  // an expert no token was routed to
      cx.kernels.fill(cx.exec, {.y = Tensor(device, to, Format(DType::f32), weights_[i]->shape()), .value = 0});
    }
    if (zero_ == 2 && owner_[i] != comm_.rank()) weights_[i]->take_gradient();
  }
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> receive;
  for (size_t r = 0; r < ranks; ++r) {
    send.push_back(by.bytes(out[r], r));
    receive.push_back(by.bytes(in[r], me));
  }
  comm_.exchange_on(device, send, receive);

  // The top of the tree: pairs of ranks, then pairs of pairs.
  for (size_t step = 1; step < ranks; step *= 2) {
    for (size_t r = 0; r < ranks; r += 2 * step) {
      const Tensor left = by.numbers(in[r], me);
      cx.kernels.add(cx.exec, {.y = left, .a = left, .b = by.numbers(in[r + step], me)});
    }
  }
  if (zero_ == 0) all_gather(by, in[0], out);
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (zero_ > 0 && owner_[i] != comm_.rank()) continue;
    const Grad to = weights_[i]->use_gradient(cx.precision.exact);
    device.copy(to.tensor.data(), by.at(zero_ > 0 ? in[0] : out[by.owner(i)], i), bytes_of(*weights_[i]));
  }
}

ops::SquareNorms DataParallel::squares(Context& cx) const {
  std::vector<const Param*> mine;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (owner_[i] == comm_.rank()) mine.push_back(weights_[i]);
  }
  return {cx, mine};
}

double DataParallel::gradient_norm(const ops::SquareNorms& of_mine) const {
  const std::vector<double> found = of_mine.read();
  std::vector<double> squares(weights_.size(), 0);
  for (size_t i = 0, at = 0; i < weights_.size(); ++i) {
    if (owner_[i] == comm_.rank()) squares[i] = found[at++];
  }
  const std::vector<double> all = all_gather_numbers(squares);
  double total = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    total += all[static_cast<size_t>(owner_[i]) * weights_.size() + i];
  }
  return std::sqrt(total);
}

void DataParallel::all_gather_weights(Context& cx) const {
  if (alone() || zero_ == 0 || weights_.empty()) return;
  const ByOwner by(*this);
  const Storage mine = by.room(static_cast<size_t>(comm_.rank()));
  std::vector<Storage> all;
  for (size_t r = 0; r < static_cast<size_t>(comm_.size()); ++r) all.push_back(by.room(r));
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (owner_[i] == comm_.rank())
      by.device().copy(by.at(mine, i), weights_[i]->master().data(), bytes_of(*weights_[i]));
  }
  all_gather(by, mine, all);
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (owner_[i] == comm_.rank()) continue;
    by.device().copy(weights_[i]->writable(cx).data(), by.at(all[by.owner(i)], i), bytes_of(*weights_[i]));
    weights_[i]->updated();
  }
}

std::vector<double> DataParallel::all_gather_numbers(std::span<const double> mine) const {
  std::vector<double> all;
  for (const std::vector<std::byte>& bytes : comm_.all_gather(std::as_bytes(mine))) {
    const size_t at = all.size();
    all.resize(at + bytes.size() / sizeof(double));
    std::memcpy(all.data() + at, bytes.data(), bytes.size());
  }
  return all;
}

}  // namespace qkv

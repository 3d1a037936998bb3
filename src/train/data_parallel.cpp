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

void DataParallel::sum_gradients(Context& cx) const {
  if (alone()) return;
  const auto ranks = static_cast<size_t>(comm_.size()), me = static_cast<size_t>(comm_.rank());
  // A weight without a gradient (an expert no token was routed to) is sent as zeros.
  std::vector<Bytes> out(ranks), in(ranks);
  for (size_t i = 0; i < weights_.size(); ++i) {
    Bytes& to = out[static_cast<size_t>(owner_[i])];
    const size_t at = to.size();
    to.resize(at + static_cast<size_t>(bytes_of(*weights_[i])));
    const Tensor gradient = weights_[i]->gradient();
    if (gradient.defined()) gradient.device().download(to.data() + at, gradient.data(), bytes_of(*weights_[i]));
    if (zero_ == 2 && owner_[i] != comm_.rank()) weights_[i]->take_gradient();
  }
  for (Bytes& from : in) from.resize(out[me].size());
  const std::vector<std::span<const std::byte>> send(out.begin(), out.end());
  const std::vector<std::span<std::byte>> receive(in.begin(), in.end());
  comm_.exchange(send, receive);

  // The top of the tree: pairs of ranks, then pairs of pairs.
  const auto numbers = [&](size_t r) { return reinterpret_cast<float*>(in[r].data()); };
  const size_t count = out[me].size() / sizeof(float);
  for (size_t step = 1; step < ranks; step *= 2) {
    for (size_t r = 0; r < ranks; r += 2 * step) {
      float *left = numbers(r), *right = numbers(r + step);
      for (size_t n = 0; n < count; ++n) left[n] += right[n];
    }
  }
  const auto put = [&](int owner, const std::byte* from) {
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (owner_[i] != owner) continue;
      const Grad to = weights_[i]->use_gradient(cx.precision.exact);
      to.tensor.device().upload(to.tensor.data(), from, bytes_of(*weights_[i]));
      from += bytes_of(*weights_[i]);
    }
  };
  if (zero_ > 0) return put(comm_.rank(), in[0].data());
  const std::vector<Bytes> sums = comm_.all_gather(in[0]);
  for (int r = 0; r < comm_.size(); ++r) put(r, sums[static_cast<size_t>(r)].data());
}

double DataParallel::gradient_norm(Context& cx) const {
  std::vector<const Param*> mine;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (owner_[i] == comm_.rank()) mine.push_back(weights_[i]);
  }
  const std::vector<double> of_mine = ops::square_norms(cx, mine);
  std::vector<double> squares(weights_.size(), 0);
  for (size_t i = 0, next = 0; i < weights_.size(); ++i) {
    if (owner_[i] == comm_.rank()) squares[i] = of_mine[next++];
  }
  const std::vector<double> all = all_gather_numbers(squares);
  double total = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    total += all[static_cast<size_t>(owner_[i]) * weights_.size() + i];
  }
  return std::sqrt(total);
}

void DataParallel::all_gather_weights(Context& cx) const {
  if (alone() || zero_ == 0) return;
  Bytes mine;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (owner_[i] != comm_.rank()) continue;
    const size_t at = mine.size();
    mine.resize(at + static_cast<size_t>(bytes_of(*weights_[i])));
    const Tensor weight = weights_[i]->master();
    weight.device().download(mine.data() + at, weight.data(), bytes_of(*weights_[i]));
  }
  const std::vector<Bytes> all = comm_.all_gather(mine);
  std::vector<size_t> at(all.size(), 0);
  for (size_t i = 0; i < weights_.size(); ++i) {
    const auto owner = static_cast<size_t>(owner_[i]);
    if (owner_[i] != comm_.rank()) {
      const Tensor weight = weights_[i]->writable(cx);
      weight.device().upload(weight.data(), all[owner].data() + at[owner], bytes_of(*weights_[i]));
      weights_[i]->updated();
    }
    at[owner] += static_cast<size_t>(bytes_of(*weights_[i]));
  }
}

std::vector<double> DataParallel::all_gather_numbers(std::span<const double> mine) const {
  std::vector<double> all;
  for (const Bytes& bytes : comm_.all_gather(std::as_bytes(mine))) {
    const size_t at = all.size();
    all.resize(at + bytes.size() / sizeof(double));
    std::memcpy(all.data() + at, bytes.data(), bytes.size());
  }
  return all;
}

}  // namespace qkv

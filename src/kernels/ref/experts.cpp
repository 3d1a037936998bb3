// Mixture of experts: routing, dispatch (rows sorted by expert), combine, and the load-balance loss.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/buffer.h"
#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {
namespace {

template <class R>
void softmax_row(const In<R>& x, Buffer<R>& p) {
  R highest = -std::numeric_limits<R>::infinity(), total = 0;
  for (int64_t e = 0; e < p.size(); ++e) highest = std::max(highest, x[e]);
  for (int64_t e = 0; e < p.size(); ++e) total += p[e] = std::exp(x[e] - highest);
  for (int64_t e = 0; e < p.size(); ++e) p[e] /= total;
}

template <class R>
void find_scores(const RouteRule& rule, const In<R>& logits, Buffer<R>& scores) {
  if (!rule.sigmoid) return softmax_row(logits, scores);
  for (int64_t e = 0; e < scores.size(); ++e) scores[e] = 1 / (1 + std::exp(-logits[e]));
}

// Index of the largest entry that is not yet taken (taken entries are -inf); ties go to the lower index.
template <class R>
int64_t take_best(Buffer<R>& values) {
  int64_t best = 0;
  for (int64_t i = 1; i < values.size(); ++i) {
    if (values[i] > values[best]) best = i;
  }
  values[best] = -std::numeric_limits<R>::infinity();
  return best;
}

// Hides all experts outside the best groups. A group's score is the sum of its two best experts.
template <class R>
void keep_best_groups(const RouteRule& rule, Buffer<R>& choice) {
  const int64_t each = choice.size() / rule.groups;
  Buffer<R> strength(rule.groups);
  for (int64_t g = 0; g < rule.groups; ++g) {
    R first = -std::numeric_limits<R>::infinity(), second = first;
    for (int64_t e = g * each; e < (g + 1) * each; ++e) {
      if (choice[e] > first) {
        second = first;
        first = choice[e];
      } else {
        second = std::max(second, choice[e]);
      }
    }
    strength[g] = each > 1 ? first + second : first;
  }
  Buffer<uint8_t> kept(rule.groups);
  for (int64_t i = 0; i < rule.top_groups; ++i) kept[take_best(strength)] = 1;
  for (int64_t e = 0; e < choice.size(); ++e) {
    if (kept[e / each] == 0) choice[e] = -std::numeric_limits<R>::infinity();
  }
}

template <class R>
constexpr R kTiny = static_cast<R>(1e-20);  // keeps a renormalised row finite when every score underflows

}  // namespace

void route(const Split& split, const RouteArgs& a) {
  in_real(a.logits, [&]<class R>() {
    const int64_t experts = a.logits.cols(), top_k = a.rule.top_k;
    split(a.logits.rows(), [&](Range rows) {
      Buffer<R> scores(experts), choice(experts);
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto logits = In<R>::row(a.logits, r);
        find_scores(a.rule, logits, scores);
        const In<R> bias(a.bias);
        constexpr R kNever = -std::numeric_limits<R>::infinity();  // a logit of -inf stays out whatever the bias
        for (int64_t e = 0; e < experts; ++e) {
          choice[e] = logits[e] == kNever ? kNever : scores[e] + (bias ? bias[e] : R{0});
        }
        if (a.rule.groups > 1) keep_best_groups(a.rule, choice);
        auto* ids = a.ids.as<int32_t>() + r * top_k;
        R total = 0;
        for (int64_t s = 0; s < top_k; ++s) {
          ids[s] = static_cast<int32_t>(take_best(choice));
          total += scores[ids[s]];
        }
        const R norm = static_cast<R>(a.rule.scaling) / (a.rule.renormalise ? total + kTiny<R> : R{1});
        for (int64_t s = 0; s < top_k; ++s) Out<R>::row(a.weights, r).set(s, scores[ids[s]] * norm);
      }
    });
  });
}

void route_backward(const Split& split, const RouteBackwardArgs& a) {
  if (!a.dlogits) return;
  in_real(a.logits, [&]<class R>() {
    const int64_t experts = a.logits.cols(), top_k = a.rule.top_k;
    split(a.logits.rows(), [&](Range rows) {
      Buffer<R> scores(experts), dscores(experts);
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        find_scores(a.rule, In<R>::row(a.logits, r), scores);
        const auto* ids = a.ids.as<int32_t>() + r * top_k;
        const auto dweights = In<R>::row(a.dweights, r);
        R total = kTiny<R>, dot = 0;
        for (int64_t s = 0; s < top_k; ++s) {
          total += scores[ids[s]];
          dot += dweights[s] * scores[ids[s]];
        }
        dscores.fill(0);
        const R scaling = static_cast<R>(a.rule.scaling);
        for (int64_t s = 0; s < top_k; ++s) {
          dscores[ids[s]] = scaling * (a.rule.renormalise ? (dweights[s] - dot / total) / total : dweights[s]);
        }
        R mean = 0;
        for (int64_t e = 0; e < experts; ++e) mean += dscores[e] * scores[e];
        const auto dlogits = Out<R>::row(a.dlogits.tensor, r);
        for (int64_t e = 0; e < experts; ++e) {
          const R slope = a.rule.sigmoid ? dscores[e] * (1 - scores[e]) : dscores[e] - mean;
          dlogits.put(e, scores[e] * slope, a.dlogits.add);
        }
      }
    });
  });
}

void dispatch_plan(const Split&, const DispatchPlanArgs& a) {
  const auto* ids = a.ids.as<int32_t>();
  auto* order = a.order.as<int32_t>();
  auto* slots = a.slots.as<int32_t>();
  auto* groups = a.groups.as<int32_t>();
  const int64_t experts = a.groups.count() - 1;
  int32_t next = 0;
  for (int64_t e = 0; e < experts; ++e) {
    groups[e] = next;
    for (int64_t i = 0; i < a.ids.count(); ++i) {
      if (ids[i] != e) continue;
      order[next] = static_cast<int32_t>(i);
      slots[i] = next++;
    }
  }
  groups[experts] = next;
}

void dispatch(const Split& split, const DispatchArgs& a) {
  in_real(a.y, [&]<class R>() {
    const auto* order = a.order.as<int32_t>();
    split(a.y.rows(), [&](Range rows) {
      for (int64_t i = rows.begin; i < rows.end; ++i) {
        const auto y = Out<R>::row(a.y, i);
        const auto x = In<R>::row(a.x, order[i] / a.top_k);
        for (int64_t c = 0; c < a.y.cols(); ++c) y.set(c, x[c]);
      }
    });
  });
}

void combine(const Split& split, const CombineArgs& a) {
  in_real(a.y, [&]<class R>() {
    const int64_t top_k = a.slots.dim(1);
    const auto* slots = a.slots.as<int32_t>();
    split(a.y.rows(), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto y = Out<R>::row(a.y, r);
        const auto weights = In<R>::row(a.weights, r);
        for (int64_t c = 0; c < a.y.cols(); ++c) {
          R total = 0;
          for (int64_t s = 0; s < top_k; ++s) {
            total += (weights ? weights[s] : R{1}) * In<R>::row(a.z, slots[r * top_k + s])[c];
          }
          y.put(c, total, a.add);
        }
      }
    });
  });
}

void combine_backward(const Split& split, const CombineBackwardArgs& a) {
  in_real(a.dy, [&]<class R>() {
    const int64_t top_k = a.slots.dim(1);
    const auto* slots = a.slots.as<int32_t>();
    split(a.dy.rows(), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto dy = In<R>::row(a.dy, r), weights = In<R>::row(a.weights, r);
        for (int64_t s = 0; s < top_k; ++s) {
          const int64_t slot = slots[r * top_k + s];
          const auto z = In<R>::row(a.z, slot);
          R dot = 0;
          for (int64_t c = 0; c < a.dy.cols(); ++c) {
            if (a.dz) Out<R>::row(a.dz.tensor, slot).put(c, weights[s] * dy[c], a.dz.add);
            dot += dy[c] * z[c];
          }
          if (a.dweights) Out<R>::row(a.dweights.tensor, r).put(s, dot, a.dweights.add);
        }
      }
    });
  });
}

void router_load(const Split&, const RouterLoadArgs& a) {
  in_real(a.mass, [&]<class R>() {
    Buffer<R> p(a.logits.cols());
    const Out<R> counts(a.counts), mass(a.mass);
    for (int64_t r = 0; r < a.logits.rows(); ++r) {
      softmax_row(In<R>::row(a.logits, r), p);
      for (int64_t e = 0; e < p.size(); ++e) mass.put(e, p[e], true);
    }
    for (int64_t i = 0; i < a.ids.count(); ++i) counts.put(a.ids.as<int32_t>()[i], 1, true);
  });
}

void router_load_backward(const Split& split, const RouterLoadBackwardArgs& a) {
  if (!a.dlogits) return;
  in_real(a.dmass, [&]<class R>() {
    const In<R> dmass(a.dmass);
    split(a.logits.rows(), [&](Range rows) {
      Buffer<R> p(a.logits.cols());
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        softmax_row(In<R>::row(a.logits, r), p);
        R mean = 0;
        for (int64_t e = 0; e < p.size(); ++e) mean += p[e] * dmass[e];
        const auto dlogits = Out<R>::row(a.dlogits.tensor, r);
        for (int64_t e = 0; e < p.size(); ++e) dlogits.put(e, p[e] * (dmass[e] - mean), a.dlogits.add);
      }
    });
  });
}

void balance(const Split&, const BalanceArgs& a) {
  in_real(a.loss, [&]<class R>() {
    const In<R> counts(a.counts), mass(a.mass);
    R total = 0;
    for (int64_t e = 0; e < a.counts.count(); ++e) total += counts[e] * mass[e];
    Out<R>(a.loss).set(0, static_cast<R>(a.factor) * total);
  });
}

void balance_backward(const Split&, const BalanceBackwardArgs& a) {
  in_real(a.dmass, [&]<class R>() {
    const In<R> counts(a.counts);
    const R dloss = In<R>(a.dloss)[0];
    for (int64_t e = 0; e < a.counts.count(); ++e) {
      Out<R>(a.dmass).set(e, dloss * static_cast<R>(a.factor) * counts[e]);
    }
  });
}

}  // namespace qkv::kernels::ref

#include "infer/grammar/json_number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <tuple>

namespace qkv::grammar {
namespace {

constexpr int kMostDigits = 15;
constexpr double kBeyond = 1e15;  // no number has so large a magnitude

// A bound of a magnitude, as digits.
struct Decimal {
  std::string whole, fraction;  // no zeros in front or behind
  bool exclusive = false;
};

Decimal decimal_of(const Bound& bound) {
  std::array<char, 400> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), std::abs(bound.at), std::chars_format::fixed).ptr;
  const std::string all(text.data(), end);
  const size_t point = std::min(all.find('.'), all.size());
  Decimal out{all.substr(0, point), point < all.size() ? all.substr(point + 1) : "", bound.exclusive};
  while (out.fraction.ends_with('0')) out.fraction.pop_back();
  return out;
}

enum class Phase : int8_t { begin, zero, whole, point, fraction, letter_e, exponent_sign, exponent };

// How far a number is read. Comparisons with the bounds are of the digits so far: -1 less, 0 equal, 1 greater.
struct Reading {
  Phase phase = Phase::begin;
  int8_t digits = 0;  // of the whole part; then of the fraction, or of the exponent
  int8_t left = kMostDigits;
  int8_t least = 0, most = 0;
  int32_t rest = 0;  // modulo the divisor
  auto tie() const { return std::tie(phase, digits, left, least, most, rest); }
  bool operator<(const Reading& other) const { return tie() < other.tie(); }
};

class Magnitudes {
 public:
  Magnitudes(const Numbers& numbers, std::optional<Decimal> least, std::optional<Decimal> most)
      : numbers_(numbers), least_(std::move(least)), most_(std::move(most)) {}

  Dfa dfa(Budget& budget) const {
    return explored(
        Reading{}, [&](const Reading& r, uint8_t byte) { return step(r, byte); },
        [&](const Reading& r) { return accepts(r); }, budget);
  }

 private:
  using enum Phase;

  bool exponents() const { return !numbers_.integer && !numbers_.least && !numbers_.most; }

  std::optional<Reading> step(const Reading& r, uint8_t byte) const {
    if (byte == '.' && (r.phase == zero || r.phase == whole) && !numbers_.integer && r.left > 0) {
      Reading next = r;
      next.phase = point;
      next.digits = 0;
      next.least = after_whole(r.least, r.digits, least_);
      next.most = after_whole(r.most, r.digits, most_);
      return next;
    }
    const bool number = r.phase == zero || r.phase == whole || r.phase == fraction;
    if ((byte == 'e' || byte == 'E') && number && exponents()) return Reading{.phase = letter_e};
    if ((byte == '+' || byte == '-') && r.phase == letter_e) return Reading{.phase = exponent_sign};
    if (byte < '0' || byte > '9') return std::nullopt;
    if (r.phase == letter_e || r.phase == exponent_sign) return Reading{.phase = exponent, .digits = 1};
    if (r.phase == exponent)
      return r.digits < 2 ? std::optional(Reading{.phase = exponent, .digits = 2}) : std::nullopt;
    if (r.phase == zero || r.left == 0) return std::nullopt;
    const auto at = static_cast<size_t>(r.digits);
    Reading next = r;
    ++next.digits;
    const bool in_fraction = r.phase == point || r.phase == fraction;
    if (in_fraction) {
      next.phase = fraction;
    } else {
      next.phase = r.phase == begin && byte == '0' ? zero : whole;
    }
    if (next.phase != zero) --next.left;
    const auto compare = [&](int8_t so_far, const std::optional<Decimal>& bound) -> int8_t {
      if (so_far != 0 || !bound) return so_far;
      const std::string& digits = in_fraction ? bound->fraction : bound->whole;
      const char other = at < digits.size() ? digits[at] : '0';
      const auto mine = static_cast<char>(byte);
      return mine < other ? int8_t{-1} : mine > other ? int8_t{1} : int8_t{0};
    };
    next.least = compare(r.least, least_);
    next.most = compare(r.most, most_);
    const auto divisor = static_cast<int32_t>(numbers_.multiple_of);
    if (!in_fraction) next.rest = (r.rest * 10 + (byte - '0')) % divisor;
    return next;
  }

  static int8_t after_whole(int8_t so_far, int8_t digits, const std::optional<Decimal>& bound) {
    if (!bound) return 0;
    const auto count = static_cast<size_t>(digits);
    if (count != bound->whole.size()) return count < bound->whole.size() ? int8_t{-1} : int8_t{1};
    return so_far;
  }

  // Against the whole bound, if the number ends here.
  static int against(const Reading& r, int8_t so_far, const std::optional<Decimal>& bound) {
    const bool in_fraction = r.phase == fraction;
    const int now = in_fraction ? so_far : after_whole(so_far, r.digits, bound);
    if (now != 0 || !bound) return now;
    const size_t read = in_fraction ? static_cast<size_t>(r.digits) : 0;
    return read < bound->fraction.size() ? -1 : 0;
  }

  bool accepts(const Reading& r) const {
    if (r.phase == exponent) return true;
    if (r.phase != zero && r.phase != whole && r.phase != fraction) return false;
    if (r.rest != 0) return false;
    if (least_ && against(r, r.least, least_) < (least_->exclusive ? 1 : 0)) return false;
    return !most_ || against(r, r.most, most_) <= (most_->exclusive ? -1 : 0);
  }

  const Numbers& numbers_;
  std::optional<Decimal> least_, most_;
};

}  // namespace

Bound tighter_least(const Bound& a, const Bound& b) {
  if (a.at != b.at) return a.at > b.at ? a : b;
  return {a.at, a.exclusive || b.exclusive};
}

Dfa json_numbers(const Numbers& asked, Budget& budget) {
  Numbers numbers = asked;
  numbers.integer = asked.integer || asked.multiple_of > 1;
  // Bounds that no number reaches anyway bind nothing, or leave nothing.
  if (numbers.least && numbers.least->at <= -kBeyond) numbers.least.reset();
  if (numbers.most && numbers.most->at >= kBeyond) numbers.most.reset();
  if ((numbers.least && numbers.least->at >= kBeyond) || (numbers.most && numbers.most->at <= -kBeyond)) return {};

  std::optional<Dfa> positive, negative;  // the magnitudes of each sign
  if (!numbers.most || numbers.most->at > 0 || (numbers.most->at == 0 && !numbers.most->exclusive)) {
    std::optional<Decimal> least, most;
    if (numbers.least && (numbers.least->at > 0 || (numbers.least->at == 0 && numbers.least->exclusive))) {
      least = decimal_of(*numbers.least);
    }
    if (numbers.most) most = decimal_of(*numbers.most);
    positive = Magnitudes(numbers, least, most).dfa(budget);
  }
  if (!numbers.least || numbers.least->at < 0) {
    const bool all_negative = numbers.most && numbers.most->at < 0;
    const Decimal least = decimal_of(all_negative ? *numbers.most : Bound{0, true});
    std::optional<Decimal> most;
    if (numbers.least) most = decimal_of(*numbers.least);
    negative = Magnitudes(numbers, least, most).dfa(budget);
  }
  Dfa dfa;
  dfa.states.emplace_back();
  const auto append = [&](const Dfa& part, bool minus) {
    if (part.empty()) return;
    const auto first = static_cast<int32_t>(dfa.states.size());
    for (Dfa::State state : part.states) {
      for (ByteEdge& edge : state.edges) edge.to += first;
      dfa.states.push_back(std::move(state));
    }
    std::vector<ByteEdge>& start = dfa.states[0].edges;
    if (minus) {
      start.insert(start.begin(), {'-', '-', first});
    } else {
      const std::vector<ByteEdge> edges = dfa.states[static_cast<size_t>(first)].edges;
      start.insert(start.end(), edges.begin(), edges.end());
    }
  };
  if (positive) append(*positive, false);
  if (negative) append(*negative, true);
  return trimmed(dfa, budget);
}

}  // namespace qkv::grammar

// The same role in another head: which head takes a role depends on the random initial weights.
#include <algorithm>
#include <array>

#include "inspect/heads/head_roles.h"
#include "labs/labs.h"
#include "labs/repeated_tokens.h"
#include "labs/small_model.h"
#include "world/draw.h"

namespace qkv::labs {
namespace {

constexpr int64_t kSeatHeads = 8;

struct Seat {
  int64_t head = 0;
  double score = 0;
};
struct Seats {
  Seat previous, induction;  // of the first layer; of the second
};

Seats find_seats(const LabContext& lab, const Model& model) {
  Reader reader(model, lab.engine, {});
  Seats seats;
  for (const RepeatScore& head : repeat_scores(reader, {.length = 12, .repeats = 2, .texts = 12})) {
    const bool first = head.id.layer == 0;
    Seat& seat = first ? seats.previous : seats.induction;
    const double score = first ? head.previous.mean : head.induction.mean;
    if (score > seat.score) seat = {head.id.head, score};
  }
  return seats;
}

Seats train_seats(const LabContext& lab, uint64_t weights, uint64_t texts) {
  const RepeatedTokens task;
  const auto model = fresh_model(
      lab, config_of({.vocabulary = task.vocabulary, .width = 64, .layers = 2, .heads = kSeatHeads, .init = 0.05}),
      weights);
  train_model(lab, *model,
              {.label = "weights " + std::to_string(weights) + ", texts " + std::to_string(texts),
               .steps = lab.sized(800),
               .lr = 2e-2,
               .batch = [&](int64_t step) { return task.texts(texts, step, 24); }});
  return find_seats(lab, *model);
}

SeedNumbers measure_seats(const LabContext& lab, uint64_t seed) {
  const Seats seats = train_seats(lab, seed, seed);
  const Seats again = train_seats(lab, seed, seed + 1000);
  SeedNumbers out;
  out.add_label("seat of the previous-token head", seats.previous.head);
  out.add_share("its score", seats.previous.score);
  out.add_label("seat of the induction head", seats.induction.head);
  out.add_share("the induction head's score", seats.induction.score);
  out.add_share("control: same weights, other texts: same previous-token seat",
                seats.previous.head == again.previous.head ? 1 : 0);
  out.add_share("control: same weights, other texts: same induction seat",
                seats.induction.head == again.induction.head ? 1 : 0);
  return out;
}

// For each seed, the share of other seeds that have the role in the same head.
std::vector<double> agreement(std::span<const int64_t> seats) {
  std::vector<double> shares;
  for (size_t i = 0; i < seats.size(); ++i) {
    const auto same = std::count(seats.begin(), seats.end(), seats[i]) - 1;
    shares.push_back(static_cast<double>(same) / static_cast<double>(seats.size() - 1));
  }
  return shares;
}

int64_t pairs_alike(std::span<const int64_t> seats) {
  int64_t pairs = 0;
  for (size_t i = 0; i < seats.size(); ++i)
    pairs += std::count(seats.begin() + static_cast<std::ptrdiff_t>(i) + 1, seats.end(), seats[i]);
  return pairs;
}

// Probability that randomly drawn seats agree at least as often.
double chance_of(std::span<const int64_t> seats) {
  constexpr int kDraws = 20000;
  world::Draw draw(1, 0, 9);
  const int64_t seen = pairs_alike(seats);
  int as_many = 0;
  std::vector<int64_t> drawn(seats.size());
  for (int round = 0; round < kDraws; ++round) {
    for (int64_t& seat : drawn) seat = draw.below(kSeatHeads);
    as_many += pairs_alike(drawn) >= seen ? 1 : 0;
  }
  return static_cast<double>(as_many) / kDraws;
}

std::vector<LabRow> compare_seats(std::span<const SeedNumbers> each) {
  std::vector<LabRow> rows;
  for (const auto& [number, role] : std::array{std::pair{"seat of the previous-token head", "previous-token"},
                                               std::pair{"seat of the induction head", "induction"}}) {
    std::vector<int64_t> seats;
    for (const SeedNumbers& seed : each) seats.push_back(static_cast<int64_t>(seed.at(number)));
    rows.push_back(over_seeds(std::string("share of other seeds with the same ") + role + " seat", agreement(seats),
                              LabRange::share()));
    const double chance = chance_of(seats);
    rows.push_back({.name = std::string("chance of as much agreement, ") + role,
                    .values = {chance},
                    .mean = chance,
                    .low = chance,
                    .high = chance});
  }
  return rows;
}

}  // namespace

const Lab& seats() {
  static const Lab lab{
      .name = "seats",
      .claim =
          "With another seed the same role appears, but in another head (seat): which head takes it is decided by\n"
          "chance in the initial weights.",
      .claim_zh = "换一个随机种子，同样的分工仍会出现，但由另一个头担任：座位由初始权重偶然决定。",
      .how =
          "Two layers of 8 heads learn repeated random tokens, 800 steps. Seats: the head of layer 0 that attends "
          "most\n"
          "to the previous token, and the head of layer 1 that attends most to what followed the previous copy. By\n"
          "chance two seeds agree in 1 of 8 cases. Control: the same initial weights trained on other texts.",
      .seeds = 6,
      .rules = {{"its score", LabRule::Side::above, 0.3, "the role is there"},
                {"the induction head's score", LabRule::Side::above, 0.3, "the role is there"},
                {"share of other seeds with the same previous-token seat", LabRule::Side::below, 0.5,
                 "most seeds have it elsewhere"},
                {"share of other seeds with the same induction seat", LabRule::Side::below, 0.5,
                 "most seeds have it elsewhere"},
                {"chance of as much agreement, previous-token", LabRule::Side::above, 0.05, "no more than by chance"},
                {"chance of as much agreement, induction", LabRule::Side::above, 0.05, "no more than by chance"}},
      .found =
          {.seen =
               {"Every seed grew both heads, in other places: two seeds agreed on the previous-token head in {share "
                "of other seeds with the same previous-token seat%} of all pairs and on the induction head in "
                "{share of other seeds with the same induction seat%}, no more than by chance.",
                "每个种子都长出了这两种头，位置却不同：任取两个种子，“看前一个词”的头位置相同的占 {share of other "
                "seeds with the "
                "same previous-token seat%}，归纳头相同的占 {share of other seeds with the same induction "
                "seat%}，不比碰巧更多。"},
           .mixed =
               {"The roles scored {its score} and {the induction head's score}; two seeds put them in the same head "
                "in {share of other seeds with the same previous-token seat%} and {share of other seeds with the "
                "same induction seat%} of all pairs.",
                "两种分工的得分是 {its score} 和 {the induction head's score}；任取两个种子，座位相同的占 {share of "
                "other "
                "seeds with the same previous-token seat%} 和 {share of other seeds with the same induction "
                "seat%}。"},
           .not_seen = {"The roles did not appear, or always in the same heads.",
                        "这些分工没有出现，或者总在同样的头里。"}},
      .measure = measure_seats,
      .together = compare_seats};
  return lab;
}

}  // namespace qkv::labs

// Refusals of routing to experts.
#include "ops/errors/refusals.h"

namespace qkv::test {
namespace errors_test {

REFUSES(Route,  //
        {"too_many",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.top_k = 5});
         },
         {"route", "top_k is 5", "[3, 4]"}},
        {"none",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.top_k = 0});
         },
         {"route", "top_k is 0", "[3, 4]"}},
        {"groups_do_not_divide",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.groups = 3});
         },
         {"route", "3 groups", "[3, 4]"}},
        {"no_groups",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.groups = 0});
         },
         {"route", "0 groups", "[3, 4]"}},
        {"more_than_the_kept_groups_have",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.top_k = 3, .groups = 2, .top_groups = 1});
         },
         {"route", "top_k is 3", "2"}},
        {"nan_scaling",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.scaling = kNan});
         },
         {"route", "scaling", "nan"}},
        {"negative_scaling",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.scaling = -1});
         },
         {"route", "scaling", "-1"}},
        {"indices",
         [](B& b) {
           ops::route(b.cx, b.ids({3, 4}), {});
         },
         {"route", "i32 [3, 4]", "f32"}},
        {"other_rank", [](B& b) { ops::route(b.cx, b.floats({4}), {}); }, {"route", "f32 [4]", "[N, E]"}},
        {"other_correction",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {}, &b.weight({5}));
         },
         {"route", "[3, 4]", "[5]", "[4]"}});

REFUSES(Dispatch,  //
        {"expert_that_does_not_exist",
         [](B& b) {
           ops::plan_dispatch(b.cx, b.ids({3, 2}, 4), 4);
         },
         {"dispatch", "ids[0] is 4", "[0, 4)"}},
        {"ids_of_floats",
         [](B& b) {
           ops::plan_dispatch(b.cx, b.floats({3, 2}), 4);
         },
         {"dispatch", "f32 [3, 2]", "i32"}},
        {"ids_of_one_axis", [](B& b) { ops::plan_dispatch(b.cx, b.ids({3}), 4); }, {"dispatch", "i32 [3]", "[N, k]"}},
        {"no_experts",
         [](B& b) {
           ops::plan_dispatch(b.cx, b.ids({3, 2}), 0);
         },
         {"dispatch", "[3, 2]", "0 experts"}},
        {"rows_of_another_plan",
         [](B& b) {
           ops::dispatch(b.cx, b.floats({5, 4}), b.plan());
         },
         {"dispatch", "[5, 4]", "3 rows"}},
        {"indices",
         [](B& b) {
           ops::dispatch(b.cx, b.ids({3, 4}), b.plan());
         },
         {"dispatch", "i32 [3, 4]", "f32"}},
        {"scale_rows_by_other_rows",
         [](B& b) {
           ops::scale_rows(b.cx, b.floats({5, 4}), b.floats({4, 1}));
         },
         {"scale_rows", "[4, 1]", "[5, 1]"}},
        {"scale_rows_of_heads",
         [](B& b) {
           ops::scale_rows(b.cx, b.floats({5, 2, 4}), b.floats({5, 1}));
         },
         {"scale_rows", "[5, 2, 4]", "[N, C]"}},
        {"combine_rows_of_another_plan",
         [](B& b) {
           ops::combine(b.cx, b.floats({5, 4}), b.floats({3, 2}), b.plan());
         },
         {"combine", "[5, 4]", "[3, 2]"}},
        {"combine_weights_of_another_plan",
         [](B& b) {
           ops::combine(b.cx, b.floats({6, 4}), b.floats({3, 1}), b.plan());
         },
         {"combine", "[6, 4]", "[3, 1]", "[3, 2]"}},
        {"combine_weights_of_indices",
         [](B& b) {
           ops::combine(b.cx, b.floats({6, 4}), b.ids({3, 2}), b.plan());
         },
         {"combine", "weights is i32 [3, 2]"}},
        {"combine_indices",
         [](B& b) {
           ops::combine(b.cx, b.ids({6, 4}), b.floats({3, 2}), b.plan());
         },
         {"combine", "z is i32 [6, 4]"}});

void balance(B& b, const ops::RouterUse& use, double coefficient = 1) {
  const std::vector<ops::RouterUse> layers{use};
  ops::balance_loss(b.cx, layers, coefficient);
}

REFUSES(
    BalanceLoss,  //
    {"nothing", [](B& b) { ops::balance_loss(b.cx, {}, 1); }, {"balance_loss", "no layers"}},
    {"negative",
     [](B& b) {
       balance(b, {b.floats({3, 4}), b.ids({3, 2})}, -1);
     },
     {"balance_loss", "coefficient", "-1"}},
    {"nan",
     [](B& b) {
       balance(b, {b.floats({3, 4}), b.ids({3, 2})}, kNan);
     },
     {"balance_loss", "coefficient", "nan"}},
    {"other_rows",
     [](B& b) {
       balance(b, {b.floats({3, 4}), b.ids({2, 2})});
     },
     {"balance_loss", "[3, 4]", "[2, 2]"}},
    {"expert_that_does_not_exist",
     [](B& b) {
       balance(b, {b.floats({3, 4}), b.ids({3, 2}, 4)});
     },
     {"balance_loss", "ids[0] is 4", "[0, 4)"}},
    {"logits_of_indices",
     [](B& b) {
       balance(b, {b.ids({3, 4}), b.ids({3, 2})});
     },
     {"balance_loss", "i32 [3, 4]"}},
    {"ids_of_floats",
     [](B& b) {
       balance(b, {b.floats({3, 4}), b.floats({3, 2})});
     },
     {"balance_loss", "f32 [3, 2]"}},
    {"no_rows",
     [](B& b) {
       balance(b, {b.floats({0, 4}), b.ids({0, 2})});
     },
     {"balance_loss", "no rows"}},
    {"layers_of_other_experts",
     [](B& b) {
       const std::vector<ops::RouterUse> layers{{b.floats({3, 4}), b.ids({3, 2})}, {b.floats({3, 5}), b.ids({3, 2})}};
       ops::balance_loss(b.cx, layers, 1);
     },
     {"balance_loss", "[3, 5]", "4"}});

}  // namespace errors_test
}  // namespace qkv::test

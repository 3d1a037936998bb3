// A non-owning reference to a callable: two pointers, no heap. The callable must outlive it.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace qkv {

template <class Callable, class Ref, class Result, class... Args>
concept RefersTo =
    !std::same_as<std::remove_cvref_t<Callable>, Ref> && std::is_object_v<std::remove_reference_t<Callable>> &&
    std::is_invocable_r_v<Result, Callable&, Args...>;

template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  // Implicit, so that a lambda can be passed directly.
  template <RefersTo<FunctionRef, Result, Args...> Callable>
  FunctionRef(Callable&& callable) noexcept
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

}  // namespace qkv

// The part of fmt that is not in its headers, compiled here once: Debian has no static library of it, and a program that
// needs no libfmt.so starts on machines without it.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template auto locale_ref::get<std::locale>() const -> std::locale;
template auto thousands_sep_impl(locale_ref locale) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref locale) -> char;
template auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
#if FMT_VERSION >= 100000 && FMT_VERSION < 110000
template void vformat_to(buffer<char>& text, string_view format, typename vformat_args<>::type values,
                         locale_ref locale);
#endif

}  // namespace detail
FMT_END_NAMESPACE

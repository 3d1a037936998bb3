// Templates that are compiled once, in instances.cpp. Tests and commands are not optimised: their files would compile
// these too, and of equal functions the linker takes the first it meets, so that the whole program would call the slow
// ones. Precompiled headers of such files have it; nothing else needs it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

extern template class std::basic_string<char>;
extern template class std::vector<std::string>;
extern template class std::vector<int32_t>;
extern template class std::vector<int64_t>;
extern template class std::vector<float>;
extern template class std::vector<double>;

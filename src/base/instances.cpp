#include "base/instances.h"

template class std::basic_string<char>;
template class std::vector<std::string>;
template class std::vector<int32_t>;
template class std::vector<int64_t>;
template class std::vector<float>;
template class std::vector<double>;

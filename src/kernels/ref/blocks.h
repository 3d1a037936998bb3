// Rows of block formats as floats, and activations as quantised for products with them.
#pragma once

#include <span>

#include "kernels/ref/access.h"

namespace qkv::kernels::ref {

// Row `row` of a matrix (or of several, flattened), dequantised as the format defines it.
void decode_row(const Tensor& t, int64_t row, std::span<float> out);

// How many activations share a scale in a product with this weight: a group, a block, or the whole row.
int64_t activation_block(const Tensor& w);

// A row of activations after quantisation: scale * q,  scale = max |x| / 127,  q = x (127 / max) rounded to even. A
// block below 2^-100 is zero; a block with NaN or infinity is NaN.
void round_activations(const In<float>& x, int64_t block, std::span<double> out);

}  // namespace qkv::kernels::ref

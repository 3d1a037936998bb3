// All labs: one .cpp file each, listed here and in labs.cpp.
#pragma once

#include "labs/lab.h"

namespace qkv::labs {

const Lab& analogy();
const Lab& causality();
const Lab& embedding_walk();
const Lab& experts();
const Lab& facts();
const Lab& fixed_qkv();
const Lab& induction();
const Lab& one_head();
const Lab& phases();
const Lab& question_first();
const Lab& reading_writing();
const Lab& scale();
const Lab& seats();
const Lab& sixteen_heads();
const Lab& thinking_aloud();
const Lab& three_matrices();
const Lab& two_it();

}  // namespace qkv::labs

// The library in one include:
//
//   qkv::Model model("path or name");
//   std::cout << model.generate("Once upon a time", {.max_new = 40}).text;
//
// docs/library.md has the ten things people do with it.
#pragma once

#include <qkv/ended.h>
#include <qkv/error.h>
#include <qkv/generate.h>
#include <qkv/interrupt.h>
#include <qkv/look.h>
#include <qkv/model.h>
#include <qkv/patch.h>
#include <qkv/serve.h>
#include <qkv/text.h>
#include <qkv/tokenizer.h>
#include <qkv/train.h>

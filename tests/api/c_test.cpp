// The C functions: what they give is what the library gives, and nothing a caller does throws or crashes.
#include <gtest/gtest.h>
#include <qkv/c.h>

#include <atomic>
#include <string>
#include <thread>

#include "api/small_model.h"

namespace qkv {
namespace {

const test::SmallModel& small() {
  static const test::SmallModel one;
  return one;
}

struct Opened {
  explicit Opened(const std::string& path = small().path()) {
    qkv_open_options options{};
    options.size = sizeof(options);
    options.threads = 1;
    model = qkv_open(path.c_str(), &options);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { qkv_close(model); }
  qkv_model* model;
};

std::string taken(char* text) {
  const std::string copy = text != nullptr ? text : "(null)";
  qkv_free(text);
  return copy;
}

qkv_generate_options writing(int64_t tokens) {
  qkv_generate_options options;
  qkv_generate_defaults(&options);
  options.max_new = tokens;
  return options;
}

// The call failed, and said so.
void expect_said(bool failed, const char* part) {
  EXPECT_TRUE(failed) << part;
  EXPECT_NE(std::string(qkv_error()).find(part), std::string::npos) << qkv_error();
}

TEST(ApiC, SaysWhatTheLibrarySays) {
  const Opened one;
  ASSERT_NE(one.model, nullptr) << qkv_error();
  const api::Model model = small().open();
  const qkv_generate_options options = writing(12);
  EXPECT_EQ(taken(qkv_generate(one.model, "the cat", &options)), model.generate("the cat", {.max_new = 12}).text);
  size_t count = 0;
  int32_t* ids = qkv_encode(one.model, "the cat", &count);
  EXPECT_EQ(std::vector<int32_t>(ids, ids + count), model.tokenizer().encode("the cat"));
  EXPECT_EQ(taken(qkv_decode(one.model, ids, count)), "the cat");
  qkv_free(ids);
  double total = 0;
  int64_t tokens = 0;
  EXPECT_EQ(qkv_likelihood(one.model, "the cat sat", &total, &tokens), 0) << qkv_error();
  EXPECT_EQ(total, model.likelihood("the cat sat").total);
  size_t width = 0;
  float* vector = qkv_embed(one.model, "the cat", &width);
  EXPECT_EQ(std::vector<float>(vector, vector + width), model.embed({"the cat"}).front());
  qkv_free(vector);
  EXPECT_EQ(taken(qkv_look_json(one.model, "the cat")), model.look("the cat").json());
  EXPECT_EQ(taken(qkv_patch_json(one.model, "the cat sat", "the cot sat", 100, 101)),
            model.patch("the cat sat", "the cot sat", {.answer = 100, .wrong = 101}).json);
  EXPECT_NE(taken(qkv_patch_html(one.model, "the cat sat", "the cot sat", 100, 101)).find("<html"), std::string::npos);
  EXPECT_EQ(std::string(qkv_error()), "");
}

TEST(ApiC, WrongCallsAreErrorsWithAHint) {
  const Opened one;
  size_t count = 0;
  double total = 0;
  expect_said(qkv_open(nullptr, nullptr) == nullptr, "path_or_name is NULL");
  expect_said(qkv_open("/no/such/model", nullptr) == nullptr, "/no/such/model");
  EXPECT_NE(std::string(qkv_error_hint()), "");
  qkv_open_options open{};
  expect_said(qkv_open(small().path().c_str(), &open) == nullptr, "the size of the options is 0");
  open.size = sizeof(open);
  open.device = 9;
  expect_said(qkv_open(small().path().c_str(), &open) == nullptr, "the device is 9");
  open.device = QKV_DEVICE_CPU;
  open.precision = -1;
  expect_said(qkv_open(small().path().c_str(), &open) == nullptr, "the precision is -1");
  open.precision = QKV_PRECISION_F32;
  open.context = -5;
  expect_said(qkv_open(small().path().c_str(), &open) == nullptr, "context -5");
  expect_said(qkv_info(nullptr) == nullptr, "model is NULL");
  expect_said(qkv_encode(one.model, nullptr, &count) == nullptr, "text is NULL");
  expect_said(qkv_encode(one.model, "a", nullptr) == nullptr, "count is NULL");
  expect_said(qkv_decode(one.model, nullptr, 3) == nullptr, "ids is NULL");
  const int32_t far[] = {-1, 1 << 30};
  expect_said(qkv_decode(one.model, far, 1) == nullptr, "-1");
  expect_said(qkv_decode(one.model, far + 1, 1) == nullptr, "1073741824");
  expect_said(qkv_decode(one.model, far, static_cast<size_t>(-1)) == nullptr, "count is 18446744073709551615");
  EXPECT_NE(std::string(qkv_error_hint()), "");
  expect_said(qkv_decode(one.model, far, size_t{1} << 60) == nullptr, "out of memory");
  EXPECT_NE(std::string(qkv_error_hint()), "");
  expect_said(qkv_generate(one.model, nullptr, nullptr) == nullptr, "prompt is NULL");
  expect_said(qkv_generate(one.model, "\xff\xfe", nullptr) == nullptr, "not UTF-8");
  qkv_generate_options options = writing(4);
  options.temperature = 1.0 / 0.0;
  expect_said(qkv_generate(one.model, "a", &options) == nullptr, "temperature");
  options = writing(4);
  options.top_p = 7;
  expect_said(qkv_generate(one.model, "a", &options) == nullptr, "top");
  options = writing(4);
  options.size = 1;
  expect_said(qkv_generate(one.model, "a", &options) == nullptr, "the size of the options is 1");
  expect_said(qkv_start(nullptr, "a", nullptr) == nullptr, "model is NULL");
  expect_said(qkv_next(nullptr) == nullptr, "text is NULL");
  expect_said(qkv_text_ended(nullptr) == nullptr, "text is NULL");
  expect_said(qkv_likelihood(one.model, "", &total, nullptr) != 0, "none is scored");
  expect_said(qkv_likelihood(one.model, "a", nullptr, nullptr) != 0, "total is NULL");
  expect_said(qkv_embed(one.model, "a", nullptr) == nullptr, "width is NULL");
  const auto goes_on = [](void*, const char*, const int64_t*, size_t, float*, size_t) { return 0; };
  const auto ends = [](void*, const char*, const int64_t*, size_t, float*, size_t) { return 7; };
  expect_said(qkv_read(one.model, "a", "no.such.tap", 0, goes_on, nullptr) != 0, "no.such.tap");
  expect_said(qkv_read(one.model, "a", "0.attn.probs", 1, goes_on, nullptr) != 0, "not changed");
  expect_said(qkv_read(one.model, "a", "0.attn.q", 0, nullptr, nullptr) != 0, "function is NULL");
  expect_said(qkv_read(one.model, "a", "0.attn.q", 0, ends, nullptr) != 0, "returned 7");
  expect_said(qkv_cut(one.model, "L9H9", nullptr) == nullptr, "L9");
  expect_said(qkv_cut(one.model, "L0H1", "/no/such/file") == nullptr, "/no/such/file");
  expect_said(qkv_look_json(one.model, "") == nullptr, "");
  expect_said(qkv_patch_json(one.model, "the cat", nullptr, -1, -1) == nullptr, "corrupt is NULL");
  expect_said(qkv_patch_json(one.model, "the cat", "the cat", -1, -1) == nullptr, "the same");
  expect_said(qkv_patch_json(one.model, "the cat sat", "the cot sat", -7, 3) == nullptr, "-7");
  qkv_close(nullptr);
  qkv_text_free(nullptr);
  qkv_text_cancel(nullptr);
  qkv_free(nullptr);
  qkv_generate_defaults(nullptr);
  EXPECT_NE(taken(qkv_generate(one.model, "the cat", nullptr)), "(null)") << "the model is still usable";
}

TEST(ApiC, ThreadsWriteAndCancelAtOnce) {
  const Opened one;
  const qkv_generate_options options = writing(20);
  const std::string alone = taken(qkv_generate(one.model, "the cat", &options));
  std::atomic<int> same = 0;
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&] { same += taken(qkv_generate(one.model, "the cat", &options)) == alone; });
  }
  const qkv_generate_options longer = writing(400);
  qkv_text* text = qkv_start(one.model, "the dog", &longer);
  ASSERT_NE(text, nullptr) << qkv_error();
  threads.emplace_back([&] { qkv_text_cancel(text); });
  for (int n = 0; n < 20; ++n) qkv_next(text);  // while it is cancelled, of 400 tokens
  for (std::thread& thread : threads) thread.join();
  while (qkv_next(text) != nullptr) {
  }
  EXPECT_EQ(same, 4);
  EXPECT_EQ(std::string(qkv_text_ended(text)), "cancelled");
  qkv_text_free(text);
}

TEST(ApiC, AFunctionThatAsksItsOwnModelGetsAnError) {
  const Opened one;
  struct Asked {
    qkv_model* model;
    std::string said;
  } asked{one.model, ""};
  const auto asks = [](void* user, const char*, const int64_t*, size_t, float*, size_t) {
    auto* one_asked = static_cast<Asked*>(user);
    qkv_free(qkv_generate(one_asked->model, "the cat", nullptr));
    one_asked->said = qkv_error();
    return 0;
  };
  EXPECT_EQ(qkv_read(one.model, "the cat", "0.attn.z", 0, asks, &asked), 0) << qkv_error();
  EXPECT_NE(asked.said.find("from within one of its own passes"), std::string::npos) << asked.said;
}

}  // namespace
}  // namespace qkv

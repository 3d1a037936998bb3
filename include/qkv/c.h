/* The library for other languages: plain C, opaque handles, no exceptions.
 *
 * Every function that can fail returns NULL, or a number that is not 0; qkv_error() then says what and what to do. Texts
 * are UTF-8 and end with a zero byte. What a function returns as `char*` or `qkv_...*` is yours: free it with the function
 * that its comment names. `const` pointers belong to the handle they came from and live as long as it, or as long as the
 * comment says.
 *
 * Threads. A model may be used by any number of threads at once; passes come one after the other, and texts that are
 * written at the same time share them. A qkv_text is used by one thread at a time, but for qkv_text_cancel, which any
 * thread may call at any time before the text is freed. Handles are freed once, when no other thread uses them.
 * qkv_error() is that of the calling thread's last call. Functions given to qkv_read are called by the thread that called
 * it, and must not ask the same model for anything.
 */
#ifndef QKV_C_H
#define QKV_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QKV_C_API __attribute__((visibility("default")))

typedef struct qkv_model qkv_model;
typedef struct qkv_text qkv_text; /* that is being written */

QKV_C_API const char* qkv_version(void);
QKV_C_API const char* qkv_error(void); /* "" after a call that did not fail; until this thread's next call */
QKV_C_API const char* qkv_error_hint(void);
QKV_C_API void qkv_free(void* returned); /* texts, ids and numbers */

/* --- models --- */

enum { QKV_DEVICE_AUTO = 0, QKV_DEVICE_CPU = 1, QKV_DEVICE_CUDA = 2 };
enum { QKV_PRECISION_AUTO = 0, QKV_PRECISION_F32 = 1, QKV_PRECISION_BF16 = 2 };

typedef struct qkv_open_options {
  size_t size; /* sizeof(qkv_open_options): later versions may have more at the end */
  int device, precision, threads;
  int64_t context, texts; /* 0: as the library chooses */
} qkv_open_options;

/* A Hugging Face folder, a GGUF file, or a built-in name. `options` may be NULL. */
QKV_C_API qkv_model* qkv_open(const char* path_or_name, const qkv_open_options* options);
QKV_C_API void qkv_close(qkv_model* model); /* NULL is good */

/* JSON: path, family, kind, parameters, layers, width, heads, vocabulary, context, device, precision. qkv_free it. */
QKV_C_API char* qkv_info(qkv_model* model);

/* Ids of a text, with the special tokens the model expects. qkv_free them. */
QKV_C_API int32_t* qkv_encode(qkv_model* model, const char* text, size_t* count);
QKV_C_API char* qkv_decode(qkv_model* model, const int32_t* ids, size_t count);

/* --- writing --- */

typedef struct qkv_generate_options {
  size_t size;
  int64_t max_new;    /* 0: until the context is full */
  double temperature; /* below 0: as the model says */
  double top_p;       /* 0: as the model says */
  int64_t top_k;      /* below 0: as the model says */
  uint64_t seed;
  const char* stop; /* ends before this text; NULL: none */
} qkv_generate_options;

QKV_C_API void qkv_generate_defaults(qkv_generate_options* options); /* fill them, then change what you want */

/* The whole continuation. `options` may be NULL. qkv_free it. */
QKV_C_API char* qkv_generate(qkv_model* model, const char* prompt, const qkv_generate_options* options);

/* Piece by piece. qkv_next gives the next piece, whole characters, possibly ""; NULL at the end, where qkv_error() is
 * "", or on failure. The piece lives until the next call for this text. */
QKV_C_API qkv_text* qkv_start(qkv_model* model, const char* prompt, const qkv_generate_options* options);
QKV_C_API const char* qkv_next(qkv_text* text);
QKV_C_API void qkv_text_cancel(qkv_text* text);
QKV_C_API const char* qkv_text_ended(
    qkv_text* text); /* "not yet", "stop", "length", "context", "cancelled", "failed" */
QKV_C_API void qkv_text_free(qkv_text* text);

/* --- judging and looking --- */

/* The sum of log p of the tokens of a text, in nats; `tokens` (may be NULL): how many. */
QKV_C_API int qkv_likelihood(qkv_model* model, const char* text, double* total, int64_t* tokens);

/* A vector of length 1. qkv_free it. */
QKV_C_API float* qkv_embed(qkv_model* model, const char* text, size_t* width);

/* Called for each tap of a pass: "3.attn.probs", its shape, its numbers row by row. They live during the call; with
 * `edit` not 0 they may be changed, and the pass goes on with them. Not 0 ends the reading: qkv_read fails. */
typedef int (*qkv_tap_function)(void* user, const char* name, const int64_t* shape, size_t rank, float* values,
                                size_t count);
QKV_C_API int qkv_read(qkv_model* model, const char* text, const char* taps, int edit, qkv_tap_function function,
                       void* user);

/* The report of qkv look, as JSON, or as a page. qkv_free it. */
QKV_C_API char* qkv_look_json(qkv_model* model, const char* text);
QKV_C_API char* qkv_look_html(qkv_model* model, const char* text);

/* What it costs to cut heads ("L0H1,L2"), on `data` (a file, or "world"; NULL: the built-in world): JSON. qkv_free it. */
QKV_C_API char* qkv_cut(qkv_model* model, const char* heads, const char* data);

/* Activation patching: which layer, position and head carries what tells two texts of as many tokens apart. `answer` and
 * `wrong` are tokens; -1: the top guess after the clean text, and after the corrupt one. The report of qkv patch, as JSON,
 * or as a page. qkv_free it. */
QKV_C_API char* qkv_patch_json(qkv_model* model, const char* clean, const char* corrupt, int32_t answer, int32_t wrong);
QKV_C_API char* qkv_patch_html(qkv_model* model, const char* clean, const char* corrupt, int32_t answer, int32_t wrong);

#ifdef __cplusplus
}
#endif

#endif

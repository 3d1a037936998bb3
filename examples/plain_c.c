/* The same library from C: continues a text piece by piece, and looks at the attention of a layer.
 *   plain_c MODEL "Once upon a time" */
#include <qkv/c.h>
#include <stdio.h>

static int show(void* user, const char* name, const int64_t* shape, size_t rank, float* values, size_t count) {
  size_t axis;
  (void)user;
  printf("%s [", name);
  for (axis = 0; axis < rank; ++axis) printf(axis == 0 ? "%lld" : ", %lld", (long long)shape[axis]);
  printf("] of %zu numbers, the first %g\n", count, count > 0 ? (double)values[0] : 0.0);
  return 0; /* anything else ends the reading */
}

static int failed(void) {
  fprintf(stderr, "%s\n  hint: %s\n", qkv_error(), qkv_error_hint());
  return 2;
}

int main(int argc, char** argv) {
  qkv_model* model;
  qkv_text* text;
  qkv_generate_options options;
  const char* piece;
  int code = 0;
  if (argc < 3) return fprintf(stderr, "usage: plain_c MODEL TEXT\n"), 2;
  model = qkv_open(argv[1], NULL);
  if (model == NULL) return failed();

  qkv_generate_defaults(&options);
  options.max_new = 40;
  text = qkv_start(model, argv[2], &options);
  if (text == NULL) code = failed();
  while (text != NULL && (piece = qkv_next(text)) != NULL) fputs(piece, stdout);
  if (text != NULL && *qkv_error() != '\0') code = failed();
  putchar('\n');
  qkv_text_free(text);

  if (qkv_read(model, argv[2], "0.attn.probs,final", 0, show, NULL) != 0) code = failed();
  qkv_close(model);
  return code;
}

/* Calls the host code of end-to-end.mlir with memrefs at made-up addresses of
   device memory, which the host never touches. */
#include "attnfuse-c/Host.h"
#include <stdio.h>
#include <string.h>

typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes[4], strides[4];
} Memref4;

extern void _mlir_ciface_layers(Memref4 *q, Memref4 *k, Memref4 *out,
                                int64_t position, int64_t stream);

static Memref4 makeMemref(uintptr_t address, int64_t b, int64_t h, int64_t n,
                          int64_t d) {
  Memref4 m = {(void *)(address - 64),
               (void *)address,
               0,
               {b, h, n, d},
               {h * n * d, n * d, d, 1}};
  return m;
}

static void report(const char *message, void *userData) {
  printf("%s: %s\n", (const char *)userData, message);
}

int main(int argc, char **argv) {
  Memref4 q = makeMemref(0x100000, 2, 8, 100, 64);
  Memref4 k = makeMemref(0x200000, 2, 2, 70, 64);
  Memref4 out = makeMemref(0x300000, 2, 8, 100, 64);
  printf("version %d\n", attnfuseHostGetVersion());
  if (argc > 1 && strcmp(argv[1], "abort") != 0)
    attnfuseHostSetErrorHandler(report, argv[1]);
  if (argc > 1) {
    /* Not where the kernels' wide loads want it. */
    k.aligned = (void *)0x200002;
    _mlir_ciface_layers(&q, &k, &out, 5, 0);
    printf("went on\n");
    return 0;
  }
  /* [B, N, H, D] in memory, from the second element of 16 bytes on. */
  q.offset = 8;
  q.strides[1] = 64;
  q.strides[2] = 8 * 64;
  _mlir_ciface_layers(&q, &k, &out, 5, 0x77);
  _mlir_ciface_layers(&q, &k, &out, 6, 0x77);
  return 0;
}

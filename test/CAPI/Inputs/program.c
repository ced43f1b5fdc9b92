/* A stranger's program in C. Prints what it sees; exits with 1 where a number
   is not what it should be. argv[1] is "compile", "cpu" or "cuda". */

#include "attnfuse-c/Compile.h"
#include "attnfuse-c/Cpu.h"
#include "attnfuse-c/Runtime.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const causal =
    "func.func @f(%q: tensor<?x2x?x8xTYPE>, %k: tensor<?x1x?x8xTYPE>,\n"
    "             %v: tensor<?x1x?x8xTYPE>) -> tensor<?x2x?x8xTYPE> {\n"
    "  %s = attnfuse.scaled_dot_product %q, %k\n"
    "      : tensor<?x2x?x8xTYPE>, tensor<?x1x?x8xTYPE> -> tensor<?x2x?x?xf32>\n"
    "  %m = attnfuse.causal %s bottom_right : tensor<?x2x?x?xf32>\n"
    "  %p = attnfuse.softmax %m : tensor<?x2x?x?xf32>\n"
    "  %o = attnfuse.weighted_sum %p, %v\n"
    "      : tensor<?x2x?x?xf32>, tensor<?x1x?x8xTYPE> -> tensor<?x2x?x8xTYPE>\n"
    "  return %o : tensor<?x2x?x8xTYPE>\n"
    "}\n";

/* The text above with an element type in place of TYPE. */
static char *makeSource(const char *type) {
  char *text = malloc(2 * strlen(causal)), *end = text;
  const char *place = causal;
  for (const char *next; (next = strstr(place, "TYPE")); place = next + 4) {
    memcpy(end, place, next - place);
    end += next - place;
    strcpy(end, type);
    end += strlen(type);
  }
  strcpy(end, place);
  return text;
}

static void printDiagnostic(const AttnfuseDiagnostic *diagnostic, void *prefix) {
  static const char *const severities[] = {"note", "warning", "error", "remark"};
  printf("%s: %s at '%s' %d:%d: %s\n", (const char *)prefix,
         severities[diagnostic->severity], diagnostic->file, diagnostic->line,
         diagnostic->column, diagnostic->message);
}

static void expect(int condition, const char *what) {
  if (condition)
    return;
  printf("FAILED: %s (%s)\n", what, attnfuseGetLastError());
  exit(1);
}

static AttnfuseCompiled *compile(const char *source, const char *target,
                                 AttnfuseEmit emit, const char *prefix) {
  AttnfuseCompiled *compiled =
      attnfuseCompile(source, strlen(source), target, emit,
                      prefix ? printDiagnostic : NULL, (void *)prefix);
  if (prefix && !compiled)
    printf("%s: last: %s\n", prefix, attnfuseGetLastError());
  return compiled;
}

/*===----------------------------------------------------------------------===*/

enum { NumThreads = 6 };

/* Compiles for one of two chips, then an error, and gives the PTX. */
static void *compileInThread(void *chip) {
  char *source = makeSource("f16");
  AttnfuseCompiled *compiled = compile(source, chip, ATTNFUSE_EMIT_PTX, NULL);
  expect(compiled != NULL, "a thread compiles");
  char *ptx = strdup(attnfuseCompiledGetCode(compiled));
  attnfuseCompiledDestroy(compiled);
  char expected[64];
  sprintf(expected, "unknown target 'no-%s'", (char *)chip);
  char *bad = malloc(32);
  sprintf(bad, "no-%s", (char *)chip);
  expect(!compile(source, bad, ATTNFUSE_EMIT_PTX, NULL), "a bad target fails");
  expect(strstr(attnfuseGetLastError(), bad) != NULL,
         "each thread has its own last error");
  free(bad);
  AttnfuseCpuFunction *function =
      attnfuseCpuCompile(source, strlen(source), "f", NULL, NULL);
  expect(function != NULL, "a thread compiles for the host");
  attnfuseCpuFunctionDestroy(function);
  free(source);
  return ptx;
}

static int testCompile(void) {
  printf("api %d, version %s, build id of %d digits\n", attnfuseGetApiVersion(),
         attnfuseGetVersion(), (int)strlen(attnfuseGetBuildId()));
  printf("chip of 90: %s\n", attnfuseFindChip(90));
  expect(!attnfuseFindChip(70), "70 is too old");
  printf("chip of 70: %s\n", attnfuseGetLastError());

  char *source = makeSource("f16");
  static const AttnfuseEmit emits[] = {
      ATTNFUSE_EMIT_FUSED, ATTNFUSE_EMIT_SCHEDULE, ATTNFUSE_EMIT_NVVM,
      ATTNFUSE_EMIT_LLVM,  ATTNFUSE_EMIT_PTX,      ATTNFUSE_EMIT_LINALG};
  static const char *const contents[] = {
      "attnfuse.attention", "schedule <", "nvvm.kernel",
      "define ptx_kernel",  ".entry f",   "linalg.generic"};
  for (int i = 0; i < 6; ++i) {
    int isTargeted = emits[i] != ATTNFUSE_EMIT_FUSED &&
                     emits[i] != ATTNFUSE_EMIT_LINALG;
    AttnfuseCompiled *compiled =
        compile(source, isTargeted ? "sm_80" : NULL, emits[i], "emit");
    expect(compiled != NULL, contents[i]);
    const char *code = attnfuseCompiledGetCode(compiled);
    expect(strstr(code, contents[i]) != NULL, contents[i]);
    expect(strlen(code) == attnfuseCompiledGetCodeSize(compiled), "the size");
    const char *manifest = attnfuseCompiledGetManifest(compiled);
    expect((strstr(manifest, "\"kernels\"") != NULL) ==
               (emits[i] == ATTNFUSE_EMIT_PTX),
           "a manifest with PTX only");
    if (emits[i] == ATTNFUSE_EMIT_PTX)
      printf("explanation: %.40s\n", attnfuseCompiledGetExplanation(compiled));
    attnfuseCompiledDestroy(compiled);
  }
  expect(!compile(source, "sm_80", (AttnfuseEmit)99, "level"), "a bad level");
  expect(!compile(source, "sm_1", ATTNFUSE_EMIT_PTX, "target"), "a bad target");
  expect(!compile(source, "", ATTNFUSE_EMIT_PTX, "no-target"), "no target");
  free(source);
  source = makeSource("f32");
  expect(!compile(source, "sm_80", ATTNFUSE_EMIT_PTX, "f32"), "f32 on a GPU");
  free(source);
  expect(!compile("func.func @f(", NULL, ATTNFUSE_EMIT_FUSED, "syntax"),
         "half a module");
  expect(!compile("func.func @f(%q: tensor<1x1x4x8xf16>) {\n"
                  "  %m = attnfuse.sliding_window %q top_left\n"
                  "      : tensor<1x1x4x8xf16> loc(\"variant.py\":12:3)\n"
                  "  return\n}\n",
                  NULL, ATTNFUSE_EMIT_FUSED, "place"),
         "scores in f16");
  expect(!compile("func.func @f(%q: tensor<1x6x4x8xf16>, "
                  "%k: tensor<1x4x4x8xf16>) {\n"
                  "  %s = attnfuse.scaled_dot_product %q, %k\n"
                  "      : tensor<1x6x4x8xf16>, tensor<1x4x4x8xf16>\n"
                  "      -> tensor<1x6x4x4xf32> loc(\"variant.py\":14:0)\n"
                  "  return\n}\n",
                  NULL, ATTNFUSE_EMIT_FUSED, "verifier"),
         "six heads on four");

  pthread_t threads[NumThreads];
  char *ptx[NumThreads];
  static char *const chips[] = {"sm_80", "sm_90a"};
  for (int i = 0; i < NumThreads; ++i)
    pthread_create(&threads[i], NULL, compileInThread, chips[i % 2]);
  for (int i = 0; i < NumThreads; ++i)
    pthread_join(threads[i], (void **)&ptx[i]);
  for (int i = 0; i < NumThreads; ++i) {
    expect(strcmp(ptx[i], ptx[i % 2]) == 0, "threads get the same code");
    if (i >= 2)
      free(ptx[i]);
  }
  expect(strcmp(ptx[0], ptx[1]) != 0, "chips get their own code");
  free(ptx[0]);
  free(ptx[1]);
  printf("threads agree\n");
  return 0;
}

/*===----------------------------------------------------------------------===*/

/* [1, heads, length, 8] as rows of heads * 8 numbers, like storage of
   [1, length, heads, 8]. */
static AttnfuseValue makeValue(void *data, AttnfuseElementType type,
                               int64_t heads, int64_t length) {
  AttnfuseValue value;
  memset(&value, 0, sizeof(value));
  value.data = data;
  value.type = type;
  value.rank = 4;
  int64_t sizes[] = {1, heads, length, 8};
  int64_t strides[] = {heads * length * 8, 8, heads * 8, 1};
  memcpy(value.sizes, sizes, sizeof(sizes));
  memcpy(value.strides, strides, sizeof(strides));
  return value;
}

enum { Nq = 3, Nkv = 5, Heads = 2, D = 8 };

static int testCpu(void) {
  char *source = makeSource("f32");
  AttnfuseCpuFunction *function =
      attnfuseCpuCompile(source, strlen(source), "f", printDiagnostic, "cpu");
  expect(function != NULL, "f compiles");
  expect(!attnfuseCpuCompile(source, strlen(source), "g", printDiagnostic,
                             "missing"),
         "there is no g");
  free(source);

  float q[Nq * Heads * D], k[Nkv * D], v[Nkv * D], o[Nq * Heads * D];
  for (int i = 0; i < Nq * Heads * D; ++i)
    q[i] = sinf(1.7f * i), o[i] = NAN;
  for (int i = 0; i < Nkv * D; ++i)
    k[i] = cosf(2.3f * i), v[i] = sinf(0.9f * i + 1);
  AttnfuseValue arguments[] = {makeValue(q, ATTNFUSE_F32, Heads, Nq),
                               makeValue(k, ATTNFUSE_F32, 1, Nkv),
                               makeValue(v, ATTNFUSE_F32, 1, Nkv)};
  AttnfuseValue result = makeValue(o, ATTNFUSE_F32, Heads, Nq);
  expect(!attnfuseCpuFunctionRun(function, arguments, 3, &result, 1), "it runs");
  double worst = 0;
  for (int h = 0; h < Heads; ++h)
    for (int i = 0; i < Nq; ++i) {
      double sum = 0, row[D] = {0};
      for (int j = 0; j <= i + Nkv - Nq; ++j) {
        double score = 0;
        for (int d = 0; d < D; ++d)
          score += (double)q[(i * Heads + h) * D + d] * k[j * D + d];
        double weight = exp(score / sqrt(D));
        sum += weight;
        for (int d = 0; d < D; ++d)
          row[d] += weight * v[j * D + d];
      }
      for (int d = 0; d < D; ++d)
        worst = fmax(worst, fabs(row[d] / sum - o[(i * Heads + h) * D + d]));
    }
  expect(worst < 1e-6, "the result is that of the definition");
  printf("result right\n");

  o[0] = 7;
  arguments[2].sizes[2] = 4;
  expect(attnfuseCpuFunctionRun(function, arguments, 3, &result, 1), "length");
  printf("length: %s\n", attnfuseGetLastError());
  arguments[2].sizes[2] = Nkv;
  arguments[1].type = ATTNFUSE_F16;
  expect(attnfuseCpuFunctionRun(function, arguments, 3, &result, 1), "type");
  printf("type: %s\n", attnfuseGetLastError());
  arguments[1].type = 77;
  expect(attnfuseCpuFunctionRun(function, arguments, 3, &result, 1), "type");
  printf("type: %s\n", attnfuseGetLastError());
  arguments[1].type = ATTNFUSE_F32;
  arguments[0].rank = 3;
  expect(attnfuseCpuFunctionRun(function, arguments, 3, &result, 1), "rank");
  printf("rank: %s\n", attnfuseGetLastError());
  arguments[0].rank = 4;
  arguments[0].data = NULL;
  expect(attnfuseCpuFunctionRun(function, arguments, 3, &result, 1), "null");
  printf("null: %s\n", attnfuseGetLastError());
  arguments[0].data = q;
  expect(attnfuseCpuFunctionRun(function, arguments, 2, &result, 1), "count");
  printf("count: %s\n", attnfuseGetLastError());
  result.sizes[2] = 2;
  expect(attnfuseCpuFunctionRun(function, arguments, 3, &result, 1), "result");
  printf("result: %s\n", attnfuseGetLastError());
  expect(o[0] == 7, "a refused call writes nothing");
  attnfuseCpuFunctionDestroy(function);
  return 0;
}

/*===----------------------------------------------------------------------===*/

static int testCuda(void) {
  int capability = attnfuseDeviceGetCapability(0);
  if (capability < 0) {
    printf("no device: %s\n", attnfuseGetLastError());
    expect(!attnfuseKernelLoad(0, "", 0, "{", "f"), "no manifest");
    printf("no manifest: %s\n", attnfuseGetLastError());
    return 0;
  }
  printf("capability %d, of the current device %d\n", capability,
         attnfuseDeviceGetCapability(ATTNFUSE_CURRENT_DEVICE));
  char *source = makeSource("bf16");
  AttnfuseCompiled *compiled = compile(source, attnfuseFindChip(capability),
                                       ATTNFUSE_EMIT_PTX, "cuda");
  free(source);
  expect(compiled != NULL, "f compiles for the device");
  expect(!attnfuseKernelLoad(0, attnfuseCompiledGetCode(compiled),
                             attnfuseCompiledGetCodeSize(compiled),
                             attnfuseCompiledGetManifest(compiled), "g"),
         "there is no g");
  printf("load: %s\n", attnfuseGetLastError());
  AttnfuseKernel *kernel =
      attnfuseKernelLoad(0, attnfuseCompiledGetCode(compiled),
                         attnfuseCompiledGetCodeSize(compiled),
                         attnfuseCompiledGetManifest(compiled), "f");
  expect(kernel != NULL, "f loads");
  attnfuseCompiledDestroy(compiled);

  /* The fake driver reads no memory. */
  void *memory = (void *)0x1000;
  AttnfuseValue arguments[] = {makeValue(memory, ATTNFUSE_BF16, Heads, Nq),
                               makeValue(memory, ATTNFUSE_BF16, 1, Nkv),
                               makeValue(memory, ATTNFUSE_BF16, 1, Nkv)};
  AttnfuseValue result = makeValue(memory, ATTNFUSE_BF16, Heads, Nq);
  expect(!attnfuseKernelLaunch(kernel, NULL, arguments, 3, &result, 1),
         "it launches");
  arguments[1].data = (void *)0x1002;
  expect(attnfuseKernelLaunch(kernel, NULL, arguments, 3, &result, 1), "address");
  printf("address: %s\n", attnfuseGetLastError());
  arguments[1].data = memory;
  arguments[2].rank = 99;
  expect(attnfuseKernelLaunch(kernel, NULL, arguments, 3, &result, 1), "rank");
  printf("rank: %s\n", attnfuseGetLastError());
  arguments[2].rank = 4;
  expect(attnfuseKernelLaunch(kernel, NULL, arguments, 3, &result, 0), "count");
  printf("count: %s\n", attnfuseGetLastError());
  expect(!attnfuseKernelBind(kernel, arguments, 2, &result, 1), "count");
  printf("bind: %s\n", attnfuseGetLastError());
  AttnfuseLaunch *launch = attnfuseKernelBind(kernel, arguments, 3, &result, 1);
  expect(launch != NULL, "it binds");
  attnfuseKernelDestroy(kernel);
  uint64_t addresses[] = {0x2000, 0x3000, 0x4000, 0x5000};
  expect(!attnfuseLaunchRun(launch, NULL, addresses), "it launches");
  addresses[3] = 0x5001;
  expect(attnfuseLaunchRun(launch, NULL, addresses), "address");
  printf("run: %s\n", attnfuseGetLastError());
  attnfuseLaunchDestroy(launch);
  return 0;
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "compile") == 0)
    return testCompile();
  if (strcmp(mode, "cpu") == 0)
    return testCpu();
  if (strcmp(mode, "cuda") == 0)
    return testCuda();
  return 2;
}

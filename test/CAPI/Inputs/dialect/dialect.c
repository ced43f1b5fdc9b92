/* Parses a module of the dialect, runs a pipeline on it, and does so in many
   threads at once, each with a context of its own. */
#include "attnfuse-c/Dialect.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/Pass.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUM_THREADS 8

static const char *source;

struct Text {
  char *data;
  size_t size;
};

static void append(MlirStringRef part, void *userData) {
  struct Text *text = userData;
  text->data = realloc(text->data, text->size + part.length + 1);
  memcpy(text->data + text->size, part.data, part.length);
  text->size += part.length;
  text->data[text->size] = 0;
}

static MlirLogicalResult report(MlirDiagnostic diagnostic, void *userData) {
  struct Text *text = userData;
  append(mlirStringRefCreateFromCString("error: "), text);
  mlirDiagnosticPrint(diagnostic, append, text);
  append(mlirStringRefCreateFromCString("\n"), text);
  return mlirLogicalResultSuccess();
}

/* What `pipeline` makes of the source, or the errors. */
static struct Text run(const char *pipeline) {
  struct Text text = {NULL, 0};
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  attnfuseRegisterAllDialects(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);
  mlirDialectHandleLoadDialect(mlirGetDialectHandle__attnfuse__(), context);
  mlirContextLoadAllAvailableDialects(context);
  mlirContextAttachDiagnosticHandler(context, report, &text, NULL);
  MlirModule module =
      mlirModuleCreateParse(context, mlirStringRefCreateFromCString(source));
  if (!mlirModuleIsNull(module)) {
    MlirPassManager pm = mlirPassManagerCreate(context);
    if (mlirLogicalResultIsSuccess(mlirParsePassPipeline(
            mlirPassManagerGetAsOpPassManager(pm),
            mlirStringRefCreateFromCString(pipeline), append, &text)) &&
        mlirLogicalResultIsSuccess(
            mlirPassManagerRunOnOp(pm, mlirModuleGetOperation(module))))
      mlirOperationPrint(mlirModuleGetOperation(module), append, &text);
    mlirPassManagerDestroy(pm);
    mlirModuleDestroy(module);
  }
  mlirContextDestroy(context);
  return text;
}

static void *runInThread(void *argument) {
  struct Text *text = argument;
  *text = run("builtin.module(attnfuse-to-ptx-pipeline)");
  return NULL;
}

int main(int argc, char **argv) {
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
  static char buffer[1 << 16];
  if (!file || fread(buffer, 1, sizeof(buffer) - 1, file) == 0)
    return 1;
  fclose(file);
  source = buffer;
  attnfuseRegisterAllPasses();
  attnfuseRegisterAllPasses();

  struct Text fused =
      run("builtin.module(func.func(attnfuse-simplify,attnfuse-fuse))");
  puts(fused.data);
  struct Text wrong = run("builtin.module(convert-attnfuse-to-gpu)");
  puts(wrong.data);

  pthread_t threads[NUM_THREADS];
  struct Text texts[NUM_THREADS];
  for (int i = 0; i < NUM_THREADS; ++i)
    if (pthread_create(&threads[i], NULL, runInThread, &texts[i]))
      return 1;
  for (int i = 0; i < NUM_THREADS; ++i)
    pthread_join(threads[i], NULL);
  puts(texts[0].data);
  for (int i = 1; i < NUM_THREADS; ++i)
    if (strcmp(texts[i].data, texts[0].data) != 0)
      return 1;
  puts("threads agree");
  return 0;
}

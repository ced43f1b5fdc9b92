"""lit configuration of the attnfuse test suite."""

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile

import lit.formats
from lit.llvm import llvm_config

config.name = "attnfuse"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.excludes = ["CMakeLists.txt", "Inputs", "lit.cfg.py", "lit.site.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.attnfuse_obj_root, "test")

llvm_config.use_default_substitutions()
# For not and split-file, which have no substitutions of their own.
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
llvm_config.add_tool_substitutions(
    ["attnfuse-opt", "attnfuse-compile", "attnfuse-run", "attnfuse-lsp-server",
     "attnfuse-reduce", "attnfuse-translate"],
    [os.path.join(config.attnfuse_obj_root, "bin"), config.llvm_tools_dir],
)
# Tests that take very long, by request.
llvm_config.with_system_environment("ATTNFUSE_TEST_GUIDE")
config.substitutions.append(("%llvm-tools", config.llvm_tools_dir))
config.substitutions.append(("%mlir-dir", config.mlir_dir))
config.substitutions.append(("%mlir-opt", os.path.join(config.llvm_tools_dir, "mlir-opt")))
config.substitutions.append(("%mlir-runner", os.path.join(config.llvm_tools_dir, "mlir-runner")))
config.substitutions.append(("%plugin", os.path.join(config.attnfuse_obj_root, "lib", "AttnFusePlugin.so")))
config.substitutions.append(("%python", config.python_executable))
config.substitutions.append(("%examples", os.path.join(config.attnfuse_src_root, "examples")))
config.substitutions.append(("%docs", os.path.join(config.attnfuse_src_root, "docs")))
config.substitutions.append(("%builddir", config.attnfuse_obj_root))
config.substitutions.append(("%cmake", config.cmake_command))
config.substitutions.append(("%cc", config.c_compiler))
config.substitutions.append(("%cxx", config.cxx_compiler))

# The Python package from the sources, with the library of the build folder. Tests that want PyTorch or
# transformers run where the interpreter has them, or where $ATTNFUSE_TORCH_PYTHON, another one, does.
python_tests = os.path.join(config.attnfuse_src_root, "python", "tests")
package = [
    "env",
    "PYTHONDONTWRITEBYTECODE=1",
    "PYTHONPATH=" + os.path.join(config.attnfuse_src_root, "python"),
    "ATTNFUSE_LIBRARY=" + os.path.join(config.attnfuse_obj_root, "lib", "libattnfuse.so"),
]
torch_python = os.environ.get("ATTNFUSE_TORCH_PYTHON", config.python_executable)
pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", python_tests]
config.substitutions.append(("%{python_tests}", python_tests))
config.substitutions.append(("%{pytest}", shlex.join(package + [config.python_executable] + pytest)))
config.substitutions.append(("%{torch_pytest}", shlex.join(package + [torch_python] + pytest)))
config.substitutions.append(("%{package_env}", shlex.join(package)))
config.substitutions.append(("%{torch_python}", torch_python))
for module in "torch", "transformers":
    find = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
    if subprocess.run([torch_python, "-c", find]).returncode == 0:
        config.available_features.add(module)

# ptxas checks what the compiler emits, where the CUDA toolkit is installed.
config.ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
if config.ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", config.ptxas))
# Where it is there, too, tests look into what ptxas made of it.
nvdisasm = shutil.which("nvdisasm") or shutil.which("/usr/local/cuda/bin/nvdisasm")
config.substitutions.append(("%nvdisasm_option", f"--nvdisasm={nvdisasm}" if nvdisasm else ""))

# A compiler with ThreadSanitizer, whose programs start here. Debian's clang has the
# sanitizer in a package of its own.
with tempfile.TemporaryDirectory() as folder:
    program = os.path.join(folder, "empty")
    for compiler in filter(shutil.which, [config.cxx_compiler, "g++"]):
        build = [compiler, "-fsanitize=thread", "-x", "c++", "-", "-o", program]
        done = subprocess.run(build, input=b"int main() {}", stderr=subprocess.DEVNULL)
        if done.returncode == 0 and subprocess.run([program]).returncode == 0:
            config.available_features.add("tsan")
            config.substitutions.append(("%tsan-cxx", compiler + " -fsanitize=thread"))
            break

try:
    ctypes.CDLL("libcuda.so.1")
    config.available_features.add("cuda")
except OSError:
    pass

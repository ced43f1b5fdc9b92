#!/bin/sh
# From a fresh Debian bookworm to a checked run of Llama 3's attention:
# installs the packages that are missing, builds the tools, compiles the example
# to PTX, executes it on the CPU and compares the result with the fp64 reference.
#
#   cmake/bootstrap.sh             everything
#   cmake/bootstrap.sh --install   only the packages
#
# Runs as root or with sudo, as often as you like.
set -eu
cd "$(dirname "$0")/.."

packages="g++ cmake ninja-build clang-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev
  mlir-22-tools libzstd-dev zlib1g-dev libgtest-dev nlohmann-json3-dev python3 python3-numpy
  python3-pytest"

say() { printf '\n== %s\n' "$*"; }
fail() { echo "bootstrap: $*" >&2; exit 1; }

missing=""
for package in $packages; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=none
  [ "$status" = installed ] || missing="$missing $package"
done

as_root() {
  if [ "$(id -u)" = 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null; then
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    fail "cannot install$missing: run this as root, or install sudo"
  fi
}

# LLVM 22 comes to bookworm through its security suite.
have_llvm() { apt-cache policy llvm-22-dev 2>/dev/null | grep -q 'Candidate: 1:22\.'; }

# The archive of the suite lies beside the one that apt already uses.
enable_security_suite() {
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  [ "$release" = bookworm ] || fail "no package llvm-22-dev: this needs Debian bookworm, or LLVM 22.1 and MLIR 22.1 installed by hand"
  archive=$(apt-get indextargets --format '$(REPO_URI)' "Created-By: Packages" "Codename: bookworm" |
    sed 's|/*$||' | sort -u | head -n 1)
  case $archive in
    */debian) ;;
    *) fail "no package llvm-22-dev: add the suite bookworm-security to apt's sources" ;;
  esac
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keyring] $archive-security bookworm-security main" |
    as_root tee /etc/apt/sources.list.d/bookworm-security.list >/dev/null
  as_root apt-get -q update
}

if [ -n "$missing" ]; then
  say "installing$missing"
  as_root apt-get -q update
  have_llvm || enable_security_suite
  have_llvm || fail "no package llvm-22-dev in the suite bookworm-security"
  # shellcheck disable=SC2086 # a list of packages
  as_root apt-get -q install -y --no-install-recommends $missing
fi
[ "${1:-}" != --install ] || exit 0

say "building"
cmake --preset default
cmake --build --preset default --target attnfuse-opt attnfuse-compile attnfuse-run

example=examples/llama3-rope-causal-gqa.mlir
say "what $example is fused to"
build/bin/attnfuse-opt "$example" --canonicalize --attnfuse-fuse

for chip in sm_80 sm_90a; do
  say "compiling to PTX for $chip"
  build/bin/attnfuse-compile "$example" --chip="$chip" --explain -o "build/llama3.$chip.ptx"
  ls -l "build/llama3.$chip.ptx" "build/llama3.$chip.json"
done

say "executing on the CPU, checked against the fp64 reference"
build/bin/attnfuse-run "$example" --device=cpu --random=1 --dims B=1,N=70 --check

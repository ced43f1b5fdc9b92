//===- KnownTargets.cpp - The table of machines ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sources, by the letter in the comment of a row:
//   d  the vendor's data sheet or architecture whitepaper of the product;
//   t  clock derived from the data sheet's dense f16 tensor rate, SM count and
//      FLOP per clock (below the boost clock, which tensor load does not hold);
//   m  measured on the machine under an attention kernel;
//   p  from the data sheet, for prediction only: no kernel was timed on it.
// Limits (shared memory, registers, threads, blocks) are those of the compute
// capability in the CUDA C++ Programming Guide's table of technical
// specifications. `l2BytesPerClock` is 5120 bytes per clock of the whole chip
// for the A100 (whitepaper) and an estimate for every other machine.
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Target/TargetInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
constexpr int64_t KiB = 1024;
constexpr int64_t MiB = 1024 * KiB;

/// What all machines of a compute capability share.
TargetInfo capability(StringRef chip, int64_t ptxVersion, int64_t sharedPerSm,
                      int64_t threadsPerSm, int64_t blocksPerSm,
                      int64_t tensorFlopsPerClock) {
  TargetInfo info;
  info.chip = chip.str();
  info.ptxVersion = ptxVersion;
  info.tensorFlopsPerClock = tensorFlopsPerClock;
  info.mufuPerClock = 16;
  info.sharedBytesPerClock = 128;
  info.l2BytesPerClock = 32;
  info.sharedReservedPerBlock = 1 * KiB;
  info.maxSharedPerBlock = sharedPerSm - info.sharedReservedPerBlock;
  info.maxSharedPerSm = sharedPerSm;
  info.registersPerSm = 65536;
  info.maxRegistersPerThread = TargetInfo::kMostRegistersPerThread;
  info.maxThreadsPerBlock = 1024;
  info.maxThreadsPerSm = threadsPerSm;
  info.maxBlocksPerSm = blocksPerSm;
  return info;
}

TargetInfo machine(StringRef name, TargetInfo info, int64_t smCount,
                   double clockGhz, double dramGbPerSecond, int64_t l2Bytes) {
  info.name = name.str();
  info.smCount = smCount;
  info.clockGhz = clockGhz;
  info.dramGbPerSecond = dramGbPerSecond;
  info.l2Bytes = l2Bytes;
  // Measured on an H200, with the kernels of both families, or fitted to what
  // was measured; derived for all other machines: the instructions are the
  // same, and the rotation of a tensor moves it at the speed of memory. See
  // docs/rotation-calculus.md.
  info.keyRotationClocks = 130;
  info.loaderRotationClocks = 440;
  info.loaderLatencyClocks = 640;
  info.loaderSharing = 0.7;
  info.visitPerProduct = 1.35;
  info.hiddenClocksPerFeature = 9.4;
  info.rotationLaunchNs = 1000;
  info.rotationGbPerSecond = 0.84 * dramGbPerSecond;
  // Estimates, not measured: the memory of a grid is flushed, the next one
  // wakes and makes two dependent trips to the L2 cache; without programmatic
  // launch the gap between two kernels of a stream comes on top.
  info.combineLaunchNs = info.hasProgrammaticLaunch() ? 2500 : 4000;
  return info;
}

TargetInfo withTensorRate(TargetInfo info, int64_t flopsPerClock) {
  info.tensorFlopsPerClock = flopsPerClock;
  return info;
}

TargetInfo withL2Rate(TargetInfo info, int64_t bytesPerClock) {
  info.l2BytesPerClock = bytesPerClock;
  return info;
}

std::vector<TargetInfo> buildTable() {
  // PTX 8.0 is what every 12.x driver loads; the newer chips need their own.
  TargetInfo sm80 =
      withL2Rate(capability("sm_80", 80, 164 * KiB, 2048, 32, 2048), 47);
  TargetInfo sm86 = capability("sm_86", 80, 100 * KiB, 1536, 16, 512);
  TargetInfo sm87 = capability("sm_87", 80, 164 * KiB, 1536, 16, 2048);
  // Data-centre chips of this capability accumulate in f32 at the full rate,
  // GeForce ones at half of it.
  TargetInfo sm89 = capability("sm_89", 80, 100 * KiB, 1536, 24, 512);
  TargetInfo sm89Full = withTensorRate(sm89, 1024);
  TargetInfo sm90 = capability("sm_90", 80, 228 * KiB, 2048, 32, 4096);
  TargetInfo sm90a = sm90;
  sm90a.chip = "sm_90a";
  TargetInfo sm100 = capability("sm_100", 86, 228 * KiB, 2048, 32, 8192);
  TargetInfo sm120 = capability("sm_120", 87, 100 * KiB, 1536, 24, 512);

  return {
      //       name         capability SMs  GHz    GB/s  L2
      machine("a100", sm80, 108, 1.410, 2039, 40 * MiB),       // d, SXM 80 GB
      machine("rtx3090", sm86, 82, 1.695, 936, 6 * MiB),       // d
      machine("rtx4090", sm89, 128, 2.520, 1008, 72 * MiB),    // d
      machine("l4", sm89Full, 58, 2.040, 300, 48 * MiB),       // d
      machine("l40s", sm89Full, 142, 2.490, 864, 96 * MiB),    // t
      machine("h100-sxm", sm90a, 132, 1.830, 3350, 50 * MiB),  // t
      machine("h100-pcie", sm90a, 114, 1.620, 2000, 50 * MiB), // t
      machine("h100-nvl", sm90a, 132, 1.545, 3900, 50 * MiB),  // t
      // m: 4.8 TB/s and 1.98 GHz on paper; 700 W hold about 1.5 GHz.
      machine("h200", sm90a, 132, 1.500, 4300, 60 * MiB),
      machine("b200", sm100, 148, 1.856, 8000, 126 * MiB),   // p, t
      machine("rtx5090", sm120, 170, 2.407, 1792, 96 * MiB), // p
      // Chips as machines, each with the facts of the product named.
      machine("sm_80", sm80, 108, 1.410, 2039, 40 * MiB),    // a100
      machine("sm_86", sm86, 82, 1.695, 936, 6 * MiB),       // rtx3090
      machine("sm_87", sm87, 16, 1.300, 205, 4 * MiB),       // d, AGX Orin
      machine("sm_89", sm89, 128, 2.520, 1008, 72 * MiB),    // rtx4090
      machine("sm_90", sm90, 132, 1.830, 3350, 50 * MiB),    // h100-sxm
      machine("sm_90a", sm90a, 132, 1.830, 3350, 50 * MiB),  // h100-sxm
      machine("sm_100", sm100, 148, 1.856, 8000, 126 * MiB), // b200
      machine("sm_120", sm120, 170, 2.407, 1792, 96 * MiB),  // rtx5090
  };
}
} // namespace

ArrayRef<TargetInfo> mlir::attnfuse::getKnownTargets() {
  static const std::vector<TargetInfo> table = buildTable();
  return table;
}

std::string mlir::attnfuse::listKnownTargets() {
  return llvm::join(
      llvm::map_range(getKnownTargets(),
                      [](const TargetInfo &info) { return info.name; }),
      ", ");
}

llvm::Expected<TargetInfo> mlir::attnfuse::lookupTarget(StringRef name) {
  for (const TargetInfo &info : getKnownTargets())
    if (name.equals_insensitive(info.name))
      return info;
  return llvm::createStringError("unknown chip or machine '" + name +
                                 "'; known are " + listKnownTargets());
}

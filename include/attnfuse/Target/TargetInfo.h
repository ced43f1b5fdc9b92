//===- TargetInfo.h - What is known of the machines -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place for facts about machines. Everything else asks a TargetInfo,
// which comes from a row of the table (KnownTargets.cpp) and the facts that an
// `#attnfuse.target` attribute states.
//
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TARGET_TARGETINFO_H
#define ATTNFUSE_TARGET_TARGETINFO_H

#include "attnfuse/Dialect/AttnFuse/IR/AttributeNames.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir {
class MLIRContext;
class Operation;
} // namespace mlir

namespace mlir::attnfuse {

class TargetAttr;

/// One machine. The names of its facts in an attribute are those of the fields
/// in snake case (`sm_count`). Rates are per SM and per clock.
struct TargetInfo {
  /// Name in the table, such as "h200" or "sm_86".
  std::string name;
  /// Chip that code is generated for, as LLVM and ptxas name it.
  std::string chip;
  /// PTX version of the emitted text, ten times major plus minor. The lowest
  /// that serves, so that old drivers can load it.
  int64_t ptxVersion = 0;

  int64_t smCount = 0;
  /// Clock under load on the tensor cores.
  double clockGhz = 0;
  /// Dense FLOP of f16 and bf16 products that accumulate in f32.
  int64_t tensorFlopsPerClock = 0;
  /// Special functions (exp2, rcp, ...).
  int64_t mufuPerClock = 0;
  int64_t sharedBytesPerClock = 0;
  int64_t l2BytesPerClock = 0;
  double dramGbPerSecond = 0;
  int64_t l2Bytes = 0;

  // What rotating k costs (Analysis/RotationCalculus.h).
  /// In the attention's kernel: clocks of an SM for each 1024 features of a key
  /// tile, in every visit. By all warps, which do nothing else meanwhile; and
  /// by a loading warpgroup, beside the products of those that compute.
  double keyRotationClocks = 0;
  double loaderRotationClocks = 0;
  /// What the loading warpgroup takes beside that, in clocks, whatever the
  /// size.
  double loaderLatencyClocks = 0;
  /// What is left of both where several blocks share the SM.
  double loaderSharing = 1;
  /// The time of a visit over that of its products on the tensor cores.
  double visitPerProduct = 0;
  /// Clocks of rotations that the prologue and the epilogue of a query tile
  /// hide, for each feature of the head.
  double hiddenClocksPerFeature = 0;
  /// By a kernel before it: its launch, and what it moves.
  double rotationLaunchNs = 0;
  double rotationGbPerSecond = 0;

  /// What a kernel adds that combines the parts of split keys, from the end of
  /// the last part on (Analysis/KeySplits.h).
  double combineLaunchNs = 0;

  /// Dynamic shared memory that one block may ask for (by opting in).
  int64_t maxSharedPerBlock = 0;
  int64_t maxSharedPerSm = 0;
  int64_t registersPerSm = 0;
  int64_t maxRegistersPerThread = 0;
  /// On every chip of the table: what an instruction can name.
  static constexpr int64_t kMostRegistersPerThread = 255;
  int64_t maxThreadsPerBlock = 0;
  int64_t maxThreadsPerSm = 0;
  int64_t maxBlocksPerSm = 0;
  /// Shared memory that the system takes from the SM for each block.
  int64_t sharedReservedPerBlock = 0;

  /// Whether code for the chip may use warpgroup-wide MMA, the tensor memory
  /// accelerator and registers that move between warps.
  bool hasWarpgroupMma() const { return chip == "sm_90a"; }
  /// Whether a kernel may start while the one before it still runs, and wait
  /// for it.
  bool hasProgrammaticLaunch() const;
  /// Bytes that a kernel's parameters may take (PTX ISA, `.param` of kernels);
  /// those of every version where none is known.
  int64_t getMaxParameterBytes() const {
    return ptxVersion < 81 ? 4352 : 32764;
  }
};

/// The rows of the table, machines first, then the chips as generic machines.
ArrayRef<TargetInfo> getKnownTargets();

/// The names of the rows, in the table's order, joined by ", ".
std::string listKnownTargets();

/// The row named `name` (in any case), or an error that lists the known names.
llvm::Expected<TargetInfo> lookupTarget(StringRef name);

/// The row that `target` names with the facts that it states. A name that is
/// not in the table is a machine of the user's own if its `chip` is stated: it
/// starts from that chip's row. Errors name the fact and list what is known.
llvm::Expected<TargetInfo> getTargetInfo(TargetAttr target);

/// The attribute for `info`: its name and the facts that differ from the row.
TargetAttr getTargetAttr(MLIRContext *context, const TargetInfo &info);

/// The machine that the module around `op` (or `op` itself) is compiled for.
llvm::Expected<TargetInfo> getTargetOf(Operation *op);

} // namespace mlir::attnfuse

#endif // ATTNFUSE_TARGET_TARGETINFO_H

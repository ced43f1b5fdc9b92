//===- Lanes.cpp - Scalar ops on many values at once ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "Scores.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::reference;

namespace {
unsigned getWidth(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

int64_t signExtend(int64_t value, unsigned width) {
  if (width == 1)
    return value & 1;
  unsigned shift = 64 - width;
  return int64_t(uint64_t(value) << shift) >> shift;
}

uint64_t zeroExtend(int64_t value, unsigned width) {
  return width >= 64 ? uint64_t(value)
                     : uint64_t(value) & ((uint64_t(1) << width) - 1);
}

using FloatUnary = double (*)(double);
using FloatBinary = double (*)(double, double);
using IntBinary = int64_t (*)(int64_t, int64_t);
using UnsignedBinary = uint64_t (*)(uint64_t, uint64_t);

FloatUnary getFloatUnary(Operation *op) {
  return llvm::TypeSwitch<Operation *, FloatUnary>(op)
      .Case([](arith::NegFOp) { return [](double x) { return -x; }; })
      .Case<arith::ExtFOp, arith::TruncFOp>(
          [](auto) { return [](double x) { return x; }; })
      .Case([](math::AbsFOp) { return [](double x) { return std::fabs(x); }; })
      .Case([](math::ExpOp) { return [](double x) { return std::exp(x); }; })
      .Case([](math::Exp2Op) { return [](double x) { return std::exp2(x); }; })
      .Case(
          [](math::ExpM1Op) { return [](double x) { return std::expm1(x); }; })
      .Case([](math::LogOp) { return [](double x) { return std::log(x); }; })
      .Case([](math::Log2Op) { return [](double x) { return std::log2(x); }; })
      .Case(
          [](math::Log1pOp) { return [](double x) { return std::log1p(x); }; })
      .Case([](math::SqrtOp) { return [](double x) { return std::sqrt(x); }; })
      .Case([](math::RsqrtOp) {
        return [](double x) { return 1 / std::sqrt(x); };
      })
      .Case([](math::TanhOp) { return [](double x) { return std::tanh(x); }; })
      .Case([](math::SinOp) { return [](double x) { return std::sin(x); }; })
      .Case([](math::CosOp) { return [](double x) { return std::cos(x); }; })
      .Case([](math::ErfOp) { return [](double x) { return std::erf(x); }; })
      .Case(
          [](math::FloorOp) { return [](double x) { return std::floor(x); }; })
      .Case([](math::CeilOp) { return [](double x) { return std::ceil(x); }; })
      .Default([](Operation *) { return nullptr; });
}

FloatBinary getFloatBinary(Operation *op) {
  return llvm::TypeSwitch<Operation *, FloatBinary>(op)
      .Case([](arith::AddFOp) {
        return [](double x, double y) { return x + y; };
      })
      .Case([](arith::SubFOp) {
        return [](double x, double y) { return x - y; };
      })
      .Case([](arith::MulFOp) {
        return [](double x, double y) { return x * y; };
      })
      .Case([](arith::DivFOp) {
        return [](double x, double y) { return x / y; };
      })
      .Case([](arith::RemFOp) {
        return [](double x, double y) { return std::fmod(x, y); };
      })
      // maximumf and minimumf propagate NaN; maxnumf and minnumf drop it.
      .Case([](arith::MaximumFOp) {
        return [](double x, double y) {
          return std::isnan(x) || std::isnan(y) ? NAN : std::fmax(x, y);
        };
      })
      .Case([](arith::MinimumFOp) {
        return [](double x, double y) {
          return std::isnan(x) || std::isnan(y) ? NAN : std::fmin(x, y);
        };
      })
      .Case([](arith::MaxNumFOp) {
        return [](double x, double y) { return std::fmax(x, y); };
      })
      .Case([](arith::MinNumFOp) {
        return [](double x, double y) { return std::fmin(x, y); };
      })
      .Case([](math::PowFOp) {
        return [](double x, double y) { return std::pow(x, y); };
      })
      .Case([](math::CopySignOp) {
        return [](double x, double y) { return std::copysign(x, y); };
      })
      .Default([](Operation *) { return nullptr; });
}

// Wrapping arithmetic is done in uint64_t, where it is defined.
int64_t divideFloor(int64_t x, int64_t y) {
  if (y == 0 || y == -1)
    return y == 0 ? 0 : int64_t(-uint64_t(x));
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

IntBinary getSignedBinary(Operation *op) {
  return llvm::TypeSwitch<Operation *, IntBinary>(op)
      .Case([](arith::DivSIOp) {
        return [](int64_t x, int64_t y) {
          return y == 0 ? 0 : y == -1 ? int64_t(-uint64_t(x)) : x / y;
        };
      })
      .Case([](arith::RemSIOp) {
        return [](int64_t x, int64_t y) {
          return y == 0 || y == -1 ? int64_t(0) : x % y;
        };
      })
      .Case([](arith::FloorDivSIOp) { return &divideFloor; })
      .Case([](arith::CeilDivSIOp) {
        return [](int64_t x, int64_t y) {
          return int64_t(-uint64_t(divideFloor(int64_t(-uint64_t(x)), y)));
        };
      })
      .Case([](arith::MaxSIOp) {
        return [](int64_t x, int64_t y) { return std::max(x, y); };
      })
      .Case([](arith::MinSIOp) {
        return [](int64_t x, int64_t y) { return std::min(x, y); };
      })
      .Case([](arith::ShRSIOp) {
        return [](int64_t x, int64_t y) {
          return x >> std::clamp<int64_t>(y, 0, 63);
        };
      })
      .Default([](Operation *) { return nullptr; });
}

/// Ops that work on zero-extended operands, those that do not care included.
UnsignedBinary getUnsignedBinary(Operation *op) {
  return llvm::TypeSwitch<Operation *, UnsignedBinary>(op)
      .Case([](arith::AddIOp) {
        return [](uint64_t x, uint64_t y) { return x + y; };
      })
      .Case([](arith::SubIOp) {
        return [](uint64_t x, uint64_t y) { return x - y; };
      })
      .Case([](arith::MulIOp) {
        return [](uint64_t x, uint64_t y) { return x * y; };
      })
      .Case([](arith::DivUIOp) {
        return [](uint64_t x, uint64_t y) { return y ? x / y : 0; };
      })
      .Case([](arith::CeilDivUIOp) {
        return
            [](uint64_t x, uint64_t y) { return y ? x / y + (x % y != 0) : 0; };
      })
      .Case([](arith::RemUIOp) {
        return [](uint64_t x, uint64_t y) { return y ? x % y : 0; };
      })
      .Case([](arith::MaxUIOp) {
        return [](uint64_t x, uint64_t y) { return std::max(x, y); };
      })
      .Case([](arith::MinUIOp) {
        return [](uint64_t x, uint64_t y) { return std::min(x, y); };
      })
      .Case([](arith::AndIOp) {
        return [](uint64_t x, uint64_t y) { return x & y; };
      })
      .Case([](arith::OrIOp) {
        return [](uint64_t x, uint64_t y) { return x | y; };
      })
      .Case([](arith::XOrIOp) {
        return [](uint64_t x, uint64_t y) { return x ^ y; };
      })
      .Case([](arith::ShLIOp) {
        return [](uint64_t x, uint64_t y) { return y < 64 ? x << y : 0; };
      })
      .Case([](arith::ShRUIOp) {
        return [](uint64_t x, uint64_t y) { return y < 64 ? x >> y : 0; };
      })
      .Default([](Operation *) { return nullptr; });
}

bool compareFloats(arith::CmpFPredicate predicate, double x, double y) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(x) || std::isnan(y);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::ORD:
    return !unordered;
  case P::UNO:
    return unordered;
  case P::OEQ:
    return x == y;
  case P::OGT:
    return x > y;
  case P::OGE:
    return x >= y;
  case P::OLT:
    return x < y;
  case P::OLE:
    return x <= y;
  case P::ONE:
    return !unordered && x != y;
  case P::UEQ:
    return unordered || x == y;
  case P::UGT:
    return unordered || x > y;
  case P::UGE:
    return unordered || x >= y;
  case P::ULT:
    return unordered || x < y;
  case P::ULE:
    return unordered || x <= y;
  case P::UNE:
    return x != y;
  }
  llvm_unreachable("unknown predicate");
}

bool compareInts(arith::CmpIPredicate predicate, int64_t x, int64_t y,
                 unsigned width) {
  using P = arith::CmpIPredicate;
  uint64_t ux = zeroExtend(x, width), uy = zeroExtend(y, width);
  // A signed i1 is 0 or -1.
  int64_t sx = width == 1 ? -x : x, sy = width == 1 ? -y : y;
  switch (predicate) {
  case P::eq:
    return x == y;
  case P::ne:
    return x != y;
  case P::slt:
    return sx < sy;
  case P::sle:
    return sx <= sy;
  case P::sgt:
    return sx > sy;
  case P::sge:
    return sx >= sy;
  case P::ult:
    return ux < uy;
  case P::ule:
    return ux <= uy;
  case P::ugt:
    return ux > uy;
  case P::uge:
    return ux >= uy;
  }
  llvm_unreachable("unknown predicate");
}

int64_t countLeadingZeros(int64_t value, unsigned width) {
  uint64_t bits = zeroExtend(value, width);
  int64_t zeros = width;
  for (; bits; bits >>= 1)
    --zeros;
  return zeros;
}

int64_t toInt(double value) {
  if (std::isnan(value))
    return 0;
  return value >= 0x1p63    ? INT64_MAX
         : value <= -0x1p63 ? INT64_MIN
                            : int64_t(value);
}

/// Evaluates one op, given its operands' lanes.
class Evaluator {
public:
  Evaluator(Operation *op, ArrayRef<const Lanes *> operands, size_t count)
      : op(op), operands(operands), count(count) {}

  FailureOr<Lanes> evaluate() {
    if (FloatUnary function = getFloatUnary(op))
      return floats([&](size_t lane) { return function(f(0, lane)); });
    if (FloatBinary function = getFloatBinary(op))
      return floats(
          [&](size_t lane) { return function(f(0, lane), f(1, lane)); });
    if (IntBinary function = getSignedBinary(op))
      return ints(
          [&](size_t lane) { return function(i(0, lane), i(1, lane)); });
    if (UnsignedBinary function = getUnsignedBinary(op))
      return ints([&](size_t lane) {
        return int64_t(function(u(0, lane), u(1, lane)));
      });
    return llvm::TypeSwitch<Operation *, FailureOr<Lanes>>(op)
        .Case([&](arith::ConstantOp op) { return constant(op); })
        .Case([&](arith::CmpFOp op) {
          return ints([&](size_t lane) {
            return compareFloats(op.getPredicate(), f(0, lane), f(1, lane));
          });
        })
        .Case([&](arith::CmpIOp op) {
          unsigned width = getWidth(op.getLhs().getType());
          return ints([&](size_t lane) {
            return compareInts(op.getPredicate(), i(0, lane), i(1, lane),
                               width);
          });
        })
        .Case([&](arith::SelectOp op) -> FailureOr<Lanes> {
          if (isa<FloatType>(op.getType()))
            return floats([&](size_t lane) {
              return i(0, lane) ? f(1, lane) : f(2, lane);
            });
          return ints([&](size_t lane) {
            return i(0, lane) ? i(1, lane) : i(2, lane);
          });
        })
        .Case([&](math::FmaOp) {
          return floats([&](size_t lane) {
            return std::fma(f(0, lane), f(1, lane), f(2, lane));
          });
        })
        .Case([&](arith::SIToFPOp op) {
          bool isBit = op.getIn().getType().isInteger(1);
          return floats([&](size_t lane) {
            return double(isBit ? -i(0, lane) : i(0, lane));
          });
        })
        .Case([&](arith::UIToFPOp) {
          return floats([&](size_t lane) { return double(u(0, lane)); });
        })
        .Case<arith::FPToSIOp, arith::FPToUIOp>([&](auto) {
          return ints([&](size_t lane) { return toInt(f(0, lane)); });
        })
        .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(
            [&](auto op) {
              bool isBit = op.getIn().getType().isInteger(1);
              return ints([&](size_t lane) {
                return isBit ? -i(0, lane) : i(0, lane);
              });
            })
        .Case<arith::IndexCastUIOp, arith::ExtUIOp>([&](auto) {
          return ints([&](size_t lane) { return int64_t(u(0, lane)); });
        })
        .Case([&](math::AbsIOp) {
          return ints([&](size_t lane) {
            return i(0, lane) < 0 ? int64_t(-u(0, lane)) : i(0, lane);
          });
        })
        .Case([&](math::CountLeadingZerosOp op) {
          return ints([&](size_t lane) {
            return countLeadingZeros(i(0, lane), getWidth(op.getType()));
          });
        })
        .Case([&](AlibiSlopeOp) {
          return floats([&](size_t lane) {
            return getStandardSlope(i(0, lane), i(1, lane));
          });
        })
        .Default([](Operation *) { return failure(); });
  }

private:
  double f(unsigned operand, size_t lane) const {
    return operands[operand]->floats[lane];
  }
  int64_t i(unsigned operand, size_t lane) const {
    return operands[operand]->ints[lane];
  }
  uint64_t u(unsigned operand, size_t lane) const {
    return zeroExtend(i(operand, lane),
                      getWidth(op->getOperand(operand).getType()));
  }

  template <typename Function>
  FailureOr<Lanes> floats(Function function) const {
    Lanes lanes;
    if (!isa<FloatType>(op->getResult(0).getType()))
      return failure();
    lanes.floats.resize(count);
    for (size_t lane = 0; lane < count; ++lane)
      lanes.floats[lane] = function(lane);
    return lanes;
  }

  template <typename Function>
  FailureOr<Lanes> ints(Function function) const {
    Lanes lanes;
    Type type = op->getResult(0).getType();
    if (!type.isIntOrIndex() || getWidth(type) > 64)
      return failure();
    lanes.ints.resize(count);
    for (size_t lane = 0; lane < count; ++lane)
      lanes.ints[lane] = signExtend(function(lane), getWidth(type));
    return lanes;
  }

  FailureOr<Lanes> constant(arith::ConstantOp op) const {
    if (auto value = dyn_cast<FloatAttr>(op.getValue()))
      return floats([&](size_t) { return value.getValueAsDouble(); });
    auto value = dyn_cast<IntegerAttr>(op.getValue());
    if (!value || value.getValue().getBitWidth() > 64)
      return failure();
    int64_t number = value.getValue().getSExtValue();
    return ints([&](size_t) { return number; });
  }

  Operation *op;
  ArrayRef<const Lanes *> operands;
  size_t count;
};
} // namespace

FailureOr<Lanes> reference::evaluateLanes(Operation *op,
                                          ArrayRef<const Lanes *> operands,
                                          size_t count) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0)
    return failure();
  // A vector or a tensor operand has no lanes.
  for (Value operand : op->getOperands())
    if (!operand.getType().isIntOrIndexOrFloat())
      return failure();
  return Evaluator(op, operands, count).evaluate();
}

bool reference::isRounding(Operation *op) {
  return isa<FloatType>(op->getResult(0).getType()) &&
         !isa<arith::ConstantOp, arith::SelectOp, arith::NegFOp, arith::ExtFOp,
              arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
              arith::MinNumFOp, math::AbsFOp, math::FloorOp, math::CeilOp,
              math::CopySignOp>(op) &&
         (isa<AlibiSlopeOp>(op) ||
          isa<arith::ArithDialect, math::MathDialect>(op->getDialect()));
}

//===- ManifestBuilder.cpp - The manifest of one function -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ManifestBuilder.h"
#include "attnfuse/KernelGen/RotateTensor.h"
#include "attnfuse/KernelGen/TileWalk.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attnfuse;
using namespace mlir::attnfuse::kernelgen;
namespace json = llvm::json;

static json::Value apply(StringRef operation, json::Value a, json::Value b) {
  return SizeExpression::apply(operation, std::move(a), std::move(b)).getJson();
}

void ManifestBuilder::addCheck(json::Value holds, const Twine &message) {
  // What the types settle needs no check in every call.
  if (holds.getAsInteger() == 1)
    return;
  json::Value check =
      json::Object{{"holds", std::move(holds)}, {"message", message.str()}};
  if (!llvm::is_contained(checks, check))
    checks.push_back(std::move(check));
}

ManifestBuilder::ManifestBuilder(AttentionOp op, ArrayRef<RopeOp> rotations,
                                 const DimensionClasses &dims)
    : op(op), rotations(rotations), dims(dims) {
  func::FuncOp function = dims.getFunction();
  auto add = [&](Value value, StringRef name) {
    AbiTensor &tensor = tensors[value];
    tensor.name = name.str();
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      for (unsigned dim = 0; dim < type.getRank(); ++dim)
        tensor.shape.push_back(getDim(value, dim));
  };
  for (auto [argument, role] :
       llvm::zip_equal(function.getArguments(), dims.getArguments()))
    add(argument, role.name);
  Operation *terminator = function.getBody().front().getTerminator();
  for (auto [result, role] :
       llvm::zip_equal(terminator->getOperands(), dims.getResults()))
    add(result, role.name);
}

json::Value ManifestBuilder::getDim(Value tensor, unsigned dim) {
  const DimensionClass &dimClass =
      dims.getClasses()[dims.getClass(tensor, dim)];
  if (dimClass.staticSize)
    return *dimClass.staticSize;
  return dimClass.names.front();
}

AttentionSizes ManifestBuilder::getSizes() {
  AttentionSizes sizes{getDim(op.getQuery(), 0), getDim(op.getQuery(), 1),
                       getDim(op.getKey(), 1), getDim(op.getQuery(), 2),
                       getDim(op.getKey(), 2)};
  if (Value indices = op.getColIndices())
    sizes.numBlocks = getDim(indices, 0);
  return sizes;
}

void ManifestBuilder::addCopy(AttentionOp copy) {
  for (auto [result, same] :
       llvm::zip_equal(copy->getResults(), op->getResults()))
    if (auto known = tensors.find(same); known != tensors.end()) {
      AbiTensor tensor = known->second;
      tensors[result] = std::move(tensor);
    }
}

static std::string getTypeName(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

void ManifestBuilder::addWorkspace(RopeOp rotation) {
  AbiTensor tensor;
  if (auto known = tensors.find(rotation.getInput()); known != tensors.end()) {
    tensor = known->second;
  } else {
    tensor.name = "constant";
    tensor.shape.append(rotation.getInput().getType().getShape().begin(),
                        rotation.getInput().getType().getShape().end());
  }
  tensor.name =
      addWorkspace(tensor.name + ".rotated", "rotated",
                   getTypeName(rotation.getInput().getType().getElementType()),
                   json::Array(tensor.shape));
  tensors[rotation.getResult()] = std::move(tensor);
}

std::string ManifestBuilder::addWorkspace(std::string name, StringRef role,
                                          StringRef type, json::Array shape) {
  auto isTaken = [&] {
    return llvm::any_of(
               tensors,
               [&](const auto &entry) { return entry.second.name == name; }) ||
           llvm::any_of(workspace, [&](const json::Value &entry) {
             return entry.getAsObject()->getString("name") == name;
           });
  };
  while (isTaken())
    name += "_";
  workspace.push_back(json::Object{{"name", name},
                                   {"role", role.str()},
                                   {"type", type.str()},
                                   {"shape", std::move(shape)}});
  return name;
}

PartialResults ManifestBuilder::addPartials(const json::Value &count,
                                            bool combinesEarly) {
  std::string output = tensors.find(op.getOutput())->second.name;
  // Of one part no version makes use: it needs no room, where a caller provides
  // for all versions.
  json::Value size =
      count.getAsInteger() ? count : apply("mul", count, apply("le", 2, count));
  auto add = [&](StringRef suffix, StringRef role, int64_t columns) {
    json::Array shape{getDim(op.getQuery(), 0), getDim(op.getQuery(), 1), size,
                      getDim(op.getQuery(), 2), columns};
    return addWorkspace((output + suffix).str(), role, "f32", std::move(shape));
  };
  return {count, add(".parts", "partial_output", op.getValueHeadDim()),
          add(".states", "partial_states", 2), combinesEarly};
}

json::Object ManifestBuilder::describe(Value tensor, Type type,
                                       StringRef role) {
  const AbiTensor &known = tensors.find(tensor)->second;
  json::Object object{{"name", known.name}, {"role", role.str()}};
  auto ranked = dyn_cast<RankedTensorType>(type);
  Type elementType = ranked ? ranked.getElementType() : type;
  object["type"] = getTypeName(elementType);
  object["shape"] = json::Array(known.shape);

  // What the kernel's vector loads and stores assume, in elements at a time.
  SmallVector<RotationOperands> all{RotationOperands::getQuery(op),
                                    RotationOperands::getKey(op)};
  SmallVector<Value> activations{op.getQuery(), op.getKey(), op.getValue(),
                                 op.getOutput()};
  for (RopeOp rotation : rotations) {
    all.push_back(RotationOperands::get(rotation));
    activations.push_back(rotation.getInput());
  }
  int64_t vector = 1;
  if (llvm::is_contained(activations, tensor))
    vector = elementType.isF32() ? 2 : SharedLayout::kChunkElements;
  bool isTable = false;
  for (const RotationOperands &rotation : all)
    if (rotation && (tensor == rotation.cos || tensor == rotation.sin)) {
      vector = std::max(vector, rotation.getTableVectorSize());
      isTable = true;
    }
  if (vector > 1 || isTable) {
    int64_t bytes = elementType.getIntOrFloatBitWidth() / 8;
    int64_t alignment = std::min<int64_t>(16, vector * bytes);
    object["alignment"] = alignment;
    object["unit_inner_stride"] = true;
    object["stride_multiple"] = alignment / bytes;
  }
  return object;
}

void ManifestBuilder::addRotationChecks(StringRef of,
                                        const RotationOperands &rotation,
                                        json::Value length) {
  if (!rotation || rotation.positions)
    return;
  json::Value start = rotation.attr.getOffset();
  if (rotation.offset) {
    APInt constant;
    auto known = tensors.find(rotation.offset);
    if (known != tensors.end())
      start = apply("add", start, known->second.name);
    else if (matchPattern(rotation.offset, m_ConstantInt(&constant)))
      // A sum that does not fit refuses the launch.
      start = apply("add", start, constant.getSExtValue());
  }
  auto table = tensors.find(rotation.cos);
  json::Value rows =
      table != tensors.end()
          ? table->second.shape[0]
          : cast<RankedTensorType>(rotation.cos.getType()).getShape()[0];
  addCheck(apply("le", apply("add", start, length), rows),
           "the rotary tables of " + of +
               " have fewer rows than offset + length");
  addCheck(apply("le", 0, start), "the offset of " + of + " is negative");
}

void ManifestBuilder::addChecks() {
  json::Value numHeads = getDim(op.getQuery(), 1),
              numKeyHeads = getDim(op.getKey(), 1);
  json::Value nq = getDim(op.getQuery(), 2), nkv = getDim(op.getKey(), 2);
  if (numHeads != numKeyHeads)
    addCheck(
        apply("eq", apply("mod", numHeads, apply("max", numKeyHeads, 1)), 0),
        "the number of query heads is not a multiple of the number of key "
        "heads");
  for (const json::Value &length : {nq, nkv})
    addCheck(apply("le", length, kMaxLength), "a length is 2^30 or more");
  // A tile may have rows of several heads, so that the number of tiles does not
  // bound that of heads.
  addCheck(apply("le", numHeads, kMaxLength), "there are 2^30 or more heads");
  addRotationChecks("q", RotationOperands::getQuery(op), nq);
  addRotationChecks("k", RotationOperands::getKey(op), nkv);
  for (RopeOp rotation : rotations)
    addRotationChecks(rotation.getResult() == op.getQuery() ? "q" : "k",
                      RotationOperands::get(rotation),
                      getDim(rotation.getInput(), 2));
  if (BlocksAttr blocks = op.getBlocksAttr()) {
    auto type = cast<RankedTensorType>(op.getRowOffsets().getType());
    addCheck(
        apply("eq", getDim(op.getRowOffsets(), type.getRank() - 1),
              apply("add", apply("ceildiv", nq, blocks.getQueryBlock()), 1)),
        "the row offsets are not one more than the query blocks");
  }
}

json::Value ManifestBuilder::getNumTiles(const KernelTile &tile) {
  json::Value heads = getDim(op.getQuery(), 1);
  if (tile.packedHeads != 1)
    heads = apply("ceildiv", std::move(heads), tile.packedHeads);
  return apply(
      "mul", apply("ceildiv", getDim(op.getQuery(), 2), tile.getRowsPerHead()),
      apply("mul", getDim(op.getQuery(), 0), std::move(heads)));
}

json::Object ManifestBuilder::describeAttention(
    StringRef name, const KernelTile &tile, const KernelResources &resources,
    json::Array parameters, bool startsEarly, const json::Value &numParts) {
  json::Value blocks = getNumTiles(tile);
  if (numParts != 1)
    blocks = apply("mul", std::move(blocks), numParts);
  // Numbers of tiles, and of their parts, are i32.
  if (tile.pipeline)
    addCheck(apply("le", blocks, kMaxLength),
             numParts == 1
                 ? "2^30 or more tiles of queries; split the batch"
                 : "2^30 or more parts of tiles of queries; split the batch");
  // Pipelined blocks stay and take one tile after the other.
  if (numParts == 1 && tile.pipeline)
    blocks = apply("min", std::move(blocks),
                   apply("mul", "$sm_count", resources.pipelinedBlocks));
  json::Object kernel{{"name", name.str()},
                      {"block", json::Array{tile.getThreads(), 1, 1}},
                      {"grid", json::Array{std::move(blocks), 1, 1}},
                      {"shared_memory", resources.sharedMemory},
                      {"parameters", std::move(parameters)}};
  if (startsEarly)
    kernel["starts_early"] = true;
  return kernel;
}

CombineGrid ManifestBuilder::getCombineGrid(const PartialResults &partials) {
  json::Value heads =
      apply("mul", getDim(op.getQuery(), 0), getDim(op.getQuery(), 1));
  return CombineGrid(apply("mul", std::move(heads), getDim(op.getQuery(), 2)),
                     partials);
}

json::Object ManifestBuilder::describeCombine(StringRef name,
                                              const CombineGrid &grid,
                                              json::Array parameters,
                                              bool startsEarly) {
  json::Object kernel{
      {"name", name.str()},
      {"block", json::Array{CombineGrid::kThreads, 1, 1}},
      {"grid", json::Array{grid.blocks, 1, 1}},
      {"shared_memory", CombineGrid::getSharedMemory(op.getValueHeadDim())},
      {"parameters", std::move(parameters)}};
  if (startsEarly)
    kernel["starts_early"] = true;
  return kernel;
}

json::Object ManifestBuilder::describeRotation(StringRef name, RopeOp rotation,
                                               json::Array parameters) {
  const AbiTensor &result = tensors.find(rotation.getResult())->second;
  RotationGrid grid(rotation);
  // One block where there is nothing to rotate: no grid is empty.
  auto getBlocks = [&](unsigned dim, int64_t size) {
    return apply("max", apply("ceildiv", result.shape[dim], size), 1);
  };
  json::Value blocks =
      apply("mul", getBlocks(2, grid.rows),
            apply("mul", getBlocks(1, grid.heads), getBlocks(0, 1)));
  return json::Object{{"name", name.str()},
                      {"block", json::Array{RotationGrid::kThreads, 1, 1}},
                      {"grid", json::Array{std::move(blocks), 1, 1}},
                      {"shared_memory", 0},
                      {"parameters", std::move(parameters)}};
}

void ManifestBuilder::addVersion(json::Array kernels,
                                 std::optional<json::Value> when) {
  json::Object version{{"kernels", std::move(kernels)}};
  if (when)
    version["when"] = std::move(*when);
  versions.push_back(std::move(version));
}

std::string ManifestBuilder::build() {
  addChecks();
  func::FuncOp function = dims.getFunction();
  json::Array arguments, results;
  for (auto [argument, role] :
       llvm::zip_equal(function.getArguments(), dims.getArguments()))
    arguments.push_back(
        describe(argument, argument.getType(), role.getRoleString()));
  Operation *terminator = function.getBody().front().getTerminator();
  for (auto [result, role] :
       llvm::zip_equal(terminator->getOperands(), dims.getResults()))
    results.push_back(describe(result, result.getType(), role.getRoleString()));

  json::Object manifest{{"name", function.getName()},
                        {"arguments", std::move(arguments)},
                        {"results", std::move(results)},
                        {"checks", std::move(checks)}};
  if (!workspace.empty())
    manifest["workspace"] = std::move(workspace);
  if (versions.size() > 1)
    manifest["versions"] = std::move(versions);
  else
    manifest["kernels"] =
        std::move(*versions.front().getAsObject()->getArray("kernels"));
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(manifest));
  return text;
}

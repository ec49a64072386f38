#include <filesystem>

#include "core/printable.h"
#include "graph/onnx/file_identity.h"
#include "graph/onnx/graph_reader.h"
#include "graph/onnx/mapped_file.h"
#include "graph/onnx/names.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime {
namespace {

using onnx::fail_at;
using onnx::WireField;
using onnx::WireReader;
using onnx::WireType;

constexpr std::int64_t oldest_opset = 6;
constexpr std::int64_t newest_opset = 28;

void read_opset(const WireField& message, Model& model) {
  std::string domain;
  std::int64_t version = 0;
  WireReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 1) domain = field->text() == "ai.onnx" ? "" : field->text();
    if (field->number == 2) version = field->integer();
  }
  const auto [place, added] = model.opsets.try_emplace(std::move(domain), version);
  if (!added && place->second != version) {
    fail_at(message.offset, "two opsets of the domain '" + shown(place->first) + "'");
  }
}

/// All but the graph, whose field is returned.
std::optional<WireField> read_model_fields(std::span<const std::byte> bytes, Model& model, onnx::Functions& functions) {
  std::optional<WireField> graph;
  std::string producer_version;
  WireReader fields(bytes);
  while (const auto field = fields.next()) {
    if (field->number == 1) model.ir_version = field->integer();
    if (field->number == 2) model.producer = field->text();
    if (field->number == 3) producer_version = field->text();
    if (field->number == 7) {
      if (graph) fail_at(field->offset, "a second graph");
      field->expect(WireType::bytes);
      graph = field;
    }
    if (field->number == 8) read_opset(*field, model);
    if (field->number == 25) functions.add(*field);
  }
  if (!producer_version.empty()) model.producer += (model.producer.empty() ? "" : " ") + producer_version;
  return graph;
}

void check_versions(const Model& model) {
  if (model.ir_version < 1) fail_at(0, "no ONNX model: it has no ir_version");
  if (model.opsets.empty()) fail_at(0, "the model does not say which opset it uses");
  const auto opset = model.opsets.find("");
  if (opset == model.opsets.end()) {
    fail(ErrorCode::not_supported, onnx::reader,
         "the model imports no opset of ONNX's own domain, only of '" + shown(model.opsets.begin()->first) +
             "'; export it with operators of ONNX's own");
  }
  if (opset->second >= oldest_opset && opset->second <= newest_opset) return;
  fail(ErrorCode::not_supported, onnx::reader,
       "the model uses opset " + std::to_string(opset->second) + "; opsets " + std::to_string(oldest_opset) + " to " +
           std::to_string(newest_opset) + " are accepted: export it for one of them");
}

Model read_model(const onnx::SharedBytes& file, const std::string& folder) {
  Model model;
  onnx::Functions functions;
  const auto graph = read_model_fields(file.bytes, model, functions);
  check_versions(model);
  if (!graph) fail_at(0, "the model has no graph");
  onnx::TensorReader tensors(file, folder);
  model.graph = onnx::read_graph(*graph, tensors, functions, model.opsets.at(""));
  onnx::check_names(model.graph);
  for (const auto& [path, identity] : tensors.external().files()) {
    model.data_files.push_back(path);
    model.identity += "\n" + identity;
  }
  return model;
}

/// What `read` returns; its errors say which function was called, and on what.
template <class Read>
Model blamed(std::string_view function, const std::string& subject, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    fail(error.code(), function, subject + ": " + std::string(error.message()));
  }
}

}  // namespace

Model load_onnx(const std::string& path) {
  return blamed("load_onnx", "ONNX file '" + shown(path) + "'", [&] {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    const std::string identity = onnx::identity_of(path).text;
    Model model = read_model(onnx::map_file(path), folder.empty() ? "." : folder.string());
    model.path = path;
    model.identity = identity + model.identity;
    return model;
  });
}

Model parse_onnx(std::span<const std::byte> bytes, const std::string& folder) {
  return blamed("parse_onnx", "ONNX model", [&] { return read_model(onnx::copy_bytes(bytes), folder); });
}

}  // namespace xpuruntime

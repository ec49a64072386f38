#include "cli/model_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/elements.h"
#include "core/npy.h"
#include "core/printable.h"
#include "tune/operands.h"

namespace xpuruntime::cli {
namespace {

[[noreturn]] void refuse(const std::string& message) { fail(ErrorCode::invalid_argument, "xrt", message); }

/// "1,3,224,224"; "" is a scalar's.
Dims shape_from(const std::string& text, const std::string& name) {
  std::vector<std::int64_t> extents;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const bool is_number =
        !part.empty() && part.size() < 16 && part.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number || extents.size() == max_rank) {
      refuse("--shape " + printable(name + "=" + text) +
             " is not a name and at most 8 numbers; write it as x=1,3,224,224");
    }
    extents.push_back(std::stoll(part));
    at = end + 1;
  }
  return Dims(std::span(extents));
}

/// What an option says of each input: each name once, and one that the model has.
using ByName = std::map<std::string, std::string>;
ByName by_name(const std::vector<std::string>& given, const std::string& option, const Model& model) {
  std::vector<std::string_view> names;
  for (const ModelValue& input : model.graph.inputs) names.push_back(input.name);
  ByName found;
  for (const std::string& whole : given) {
    const std::size_t equals = whole.rfind('=');  // the name may hold one too
    if (equals == whole.npos) {
      refuse(option + " " + printable(whole) + " names no input; write it as " +
             (option == "--shape" ? "x=1,3,224,224" : "x=FILE.npy"));
    }
    const std::string name = whole.substr(0, equals);
    if (std::find(names.begin(), names.end(), name) == names.end()) fail_unknown("xrt", "input", name, names);
    if (!found.emplace(name, whole.substr(equals + 1)).second) {
      refuse(option + " was given twice for input '" + printable(name) + "'; give it once");
    }
  }
  return found;
}

std::optional<Dims> known_shape(const ModelValue& input) {
  if (!input.shape || input.shape->size() > max_rank) return {};
  std::vector<std::int64_t> extents;
  for (const ModelExtent& extent : *input.shape) {
    if (extent.size < 0) return {};
    extents.push_back(extent.size);
  }
  return Dims(std::span(extents));
}

/// Integers are small and none is negative: they may be indices.
Tensor random_tensor(const DeviceManager& devices, const TensorSpec& spec, std::uint64_t seed) {
  const Problem problem{.op = OpId::copy, .inputs = {spec}, .outputs = {spec}};
  check_memory(devices, problem, false);
  const Operands operands = random_operands(devices, problem, seed);
  const Tensor& tensor = operands.inputs().front();
  if (is_floating(spec.dtype) || spec.dtype == DataType::boolean) return tensor;
  for (std::int64_t i = 0; i < element_count(spec); ++i) {
    integer_storer_of(spec.dtype)(tensor.data(), i, std::abs(integer_loader_of(spec.dtype)(tensor.data(), i)));
  }
  return tensor;
}

/// A number on the command line is a tensor with that one element.
std::optional<Tensor> number_tensor(const ModelValue& input, const std::string& text,
                                    const std::optional<Dims>& known) {
  if (!input.dtype) return {};
  const Dims shape = known ? *known : Dims::filled(input.shape ? input.shape->size() : 0, 1);
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return {};
  const TensorSpec spec = make_spec(*input.dtype, shape);
  Tensor tensor = Tensor::empty(*input.dtype, shape);
  const bool whole = std::floor(number) == number && std::abs(number) < 0x1p53;
  const bool fits = element_count(spec) == 1 &&
                    (is_floating(*input.dtype) || !whole
                         ? store_number(*input.dtype, tensor.as<std::byte>(), number)
                         : store_number(*input.dtype, tensor.as<std::byte>(), static_cast<std::int64_t>(number)));
  if (!fits)
    refuse("--input " + printable(input.name) + "=" + text + " is no value of " + value_text(input) +
           "; name a .npy file");
  return tensor;
}

/// A file has no bf16: its f32 are rounded to what the model takes.
Tensor file_tensor(const ModelValue& input, const std::string& path) {
  const Tensor tensor = load_npy(path);
  const DataType wanted = input.dtype.value_or(tensor.dtype());
  const bool is_narrow =
      wanted == DataType::bfloat16 || wanted == DataType::float8_e4m3 || wanted == DataType::float8_e5m2;
  if (!is_narrow || tensor.dtype() != DataType::float32) return tensor;
  const Tensor narrow = Tensor::empty(wanted, tensor.shape());
  for (std::int64_t i = 0; i < element_count(tensor.spec()); ++i) {
    storer_of(wanted)(narrow.data(), i, static_cast<double>(tensor.as<const float>()[i]));
  }
  return narrow;
}

/// Random values in the place of those that shapes are made of would show another model.
void check_shapes_need_no_values(const Session& session, const std::vector<Tensor>& tensors,
                                 const std::string& guessed) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) specs.push_back(tensor.spec());
  try {
    session.memory_bytes(std::span<const TensorSpec>(specs));
  } catch (const EngineLacks&) {
    return;  // so does the run, and then another engine may take it
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_supported) throw;
    fail(error.code(), "xrt", std::string(error.what()) + "; give --input for " + printable(guessed));
  }
}

}  // namespace

std::string value_text(const ModelValue& value) {
  std::string text;
  if (value.shape) {
    for (const ModelExtent& extent : *value.shape) {
      const std::string size = extent.size >= 0 ? std::to_string(extent.size) : extent.name.empty() ? "?" : extent.name;
      text += (text.empty() ? "" : ",") + size;
    }
  } else {
    text = "...";
  }
  return value.name + " " + (value.dtype ? std::string(to_string(*value.dtype)) : value.type) + "[" + text + "]";
}

bool names_model(const std::string& word) {
  if (word.ends_with(".onnx")) return true;
  std::error_code ignored;
  return word.find('(') == word.npos && std::filesystem::is_regular_file(word, ignored);
}

void ModelOptions::add_to(CLI::App& command) {
  command.add_option("--input", inputs, "Of a model: an input's values, as x=FILE.npy, or x=3 for one number")
      ->type_name("NAME=FILE")
      ->expected(1)
      ->take_all();
  command.add_option("--shape", shapes, "Of a model: the shape of an input that it leaves open, as x=1,3,224,224")
      ->type_name("NAME=SHAPE")
      ->expected(1)
      ->take_all();
  command.add_option("--execution", execution, "Of a model: run it under the execution policy in this JSON file")
      ->type_name("FILE");
  command.add_option("--engine", engine, "Of a model: the engine that is to run it, or auto")->type_name("NAME");
}

ExecutionPolicy ModelOptions::execution_policy(const Context& context) const {
  ExecutionPolicy policy;
  policy.target = DeviceType::cpu;
  if (!execution.empty()) policy = ExecutionPolicy::load(execution);
  if (!engine.empty()) policy.engine = engine;
  const std::optional<Device> device = context.given_device();
  if (!device) return policy;
  if (device->index != 0) {
    refuse("--device " + to_string(*device) + ": a model runs on the first device of a type; write " +
           to_string(Device{device->type, 0}));
  }
  if (!execution.empty() && policy.target != device->type) {
    refuse("--device " + to_string(*device) + " is not the target of the execution policy, which is " +
           std::string(to_string(policy.target)) + "; leave --device out, or change 'target' in '" +
           printable(execution) + "'");
  }
  policy.target = device->type;
  return policy;
}

bool ModelOptions::names_other_engine(const Context& context) const {
  const std::string name = execution_policy(context).engine;
  return name != "auto" && name != "native";
}

Session ModelOptions::open(Context& context, Model model, const KernelPolicy& policy,
                           const std::optional<LockUse>& lock) const {
  Runtime& runtime = context.runtime();
  const SessionOptions options{.policy = policy,
                               .lock = lock,
                               .execution = execution_policy(context),
                               .engines = &runtime.engines(),
                               .store = runtime.readable_store()};
  check_names(model);
  return Session(std::move(model), runtime.dispatcher(), runtime.devices(), options);
}

void ModelOptions::check_used(bool has_model) const {
  if (has_model || (inputs.empty() && shapes.empty() && execution.empty() && engine.empty())) return;
  refuse(std::string(!inputs.empty()      ? "--input"
                     : !shapes.empty()    ? "--shape"
                     : !execution.empty() ? "--execution"
                                          : "--engine") +
         " is for a model, and none was named; name a file that ends in .onnx, or leave it out");
}

void ModelOptions::check_names(const Model& model) const {
  by_name(inputs, "--input", model);
  by_name(shapes, "--shape", model);
}

std::string ModelOptions::flaw_of_shapes(const Model& model) const {
  const ByName values = by_name(inputs, "--input", model), given = by_name(shapes, "--shape", model);
  for (const ModelValue& input : model.graph.inputs) {
    if (values.contains(input.name)) continue;
    const std::string about = "input " + printable(value_text(input));
    if (!input.dtype) return about + " has a type that is none of ours";
    if (!given.contains(input.name) && !known_shape(input)) {
      return about + " leaves its shape open; give --shape " + printable(input.name) + "=... or --input " +
             printable(input.name) + "=FILE.npy";
    }
  }
  return {};
}

std::vector<Tensor> ModelOptions::tensors(const Session& session, const DeviceManager& devices) const {
  if (const std::string flaw = flaw_of_shapes(session.model()); !flaw.empty()) refuse(flaw);
  const ByName values = by_name(inputs, "--input", session.model()),
               given = by_name(shapes, "--shape", session.model());
  std::vector<Tensor> tensors;
  std::string guessed;  // inputs whose random values might determine shapes
  for (const ModelValue& input : session.inputs()) {
    const auto shape = given.find(input.name);
    const auto value = values.find(input.name);
    std::optional<Dims> dims = known_shape(input);
    if (shape != given.end()) dims = shape_from(shape->second, input.name);
    if (value != values.end()) {
      const auto number = number_tensor(input, value->second, dims);
      tensors.push_back(number ? *number : file_tensor(input, value->second));
      if (shape != given.end() && tensors.back().shape() != *dims) {
        refuse("--input " + printable(input.name + "=" + value->second) + " is " + to_string(tensors.back().spec()) +
               ", and --shape says " + printable(shape->second) + "; leave --shape out");
      }
      continue;
    }
    tensors.push_back(random_tensor(devices, make_spec(*input.dtype, *dims), seed + tensors.size()));
    if (!is_floating(*input.dtype) && dims->size() <= 1) guessed += (guessed.empty() ? "" : ", ") + input.name;
  }
  if (!guessed.empty() && session.record().engine == "native") check_shapes_need_no_values(session, tensors, guessed);
  return tensors;
}

void refuse_options(const CLI::App& command, std::initializer_list<const char*> names, const std::string& what) {
  for (const char* name : names) {
    if (command.get_option(name)->count() > 0)
      refuse(std::string(name) + " means nothing to " + what + "; leave it out");
  }
}

}  // namespace xpuruntime::cli

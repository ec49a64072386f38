#include "graph/openvino/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace xpuruntime::openvino {
namespace {

constexpr Status not_implemented = -2, parameter_mismatch = -4;
/// Before it element types had other numbers.
constexpr int first_version = 2025;

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, Functions& f) {
  find(library, "ov_get_last_err_msg", f.last_error);
  return find(library, "ov_get_openvino_version", f.version) && find(library, "ov_version_free", f.free_version) &&
         find(library, "ov_get_error_info", f.text_of) && find(library, "ov_core_create", f.make_core) &&
         find(library, "ov_core_free", f.free_core) && find(library, "ov_core_get_available_devices", f.devices) &&
         find(library, "ov_available_devices_free", f.free_devices) && find(library, "ov_core_set_property", f.set) &&
         find(library, "ov_core_read_model", f.read) && find(library, "ov_model_free", f.free_model) &&
         find(library, "ov_model_reshape_by_port_indexes", f.reshape) &&
         find(library, "ov_core_compile_model", f.compile) && find(library, "ov_core_import_model", f.import) &&
         find(library, "ov_compiled_model_export_model", f.save) &&
         find(library, "ov_compiled_model_free", f.free_compiled) &&
         find(library, "ov_compiled_model_outputs_size", f.count_outputs) &&
         find(library, "ov_compiled_model_get_property", f.get) && find(library, "ov_free", f.free_text) &&
         find(library, "ov_compiled_model_create_infer_request", f.make_request) &&
         find(library, "ov_infer_request_free", f.free_request) &&
         find(library, "ov_compiled_model_input_by_name", f.find_input) &&
         find(library, "ov_output_const_port_free", f.free_port) &&
         find(library, "ov_infer_request_set_tensor", f.set_input) &&
         find(library, "ov_infer_request_get_output_tensor_by_index", f.get_output) &&
         find(library, "ov_infer_request_start_async", f.start) && find(library, "ov_infer_request_wait", f.wait) &&
         find(library, "ov_infer_request_wait_for", f.wait_for) && find(library, "ov_infer_request_cancel", f.cancel) &&
         find(library, "ov_tensor_create_from_host_ptr", f.make_tensor) &&
         find(library, "ov_tensor_get_shape", f.shape) && find(library, "ov_shape_free", f.free_shape) &&
         find(library, "ov_tensor_get_element_type", f.type) && find(library, "ov_tensor_data", f.data) &&
         find(library, "ov_tensor_free", f.free_tensor);
}

/// In one line.
std::string in_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!is_space) line += c;
    if (is_space && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

Failure::Kind kind_of(Status status, const std::string& text) {
  if (text.find("bad_alloc") != text.npos) return Failure::Kind::out_of_memory;
  if (status == parameter_mismatch) return Failure::Kind::invalid_argument;
  const bool cannot = status == not_implemented || text.find("OpConversionFailure") != text.npos;
  return cannot ? Failure::Kind::not_supported : Failure::Kind::other;
}

}  // namespace

Library::Library(const std::string& file) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) throw Failure(Failure::Kind::not_supported, in_line(dlerror()));
  if (!find_all(library, functions_) || std::atoi(version().c_str()) < first_version) {
    throw Failure(Failure::Kind::not_supported, "'" + file + "' is not of OpenVINO " + std::to_string(first_version) +
                                                    " or later; pip install --upgrade openvino");
  }
}

std::string Library::version() const {
  Version found;
  check(functions_.version(&found));
  const std::string build = found.build;
  functions_.free_version(&found);
  return build.substr(0, build.find('-'));
}

void Library::check(Status status) const {
  if (status == ok) return;
  const char* const said = functions_.last_error == nullptr ? nullptr : functions_.last_error();
  std::string text = in_line(said != nullptr && *said != '\0' ? said : functions_.text_of(status));
  const Failure::Kind kind = kind_of(status, text);
  if (text.find("OpConversionFailure") != text.npos) text = "it cannot convert the model: " + text;
  throw Failure(kind, text);
}

std::vector<std::string> Library::devices() const {
  Owned<Core> core(functions_.free_core);
  check(functions_.make_core(core.place()));
  DeviceNames found;
  check(functions_.devices(core.get(), &found));
  std::vector<std::string> names(found.names, found.names + found.count);
  functions_.free_devices(&found);
  return names;
}

/// One for each model: settings are the device's, for all that it compiles.
Owned<Core> Library::core_for(const Settings& settings) const {
  Owned<Core> core(functions_.free_core);
  check(functions_.make_core(core.place()));
  const auto set = [&](const char* key, const std::string& value) {
    check(functions_.set(core.get(), settings.device.c_str(), key, value.c_str()));
  };
  set("PERFORMANCE_HINT", "LATENCY");
  // Without it a processor with bf16 computes models of f32 in that.
  set("INFERENCE_PRECISION_HINT", settings.precision);
  if (settings.device == "CPU" && settings.threads > 0) {
    set("INFERENCE_NUM_THREADS", std::to_string(settings.threads));
    set("ENABLE_HYPER_THREADING", "YES");
  }
  return core;
}

Owned<Compiled> Library::compile(const std::string& path, const Settings& settings) const {
  const Owned<Core> core = core_for(settings);
  Owned<Model> model(functions_.free_model);
  check(functions_.read(core.get(), path.c_str(), nullptr, model.place()));
  if (!settings.shapes.empty()) {
    std::vector<std::size_t> inputs;
    std::vector<std::vector<Dimension>> dims;
    std::vector<PartialShape> shapes;
    for (const auto& extents : settings.shapes) {
      inputs.push_back(inputs.size());
      dims.emplace_back().reserve(1);  // without dims a null pointer would be refused
      for (const std::int64_t extent : extents) dims.back().push_back({extent, extent});
    }
    for (auto& extents : dims) {
      const auto rank = static_cast<std::int64_t>(extents.size());
      shapes.push_back({{rank, rank}, extents.data()});
    }
    check(functions_.reshape(model.get(), inputs.data(), shapes.data(), shapes.size()));
  }
  Owned<Compiled> compiled(functions_.free_compiled);
  check(functions_.compile(core.get(), model.get(), settings.device.c_str(), 0, compiled.place()));
  check_precision(*compiled.get(), settings);
  return compiled;
}

Owned<Compiled> Library::import(const std::string& bytes, const Settings& settings) const {
  const Owned<Core> core = core_for(settings);
  Owned<Compiled> compiled(functions_.free_compiled);
  check(functions_.import(core.get(), bytes.data(), bytes.size(), settings.device.c_str(), compiled.place()));
  return compiled;
}

void Library::check_precision(const Compiled& compiled, const Settings& settings) const {
  char* value = nullptr;
  if (functions_.get(&compiled, "INFERENCE_PRECISION_HINT", &value) != ok) return;  // not told by this device
  const std::string taken = value;
  functions_.free_text(value);
  if (taken == settings.precision) return;
  throw Failure(Failure::Kind::not_supported, "on this " + settings.device + " it computes in " + taken + " where " +
                                                  settings.precision + " is asked for");
}

bool Library::has_input(const Compiled& compiled, const std::string& name) const {
  Owned<Port> port(functions_.free_port);
  return functions_.find_input(&compiled, name.c_str(), port.place()) == ok;
}

void Library::save_compiled(const Compiled& compiled, const std::string& path) const {
  check(functions_.save(&compiled, path.c_str()));
}

}  // namespace xpuruntime::openvino

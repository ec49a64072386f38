// OpenVINO's C interface, as far as our engine uses it, with models that do what their files say: the first line is
// what happens when they are compiled ("fine", "crash", "hang", "refuse", "unsaved"), the second what happens when they
// run ("double", "late").

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "graph/openvino/library.h"

namespace xpuruntime::openvino {

struct Core {};
struct Model {
  std::string compiles = {}, runs = {};
};
struct Compiled {
  std::string own = {};
  std::string_view runs = {};  // of an imported one, in the bytes that it was imported from
  bool is_saved = true;
};
struct TensorHandle {
  int type = 0;
  std::vector<std::int64_t> dims = {};
  float* data = nullptr;
};
struct Request {
  std::string runs = {};
  TensorHandle input = {};
  std::vector<float> output = {};
  std::chrono::steady_clock::time_point end = {};
};

namespace {
constexpr int f32 = 4;
std::string last;
}  // namespace

extern "C" {

#ifndef FAKE_VERSION
#define FAKE_VERSION "2026.1.0-1-fake"
#endif
Status ov_get_openvino_version(Version* version) {
  *version = {FAKE_VERSION, ""};
  return ok;
}
void ov_version_free(Version*) {}
const char* ov_get_last_err_msg() { return last.c_str(); }
const char* ov_get_error_info(Status) { return "an error"; }
void ov_free(const char*) {}

Status ov_core_create(Core** core) {
  *core = new Core;
  return ok;
}
void ov_core_free(Core* core) { delete core; }
Status ov_core_get_available_devices(const Core*, DeviceNames* found) {
  static char cpu[] = "CPU", gpu[] = "GPU.0";
  static char* names[] = {cpu, gpu};
  *found = {names, 2};
  return ok;
}
void ov_available_devices_free(DeviceNames*) {}
Status ov_core_set_property(const Core*, const char*, ...) { return ok; }

Status ov_core_read_model(const Core*, const char* path, const char*, Model** model) {
  *model = new Model;
  std::ifstream file(path);
  std::getline(file, (*model)->compiles);
  std::getline(file, (*model)->runs);
  return ok;
}
void ov_model_free(Model* model) { delete model; }
Status ov_model_reshape_by_port_indexes(const Model*, const std::size_t*, const PartialShape*, std::size_t) {
  return ok;
}

Status ov_core_compile_model(const Core*, const Model* model, const char*, std::size_t, Compiled** compiled, ...) {
  if (model->compiles == "crash") std::raise(SIGKILL);
  if (model->compiles == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
  if (model->compiles == "refuse") {
    last = "it saw\n  an OpConversionFailure";
    return -1;
  }
  *compiled = new Compiled{model->runs, {}, model->compiles != "unsaved"};
  (*compiled)->runs = (*compiled)->own;
  return ok;
}
Status ov_core_import_model(const Core*, const char* bytes, std::size_t size, const char*, Compiled** compiled) {
  *compiled = new Compiled{{}, {bytes, size}};
  return ok;
}
Status ov_compiled_model_export_model(const Compiled* compiled, const char* path) {
  if (!compiled->is_saved) return -2;
  std::ofstream(path) << compiled->runs;
  return ok;
}
void ov_compiled_model_free(Compiled* compiled) { delete compiled; }
Status ov_compiled_model_outputs_size(const Compiled*, std::size_t* count) {
  *count = 1;
  return ok;
}
Status ov_compiled_model_get_property(const Compiled*, const char*, char**) { return -2; }

Status ov_compiled_model_create_infer_request(const Compiled* compiled, Request** request) {
  *request = new Request{std::string(compiled->runs)};
  return ok;
}
void ov_infer_request_free(Request* request) { delete request; }
Status ov_compiled_model_input_by_name(const Compiled*, const char* name, Port** port) {
  *port = nullptr;
  return std::string_view(name) == "x" ? ok : -5;
}
void ov_output_const_port_free(Port*) {}
Status ov_infer_request_set_tensor(Request* request, const char*, const TensorHandle* tensor) {
  request->input = *tensor;
  return ok;
}
Status ov_infer_request_get_output_tensor_by_index(Request* request, std::size_t, TensorHandle** tensor) {
  *tensor = new TensorHandle{f32, request->input.dims, request->output.data()};
  return ok;
}
Status ov_infer_request_start_async(Request* request) {
  std::size_t count = 1;
  for (const std::int64_t extent : request->input.dims) count *= static_cast<std::size_t>(extent);
  request->output.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) request->output[i] = 2 * request->input.data[i];
  request->end = std::chrono::steady_clock::now() + std::chrono::milliseconds(request->runs == "late" ? 500 : 0);
  return ok;
}
Status ov_infer_request_wait(Request* request) {
  std::this_thread::sleep_until(request->end);
  return ok;
}
Status ov_infer_request_wait_for(Request* request, std::int64_t milliseconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  std::this_thread::sleep_until(std::min(until, request->end));
  return request->end <= std::chrono::steady_clock::now() ? ok : not_ready;
}
Status ov_infer_request_cancel(Request*) { return ok; }

Status ov_tensor_create_from_host_ptr(int type, Shape shape, void* memory, TensorHandle** tensor) {
  *tensor = new TensorHandle{type, {shape.dims, shape.dims + shape.rank}, static_cast<float*>(memory)};
  return ok;
}
Status ov_tensor_get_shape(const TensorHandle* tensor, Shape* shape) {
  if (tensor->dims.empty()) return invalid_parameter;
  shape->rank = static_cast<std::int64_t>(tensor->dims.size());
  shape->dims = new std::int64_t[tensor->dims.size() + 1];
  std::copy(tensor->dims.begin(), tensor->dims.end(), shape->dims);
  return ok;
}
Status ov_shape_free(Shape* shape) {
  delete[] shape->dims;
  return ok;
}
Status ov_tensor_get_element_type(const TensorHandle* tensor, int* type) {
  *type = tensor->type;
  return ok;
}
Status ov_tensor_data(const TensorHandle* tensor, void** data) {
  *data = tensor->data;
  return ok;
}
void ov_tensor_free(TensorHandle* tensor) { delete tensor; }

}  // extern "C"
}  // namespace xpuruntime::openvino

#include "python/graph.h"

#include <nanobind/stl/string.h>

#include "python/bindings.h"
#include "python/gil.h"
#include "python/types.h"
#include "xpuruntime/core/dlpack.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

constinit thread_local GraphObject* innermost = nullptr;

Stream stream_of_package(const ExchangeApi& api, Device device) {
  const dlpack::DeviceTag tag = dlpack::device_tag(device);
  void* stream = nullptr;
  if (api.work_stream(tag.type, tag.index, &stream) != 0) throw nb::python_error();
  return Stream{stream};
}

}  // namespace

GraphObject* GraphObject::recording(Device device) {
  GraphObject* graph = innermost;
  while (graph != nullptr && graph->device_ != device) graph = graph->outer_;
  return graph;
}

void GraphObject::begin() {
  if (capture_ != nullptr) {
    fail(ErrorCode::invalid_argument, "graph", "it was recorded already; make a new one with xpuruntime.cuda.graph()");
  }
  {
    const WithoutGil released;
    capture_ = std::make_unique<GraphCapture>(Runtime::global().devices(), device_);
  }
  outer_ = std::exchange(innermost, this);
}

void GraphObject::finish(bool raised) {
  if (innermost != this) {
    fail(ErrorCode::invalid_argument, "graph",
         "this thread is not in its with block, or in another graph's inside of it; leave blocks in the order that "
         "they were entered in");
  }
  innermost = std::exchange(outer_, nullptr);
  const WithoutGil released;
  if (raised) return capture_.reset();
  capture_->end();
}

void GraphObject::replay() const {
  if (capture_ == nullptr) {
    fail(ErrorCode::invalid_argument, "replay",
         "nothing is recorded; call ops inside of `with xpuruntime.cuda.graph() as g:` first");
  }
  std::optional<StreamGuard> guard;
  if (api_ != nullptr) guard.emplace(device_, stream_of_package(*api_, device_));
  const WithoutGil released;
  capture_->replay();
}

void GraphObject::keep(const BoundArray& array) {
  if (array.array() != nullptr) arrays_.push_back(nb::borrow(array.array()));
  if (api_ == nullptr) api_ = array.type().api;
}

WorkStream::WorkStream(const BoundArray& array) {
  const Device device = array.tensor().device();
  if (device.type != DeviceType::nvidia || array.type().api == nullptr) return;
  if (GraphObject::recording(device) == nullptr) guard_.emplace(device, stream_of_package(*array.type().api, device));
}

void bind_graph(nb::module_& module) {
  nb::class_<GraphObject>(module, "Graph", "Calls that a GPU recorded, from xpuruntime.cuda.graph().")
      .def(
          "__init__", [](GraphObject* self, nb::handle device) { new (self) GraphObject(device_from(device)); },
          nb::arg("device").none() = "cuda:0", nb::sig("def __init__(self, device: object = 'cuda:0') -> None"))
      .def_prop_ro("device", &GraphObject::device)
      .def(
          "__enter__",
          [](nb::handle self) {
            nb::cast<GraphObject&>(self).begin();
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> Graph"))
      .def(
          "__exit__", [](GraphObject& self, nb::handle kind, nb::handle, nb::handle) { self.finish(!kind.is_none()); },
          nb::arg("kind").none(), nb::arg("error").none(), nb::arg("trace").none(),
          nb::sig("def __exit__(self, kind: object, error: object, trace: object) -> None"))
      .def("replay", &GraphObject::replay,
           "Queues all recorded calls with one launch, on the current stream of the arrays' package, and returns.");
}

}  // namespace xpuruntime::python

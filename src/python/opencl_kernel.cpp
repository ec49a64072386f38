#include "xpuruntime/runtime/opencl_kernel.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <utility>

#include "python/arguments.h"
#include "python/arrays.h"
#include "python/bindings.h"
#include "python/gil.h"
#include "python/types.h"

namespace xpuruntime::python {
namespace {

/// `rest`: of dims that are not given.
WorkSize work_size_from(nb::handle value, const char* function, const char* name, std::size_t rest = 1) {
  WorkSize size = {};
  const std::vector<std::int64_t> given = integers_from(value, function, name);
  if (given.empty() || given.size() > 3)
    fail(ErrorCode::invalid_argument, function,
         std::string(name) + " has " + std::to_string(given.size()) + " numbers; pass 1 to 3 of them");
  for (std::size_t d = 0; d < 3; ++d) {
    if (d < given.size() && given[d] < 1)
      fail(ErrorCode::invalid_argument, function, std::string(name) + " has a number below 1; pass 1 or more");
    size[d] = d < given.size() ? static_cast<std::size_t>(given[d]) : rest;
  }
  return size;
}

nb::object python_size(const WorkSize& size) {
  if (size[0] == 0) return nb::none();
  nb::list numbers;
  const std::size_t dims = size[2] > 1 ? 3 : size[1] > 1 ? 2 : 1;
  for (std::size_t d = 0; d < dims; ++d) numbers.append(size[d]);
  return nb::tuple(numbers);
}

template <class T>
FunctionArgument sized_argument(std::int64_t value, const std::string& name, const std::string& type) {
  if (!std::in_range<T>(value))
    fail(ErrorCode::invalid_argument, "OpenclKernel",
         name + " is " + std::to_string(value) + ", which no " + type + " is");
  return kernel_argument(static_cast<T>(value));
}

FunctionArgument float_argument(double value, const std::string& name) {
  const auto narrow = static_cast<float>(value);
  if (std::isinf(narrow) && !std::isinf(value))
    fail(ErrorCode::invalid_argument, "OpenclKernel",
         name + " is " + nb::cast<std::string>(nb::repr(nb::float_(value))) + ", which no float is");
  return kernel_argument(narrow);
}

/// Says what to pass instead.
[[noreturn]] void refuse_number(const std::string& name, const std::string& type) {
  const std::string is = name + " is a number, and its parameter is ";
  if (type.empty())
    fail(ErrorCode::invalid_argument, "OpenclKernel",
         is + "not plain in the source; pass a NumPy scalar of the parameter's size, such as numpy.float32(2)");
  const auto has = [&](std::string_view part) { return type.find(part) != std::string::npos; };
  for (const std::string_view none : {"image1d_", "image2d_", "image3d_", "sampler_t", "event_t", "pipe ", "queue_t"})
    if (has(none))
      fail(ErrorCode::not_supported, "OpenclKernel",
           is + "'" + type + "', which cannot be given: use buffers and numbers");
  const char* instead = has("*") || has("[") ? (has("local") ? "LocalMemory" : "a tensor")
                        : type == "half"     ? "a numpy.float16"
                        : type == "size_t"   ? "a numpy.uint64"
                                             : "all of its bytes as one NumPy scalar, such as "
                                               "numpy.array((1, 2, 3, 4), 'f4,f4,f4,f4')[()] for a float4, or put it "
                                               "in a tensor";
  fail(ErrorCode::invalid_argument, "OpenclKernel", is + "'" + type + "'; pass " + instead);
}

/// A number of Python as the parameter's own type.
FunctionArgument number_argument(nb::handle value, const std::string& type, std::size_t place) {
  constexpr const char* function = "OpenclKernel";
  const std::string name = "argument " + std::to_string(place);
  if (type == "float") return float_argument(real_from(value, function, name.c_str()), name);
  if (type == "double") return kernel_argument(real_from(value, function, name.c_str()));
  struct Integer {
    std::string_view names[2];
    FunctionArgument (*make)(std::int64_t, const std::string&, const std::string&);
  };
  constexpr Integer integers[] = {
      {{"int", "int"}, sized_argument<std::int32_t>},     {{"uint", "unsigned int"}, sized_argument<std::uint32_t>},
      {{"long", "long"}, sized_argument<std::int64_t>},   {{"ulong", "unsigned long"}, sized_argument<std::uint64_t>},
      {{"short", "short"}, sized_argument<std::int16_t>}, {{"ushort", "unsigned short"}, sized_argument<std::uint16_t>},
      {{"char", "char"}, sized_argument<std::int8_t>},    {{"uchar", "unsigned char"}, sized_argument<std::uint8_t>}};
  for (const Integer& integer : integers)
    if (type == integer.names[0] || type == integer.names[1])
      return integer.make(integer_from(value, function, name.c_str()), name, type);
  refuse_number(name, type);
}

bool is_python_number(nb::handle value) { return PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr()); }

/// A NumPy scalar, which has a size of its own.
bool is_numpy_scalar(nb::handle value) {
  return nb::hasattr(value, "tobytes") && nb::hasattr(value, "dtype") && nb::hasattr(value, "item") &&
         !nb::hasattr(value, "__dlpack__") && nb::hasattr(value, "ndim") && nb::cast<int>(value.attr("ndim")) == 0;
}

/// Of the right size it would be read as what it is not.
void check_kind_of_scalar(nb::handle value, const std::string& type, std::size_t place) {
  const std::string kind = nb::cast<std::string>(value.attr("dtype").attr("kind"));
  const bool real = type == "float" || type == "double" || type == "half";
  const bool whole =
      type.ends_with("char") || type.ends_with("short") || type.ends_with("int") || type.ends_with("long");
  const bool negative = kind == "i" && type.starts_with("u") && nb::cast<std::int64_t>(value.attr("item")()) < 0;
  if ((real && kind != "f") || (whole && kind != "i" && kind != "u" && kind != "b") || (whole && negative))
    fail(ErrorCode::invalid_argument, "OpenclKernel",
         "argument " + std::to_string(place) + " is " + nb::cast<std::string>(nb::repr(value)) +
             ", and its parameter is '" + type + "': pass a number of that type");
}

FunctionArgument argument_from(nb::handle value, const std::vector<std::string>& types, std::size_t place) {
  if (nb::isinstance<LocalMemory>(value)) return kernel_argument(nb::cast<LocalMemory>(value));
  if (is_numpy_scalar(value)) {  // before numbers: numpy.float64 is a float too
    if (place < types.size()) check_kind_of_scalar(value, types[place], place);
    const nb::bytes bytes = nb::cast<nb::bytes>(value.attr("tobytes")());
    FunctionArgument argument;
    argument.value.resize(bytes.size());
    std::memcpy(argument.value.data(), bytes.c_str(), bytes.size());
    return argument;
  }
  if (is_python_number(value)) return number_argument(value, place < types.size() ? types[place] : "", place);
  const std::string name = "argument " + std::to_string(place);
  return kernel_argument(tensor_from(value, Access::write, name.c_str(), /*may_copy=*/false));
}

std::vector<FunctionArgument> arguments_from(const OpenclKernel& kernel, nb::args given) {
  const std::vector<std::string> types = kernel.parameter_types();
  // One too many has no type to be read as.
  if (!types.empty() && given.size() > types.size())
    fail(ErrorCode::invalid_argument, "OpenclKernel",
         "'" + kernel.spec().name + "' has " + std::to_string(types.size()) + " parameters, and " +
             std::to_string(given.size()) + " arguments were given");
  std::vector<FunctionArgument> arguments;
  for (std::size_t i = 0; i < given.size(); ++i) arguments.push_back(argument_from(given[i], types, i));
  return arguments;
}

void construct_kernel(OpenclKernel* self, nb::handle name, nb::handle source, nb::handle file,
                      nb::handle work_group_size, nb::handle flags, nb::handle tune) {
  constexpr const char* function = "OpenclKernel";
  OpenclKernelSpec spec;
  spec.name = text_from(name, function, "name");
  if (!source.is_none()) spec.source = text_from(source, function, "source");
  if (!file.is_none()) spec.file = path_from(file, function, "file");
  if (!work_group_size.is_none())
    spec.work_group_size = work_size_from(work_group_size, function, "work_group_size", 1);
  spec.flags = text_from(flags, function, "flags");
  spec.tune = boolean_from(tune, function, "tune");
  new (self) OpenclKernel(std::move(spec));
}

void run_kernel(const OpenclKernel& self, nb::args given, nb::handle global_size) {
  const WorkSize global = work_size_from(global_size, "OpenclKernel", "global_size", 0);
  const std::vector<FunctionArgument> arguments = arguments_from(self, given);
  const WithoutGil release;
  self.run(arguments, global);
}

WorkGroupResult tune_kernel(const OpenclKernel& self, nb::args given, nb::handle global_size) {
  const WorkSize global = work_size_from(global_size, "OpenclKernel.tune", "global_size", 0);
  const std::vector<FunctionArgument> arguments = arguments_from(self, given);
  const WithoutGil release;
  return self.tune(arguments, global);
}

nb::dict build_kernel(const OpenclKernel& self, nb::handle device) {
  const Device where = device_from(device);
  FunctionLimits limits;
  {
    const WithoutGil release;
    limits = self.build(where);
  }
  nb::dict found;
  found["max_items"] = limits.max_items;
  found["multiple"] = limits.multiple;
  found["required"] = python_size(limits.required);
  found["local_bytes"] = limits.local_bytes;
  found["parameters"] = limits.parameters;
  return found;
}

void register_kernel_for(const OpenclKernel& self, nb::handle op, nb::handle dtypes, nb::handle deterministic) {
  constexpr const char* function = "OpenclKernel.register_for";
  OpenclKernelForOp how;
  how.dtypes = {};
  for (const std::string& dtype : texts_from(dtypes, function, "dtypes"))
    how.dtypes = how.dtypes | parse_data_type(dtype);
  how.deterministic = boolean_from(deterministic, function, "deterministic");
  const OpId id = op_from(op, function);
  const WithoutGil release;
  self.register_for(id, std::move(how));
}

Device device_of_arguments(const std::vector<FunctionArgument>& arguments) {
  for (const FunctionArgument& argument : arguments)
    if (argument.value.empty() && argument.local_bytes == 0) return argument.tensor.device();
  fail(ErrorCode::invalid_argument, "tune", "no argument is a tensor: it says where to run");
}

/// What Python sees as Autotuner and WorkGroupTuner.
struct AutotunerObject {
  explicit AutotunerObject(int runs)
      : tuner({.runs = runs}, [](StoreMode mode) { return Runtime::global().store(mode); }) {}
  Autotuner tuner;
};

template <class Tune>
WorkGroupResult tune_with(const OpenclKernel& kernel, nb::args given, nb::handle global_size, Tune tune) {
  const WorkSize global = work_size_from(global_size, "tune", "global_size");
  const std::vector<FunctionArgument> arguments = arguments_from(kernel, given);
  const WithoutGil release;
  const Device device = device_of_arguments(arguments);
  const std::vector<FunctionArgument> copies = kernel.copies_of(arguments);
  return tune(device, *kernel.function(device), FunctionLaunch{copies, global});
}

int runs_from(nb::handle runs) {
  const std::int64_t count = integer_from(runs, "tuner", "runs");
  if (count < 1 || count > 1000) fail(ErrorCode::invalid_argument, "tuner", "runs must be 1 to 1000");
  return static_cast<int>(count);
}

nb::list size_candidates(const WorkGroupTuner& self, const OpenclKernel& kernel, nb::handle global_size,
                         nb::handle device) {
  const WorkSize global = work_size_from(global_size, "WorkGroupTuner.candidates", "global_size");
  nb::list sizes;
  for (const WorkSize& size : self.candidates(kernel.build(device_from(device)), global))
    sizes.append(python_size(size));
  return sizes;
}

void bind_results(nb::module_& module) {
  nb::class_<WorkGroupTrial>(module, "WorkGroupTrial", "How one work-group size did.")
      .def_prop_ro(
          "work_group_size", [](const WorkGroupTrial& self) { return python_size(self.local); },
          nb::sig("def work_group_size(self) -> tuple[int, ...] | None"), "None: the driver's own choice.")
      .def_ro("device_us", &WorkGroupTrial::device_us, "By the device's clock; negative where it cannot tell.")
      .def_ro("host_us", &WorkGroupTrial::host_us, "By the host's clock, waiting included.")
      .def_ro("failure", &WorkGroupTrial::failure, "Why it could not run; empty: it did.");
  nb::class_<WorkGroupResult>(module, "WorkGroupResult", "What a tuner found for a kernel and a global size.")
      .def_ro("kernel", &WorkGroupResult::kernel)
      .def_prop_ro(
          "global_size", [](const WorkGroupResult& self) { return python_size(self.global); },
          nb::sig("def global_size(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "work_group_size", [](const WorkGroupResult& self) { return python_size(self.local); },
          nb::sig("def work_group_size(self) -> tuple[int, ...] | None"), "None: the driver's own choice.")
      .def_ro("time_us", &WorkGroupResult::time_us)
      .def_ro("trusted", &WorkGroupResult::trusted, "Whether the device's clock agreed with the host's.")
      .def_ro("why_untrusted", &WorkGroupResult::why_untrusted)
      .def_ro("trials", &WorkGroupResult::trials);
}

void bind_tuners(nb::module_& module) {
  nb::class_<WorkGroupTuner>(module, "WorkGroupTuner", "Fits the work-group size of an OpenclKernel by running it.")
      .def(
          "__init__",
          [](WorkGroupTuner* self, nb::handle runs) { new (self) WorkGroupTuner({.runs = runs_from(runs)}); },
          nb::arg("runs").none() = 5, nb::sig("def __init__(self, runs: int = 5) -> None"))
      .def("candidates", &size_candidates, nb::arg("kernel"), nb::arg("global_size").none(),
           nb::arg("device").none() = "opencl:0",
           nb::sig("def candidates(self, kernel: OpenclKernel, global_size: object, device: object = 'opencl:0') -> "
                   "list[tuple[int, ...] | None]"),
           "The sizes that device and kernel allow; None is the driver's own choice.")
      .def(
          "tune",
          [](const WorkGroupTuner& self, const OpenclKernel& kernel, nb::args given, nb::handle global_size) {
            return tune_with(kernel, given, global_size,
                             [&](Device, SourceFunction& function, const FunctionLaunch& launch) {
                               return self.tune(function, kernel.spec().name, launch);
                             });
          },
          nb::arg("kernel"), nb::arg("arguments"), nb::kw_only(), nb::arg("global_size").none(),
          nb::sig("def tune(self, kernel: OpenclKernel, *arguments: object, global_size: object) -> WorkGroupResult"),
          "Runs every candidate several times, on copies of the tensors.");
  nb::class_<AutotunerObject>(
      module, "Autotuner",
      "Remembers work-group sizes by device, kernel and global size, in the store in use or the user's own.")
      .def(
          "__init__", [](AutotunerObject* self, nb::handle runs) { new (self) AutotunerObject(runs_from(runs)); },
          nb::arg("runs").none() = 5, nb::sig("def __init__(self, runs: int = 5) -> None"))
      .def(
          "known",
          [](const AutotunerObject& self, const OpenclKernel& kernel, nb::handle global_size, nb::handle device) {
            const auto found = self.tuner.known(kernel.tuned_as(device_from(device)),
                                                work_size_from(global_size, "Autotuner.known", "global_size"));
            return nb::make_tuple(found.has_value(), found ? python_size(*found) : nb::object(nb::none()));
          },
          nb::arg("kernel"), nb::arg("global_size").none(), nb::arg("device").none() = "opencl:0",
          nb::sig("def known(self, kernel: OpenclKernel, global_size: object, device: object = 'opencl:0') -> "
                  "tuple[bool, tuple[int, ...] | None]"),
          "Whether it is known without measuring, and the size; None is the driver's own choice.")
      .def(
          "tune",
          [](AutotunerObject& self, const OpenclKernel& kernel, nb::args given, nb::handle global_size) {
            return tune_with(kernel, given, global_size,
                             [&](Device device, SourceFunction& function, const FunctionLaunch& launch) {
                               return self.tuner.tune(kernel.tuned_as(device), function, launch);
                             });
          },
          nb::arg("kernel"), nb::arg("arguments"), nb::kw_only(), nb::arg("global_size").none(),
          nb::sig("def tune(self, kernel: OpenclKernel, *arguments: object, global_size: object) -> WorkGroupResult"),
          "Measures, remembers and stores.");
}

}  // namespace

void bind_opencl_kernel(nb::module_& module) {
  nb::class_<LocalMemory>(module, "LocalMemory", "Local memory of so many bytes, as an argument of an OpenclKernel.")
      .def(
          "__init__",
          [](LocalMemory* self, nb::handle bytes) {
            new (self) LocalMemory{count_from(bytes, "LocalMemory", "bytes")};
          },
          nb::arg("bytes").none(), nb::sig("def __init__(self, bytes: int) -> None"))
      .def_ro("bytes", &LocalMemory::bytes);
  bind_results(module);
  nb::class_<OpenclKernel>(
      module, "OpenclKernel",
      "A kernel of your own in OpenCL C, compiled for the device of its tensors when it first runs, and kept on "
      "disk.\n\n"
      "Give its text as `source` or a `file`. `name` is the __kernel function; `flags` go to the compiler. Without\n"
      "`work_group_size` the driver chooses; `tune=True` fits it to the device at the first run with a global size.")
      .def("__init__", &construct_kernel, nb::arg("name").none(), nb::arg("source").none() = nb::none(), nb::kw_only(),
           nb::arg("file").none() = nb::none(), nb::arg("work_group_size").none() = nb::none(),
           nb::arg("flags").none() = "", nb::arg("tune").none() = false,
           nb::sig("def __init__(self, name: str, source: str | None = None, *, file: str | os.PathLike[str] | None = "
                   "None, work_group_size: int | typing.Sequence[int] | None = None, flags: str = '', tune: bool = "
                   "False) -> None"))
      .def_prop_ro("name", [](const OpenclKernel& self) { return self.spec().name; })
      .def_prop_ro("source", [](const OpenclKernel& self) { return self.spec().source; })
      .def_prop_ro("flags", [](const OpenclKernel& self) { return self.spec().flags; })
      .def_prop_ro("version", &OpenclKernel::version, "Of source, name and flags: what stores and locks know it by.")
      .def("build", &build_kernel, nb::arg("device").none() = "opencl:0",
           nb::sig("def build(self, device: object = 'opencl:0') -> dict[str, typing.Any]"),
           "Compiles it now and returns its limits on the device.")
      .def("__call__", &run_kernel, nb::arg("arguments"), nb::kw_only(), nb::arg("global_size").none(),
           nb::sig("def __call__(self, *arguments: object, global_size: int | typing.Sequence[int]) -> None"),
           "Queues a run: tensors on an OpenCL device, numbers as the parameters' types, LocalMemory.\n\n"
           "Whole work-groups run: the kernel leaves out items past the end of the data.")
      .def("tune", &tune_kernel, nb::arg("arguments"), nb::kw_only(), nb::arg("global_size").none(),
           nb::sig("def tune(self, *arguments: object, global_size: int | typing.Sequence[int]) -> WorkGroupResult"),
           "Fits the work-group size for this global size, on copies of the tensors; later runs use it.")
      .def("register_for", &register_kernel_for, nb::arg("op").none(), nb::kw_only(), nb::arg("dtypes").none() = "f32",
           nb::arg("deterministic").none() = true,
           nb::sig("def register_for(self, op: str, *, dtypes: str | typing.Sequence[str] = 'f32', deterministic: bool "
                   "= True) -> None"),
           "Registers it for an op: its parameters are the inputs, the outputs and the number of elements (ulong).");
  bind_tuners(module);
}

}  // namespace xpuruntime::python

#include "python/numpy_arrays.h"

#include <nanobind/stl/string.h>

#include <optional>
#include <string_view>
#include <unordered_map>

#include "core/names.h"
#include "python/arguments.h"
#include "python/types.h"
#include "xpuruntime/core/dlpack.h"

namespace xpuruntime::python {
namespace {

// The fields of an array and of a dtype that NumPy's binary interface promises, in versions 1 and 2. Its headers would
// tie the package to one version and to full builds of Python; layout_is_known checks these against the truth.
struct DescrFields {
  PyObject head;
  PyTypeObject* scalar_type;
  char kind;
  char type;
  char byte_order;
  char unused;
  int type_number;
};

struct ArrayFields {
  PyObject head;
  char* data;
  int rank;
  Py_ssize_t* extents;
  Py_ssize_t* strides;
  PyObject* base;
  DescrFields* dtype;
  int flags;
};

constexpr int c_contiguous = 0x0001, writeable = 0x0400;
// Places in NumPy's table of functions.
constexpr std::size_t abi_version_at = 0, array_type_at = 2, new_array_at = 93;

const ArrayFields& fields(PyObject* array) { return *reinterpret_cast<ArrayFields*>(array); }

constexpr int first_user_type = 256;

struct TypeNumber {
  int number;
  DataType dtype;
};

// 7 and 9 are C's long and long long.
constexpr TypeNumber type_numbers[] = {{11, DataType::float32}, {12, DataType::float64}, {23, DataType::float16},
                                       {7, DataType::int64},    {9, DataType::int64},    {5, DataType::int32},
                                       {3, DataType::int16},    {1, DataType::int8},     {2, DataType::uint8},
                                       {0, DataType::boolean}};

struct UserType {
  const char* name;
  DataType dtype;
};
constexpr UserType user_types[] = {
    {"bfloat16", DataType::bfloat16}, {"float8_e4m3fn", DataType::float8_e4m3}, {"float8_e5m2", DataType::float8_e5m2}};

[[noreturn]] void refuse_dtype(nb::handle dtype, char byte_order, const Where& where) {
  const std::string name = nb::cast<std::string>(nb::str(dtype));
  if (byte_order == '>') {
    where.fail(ErrorCode::invalid_argument,
               "it is big-endian (" + name + "); convert it with array.astype(array.dtype.newbyteorder('='))");
  }
  if (name == "object") {
    where.fail(ErrorCode::invalid_argument, "it holds Python objects; convert it with array.astype('float32')");
  }
  where.fail(ErrorCode::not_supported, "its dtype " + name + " has no counterpart here; convert it with array.astype");
}

// Types that packages add to NumPy get their numbers when they are imported; the dtype objects live as long.
DataType user_dtype(const DescrFields& descr, const Where& where) {
  static auto* known = new std::unordered_map<const DescrFields*, DataType>;
  const auto found = known->find(&descr);
  if (found != known->end()) return found->second;
  const nb::handle dtype(const_cast<PyObject*>(&descr.head));
  const std::string name = nb::cast<std::string>(dtype.attr("name"));
  const std::string module =
      nb::cast<std::string>(nb::handle(reinterpret_cast<PyObject*>(descr.scalar_type)).attr("__module__"));
  for (const UserType& type : user_types) {
    if (name != type.name || !module.starts_with("ml_dtypes")) continue;
    dtype.inc_ref();
    return known->emplace(&descr, type.dtype).first->second;
  }
  refuse_dtype(dtype, descr.byte_order, where);
}

/// The strides in elements, if a tensor can have them.
std::optional<Dims> element_strides(const ArrayFields& array, std::int64_t element_size) {
  Dims strides = Dims::filled(static_cast<std::size_t>(array.rank), 0);
  for (int i = 0; i < array.rank; ++i) {
    if (array.extents[i] == 1) continue;  // its stride addresses nothing
    if (array.strides[i] < 0 || array.strides[i] % element_size != 0) return {};
    strides[static_cast<std::size_t>(i)] = array.strides[i] / element_size;
  }
  return strides;
}

nb::object api_capsule(const nb::module_& numpy) {
  const int major = std::stoi(nb::cast<std::string>(numpy.attr("__version__")));
  const char* name = major >= 2 ? "numpy._core._multiarray_umath" : "numpy.core._multiarray_umath";
  return nb::module_::import_(name).attr("_ARRAY_API");
}

}  // namespace

Numpy::Numpy(nb::module_ module) : module_(std::move(module)) {
  const nb::object capsule = api_capsule(module_);
  functions_ = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (functions_ == nullptr) throw nb::python_error();
  array_type_ = static_cast<PyTypeObject*>(functions_[array_type_at]);
}

// An array whose fields are known, read as we read all.
bool Numpy::layout_is_known() const {
  const auto abi_version = reinterpret_cast<unsigned (*)()>(functions_[abi_version_at])();
  if (abi_version != 0x01000009 && abi_version != 0x02000000) return false;
  const nb::object array = module_.attr("zeros")(nb::make_tuple(3, 5), "float32").attr("T");
  const ArrayFields& read = fields(array.ptr());
  const auto address = nb::cast<std::uintptr_t>(array.attr("ctypes").attr("data"));
  return reinterpret_cast<std::uintptr_t>(read.data) == address && read.rank == 2 && read.extents[0] == 5 &&
         read.extents[1] == 3 && read.strides[0] == 4 && read.strides[1] == 20 && read.dtype->type_number == 11 &&
         read.dtype->byte_order == '=' && (read.flags & (c_contiguous | writeable)) == writeable;
}

const Numpy* Numpy::loaded() {
  static const Numpy* numpy = nullptr;
  static bool tried = false;
  if (tried) return numpy;
  const nb::object modules = nb::module_::import_("sys").attr("modules");
  // Half imported it is of no use yet: its array type stands nowhere.
  if (!nb::cast<bool>(modules.attr("__contains__")("numpy"))) return nullptr;
  const nb::object module = modules["numpy"];
  if (!nb::hasattr(module, "ndarray") || !nb::hasattr(module, "zeros")) return nullptr;
  tried = true;
  auto* made = new Numpy(nb::cast<nb::module_>(module));
  if (made->layout_is_known()) numpy = made;
  return numpy;
}

const Numpy& Numpy::needed(const char* function) {
  try {
    nb::module_::import_("numpy");
  } catch (const nb::python_error&) {
    fail(ErrorCode::not_supported, function, "NumPy is not installed; install it with: pip install numpy");
  }
  if (const Numpy* numpy = loaded()) return *numpy;
  fail(ErrorCode::not_supported, function, "this version of NumPy is not known; install one from 1.24 to 2.x");
}

DataType Numpy::dtype_of(PyObject* array, const Where& where) const {
  const DescrFields& descr = *fields(array).dtype;
  if (descr.byte_order != '>') [[likely]] {
    for (const TypeNumber& type : type_numbers) {
      if (type.number == descr.type_number) return type.dtype;
    }
    if (descr.type_number >= first_user_type) return user_dtype(descr, where);
  }
  refuse_dtype(nb::handle(&fields(array).dtype->head), descr.byte_order, where);
}

Tensor Numpy::view(PyObject* array, Access access, const Where& where) const {
  const ArrayFields& read = fields(array);
  const DataType dtype = dtype_of(array, where);
  if (access == Access::write && (read.flags & writeable) == 0) {
    where.fail(ErrorCode::invalid_argument, "it is read-only; pass an array that can be written, or a copy of it");
  }
  const auto element_size = static_cast<std::int64_t>(size_of(dtype));
  const auto below_element = static_cast<std::uintptr_t>(element_size - 1);  // sizes are powers of two
  if ((reinterpret_cast<std::uintptr_t>(read.data) & below_element) != 0) return {};
  static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
  const auto rank = static_cast<std::size_t>(read.rank);
  const Dims shape(std::span(reinterpret_cast<const std::int64_t*>(read.extents), rank));
  if ((read.flags & c_contiguous) != 0) [[likely]]
    return Tensor::view(read.data, dtype, shape);
  const std::optional<Dims> strides = element_strides(read, element_size);
  if (!strides) return {};
  return Tensor::on(read.data, make_spec(dtype, shape, *strides));
}

int Numpy::type_number(DataType dtype) const {
  for (const TypeNumber& type : type_numbers) {
    if (type.dtype == dtype) return type.number;
  }
  return reinterpret_cast<DescrFields*>(dtype_object(dtype).ptr())->type_number;
}

nb::object Numpy::empty(const TensorSpec& spec) const {
  using NewArray =
      PyObject* (*)(PyTypeObject*, int, const Py_ssize_t*, int, const Py_ssize_t*, void*, int, int, PyObject*);
  const auto new_array = reinterpret_cast<NewArray>(functions_[new_array_at]);
  const Dims& shape = spec.shape;
  Dims steps;
  if (!spec.contiguous) steps = dlpack::strides_of(spec);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] *= static_cast<std::int64_t>(size_of(spec.dtype));
  PyObject* made =
      new_array(array_type_, static_cast<int>(shape.size()), reinterpret_cast<const Py_ssize_t*>(shape.data()),
                type_number(spec.dtype), spec.contiguous ? nullptr : reinterpret_cast<const Py_ssize_t*>(steps.data()),
                nullptr, 0, 0, nullptr);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

nb::object Numpy::contiguous_copy(nb::handle array) const {
  return module_.attr("array")(array, nb::arg("copy") = true, nb::arg("order") = "C", nb::arg("subok") = false);
}

void Numpy::copy_into(nb::handle destination, nb::handle source) const { module_.attr("copyto")(destination, source); }

nb::object Numpy::dtype_object(DataType dtype) const {
  for (const UserType& type : user_types) {
    if (type.dtype != dtype) continue;
    try {
      return module_.attr("dtype")(nb::module_::import_("ml_dtypes").attr(type.name));
    } catch (const nb::python_error&) {
      fail(ErrorCode::not_supported, "numpy",
           std::string("NumPy has no ") + type.name + " of its own; install it with: pip install ml_dtypes");
    }
  }
  return module_.attr("dtype")(to_python(full_name(dtype == DataType::tfloat32 ? DataType::float32 : dtype)));
}

}  // namespace xpuruntime::python

#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// OpenVINO's C interface, opened at run time. Of the rest of this library nothing is used: the worker links only this.

namespace xpuruntime::openvino {

/// What OpenVINO says of a call that failed.
class Failure : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t { other, not_supported, invalid_argument, out_of_memory };
  Failure(Kind of, const std::string& text) : std::runtime_error(text), kind(of) {}
  const Kind kind;
};

using Status = int;
constexpr Status ok = 0, not_ready = -9, invalid_parameter = -14;

struct Core;
struct Model;
struct Compiled;
struct Port;
struct Request;
struct TensorHandle;

struct Shape {
  std::int64_t rank = 0;
  std::int64_t* dims = nullptr;
};
struct Dimension {
  std::int64_t min = 0, max = 0;
};
struct PartialShape {
  Dimension rank = {};
  Dimension* dims = nullptr;
};
struct Version {
  const char* build = nullptr;
  const char* description = nullptr;
};
struct DeviceNames {
  char** names = nullptr;
  std::size_t count = 0;
};

/// Its functions that we use.
struct Functions {
  Status (*version)(Version*) = nullptr;
  void (*free_version)(Version*) = nullptr;
  const char* (*last_error)() = nullptr;  // since 2024; null before
  const char* (*text_of)(Status) = nullptr;
  Status (*make_core)(Core**) = nullptr;
  void (*free_core)(Core*) = nullptr;
  Status (*devices)(const Core*, DeviceNames*) = nullptr;
  void (*free_devices)(DeviceNames*) = nullptr;
  Status (*set)(const Core*, const char* device, ...) = nullptr;
  Status (*read)(const Core*, const char* path, const char* weights, Model**) = nullptr;
  void (*free_model)(Model*) = nullptr;
  Status (*reshape)(const Model*, const std::size_t* inputs, const PartialShape*, std::size_t count) = nullptr;
  Status (*compile)(const Core*, const Model*, const char* device, std::size_t settings, Compiled**, ...) = nullptr;
  Status (*import)(const Core*, const char* bytes, std::size_t, const char* device, Compiled**) = nullptr;
  Status (*save)(const Compiled*, const char* path) = nullptr;
  void (*free_compiled)(Compiled*) = nullptr;
  Status (*count_outputs)(const Compiled*, std::size_t*) = nullptr;
  Status (*get)(const Compiled*, const char* key, char** value) = nullptr;
  void (*free_text)(const char*) = nullptr;
  Status (*make_request)(const Compiled*, Request**) = nullptr;
  void (*free_request)(Request*) = nullptr;
  Status (*find_input)(const Compiled*, const char* name, Port**) = nullptr;
  void (*free_port)(Port*) = nullptr;
  Status (*set_input)(Request*, const char* name, const TensorHandle*) = nullptr;
  Status (*get_output)(const Request*, std::size_t, TensorHandle**) = nullptr;
  Status (*start)(Request*) = nullptr;
  Status (*wait)(Request*) = nullptr;
  Status (*wait_for)(Request*, std::int64_t milliseconds) = nullptr;
  Status (*cancel)(Request*) = nullptr;
  Status (*make_tensor)(int type, Shape, void* memory, TensorHandle**) = nullptr;
  Status (*shape)(const TensorHandle*, Shape*) = nullptr;
  Status (*free_shape)(Shape*) = nullptr;
  Status (*type)(const TensorHandle*, int*) = nullptr;
  Status (*data)(const TensorHandle*, void**) = nullptr;
  void (*free_tensor)(TensorHandle*) = nullptr;
};

/// A handle of OpenVINO's that goes with its owner.
template <class T>
class Owned {
 public:
  Owned() = default;
  explicit Owned(void (*release)(T*)) : release_(release) {}
  Owned(Owned&& other) noexcept : release_(other.release_), handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(release_, other.release_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) release_(handle_);
  }
  T* get() const { return handle_; }
  T** place() { return &handle_; }

 private:
  void (*release_)(T*) = nullptr;
  T* handle_ = nullptr;
};

/// How a model is compiled or taken in again.
struct Settings {
  std::string device = {};  // CPU, GPU or NPU
  std::string precision = {};
  int threads = 0;
  std::vector<std::vector<std::int64_t>> shapes = {};  // of all inputs; empty: those of the file
};

/// The library of one file. It stays open: its threads run to the end of the process.
class Library {
 public:
  /// Throws Failure where the file cannot be opened or is of a version that this was not made for.
  explicit Library(const std::string& file);

  const Functions& functions() const { return functions_; }
  /// "2026.4.1"
  std::string version() const;
  /// Throws Failure unless a call went well.
  void check(Status status) const;

  /// "CPU", "GPU.0" and so on.
  std::vector<std::string> devices() const;
  Owned<Compiled> compile(const std::string& path, const Settings& settings) const;
  /// What save_compiled wrote. The bytes have to be there for as long as what comes out.
  Owned<Compiled> import(const std::string& bytes, const Settings& settings) const;
  /// Whether a compiled model reads an input; one that nothing needs may be gone.
  bool has_input(const Compiled& compiled, const std::string& name) const;
  void save_compiled(const Compiled& compiled, const std::string& path) const;

 private:
  Owned<Core> core_for(const Settings& settings) const;
  void check_precision(const Compiled& compiled, const Settings& settings) const;

  Functions functions_ = {};
};

}  // namespace xpuruntime::openvino

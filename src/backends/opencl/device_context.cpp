#include "backends/opencl/device_context.h"

#include "backends/opencl/build_log.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/profile.h"
#include "backends/opencl/programs.h"

namespace xpuruntime::opencl {
namespace {
constexpr cl_uint none = 0;  // stays while it is being written
}  // namespace

Fault::Word& Fault::word_of(Stream stream) const {
  const std::uint64_t key = stream.id != 0 ? stream.id : reinterpret_cast<std::uintptr_t>(stream.handle);
  for (Word& word : words_)
    if (word.stream == key) return word;
  constexpr std::size_t many = 16;  // streams come and go
  if (words_.size() >= many) std::erase_if(words_, [](const Word& word) { return !word.used; });
  cl_uint zero = 0;
  cl_int code = CL_SUCCESS;
  Buffer memory(
      clCreateBuffer(device_.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero, &code));
  check(code, "make_value_fault", "clCreateBuffer");
  return words_.emplace_back(Word{key, std::move(memory)});
}

void* Fault::word() const {
  const std::lock_guard lock(mutex_);
  Word& word = word_of({});
  word.used = true;
  return word.memory.get();
}

cl_int Fault::launch(Stream stream, const std::function<cl_int(cl_mem)>& enqueue) const {
  const std::lock_guard lock(mutex_);
  Word& word = word_of(stream);
  word.used = true;
  return enqueue(word.memory.get());
}

/// Reads and clears it, one right after the other: no kernel is launched between them, as that needs the mutex.
cl_int Fault::read(Word& word, cl_command_queue queue, cl_uint& found, cl_event* done) const {
  const cl_int code =
      clEnqueueReadBuffer(queue, word.memory.get(), CL_FALSE, 0, sizeof(found), &found, 0, nullptr, done);
  if (code != CL_SUCCESS) return code;
  return clEnqueueWriteBuffer(queue, word.memory.get(), CL_FALSE, 0, sizeof(none), &none, 0, nullptr, nullptr);
}

Status Fault::take(Stream stream, bool others) const {
  const QueueUse queue = device_.use(stream);
  const std::uint64_t key = stream.id != 0 ? stream.id : reinterpret_cast<std::uintptr_t>(stream.handle);
  bool found = false;
  cl_int code = CL_SUCCESS;
  cl_uint own = 0;
  cl_event done = nullptr;
  {
    const std::lock_guard lock(mutex_);
    for (Word& word : words_) {
      if (!word.used || code != CL_SUCCESS) continue;
      if (word.stream == key) {
        word.used = false;
        code = read(word, queue, own, &done);
      } else if (others) {
        // Its stream may be running a kernel: what that finds is read when its own stream is waited for.
        cl_uint one = 0;
        code = clEnqueueReadBuffer(queue, word.memory.get(), CL_TRUE, 0, sizeof(one), &one, 0, nullptr, nullptr);
        if (code != CL_SUCCESS || one == 0) continue;
        found = true;
        code = clEnqueueWriteBuffer(queue, word.memory.get(), CL_TRUE, 0, sizeof(none), &none, 0, nullptr, nullptr);
      }
    }
  }
  if (done != nullptr) {
    const cl_int waited = clWaitForEvents(1, &done);
    clReleaseEvent(done);
    if (code == CL_SUCCESS) code = waited;
  }
  if (code != CL_SUCCESS) return to_status(code, "clEnqueueReadBuffer");
  return found || own != 0 ? Status(ErrorCode::invalid_argument, message_) : Status();
}

Fault::~Fault() {
  if (std::none_of(words_.begin(), words_.end(), [](const Word& word) { return word.used; })) return;
  try {
    device_.leave_finding(take({}, true));
  } catch (const std::exception&) {  // without memory for the message there is none
  }
}

void DeviceContext::open() {
  cl_int code = CL_SUCCESS;
  Context context(clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &code));
  check(code, "opencl::open", "clCreateContext");
  Queue queue(clCreateCommandQueue(context.get(), device_, 0, &code));
  check(code, "opencl::open", "clCreateCommandQueue");
  is_pocl_ = is_pocl(device_value<cl_platform_id>(device_, CL_DEVICE_PLATFORM));
  context_ = std::move(context);
  queue_ = std::move(queue);
}

cl_context DeviceContext::context() {
  std::call_once(opened_, [this] { open(); });
  return context_.get();
}

QueueUse DeviceContext::use(Stream stream) {
  if (stream.handle != nullptr) return {{}, static_cast<cl_command_queue>(stream.handle)};
  context();
  std::shared_lock lock(queue_mutex_);
  cl_command_queue queue = queue_.get();
  return {std::move(lock), queue};
}

Queue DeviceContext::make_queue(bool times) {
  cl_int code = CL_SUCCESS;
  Queue queue(clCreateCommandQueue(context(), device_, times ? CL_QUEUE_PROFILING_ENABLE : 0, &code));
  check(code, "opencl::create_stream", "clCreateCommandQueue");
  return queue;
}

void DeviceContext::keep_times() {
  if (times_.load(std::memory_order_acquire)) return;
  Queue timed = make_queue(true);
  const std::unique_lock lock(queue_mutex_);
  if (times_.load(std::memory_order_relaxed)) return;
  cl_event last = nullptr;
  check(clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &last), "record_event", "clEnqueueMarkerWithWaitList");
  clFlush(queue_.get());
  const cl_int code = clEnqueueBarrierWithWaitList(timed.get(), 1, &last, nullptr);
  clReleaseEvent(last);
  check(code, "record_event", "clEnqueueBarrierWithWaitList");
  queue_ = std::move(timed);
  times_.store(true, std::memory_order_release);
}

void DeviceContext::launched(cl_command_queue queue) {
  if (launches_.fetch_add(1, std::memory_order_relaxed) % 16 == 15) clFlush(queue);
}

BuildRequest DeviceContext::request_for(std::string_view source, const std::string& options, bool ours) {
  return {context(), device_, ours ? common_cl : "", source, ours ? options + native_options(device_) : options};
}

std::shared_ptr<Program> DeviceContext::program(std::string_view source, const std::string& options, bool ours) {
  const auto build = [&] { return build_program(request_for(source, options, ours)); };
  if (!ours && has_include(source)) return std::make_shared<Program>(build());
  return programs_.get_or_make((ours ? "o" : "u") + options + '\n' + std::string(source), build);
}

void DeviceContext::make_machine_code(std::string_view source, const std::string& options, const std::string& function,
                                      const CodeVariant& variant, bool ours) {
  context();
  if (!is_pocl_) return;
  const auto make = [&] {
    xpuruntime::opencl::make_machine_code(request_for(source, options, ours), function, variant);
    return true;
  };
  if (!ours && has_include(source)) return void(make());
  // Our sources stay where they are.
  const std::size_t text =
      ours ? reinterpret_cast<std::uintptr_t>(source.data()) : std::hash<std::string_view>{}(source);
  std::string key = (ours ? "o" : "u") + std::to_string(text) + options + '\n' + function;
  for (const std::size_t size : variant.size) key += ' ' + std::to_string(size);
  made_.get_or_make(key + (variant.is_chosen ? "c" : "") + (variant.is_large ? "l" : ""), make);
}

std::shared_ptr<const Fault> DeviceContext::make_fault(std::string message) {
  auto fault = std::make_shared<const Fault>(*this, std::move(message));
  const std::lock_guard lock(mutex_);
  std::erase_if(faults_, [](const auto& held) { return held.expired(); });
  faults_.push_back(fault);
  return fault;
}

Status DeviceContext::take_faults(Stream stream) {
  std::vector<std::shared_ptr<const Fault>> held;
  std::vector<Status> found;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& fault : faults_) {
      if (auto locked = fault.lock()) held.push_back(std::move(locked));
    }
    found.swap(left_);
  }
  for (const auto& fault : held) found.push_back(fault->take(stream, stream.handle == nullptr));
  std::erase_if(found, [](const Status& status) { return status.ok(); });
  if (found.size() < 2) return found.empty() ? Status() : std::move(found[0]);
  std::string all = found[0].message();
  for (std::size_t i = 1; i < found.size(); ++i) all += "; and " + found[i].message();
  return Status(found[0].code(), std::move(all));
}

void DeviceContext::leave_finding(Status status) {
  constexpr std::size_t most = 64;
  const std::lock_guard lock(mutex_);
  if (!status.ok() && left_.size() < most) left_.push_back(std::move(status));
}

cl_int DeviceContext::finish_all() {
  cl_int result = clFinish(use({}));
  for (const Queue& other : queues_of(context())) {
    const cl_int code = clFinish(other.get());
    if (result == CL_SUCCESS) result = code;
  }
  return result;
}

}  // namespace xpuruntime::opencl

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "xpuruntime/device/current.h"
#include "xpuruntime/device/driver.h"

namespace xpuruntime::testing {

/// Devices made of host memory that count what happens to them. As `opencl` their memory is handles that must not be
/// computed with; as any other type it is pointers.
class FakeDriver : public DeviceDriver {
 public:
  explicit FakeDriver(DeviceType type = DeviceType::npu, int device_count = 2) : type_(type) {
    for (int i = 0; i < device_count; ++i) {
      DeviceProfile profile;
      profile.type = type;
      profile.vendor = "fake";
      profile.name = "fake device " + std::to_string(i);
      profile.compute_units = 4;
      profile.global_memory_bytes = std::uint64_t{1} << 30;
      profile.fp16 = true;
      profiles_.push_back(profile);
    }
    limits_.assign(profiles_.size(), SIZE_MAX);
    used_.assign(profiles_.size(), 0);
  }
  ~FakeDriver() override {
    if (destroyed != nullptr) *destroyed = true;
    for (auto& [memory, block] : blocks_) {
      if (!handles()) ::operator delete(memory, alignment);
    }
  }

  // What a test sets. Only before other threads use the driver.
  std::string absent_reason = "the fake driver was made without devices";
  bool is_asynchronous = true;
  bool* destroyed = nullptr;  // set to true by the destructor
  Status copy_status = {};    // given by the next copies, which then do nothing
  Status synchronize_status = {};
  Status end_capture_status = {};          // not ok: the recording was broken
  std::atomic<bool> is_capturing = false;  // on all streams, by somebody else; end_capture ends that too

  /// Allocations that would bring a device over this many bytes fail with out_of_memory.
  void set_memory_limit(int index, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    limits_[static_cast<std::size_t>(index)] = bytes;
  }

  // What a test reads.
  int allocations() const { return allocations_; }
  int frees() const { return frees_; }
  int wrong_frees() const { return wrong_frees_; }  // unknown memory, or on another device than it came from
  int refused_allocations() const { return refused_; }
  int synchronizations() const { return synchronizations_; }
  int live_streams() const { return live_streams_; }
  int live_events() const { return live_events_; }
  int live_graphs() const { return live_graphs_; }
  int asked() const { return asked_; }  // for its devices
  /// The streams that graphs were launched on.
  std::vector<Stream> graph_launches() const {
    const std::lock_guard lock(mutex_);
    return graph_launches_;
  }
  Stream last_copy_stream() const { return last_copy_stream_; }
  std::size_t bytes_used(int index) const {
    const std::lock_guard lock(mutex_);
    return used_[static_cast<std::size_t>(index)];
  }
  std::size_t live_blocks() const {
    const std::lock_guard lock(mutex_);
    return blocks_.size();
  }
  /// The bytes behind Tensor::data; null if this driver did not hand it out.
  std::byte* bytes_of(const void* memory) const {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(const_cast<void*>(memory));
    if (found == blocks_.end()) return nullptr;
    return handles() ? found->second.storage.get() : static_cast<std::byte*>(found->first);
  }

  DeviceType type() const override { return type_; }
  const std::vector<DeviceProfile>& devices() const override {
    ++asked_;
    return profiles_;
  }
  std::string why_absent() const override { return profiles_.empty() ? absent_reason : ""; }

  void* allocate(int index, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    std::size_t& used = used_[static_cast<std::size_t>(index)];
    if (bytes > limits_[static_cast<std::size_t>(index)] - std::min(used, limits_[static_cast<std::size_t>(index)])) {
      ++refused_;
      fail(ErrorCode::out_of_memory, "FakeDriver::allocate", "the fake device is full; raise its limit");
    }
    Block block = {index, bytes, nullptr};
    void* memory = nullptr;
    if (handles()) {
      block.storage = std::make_unique<std::byte[]>(bytes);
      // One byte that belongs to nobody else: reading past it as if it were the data is caught by the sanitizers.
      block.handle = std::make_unique<std::byte>();
      memory = block.handle.get();
    } else {
      memory = ::operator new(bytes, alignment);
    }
    blocks_[memory] = std::move(block);
    used += bytes;
    ++allocations_;
    return memory;
  }

  void deallocate(int index, void* memory) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(memory);
    if (found == blocks_.end() || found->second.index != index) {
      ++wrong_frees_;
      return;
    }
    used_[static_cast<std::size_t>(index)] -= found->second.bytes;
    if (!handles()) ::operator delete(memory, alignment);
    blocks_.erase(found);
    ++frees_;
  }

  Status copy_from_host(int index, void* memory, std::size_t byte_offset, const void* host, std::size_t bytes,
                        Stream stream) override {
    const Status status = check_copy(index, memory, byte_offset, bytes, stream);
    if (status.ok()) std::memcpy(bytes_of(memory) + byte_offset, host, bytes);
    return status;
  }
  Status copy_to_host(int index, void* host, const void* memory, std::size_t byte_offset, std::size_t bytes,
                      Stream stream) override {
    const Status status = check_copy(index, memory, byte_offset, bytes, stream);
    if (status.ok()) std::memcpy(host, bytes_of(memory) + byte_offset, bytes);
    return status;
  }

  std::uint64_t capture_id(int, Stream) override { return is_capturing ? 1 + captures_ended_ : 0; }
  void keep_with_graph(int, Stream, std::shared_ptr<void> held) override {
    const std::lock_guard lock(mutex_);
    recorded_.push_back(std::move(held));
  }
  void begin_capture(int, Stream) override { is_capturing = true; }
  DeviceGraph end_capture(int, Stream) override {
    is_capturing = false;
    ++captures_ended_;
    auto graph = std::make_unique<Graph>();
    {
      const std::lock_guard lock(mutex_);
      graph->swap(recorded_);
    }
    if (!end_capture_status.ok()) fail(end_capture_status.code(), "end_capture", end_capture_status.message());
    ++live_graphs_;
    return {graph.release()};
  }
  Status launch_graph(int, DeviceGraph, Stream stream) override {
    const std::lock_guard lock(mutex_);
    graph_launches_.push_back(stream);
    return {};
  }
  void destroy_graph(int, DeviceGraph graph) noexcept override {
    if (graph.handle == nullptr) return;
    --live_graphs_;
    delete static_cast<Graph*>(graph.handle);
  }

  Stream create_stream(int) override {
    ++live_streams_;
    return {new int(0)};
  }
  void destroy_stream(int, Stream stream) noexcept override {
    --live_streams_;
    delete static_cast<int*>(stream.handle);
  }
  Status synchronize(int, Stream) override {
    ++synchronizations_;
    return synchronize_status;
  }

  // An event holds the number of the record that it saw last, which is also its time in microseconds.
  Event create_event(int) override {
    ++live_events_;
    return {new int(0)};
  }
  void destroy_event(int, Event event) noexcept override {
    --live_events_;
    delete static_cast<int*>(event.handle);
  }
  Status record_event(int, Event& event, Stream) override {
    *static_cast<int*>(event.handle) = ++records_;
    return {};
  }
  Status wait_event(int, Event) override { return {}; }
  bool event_done(int, Event) override { return true; }
  double elapsed_us(int, Event from, Event to) override {
    return *static_cast<int*>(to.handle) - *static_cast<int*>(from.handle);
  }
  bool asynchronous() const override { return is_asynchronous; }

 private:
  static constexpr std::align_val_t alignment{64};
  using Graph = std::vector<std::shared_ptr<void>>;
  struct Block {
    int index = 0;
    std::size_t bytes = 0;
    std::unique_ptr<std::byte[]> storage = nullptr;
    std::unique_ptr<std::byte> handle = nullptr;
  };

  bool handles() const { return type_ == DeviceType::opencl; }

  Status check_copy(int index, const void* memory, std::size_t byte_offset, std::size_t bytes, Stream stream) {
    const std::lock_guard lock(mutex_);
    last_copy_stream_ = stream;
    const auto found = blocks_.find(const_cast<void*>(memory));
    if (found == blocks_.end()) return {ErrorCode::device_error, "the fake device does not know this memory"};
    if (found->second.index != index) return {ErrorCode::device_error, "the memory is another device's"};
    if (byte_offset + bytes > found->second.bytes) return {ErrorCode::device_error, "the copy leaves the memory"};
    return copy_status;
  }

  DeviceType type_;
  std::vector<DeviceProfile> profiles_;
  mutable std::mutex mutex_;
  std::map<void*, Block> blocks_;
  std::vector<std::size_t> limits_;
  std::vector<std::size_t> used_;
  Stream last_copy_stream_;
  Graph recorded_;
  std::vector<Stream> graph_launches_;
  std::atomic<int> allocations_ = 0, frees_ = 0, wrong_frees_ = 0, refused_ = 0, synchronizations_ = 0;
  std::atomic<int> live_streams_ = 0, live_events_ = 0, records_ = 0, live_graphs_ = 0;
  mutable std::atomic<int> asked_ = 0;
  std::atomic<std::uint64_t> captures_ended_ = 0;
};

/// Notes, for as long as it lives, which devices of a type this process makes current. One at a time.
class ActivationRecord {
 public:
  explicit ActivationRecord(DeviceType type = DeviceType::npu) : type_(type) {
    calls().clear();
    failing() = -1;
    static constexpr VendorRuntime runtime = {.activate = &activate};
    set_vendor_runtime(type, &runtime);
  }
  ~ActivationRecord() { set_vendor_runtime(type_, nullptr); }
  ActivationRecord(const ActivationRecord&) = delete;
  ActivationRecord& operator=(const ActivationRecord&) = delete;

  /// The indices made current since the last take(), in order.
  std::vector<int> take() {
    const std::lock_guard lock(mutex());
    return std::exchange(calls(), {});
  }
  /// Making this index current throws; -1 for none.
  void fail_on(int index) { failing() = index; }

 private:
  static void activate(int index) {
    if (index == failing()) fail(ErrorCode::device_error, "activate", "the fake device fell off; put it back");
    const std::lock_guard lock(mutex());
    calls().push_back(index);
  }
  static std::mutex& mutex() {
    static std::mutex value;
    return value;
  }
  static std::vector<int>& calls() {
    static std::vector<int> value;
    return value;
  }
  static std::atomic<int>& failing() {
    static std::atomic<int> value = -1;
    return value;
  }

  DeviceType type_;
};

}  // namespace xpuruntime::testing

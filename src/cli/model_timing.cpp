#include "cli/model_timing.h"

#include <algorithm>
#include <chrono>

#include "xpuruntime/device/current.h"

namespace xpuruntime::cli {

double ModelTimes::median_us() const {
  std::vector<double> sorted = runs_us;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double ModelTimes::min_us() const { return *std::min_element(runs_us.begin(), runs_us.end()); }

double timed_run(Context& context, const Session& session, const std::vector<Tensor>& inputs, Device device,
                 std::vector<Tensor>& results) {
  DeviceDriver& driver = context.runtime().devices().driver(device);
  const auto start = std::chrono::steady_clock::now();
  results = session.run(inputs);
  const Status status = driver.synchronize(device.index, current_stream(device));
  const auto end = std::chrono::steady_clock::now();
  if (!status.ok()) {
    fail(status.code(), "xrt", "the device failed: " + status.message() + "; check whether it still responds");
  }
  return std::chrono::duration<double, std::micro>(end - start).count();
}

}  // namespace xpuruntime::cli

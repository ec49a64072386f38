#include "backends/cpu/onednn/kernels.h"

namespace xpuruntime::cpu {
namespace {

constexpr const char* reason = "this build has no oneDNN; install libdnnl-dev and build again";

}  // namespace

Verdict supports_product_onednn(const Problem&, const DeviceProfile&) { return Verdict::no(reason); }
std::uint64_t workspace_product_onednn(const Problem&, const DeviceProfile&) { return 0; }
std::unique_ptr<const Plan> prepare_product_onednn(const Problem&, const PrepareContext&) {
  fail(ErrorCode::not_supported, "prepare", reason);
}

Verdict supports_conv_onednn(const Problem&, const DeviceProfile&) { return Verdict::no(reason); }
std::uint64_t workspace_conv_onednn(const Problem&, const DeviceProfile&) { return 0; }
std::unique_ptr<const Plan> prepare_conv_onednn(const Problem&, const PrepareContext&) {
  fail(ErrorCode::not_supported, "prepare", reason);
}

std::string onednn_version() { return {}; }

}  // namespace xpuruntime::cpu

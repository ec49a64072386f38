#include "graph/program/given_outputs.h"

#include <string>

#include "xpuruntime/core/error.h"

namespace xpuruntime {

void check_given(GivenOutputs outputs, std::span<const TensorSpec> results) {
  std::string text;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool is_other =
        outputs[i] && (outputs[i]->dtype() != results[i].dtype || outputs[i]->shape() != results[i].shape);
    if (!is_other) continue;
    text += (text.empty() ? "" : "; ") + std::string("the memory that is given for output ") + std::to_string(i) +
            " is " + to_string(outputs[i]->spec()) + ", and the run gives " +
            to_string(make_spec(results[i].dtype, results[i].shape));
  }
  if (!text.empty()) fail(ErrorCode::invalid_argument, "Session", text + "; give memory of that dtype and shape");
}

}  // namespace xpuruntime

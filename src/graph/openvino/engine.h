#pragma once

#include <functional>
#include <memory>

#include "xpuruntime/graph/engine.h"

namespace xpuruntime::openvino {

/// OpenVINO by its C interface, which its Python package brings, and the packages of systems. Models are compiled in a
/// process of their own and run in this one. `threads`: how many where a request names none.
std::shared_ptr<const Engine> make_engine(std::function<int()> threads);

/// The same of the library in this file.
std::shared_ptr<const Engine> make_engine(std::string library, std::function<int()> threads);

}  // namespace xpuruntime::openvino

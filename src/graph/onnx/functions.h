#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "graph/onnx/wire.h"

// Functions of the model's own (FunctionProto). A call of one is replaced by its nodes, which are read anew for it.

namespace xpuruntime::onnx {

struct Function {
  WireField message = {};
  std::string name = {};  // "domain::name"
  std::vector<std::string> inputs = {};
  std::vector<std::string> outputs = {};
  std::int64_t opset = 0;                // of ONNX's own operators; 0: it says none
  std::vector<WireField> defaults = {};  // attributes that a call may leave out
};

class Functions {
 public:
  /// Its nodes are not looked at yet.
  void add(const WireField& message);
  /// Null: there is none.
  const Function* find(std::string_view domain, std::string_view name, std::string_view overload) const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;
  std::map<Key, Function, std::less<>> functions_ = {};
};

}  // namespace xpuruntime::onnx

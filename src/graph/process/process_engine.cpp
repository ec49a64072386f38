#include "xpuruntime/graph/process_engine.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>

#include "core/json_fields.h"
#include "graph/process/helper_process.h"
#include "graph/process/packed_tensors.h"
#include "graph/session/file_content.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime {
namespace process {
namespace {

using Clock = HelperProcess::Clock;

Clock::time_point end_of(std::int64_t milliseconds) {
  constexpr std::int64_t most = std::int64_t{1000} * 60 * 60 * 24 * 365;  // never
  return Clock::now() + std::chrono::milliseconds(std::min(milliseconds, most));
}

Json json_of(const char* action, const std::string& code, const EngineRequest& request) {
  Json head = {{"do", action}, {"engine", code}};
  head["model"] = std::filesystem::absolute(request.model->path).string();
  head["target"] = to_string(request.target);
  head["threads"] = request.threads;
  head["execution"] = parse_known_json(request.execution.to_json());
  return head;
}

class ProcessModel : public CompiledModel {
 public:
  ProcessModel(std::string name, std::string code, EngineRequest request, std::unique_ptr<HelperProcess> helper)
      : name_(std::move(name)), code_(std::move(code)), request_(std::move(request)), helper_(std::move(helper)) {
    compile();
    request_.cached.reset();
  }

  std::vector<Tensor> run(std::span<const Tensor> inputs, std::chrono::milliseconds timeout) override {
    const std::lock_guard lock(mutex_);
    if (helper_ == nullptr || !helper_->alive()) {  // it crashed, or was stopped
      helper_ = std::make_unique<HelperProcess>();
      compile();
    }
    const std::size_t bytes = packed_bytes(inputs);
    Json request = {{"do", "run"}, {"timeout_ms", timeout.count()}, {"bytes", bytes}};
    request["inputs"] = pack(inputs, helper_->memory(bytes));
    const Json answer = helper_->ask(request, end_of(timeout.count()), "a run of engine " + name_);
    return unpack(answer.at("outputs"), helper_->bytes_of(answer));
  }

  std::string to_cache() override { return std::move(to_cache_); }

 private:
  void compile() {
    check_unchanged(*request_.model);
    Json request = json_of("compile", code_, request_);
    const std::string_view cached = request_.cached == nullptr ? std::string_view() : *request_.cached;
    request["bytes"] = cached.size();
    if (!cached.empty()) std::memcpy(helper_->memory(cached.size()), cached.data(), cached.size());
    const Json answer =
        helper_->ask(request, end_of(request_.execution.compile_timeout_ms), "compiling by engine " + name_);
    check_unchanged(*request_.model);
    const std::span<const std::byte> bytes = helper_->bytes_of(answer);
    to_cache_.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  const std::string name_, code_;
  EngineRequest request_;
  std::unique_ptr<HelperProcess> helper_;
  std::string to_cache_ = {};
  LongMutex mutex_ = {};
};

class ProcessEngine : public Engine {
 public:
  ProcessEngine(std::string name, std::string code) : name_(std::move(name)), code_(std::move(code)) {}

  std::string name() const override { return name_; }
  std::string version() const override { return described().version; }
  std::string why_absent() const override { return described().absent; }
  std::vector<DeviceType> devices() const override { return described().devices; }
  std::vector<DataType> precisions() const override { return described().precisions; }
  bool caches() const override { return described().caches; }

  EngineVerdict check(const EngineRequest& request) const override {
    if (request.model->path.empty()) {
      return EngineVerdict::no("it reads models from files, and this one is from memory; save it first");
    }
    const std::lock_guard lock(mutex_);
    if (helper_ == nullptr || !helper_->alive()) helper_ = std::make_unique<HelperProcess>();
    const Json answer =
        helper_->ask(json_of("check", code_, request), end_of(request.execution.compile_timeout_ms), asked());
    return {answer.value("reason", "")};
  }

  std::unique_ptr<CompiledModel> compile(const EngineRequest& request) const override {
    std::unique_ptr<HelperProcess> helper;
    {
      const std::lock_guard lock(mutex_);
      helper = std::move(helper_);
    }
    if (helper == nullptr || !helper->alive()) helper = std::make_unique<HelperProcess>();
    return std::make_unique<ProcessModel>(name_, code_, request, std::move(helper));
  }

 private:
  struct Description {
    std::string version = {};
    std::string absent = {};
    std::vector<DeviceType> devices = {};
    std::vector<DataType> precisions = {};
    bool caches = false;
  };

  std::string asked() const { return "asking engine " + name_; }

  const Description& described() const {
    const std::lock_guard lock(mutex_);
    if (!description_) description_ = describe();
    return *description_;
  }

  Description describe() const {
    constexpr std::int64_t most_ms = 60'000;
    try {
      auto helper = std::make_unique<HelperProcess>();
      const Json head = helper->ask({{"do", "describe"}, {"engine", code_}}, end_of(most_ms), asked());
      Description found = {.version = head.at("version"), .absent = head.at("absent"), .caches = head.at("caches")};
      for (const Json& device : head.at("devices"))
        found.devices.push_back(parse_device_type(device.get<std::string>()));
      for (const Json& precision : head.at("precisions")) {
        found.precisions.push_back(parse_engine_precision(precision.get<std::string>()));
      }
      if (found.absent.empty()) helper_ = std::move(helper);  // for the model that comes next
      return found;
    } catch (const std::exception& error) {
      const auto* const ours = dynamic_cast<const Error*>(&error);
      if (ours == nullptr) return {.absent = "its description cannot be read"};
      const bool ended = ours->code() == ErrorCode::device_error;
      return {.absent = std::string(ours->message()) +
                        (ended ? "; set XRT_PYTHON to a Python that has this package and the engine's" : "")};
    }
  }

  const std::string name_, code_;
  mutable LongMutex mutex_ = {};
  mutable std::optional<Description> description_ = {};
  mutable std::unique_ptr<HelperProcess> helper_ = {};  // one that is not used by a model
};

}  // namespace

}  // namespace process

std::shared_ptr<const Engine> make_process_engine(std::string name, std::string code) {
  return std::make_shared<process::ProcessEngine>(std::move(name), std::move(code));
}

}  // namespace xpuruntime

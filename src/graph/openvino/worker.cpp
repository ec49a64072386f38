#include "graph/openvino/worker.h"

#include <cstring>
#include <sstream>
#include <utility>

#include "core/printable.h"
#include "graph/process/run_child.h"
#include "registry/shared_object.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::openvino {
namespace {

constexpr const char* in_session = "Session";

/// What the worker puts into its file.
std::string ask(std::vector<std::string> words, std::chrono::milliseconds limit, const std::string& about) {
  const std::string program = words[0];
  process::ChildRun run = process::run_child(std::move(words), limit);
  if (run.error != 0) {
    fail(ErrorCode::not_supported, in_session,
         "'" + printable(program) + "' could not be started: " + std::strerror(run.error) +
             "; install this package again");
  }
  if (run.is_late) {
    fail(ErrorCode::timeout, in_session,
         about + " took too long and was stopped; allow more time in the execution policy");
  }
  const std::string& line = run.output;
  if (line == "ok") return std::move(run.result);
  if (line.size() > 2 && line[0] >= '0' && line[0] <= '3' && line[1] == ' ') {
    fail_as(static_cast<Failure::Kind>(line[0] - '0'), line.substr(2));
  }
  fail(ErrorCode::device_error, in_session,
       "the process of " + about + " " + run.ending + (line.empty() ? "" : ": " + printable(line)));
}

}  // namespace

void fail_as(Failure::Kind kind, const std::string& text) {
  const std::string message = "openvino: " + printable(text);
  switch (kind) {
    case Failure::Kind::not_supported:
      fail(ErrorCode::not_supported, in_session, message);
    case Failure::Kind::invalid_argument:
      fail(ErrorCode::invalid_argument, in_session, message);
    case Failure::Kind::out_of_memory:
      fail(ErrorCode::out_of_memory, in_session, message);
    case Failure::Kind::other:
      break;
  }
  fail(ErrorCode::device_error, in_session, message);
}

Worker::Worker(std::string library)
    : library_(std::move(library)), program_(parts_folder() + "/xpuruntime_openvino_worker") {}

std::vector<std::string> Worker::devices() const {
  constexpr std::chrono::seconds limit(60);
  std::vector<std::string> names;
  try {
    std::istringstream lines(ask({program_, library_, "devices"}, limit, "asking engine openvino"));
    for (std::string name; std::getline(lines, name);) names.push_back(name);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout && error.code() != ErrorCode::device_error) throw;
  }
  return names;
}

std::string Worker::compile(const std::string& path, const Settings& settings, std::chrono::milliseconds limit) const {
  std::vector<std::string> words = {program_, library_, "compile", path};
  for (std::string& word : words_of(settings)) words.push_back(std::move(word));
  return ask(std::move(words), limit, "compiling by engine openvino");
}

}  // namespace xpuruntime::openvino

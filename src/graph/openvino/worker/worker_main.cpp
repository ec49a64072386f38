// xpuruntime_openvino_worker LIBRARY devices
// xpuruntime_openvino_worker LIBRARY compile MODEL SETTINGS...
// Started by worker.cpp. The answer goes to the file process::result_file; the last line on standard output says "ok",
// or what went wrong after the number of its kind.

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "graph/openvino/worker.h"
#include "graph/process/run_child.h"

namespace xpuruntime::openvino {
namespace {

const std::string result = "/proc/self/fd/" + std::to_string(process::result_file);

/// The last line.
void say(const std::string& text) {
  const std::string line = "\n" + text + "\n";
  std::ofstream("/proc/self/fd/1", std::ios::app) << line;
}

void list_devices(const Library& library) {
  std::ofstream file(result);
  for (const std::string& name : library.devices()) file << name << '\n';
}

void compile(const Library& library, const char* model, const char* const* settings) {
  const Owned<Compiled> compiled = library.compile(model, settings_of(settings));
  try {
    library.save_compiled(*compiled.get(), result);
  } catch (const Failure&) {
    std::ofstream(result, std::ios::trunc);  // it is compiled once more where it runs
  }
}

int answer(int count, const char* const* words) {
  try {
    const Library library(words[1]);
    const std::string_view what = words[2];
    if (what == "devices" && count == 3) {
      list_devices(library);
    } else if (what == "compile" && count == 4 + words_of_settings) {
      compile(library, words[3], words + 4);
    } else {
      return 2;
    }
    say("ok");
    return 0;
  } catch (const Failure& failure) {
    say(std::to_string(static_cast<int>(failure.kind)) + " " + failure.what());
  } catch (const std::exception& error) {
    say(std::to_string(static_cast<int>(Failure::Kind::other)) + " " + error.what());
  }
  return 1;
}

}  // namespace
}  // namespace xpuruntime::openvino

int main(int count, char** words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (count < 3) return 2;
  const int status = xpuruntime::openvino::answer(count, words);
  std::fflush(nullptr);
  _exit(status);  // what is loaded may hang or crash when it is taken down
}

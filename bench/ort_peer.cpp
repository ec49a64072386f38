#include "ort_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cpu_peers.h"

// ONNX Runtime comes as a Python package without headers for C: a child process runs it, and times its calls itself.

namespace xpuruntime::bench {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int patience_ms = 120'000;

// In the child: becomes the command, or ends.
[[noreturn]] void become(const std::vector<std::string>& command, int in, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // stopped, it would not notice that nobody asks any more
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);  // warnings about models of one op
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  _exit(127);
}

/// A folder for what goes to and fro, gone afterwards.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "cpu_bench_XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

Json spec_json(const TensorSpec& spec) {
  return {{"dtype", std::string(to_string(spec.dtype))},
          {"shape", std::vector<std::int64_t>(spec.shape.begin(), spec.shape.end())}};
}

Json value_json(const Attributes& attributes, const AttributeSpec& spec) {
  switch (spec.kind) {
    case AttributeKind::boolean:
      return attributes.boolean(spec.name);
    case AttributeKind::integer:
      return attributes.integer(spec.name);
    case AttributeKind::real:
      return attributes.real(spec.name);
    case AttributeKind::integers:
      return attributes.list(spec.name);
    case AttributeKind::choice:
      return std::string(attributes.choice(spec.name));
    case AttributeKind::dtype:
      return std::string(to_string(attributes.data_type(spec.name)));
  }
  return nullptr;
}

Json problem_json(const Problem& problem) {
  const OpInfo& op = op_info(problem.op);
  Json json = {{"op", op.name}, {"aliases", op.aliases}, {"attributes", Json::object()}};
  for (const TensorSpec& spec : problem.inputs) json["inputs"].push_back(spec_json(spec));
  for (const TensorSpec& spec : problem.outputs) json["outputs"].push_back(spec_json(spec));
  for (const AttributeSpec& spec : op.attributes) {
    json["attributes"][std::string(spec.name)] = value_json(problem.attributes, spec);
  }
  return json;
}

void write_file(const std::string& path, const Tensor& tensor) {
  std::ofstream file(path, std::ios::binary);
  file.write(tensor.as<const char>(), static_cast<std::streamsize>(span_bytes(tensor.spec())));
}

class OrtContender final : public Contender {
 public:
  OrtContender(LineProgram& program, const TensorSpec& spec, const std::string& output_file)
      : program_(program), output_(Tensor::empty(spec.dtype, spec.shape)) {
    std::ifstream file(output_file, std::ios::binary);
    file.read(output_.as<char>(), static_cast<std::streamsize>(span_bytes(output_.spec())));
  }

  double run(std::uint64_t calls) override {
    const auto answer = program_.ask(Json{{"run", calls}}.dump());
    // A peer that died takes forever.
    return answer ? Json::parse(*answer).value("seconds", 1e9) : 1e9;
  }

  Tensor output() override { return output_; }

 private:
  LineProgram& program_;
  Tensor output_;
};

class OrtPeer final : public Peer {
 public:
  OrtPeer(const std::string& python, int threads) : program_({python, XRT_ORT_PEER, std::to_string(threads)}) {}

  /// Reads the first line; false, with a reason, where ONNX Runtime is not there.
  bool greet(const std::string& python, std::string& why) {
    const auto line = program_.read_line();
    const Json json = line ? Json::parse(*line) : Json::object();
    version_ = json.value("version", "");
    why =
        json.value("absent", python + " could not be run") + "; XRT_PEER_PYTHON names a Python that has it, with onnx";
    return !version_.empty();
  }

  std::string version() const override { return version_; }
  double seconds_used() const override { return program_.seconds_used(); }

  std::unique_ptr<Contender> make(const Problem& problem, std::span<const Tensor> inputs, std::string& why) override {
    Json json = problem_json(problem);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].contiguous()) return why = "it takes no strides", nullptr;
      const std::string path = folder_.file("input_" + std::to_string(i));
      write_file(path, inputs[i]);
      json["inputs"][i]["file"] = path;
    }
    const std::string output = folder_.file("output");
    const auto answer = program_.ask(Json{{"make", json}, {"output", output}}.dump());
    const Json said = answer ? Json::parse(*answer) : Json{{"why", "it has ended"}};
    why = said.value("why", "");
    if (!said.contains("ok")) return nullptr;
    return std::make_unique<OrtContender>(program_, problem.outputs[0], output);
  }

 private:
  Folder folder_;
  LineProgram program_;
  std::string version_;
};

}  // namespace

LineProgram::LineProgram(const std::vector<std::string>& command) {
  signal(SIGPIPE, SIG_IGN);  // a child that ends early is an answer that does not come
  int in[2] = {-1, -1}, out[2] = {-1, -1};
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) become(command, in[0], out[1]);
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
}

LineProgram::~LineProgram() {
  if (to_ >= 0) close(to_);  // the end of its input is the end of the child
  if (from_ >= 0) close(from_);
  if (pid_ <= 0) return;
  kill(pid_, SIGCONT);
  waitpid(pid_, nullptr, 0);
}

std::optional<std::string> LineProgram::read_line() {
  for (;;) {
    if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    pollfd waiting = {from_, POLLIN, 0};
    char bytes[4096];
    const bool came = from_ >= 0 && poll(&waiting, 1, patience_ms) > 0;
    const ssize_t count = came ? read(from_, bytes, sizeof bytes) : 0;
    if (count <= 0) {
      if (pid_ > 0 && !came) kill(pid_, SIGKILL);
      return std::nullopt;
    }
    pending_.append(bytes, static_cast<std::size_t>(count));
  }
}

std::optional<std::string> LineProgram::ask(const std::string& line) {
  // Its threads spin after their work and would take cores from whoever is timed next: it stands still between asks.
  if (pid_ > 0) kill(pid_, SIGCONT);
  const std::string text = line + "\n";
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = write(to_, text.data() + at, text.size() - at);
    if (count <= 0) return std::nullopt;
    at += static_cast<std::size_t>(count);
  }
  const auto answer = read_line();
  if (pid_ > 0) kill(pid_, SIGSTOP);
  return answer;
}

double LineProgram::seconds_used() const {
  clockid_t clock = {};
  timespec time = {};
  if (pid_ <= 0 || clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::unique_ptr<Peer> open_ort(int threads, std::string& why) {
  const char* named = std::getenv("XRT_PEER_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  auto peer = std::make_unique<OrtPeer>(python, threads);
  if (!peer->greet(python, why)) return nullptr;
  return peer;
}

}  // namespace xpuruntime::bench

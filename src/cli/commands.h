#pragma once

#include "cli/context.h"

namespace xpuruntime::cli {

// One function per command, in the file of its name: each adds the command to the parser, which then sets
// `context.command`.
void add_devices(CLI::App& app, Context& context);
void add_profile(CLI::App& app, Context& context);
void add_kernels(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_inspect(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_trace(CLI::App& app, Context& context);
void add_amp(CLI::App& app, Context& context);
void add_policy(CLI::App& app, Context& context);
void add_lock(CLI::App& app, Context& context);
void add_store(CLI::App& app, Context& context);
void add_tune(CLI::App& app, Context& context);
void add_cache(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_demo(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);

}  // namespace xpuruntime::cli

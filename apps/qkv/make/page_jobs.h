// What the page of a server may start: trainings of the recipes on the built-in world, and labs, each a process of this
// program.
#pragma once

#include <string>

#include "common/compute_options.h"
#include "server/jobs/jobs.h"

namespace qkv::app {

// `runs`: the folder of trainings; empty: one that is removed at the end.
server::JobOptions page_jobs(const ComputeOptions& compute, const std::string& runs);

}  // namespace qkv::app

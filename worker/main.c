/* SPDX-License-Identifier: MIT */
/* quern-worker: serves one model to a broker, which starts it. */

#include <argp.h>

#include "common/log.h"
#include "common/program/program.h"
#include "worker/check.h"
#include "worker/count.h"
#include "worker/options.h"
#include "worker/worker.h"

const char *argp_program_version = "quern-worker " QUERN_VERSION;

int main(int argc, char **argv)
{
    struct worker_options options;
    program_hold_standard_files();
    program_forgo_core_dumps();
    program_survive_file_limits();
    worker_options_parse(argc, argv, &options);
    log_init(options.name);
    if (options.count_devices)
        return count_devices(&options);
    if (options.check)
        return check_options(&options);
    return worker_run(&options);
}

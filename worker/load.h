/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LOAD_H
#define WORKER_LOAD_H

/* What a worker has before it meets its pool: the model, what makes prompts of texts, and the engine on a
 * device; in a process that has given up what loading alone needs. */

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/system/topology.h"
#include "common/sampling_defaults.h"
#include "worker/start/binding.h"
#include "worker/start/digest.h"
#include "engine/backend/backends.h"
#include "engine/engine.h"
#include "engine/backend/weight_store.h"
#include "worker/start/loading.h"
#include "model/files.h"
#include "model/model.h"
#include "worker/options.h"
#include "worker/prepare/prepare.h"
#include "worker/prepare/prompt.h"
#include "worker/start/sandbox.h"

/* Set by who loads, before load_run; the rest is zeroes. Everything stays where it is: parts point at others.
 */
struct load {
    const struct worker_options *options;
    bool (*progress)(void *arg); /* after each piece of the load, and each layer of a step (engine.h) */
    void *progress_arg;
    engine_sink *sink; /* of the engine's events */
    void *sink_arg;

    struct topology *topology;
    struct binding binding;         /* where its threads compute */
    struct binding_weights placing; /* and where its weights lie */
    struct model_files files;       /* by whose times the model is known before it is read */
    struct buffer chat_template;    /* of --chat-template, until it is compiled */
    struct model *model;
    struct digest digest;
    struct prompt_encoder encoder;
    struct sampling_defaults sampling; /* of requests that do not say */
    char sampling_text[SAMPLING_DEFAULTS_TEXT];
    struct preparer *preparer;
    struct backend_choice backend;
    struct weight_store *weights; /* NULL: none are shared */
    bool confined;                /* it is, as far as this kernel knows how */
    struct engine *engine;
    size_t shared_bytes; /* of the pool's prefix store */
    struct loading loading;
    uint64_t quantized, quantizable; /* bytes of the file that were made smaller, and of all */
};

/* Whether what was asked for has names that there are: device, KV type, type of weights, cuBLAS. 0 or -EINVAL
 * with the reason, which no other start changes. Before anything is loaded. */
int load_check_names(const struct worker_options *options, struct error *err);

/* Everything that can be wrong with the model or the device. -errno with a reason; load_close is due then
 * too. */
int load_run(struct load *load, struct error *err);

/* Tells other workers, who may wait for the weights, that it goes on. To be called by `progress` before
 * load_run has returned. */
void load_progress(struct load *load);

/* To those that serving takes, when all is loaded. */
void load_confine_calls(struct load *load);

/* What memory the KV cache has, what that is enough for, and what the workers have together: a line of `size`
 * bytes, which is returned. */
const char *load_describe_memory(const struct load *load, char *text, size_t size);

/* Most tokens of a sequence, its output included. */
uint32_t load_most_tokens(const struct load *load);

/* May the next process load what this one could not? There may be memory by then (or descriptors, threads,
 * space), the file at rest, and the device well again that failed or stood still; who starts it again bounds
 * how often. What was refused (a model, or a device that computes wrongly) is refused again. */
bool load_may_pass(int r);

/* Gives back all but the preparer, which is gone by then. */
void load_close(struct load *load);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LOAD_H
#define WORKER_LOAD_H

/* What a worker has before it joins its pool: the model, the prompt encoder, and the engine on a device; in
 * a process that has given up the rights that only loading needs. */

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
#include "worker/instruments/differences.h"
#include "worker/options.h"
#include "worker/prepare/prepare.h"
#include "worker/prepare/prompt.h"
#include "worker/start/sandbox.h"

#define LOAD_ARITHMETIC 128

/* Set by the caller before load_run; the rest is zero. Do not move the struct: its parts point to one
 * another. */
struct load {
    const struct worker_options *options;
    bool (*progress)(void *arg); /* after each piece of the load, and each layer of a step (engine.h) */
    void *progress_arg;
    engine_sink *sink; /* of the engine's events */
    void *sink_arg;
    struct differences *differences; /* who hears of the engine's */

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
    uint32_t device_number;
    struct device_description described; /* of a GPU; else zero */
    struct weight_store *weights;        /* NULL: none are shared */
    bool confined;                       /* it is, as far as this kernel knows how */
    struct engine *engine;
    char arithmetic[LOAD_ARITHMETIC]; /* what ids depend on beside the model's file */
    size_t shared_bytes;              /* of the pool's prefix store */
    struct loading loading;
    bool only_checks;                /* nothing is computed */
    uint64_t quantized, quantizable; /* bytes of the file that were made smaller, and of all */
};

/* Checks names before anything is loaded: device, KV type, type of weights, cuBLAS. 0, or -EINVAL with a
 * reason, which a restart does not change. */
int load_check_names(const struct worker_options *options, struct error *err);

/* Loads. -errno with a reason for anything wrong with the model or the device; call load_close then too. */
int load_run(struct load *load, struct error *err);

/* Checks, without a device, what a restart would not change: names, the model's files, whether its weights
 * can have the type of --quantize, the chat template and the system message. Neither memory nor the device is
 * looked at. 0, or -errno with a reason; call load_close then too. */
int load_check(struct load *load, struct error *err);

/* Shows progress to other workers that may wait for the weights. Call from `progress` before load_run has
 * returned. */
void load_progress(struct load *load);

/* Limits system calls to those of serving, after loading. */
void load_confine_calls(struct load *load);

/* Describes the memory of the KV cache, its capacity, and the workers' common memory in a line of `size`
 * bytes, which is returned. */
const char *load_describe_memory(const struct load *load, char *text, size_t size);

/* Most tokens of a sequence, its output included. */
uint32_t load_most_tokens(const struct load *load);

/* Whether the next process may succeed where this one failed: there may be memory then (or descriptors,
 * threads, space), the file may have stopped changing, and a device that failed or hung may work. The
 * supervisor limits restarts. A rejected model, or a device that computes wrongly, is rejected again. */
bool load_may_pass(int r);

/* Releases everything but the preparer, which is already gone. */
void load_close(struct load *load);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LOAD_H
#define WORKER_LOAD_H

/* What a worker needs before it joins its pool: the model, the prompt encoder, and the engine on a device.
 * Loading also drops the rights that only loading needs. */

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
    bool (*progress)(void *arg); /* after each part of the load, and each layer of a step (engine.h) */
    void *progress_arg;
    engine_sink *sink; /* for the engine's events */
    void *sink_arg;
    struct differences *differences; /* receives the engine's */

    struct topology *topology;
    struct binding binding;         /* the cores of its threads */
    struct binding_weights placing; /* the nodes of its weights */
    struct model_files files;       /* their times identify the model before it is read */
    struct buffer chat_template;    /* of --chat-template, until it is compiled */
    struct model *model;
    struct digest digest;
    struct prompt_encoder encoder;
    struct sampling_defaults sampling; /* for parameters that requests leave out */
    char sampling_text[SAMPLING_DEFAULTS_TEXT];
    struct preparer *preparer;
    struct backend_choice backend;
    uint32_t device_number;
    struct device_description described; /* of a GPU; else zeros */
    struct weight_store *weights;        /* NULL: not shared */
    bool confined;                       /* as far as this kernel supports it */
    struct engine *engine;
    char arithmetic[LOAD_ARITHMETIC]; /* what ids depend on besides the model's file */
    size_t shared_bytes;              /* of the pool's prefix store */
    struct loading loading;
    bool only_checks;                /* computes nothing */
    uint64_t quantized, quantizable; /* bytes of the file that were quantized, and of all that could be */
};

/* Checks names before anything is loaded: device, KV type, type of weights, cuBLAS. 0, or -EINVAL with a
 * reason; a restart would not help. */
int load_check_names(const struct worker_options *options, struct error *err);

/* Loads. -errno with a reason for anything wrong with the model or the device; call load_close in that case
 * too. */
int load_run(struct load *load, struct error *err);

/* Checks for errors that a restart would not cure: names, the model's files, whether its weights can have the
 * type of --quantize, the chat template and the system message. Does not check memory or the device. 0, or
 * -errno with a reason; call load_close in either case. */
int load_check(struct load *load, struct error *err);

/* Shows progress to other workers that may wait for the weights. Call it from `progress` until load_run has
 * returned. */
void load_progress(struct load *load);

/* Limits system calls to those of serving, after loading. */
void load_confine_calls(struct load *load);

/* Writes a line, at most `size` bytes, on the KV cache's memory and capacity and the workers' shared memory
 * to `text`, and returns `text`. */
const char *load_describe_memory(const struct load *load, char *text, size_t size);

/* Most tokens of a sequence, including its output. */
uint32_t load_most_tokens(const struct load *load);

/* Whether another process may succeed where this one failed: memory (or descriptors, threads, space) may be
 * free again, the file may have stopped changing, and a device that failed or hung may work. The supervisor
 * limits restarts. A rejected model, or a device that computes wrongly, is rejected again. */
bool load_may_pass(int r);

/* Releases everything but the preparer, which must already be freed. */
void load_close(struct load *load);

#endif

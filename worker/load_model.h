/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LOAD_MODEL_H
#define WORKER_LOAD_MODEL_H

/* The part of loading that involves no device: the model's files, the chat template, the prompt encoder.
 * Everything goes into the struct load, which load_close releases. */

#include "common/error.h"
#include "worker/load.h"

/* Checks that weights can have this type. 0, or -EINVAL with a reason. */
int load_check_quantize(const char *name, struct error *err);

/* Reads the whole file of --chat-template, if given, while it is accessible. 0, or -EINVAL with the reason,
 * because a restart would not help. */
int load_read_template(struct load *load, struct error *err);

/* Opens the model and applies overrides. With --quantize, quantizes its weights, or only checks whether they
 * could be if the load only checks. 0, or -errno with a reason. */
int load_open_model(struct load *load, struct error *err);

/* Prepares for prompts: sampling defaults, the tokenizer, the chat template, the system message. The model is
 * open. 0, or -errno with a reason. */
int load_open_encoder(struct load *load, struct error *err);

/* Logs from time to time how many bytes of `total` are done. */
void load_tell_how_far(struct load *load, const char *what, uint64_t done, uint64_t total);

#endif

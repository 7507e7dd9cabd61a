/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LOAD_MODEL_H
#define WORKER_LOAD_MODEL_H

/* The part of loading that no device has a part in: the model's files, the chat template, what makes prompts
 * of texts. Everything goes into the struct load, which load_close releases. */

#include "common/error.h"
#include "worker/load.h"

/* Whether there are weights of this type. 0, or -EINVAL with a reason. */
int load_check_quantize(const char *name, struct error *err);

/* Reads the whole file of --chat-template, if one is given, while it is in reach: 0, or -EINVAL with the
 * reason, since no other process will find it otherwise. */
int load_read_template(struct load *load, struct error *err);

/* Opens the model and applies overrides. With --quantize its weights are made smaller; where the load only
 * checks, it is found out whether they could be. 0, or -errno with a reason. */
int load_open_model(struct load *load, struct error *err);

/* Makes prompts possible: defaults of sampling, the tokenizer, the chat template, the system message. The
 * model is open. 0, or -errno with a reason. */
int load_open_encoder(struct load *load, struct error *err);

/* Logs now and then how many bytes of `total` are done. */
void load_tell_how_far(struct load *load, const char *what, uint64_t done, uint64_t total);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef MODEL_OVERRIDES_H
#define MODEL_OVERRIDES_H

/* What common/program/overrides.h's options change in a model's metadata, before it becomes a model.
 *
 * --override-kv replaces a value of the same kind, or adds one that the file leaves out, of its architecture,
 * its tokenizer or in general. The rope options then set the keys of the scaling:
 *
 *     rope-scaling       ARCHITECTURE.rope.scaling.type
 *     rope-scale N       rope.scaling.factor; without a type, one that is linear
 *     rope-freq-scale N  the same, of 1 / N
 *     rope-freq-base     rope.freq_base
 *     yarn-orig-ctx      rope.scaling.original_context_length
 *     yarn-attn-factor   rope.scaling.attn_factor
 *     yarn-beta-*        rope.scaling.yarn_beta_*
 *     yarn-ext-factor 0  the scaling is linear
 *
 * A factor makes the context as much longer as the one that the model was trained for, unless
 * context_length is overridden, too. All of it is part of the digest (gguf_set_variant). */

#include "common/program/overrides.h"
#include "gguf/gguf.h"

/* 0; or -EINVAL with a reason that begins with the option: another kind of value, a list, a key that no file
 * of this architecture has, options that contradict one another. NULL and "" do nothing. -ENOMEM. */
int overrides_apply(struct gguf *gguf, const char *text, struct error *err);

/* A key that --override-kv sets and nothing has read since (gguf_was_found); NULL: there is none. */
const char *overrides_find_unread(const struct gguf *gguf, const char *text, char key[OVERRIDES_TEXT]);

/* Whether --override-kv sets this key. */
bool overrides_set_key(const char *text, const char *key);

/* Whether one of them is about rotary positions, so that a model without them contradicts it. */
bool overrides_scale_positions(const char *text);

#endif

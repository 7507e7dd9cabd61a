/* SPDX-License-Identifier: MIT */
#ifndef MODEL_OVERRIDES_H
#define MODEL_OVERRIDES_H

/* Applies options of common/program/overrides.h to a model's metadata, before the model is opened.
 *
 * --override-kv replaces a value of the same kind, or adds a missing one, for a key of the architecture, the
 * tokenizer or general metadata. The rope options then set the keys of the scaling:
 *
 *     rope-scaling       ARCHITECTURE.rope.scaling.type
 *     rope-scale N       rope.scaling.factor; without a type, linear scaling
 *     rope-freq-scale N  the same with 1 / N
 *     rope-freq-base     rope.freq_base
 *     yarn-orig-ctx      rope.scaling.original_context_length
 *     yarn-attn-factor   rope.scaling.attn_factor
 *     yarn-beta-*        rope.scaling.yarn_beta_*
 *     yarn-ext-factor 0  the scaling is linear
 *
 * A factor extends the context to that multiple of the trained context, unless context_length is overridden,
 * too. All of it is part of the digest (gguf_set_variant). */

#include "common/program/overrides.h"
#include "gguf/gguf.h"

/* 0; or -EINVAL with a reason that begins with the option: a value of another kind, a list, a key that no
 * file of this architecture has, contradictory options. NULL and "" do nothing. -ENOMEM. */
int overrides_apply(struct gguf *gguf, const char *text, struct error *err);

/* A key that --override-kv sets and nothing has read since (gguf_was_found); NULL: none. */
const char *overrides_find_unread(const struct gguf *gguf, const char *text, char key[OVERRIDES_TEXT]);

/* Whether --override-kv sets this key. */
bool overrides_set_key(const char *text, const char *key);

/* Whether an option concerns rotary positions, so that a model without them contradicts it. */
bool overrides_scale_positions(const char *text);

#endif

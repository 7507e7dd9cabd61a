/* SPDX-License-Identifier: MIT */
#ifndef COMMON_PROGRAM_OVERRIDES_H
#define COMMON_PROGRAM_OVERRIDES_H

/* Options that override a model's metadata, named as in llama.cpp: --override-kv KEY=TYPE:VALUE,
 * --rope-scaling, --rope-scale, --rope-freq-base, --rope-freq-scale, --yarn-*.
 *
 * They are passed from the command line to the worker as one text, with a line "NAME VALUE" for each, in
 * order. This header defines their form; model/overrides.h describes their effects. */

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"
#include "common/error.h"

#define OVERRIDES_TEXT 4096 /* bytes of the text, including the zero */

enum override_kind {
    OVERRIDE_KEY,  /* KEY=TYPE:VALUE; TYPE is int, float, bool or str; may be repeated */
    OVERRIDE_WORD, /* none, linear or yarn */
    OVERRIDE_REAL, /* finite, least … most */
    OVERRIDE_COUNT
};

/* A row: name without dashes, placeholder for the value, help, kind, least, most. */
/* clang-format off */
#define OVERRIDE_OPTIONS(ROW)                                                                                \
    ROW("override-kv", "KEY=TYPE:VALUE",                                                                     \
        "Replace a value of the model's metadata; TYPE is int, float, bool or str; may be repeated",         \
        OVERRIDE_KEY, 0, 0)                                                                                  \
    ROW("rope-scaling", "TYPE", "Scaling of rotary positions: none, linear or yarn (default: the model's)",  \
        OVERRIDE_WORD, 0, 0)                                                                                 \
    ROW("rope-scale", "N", "Make the context this many times as long as in training",                        \
        OVERRIDE_REAL, 1, 1 << 20)                                                                           \
    ROW("rope-freq-base", "N", "Base of rotary frequencies (default: the model's)", OVERRIDE_REAL, 1e-3, 1e18) \
    ROW("rope-freq-scale", "N", "The same as --rope-scale 1/N", OVERRIDE_REAL, 1e-6, 1)                      \
    ROW("yarn-orig-ctx", "N", "YaRN: context that the model was trained for (default: the model's)",         \
        OVERRIDE_COUNT, 1, 1 << 24)                                                                          \
    ROW("yarn-ext-factor", "N", "YaRN: 1 or -1; 0 makes the scaling linear (default 1)", OVERRIDE_REAL, -1, 1) \
    ROW("yarn-attn-factor", "N", "YaRN: scales attention, on top of its own factor (default 1)",             \
        OVERRIDE_REAL, 1e-3, 1e3)                                                                            \
    ROW("yarn-beta-slow", "N", "YaRN: pairs with fewer turns are scaled in full (default 1)", OVERRIDE_REAL, \
        1e-3, 1e6)                                                                                           \
    ROW("yarn-beta-fast", "N", "YaRN: pairs with more turns are not scaled (default 32)", OVERRIDE_REAL,     \
        1e-3, 1e6)
/* clang-format on */

struct override_option {
    const char *name; /* without dashes */
    const char *argument, *help;
    enum override_kind kind;
    double least, most;
};

/* The i-th; NULL beyond the last. */
const struct override_option *override_option(size_t i);
const struct override_option *override_option_find(const char *name);

/* Adds an option to a text, replacing one with the same name or key. -EINVAL with a reason that does not
 * begin with the name: an invalid value, or no room. */
int overrides_add(char text[OVERRIDES_TEXT], const char *name, const char *value, struct error *err);

/* Takes the next option off a text. False at its end. *ret_option NULL: unknown name. */
bool overrides_next(struct bytes *text, const struct override_option **ret_option,
                    char ret_value[OVERRIDES_TEXT]);

#endif

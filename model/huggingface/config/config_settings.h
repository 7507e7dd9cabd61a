/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_CONFIG_SETTINGS_H
#define MODEL_HUGGINGFACE_CONFIG_SETTINGS_H

/* Numbers of config.json that have a key of their own in GGUF, or need nothing but being read: one table for
 * reading (config.c) and writing (config_write.c). */

#include <stdbool.h>
#include <stddef.h>

#include "model/huggingface/config/config.h"

enum config_kind { COUNT, COUNT_OR_NONE, POSITIVE_OR_NONE };

struct config_setting {
    const char *theirs, *instead; /* of some classes, where the first is missing */
    const char *ours;             /* behind ARCHITECTURE and a dot; NULL: not written as it is */
    size_t offset;                /* in struct config: uint32_t, or float */
    enum config_kind kind;
    unsigned uses; /* families that have it; 0: all */
};

/* The i-th; NULL past the last. */
const struct config_setting *config_setting_at(unsigned i);

/* Has the configuration's family the setting? */
bool config_has_setting(const struct config *config, const struct config_setting *setting);

#endif

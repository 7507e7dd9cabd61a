/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_CONFIG_SETTINGS_H
#define MODEL_HUGGINGFACE_CONFIG_SETTINGS_H

/* Numbers of config.json that have their own key in GGUF, or only need to be read: one table for reading
 * (config.c) and writing (config_write.c). */

#include <stdbool.h>
#include <stddef.h>

#include "model/huggingface/config/config.h"

enum config_kind { COUNT, COUNT_OR_NONE, POSITIVE_OR_NONE };

struct config_setting {
    const char *theirs, *instead; /* the second is another class's key, used if the first is missing */
    const char *ours;             /* after ARCHITECTURE and a dot; NULL: not written as it is */
    size_t offset;                /* in struct config: uint32_t, or float */
    enum config_kind kind;
    unsigned uses; /* which families have it; 0: all */
};

/* The i-th; NULL after the last. */
const struct config_setting *config_setting_at(unsigned i);

/* Whether the configuration's family has the setting. */
bool config_has_setting(const struct config *config, const struct config_setting *setting);

#endif

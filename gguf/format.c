/* SPDX-License-Identifier: MIT */
/* The table of number formats: those of formats.h, and others that are known by their size.
 *
 * The latter can be parsed, listed and copied, but no model may use them: it is refused by their name. A
 * number that does not stand here makes a file unreadable, because the size of its tensors is not known. */

#include "gguf/format.h"

#include <errno.h>
#include <strings.h>

#include "gguf/blocks.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "GGUF files are little-endian and mapped as they are");

static const struct format_traits traits[FORMAT_LIMIT] = {
#define TRAITS(name, id, number, elements, bytes)                                                            \
    [FORMAT_##name] = {#name, elements, bytes, id##_to_float, id##_from_float},
    FORMATS(TRAITS)
#undef TRAITS
        /* Known by size alone. */
        [9] = {"Q8_1", 32, 36, NULL, NULL},
    [15] = {"Q8_K", 256, 292, NULL, NULL},
    [16] = {"IQ2_XXS", 256, 66, NULL, NULL},
    [17] = {"IQ2_XS", 256, 74, NULL, NULL},
    [18] = {"IQ3_XXS", 256, 98, NULL, NULL},
    [19] = {"IQ1_S", 256, 50, NULL, NULL},
    [21] = {"IQ3_S", 256, 110, NULL, NULL},
    [22] = {"IQ2_S", 256, 82, NULL, NULL},
    [24] = {"I8", 1, 1, NULL, NULL},
    [25] = {"I16", 1, 2, NULL, NULL},
    [26] = {"I32", 1, 4, NULL, NULL},
    [27] = {"I64", 1, 8, NULL, NULL},
    [28] = {"F64", 1, 8, NULL, NULL},
    [29] = {"IQ1_M", 256, 56, NULL, NULL},
    [34] = {"TQ1_0", 256, 54, NULL, NULL},
    [35] = {"TQ2_0", 256, 66, NULL, NULL},
    [40] = {"NVFP4", 64, 36, NULL, NULL},
};

const struct format_traits *format_traits(uint32_t number)
{
    static const struct format_traits unknown;
    return number < FORMAT_LIMIT ? &traits[number] : &unknown;
}

int format_by_name(const char *name, enum format *ret_format)
{
    for (uint32_t i = 0; i < FORMAT_LIMIT; i++) {
        if (traits[i].name && strcasecmp(traits[i].name, name) == 0) {
            *ret_format = (enum format)i;
            return 0;
        }
    }
    return -EINVAL;
}

size_t format_bytes(enum format format, size_t n)
{
    const struct format_traits *t = format_traits(format);
    return t->name ? n / t->block_elements * t->block_bytes : 0;
}

/* SPDX-License-Identifier: MIT */
/* The table of number formats.
 *
 * A format that stands here without conversions can be parsed, listed and copied, but no model may use it:
 * the model refuses it by name. A number that does not stand here makes a file unreadable, because the size
 * of its tensors is not known. */

#include "worker/gguf/format.h"

#include <errno.h>
#include <strings.h>

#include "worker/gguf/blocks.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "GGUF files are little-endian and mapped as they are");

static const struct format_traits traits[FORMAT_LIMIT] = {
    [FORMAT_F32] = {"F32", 1, 4, f32_to_float, f32_from_float},
    [FORMAT_F16] = {"F16", 1, 2, f16_to_float, f16_from_float},
    [FORMAT_BF16] = {"BF16", 1, 2, bf16_to_float, bf16_from_float},
    [FORMAT_Q4_0] = {"Q4_0", 32, 18, q4_0_to_float, q4_0_from_float},
    [FORMAT_Q4_1] = {"Q4_1", 32, 20, q4_1_to_float, NULL},
    [FORMAT_Q5_0] = {"Q5_0", 32, 22, q5_0_to_float, q5_0_from_float},
    [FORMAT_Q5_1] = {"Q5_1", 32, 24, q5_1_to_float, NULL},
    [FORMAT_Q8_0] = {"Q8_0", 32, 34, q8_0_to_float, q8_0_from_float},
    [FORMAT_IQ4_NL] = {"IQ4_NL", 32, 18, iq4_nl_to_float, NULL},
    [FORMAT_Q2_K] = {"Q2_K", 256, 84, q2_k_to_float, NULL},
    [FORMAT_Q3_K] = {"Q3_K", 256, 110, q3_k_to_float, NULL},
    [FORMAT_Q4_K] = {"Q4_K", 256, 144, q4_k_to_float, q4_k_from_float},
    [FORMAT_Q5_K] = {"Q5_K", 256, 176, q5_k_to_float, q5_k_from_float},
    [FORMAT_Q6_K] = {"Q6_K", 256, 210, q6_k_to_float, q6_k_from_float},
    [FORMAT_IQ4_XS] = {"IQ4_XS", 256, 136, iq4_xs_to_float, NULL},
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
    [39] = {"MXFP4", 32, 17, NULL, NULL},
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

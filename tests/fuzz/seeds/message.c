/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_message: the golden vectors, good and bad. */

#include "tests/fuzz/driver.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

void fuzz_seeds(void)
{
    json_t *file = json_load_file(GOLDEN_FOLDER "/messages.json", JSON_ALLOW_NUL, NULL);
    size_t i;
    json_t *vector;
    json_array_foreach(json_object_get(file, "vectors"), i, vector)
    {
        const char *hex = json_string_value(json_object_get(vector, "hex"));
        size_t len = strlen(hex) / 2;
        uint8_t *bytes = malloc(len + 1);
        for (size_t b = 0; bytes && b < len; b++)
            sscanf(hex + 2 * b, "%2hhx", &bytes[b]);
        if (bytes)
            fuzz_add_seed(bytes, len);
        free(bytes);
    }
    json_decref(file);
}

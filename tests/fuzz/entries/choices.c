/* SPDX-License-Identifier: MIT */
/* Any bytes as a kept table of choices, and as a table whose checksum somebody has put right: what is
 * accepted can be shown, and has ways that exist. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>

#include "engine/backend/choices/kept.h"

static void check_accepted(const struct choices *choices)
{
    char name[CHOICES_NAME], summary[CHOICES_SUMMARY];
    const struct choices_counts counts = choices_count(choices);
    choices_summarize(choices, summary);
    if (choices->n_launches > CHOICES_LAUNCHES || counts.differ > counts.measured ||
        strlen(summary) >= sizeof summary || strlen(choices->model) >= sizeof choices->model)
        abort();
    for (uint32_t i = 0; i < choices->n_launches; i++) {
        choices_name_launch(&choices->launches[i], name);
        if (strlen(name) >= sizeof name)
            abort();
        for (uint32_t b = 0; b < CHOICES_BUCKETS; b++)
            if (strcmp(product_way_name(choices->launches[i].buckets[b].way), "?") == 0)
                abort();
    }
    if (choices_arithmetic(choices) != 0 && choices->key.library == 0)
        abort();
    choices_digest_launches(choices);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct choices *choices = calloc(1, sizeof *choices), *parsed = calloc(1, sizeof *parsed);
    void *bytes = malloc(len + 1); /* aligned, and with a border where it ends */
    struct error err;
    if (!choices || !parsed || !bytes)
        abort();
    memcpy(bytes, data, len);
    memcpy(choices, data, len < sizeof *choices ? len : sizeof *choices);
    if (kept_parse(bytes, len, parsed, &err) == 0)
        check_accepted(parsed);
    if (choices_check(choices, &err) == 0)
        check_accepted(choices);
    free(bytes);
    free(parsed);
    free(choices);
    return 0;
}

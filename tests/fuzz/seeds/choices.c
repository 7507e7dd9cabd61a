/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_choices: a table with every way, an empty one, and half of one. */

#include "tests/fuzz/driver.h"

#include "engine/backend/choices/choices.h"
#include "gguf/format.h"

void fuzz_seeds(void)
{
    static struct choices choices = {
        .key = {.device = "NVIDIA H200", .driver = "580.65.06", .library = 130000},
        .model = "llama, 32 layers of 4096",
        .complete = 1};
    fuzz_add_seed(&choices, sizeof choices);
    choices.n_launches = CHOICES_LAUNCHES;
    for (uint32_t i = 0; i < CHOICES_LAUNCHES; i++) {
        struct choices_launch *launch = &choices.launches[i];
        launch->n = 1 + i % CHOICES_TOGETHER;
        for (uint32_t m = 0; m < launch->n; m++)
            launch->matrices[m] = (struct choices_matrix){4096, 14336, FORMAT_Q4_K, (uint8_t)(i % 2), {0, 0}};
        for (uint32_t b = 0; b < CHOICES_BUCKETS; b++)
            launch->buckets[b] = (struct choices_bucket){
                .way = (uint8_t)(b % PRODUCT_WAYS), .rule = PRODUCT_WIDE, .ns = {0, 9, 8, 7, 6, 5}};
    }
    fuzz_add_seed(&choices, sizeof choices);
    fuzz_add_seed(&choices, sizeof choices / 2);
}

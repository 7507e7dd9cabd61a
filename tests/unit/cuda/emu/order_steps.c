/* SPDX-License-Identifier: MIT */
/* Steps whose results blocks put together: a prompt and decodes of a small model, on the device whose blocks
 * run at once. Prints what came of each, to the bit; check_order runs it with many orders.
 *
 *     order_steps products | dense | shared | beside | layers
 */

#include "cuda/backend.h"
#include "tests/unit/cuda/check/gated.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SLOTS    3
#define CONTEXT  320
#define LOGPROBS 4

static struct backend *backend; /* of `model` (gated.h) */
static struct backend_info info;
static uint32_t lengths[SLOTS], tables[SLOTS]; /* positions, and blocks of each group */

static void must(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "order_steps: %s\n", what);
    exit(1);
}

/* Blocks for n more positions: slot s has its own, one after the other. */
static void add_blocks(struct backend_row_set *set, uint32_t n)
{
    static uint32_t ids[SLOTS][CONTEXT / BACKEND_BLOCK_TOKENS];
    const uint32_t s = set->slot, wanted = backend_blocks_for(lengths[s] + n);
    for (uint32_t i = tables[s]; i < wanted; i++)
        ids[s][i] = s * (CONTEXT / BACKEND_BLOCK_TOKENS) + i;
    for (uint32_t g = 0; g < info.n_groups; g++)
        set->blocks[g] = (struct backend_blocks){&ids[s][tables[s]], wanted - tables[s], tables[s]};
    tables[s] = wanted;
    lengths[s] += n;
}

static void run(const char *what, const struct backend_row_set *sets, uint32_t n)
{
    const struct backend_step step = {sets, n};
    const struct backend_result *results = NULL;
    struct error err;
    uint64_t ticket;
    must(quern_backend.submit(backend, &step, &ticket) == 0, "a step is refused");
    int r;
    do
        r = quern_backend.poll(backend, ticket, 10000, &results, &err);
    while (r == -EAGAIN);
    must(r == 0, "a step fails");
    for (uint32_t i = 0; i < n; i++) {
        printf("%s %u: %d", what, sets[i].slot, results[i].n_ids ? results[i].ids[0] : -1);
        for (uint32_t l = 0; results[i].logprobs && l < LOGPROBS; l++)
            printf(" %" PRId32 " %a", results[i].logprobs[l].id, (double)results[i].logprobs[l].logprob);
        printf("\n");
    }
}

static void open_slot(uint32_t s, const struct sampling *sampling, uint32_t n_prompt)
{
    int32_t ids[CONTEXT];
    for (uint32_t i = 0; i < n_prompt; i++)
        ids[i] = (int32_t)(3 + (s * 31 + i * 17) % 300);
    const struct backend_slot params = {.sampling = *sampling,
                                        .n_logprobs = LOGPROBS,
                                        .end_position = CONTEXT,
                                        .history = ids,
                                        .n_history = n_prompt,
                                        .n_prompt = n_prompt};
    struct backend_row_set prompt = {.slot = s, .ids = ids, .n_ids = n_prompt, .output = BACKEND_SAMPLE_LAST};
    must(quern_backend.slot_open(backend, s, &params) == 0, "a slot is refused");
    add_blocks(&prompt, n_prompt);
    run("prompt", &prompt, 1);
}

static void decode(uint32_t n)
{
    struct backend_row_set sets[SLOTS] = {{0}};
    for (uint32_t s = 0; s < n; s++) {
        sets[s] = (struct backend_row_set){
            .slot = s, .n_ids = 1, .position = lengths[s], .output = BACKEND_SAMPLE_LAST};
        add_blocks(&sets[s], 1);
    }
    run("decode", sets, n);
}

/* One sequence alone and three at once: greedy, sampled, and with all that filters and counts. */
static void serve(uint32_t n_prompt)
{
    struct sampling drawn = SAMPLING_GREEDY, filtered;
    drawn.temperature = 1;
    drawn.seed = 5;
    filtered = drawn;
    filtered.top_k = 50;
    filtered.top_p = 0.95f;
    filtered.repetition_penalty = 1.1f;
    filtered.dry_multiplier = 0.8f;
    open_slot(0, &SAMPLING_GREEDY, n_prompt);
    decode(1);
    open_slot(1, &drawn, 9);
    open_slot(2, &filtered, 12);
    decode(3);
    decode(1);
}

struct scenario {
    const char *name, *weights;
    struct synth_shape shape;
    uint32_t n_prompt;
};

static void open_backend(const struct scenario *scenario)
{
    char path[] = "/tmp/quern-test-XXXXXX";
    struct error err = {0};
    const int fd = mkstemp(path);
    must(fd >= 0, "no temporary file");
    close(fd);
    must(synth_write(&scenario->shape, mixture_by_name(scenario->weights), 7, path, &err) == 0, err.text);
    must(model_open(path, false, &model, &err) == 0, err.text);
    unlink(path);
    const struct backend_config config = {.model = model,
                                          .n_slots = SLOTS,
                                          .n_context = CONTEXT,
                                          .n_blocks = SLOTS * CONTEXT / BACKEND_BLOCK_TOKENS,
                                          .max_rows = CONTEXT};
    must(quern_backend.open(&config, &backend, &err) == 0, err.text);
    quern_backend.info(backend, &info);
}

int main(int argc, char **argv)
{
    struct scenario scenarios[] = {{"products", "Q8_0", small_shape, 40},
                                   {"dense", "Q4_K_M", small_shape, 258}, /* two pieces of attention */
                                   {"shared", "Q8_0", hybrid_of("qwen35moe"), 40},
                                   {"beside", "Q8_0", beside_shape(), 40},
                                   {"layers", "Q8_0", borrowing_shape, 40}};
    scenarios[0].shape.n_layers = scenarios[1].shape.n_layers = 1;
    scenarios[1].shape.n_ff = 256;
    scenarios[1].shape.n_vocab = 4500; /* two chunks of candidates */
    scenarios[2].shape.n_layers = 2;
    const struct scenario *wanted = NULL;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0)
            wanted = &scenarios[i];
    must(wanted != NULL, "no such steps");
    open_backend(wanted);
    serve(wanted->n_prompt);
    quern_backend.close(backend);
    model_free(model);
    return 0;
}

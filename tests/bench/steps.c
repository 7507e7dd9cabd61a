/* SPDX-License-Identifier: MIT */
/* What the engine itself costs, on the null backend: nanoseconds of a token and of a request.
 *
 *   build/tests/bench/steps tokens SLOTS N       SLOTS sequences that make N tokens each
 *   build/tests/bench/steps requests IDS N       N requests with other prompts of IDS ids, a token each
 *   build/tests/bench/steps repeats IDS N        N requests with the same prompt
 *
 * Under `valgrind --tool=callgrind` two runs with different N give the instructions of one token or request,
 * and what else a machine does changes nothing about them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "engine/engine.h"
#include "tests/unit/engine/fake.h"

#define CONTEXT 4096

static uint64_t n_ids, n_cached;

static void count(void *arg, const struct engine_event *event)
{
    n_ids += event->n_ids;
    n_cached += event->totals ? event->totals->n_cached : 0;
}

static void submit(struct engine *engine, uint64_t tag, const int32_t *prompt, uint32_t n_prompt,
                   uint32_t max_tokens)
{
    struct error err = {0};
    const struct engine_request request = {.tag = tag,
                                           .prompt = prompt,
                                           .n_prompt = n_prompt,
                                           .max_tokens = max_tokens,
                                           .sampling = {SAMPLING_OFF, .seed = tag}};
    if (engine_submit(engine, &request, &err) != 0) {
        fprintf(stderr, "steps: %s\n", err.text);
        exit(1);
    }
}

static void run(struct engine *engine)
{
    struct error err = {0};
    while (engine_step(engine, &err) == 1)
        ;
}

/* Ids below 256 that are those of no other number below 2^32, however few there are of them. */
static void make_prompt(int32_t *prompt, uint32_t n_prompt, uint32_t number)
{
    for (uint32_t i = 0; i < n_prompt; i++)
        prompt[i] = (int32_t)(i < 4 ? number >> 8 * i & 255 : 'a' + i % 16);
}

int main(int argc, char **argv)
{
    const char *what = argc == 4 ? argv[1] : "";
    const bool tokens = strcmp(what, "tokens") == 0, repeats = strcmp(what, "repeats") == 0;
    const uint32_t size = argc == 4 ? (uint32_t)atoi(argv[2]) : 0,
                   n = argc == 4 ? (uint32_t)atoi(argv[3]) : 0;
    int32_t prompt[CONTEXT];
    struct engine *engine;
    struct error err = {0};
    if ((!tokens && !repeats && strcmp(what, "requests") != 0) || size == 0 || size >= CONTEXT / 2 ||
        n == 0) {
        fprintf(stderr, "usage: steps tokens|requests|repeats SLOTS|IDS N\n");
        return 2;
    }
    const struct engine_config config = {
        .model = &fake_model,
        .backend = &backend_null,
        .most_cached = UINT32_MAX,
        .backend_config = {.n_slots = tokens ? size : 4, .n_context = CONTEXT, .n_blocks = 16384}};
    if (engine_new(&config, count, NULL, &engine, &err) < 0) {
        fprintf(stderr, "steps: %s\n", err.text);
        return 1;
    }
    const uint64_t begun = clock_ns();
    for (uint32_t i = 0; i < (tokens ? size : n); i++) {
        make_prompt(prompt, tokens ? 64 : size, repeats ? 0 : i);
        submit(engine, i + 1, prompt, tokens ? 64 : size, tokens ? n : 1);
        if (!tokens)
            run(engine);
    }
    run(engine);
    const uint64_t ns = clock_ns() - begun, per = tokens ? n_ids : n;
    printf("%.1f ns per %s, %.1f ids of a prompt cached\n", (double)ns / (double)per,
           tokens ? "token" : "request", (double)n_cached / (tokens ? size : n));
    engine_free(engine);
    return 0;
}

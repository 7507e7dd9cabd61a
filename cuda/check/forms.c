/* SPDX-License-Identifier: MIT */
/* A round runs in turn first, which writes down all that is seen of it; then in the other forms, which are
 * compared with what was written down, in the same order. Before each run the sequences' own blocks are
 * zeros, so that all runs begin alike. */

#include "cuda/check/forms.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "cuda/device/in_turn.h"
#include "cuda/host/kinds.h"

#define POLL_MS   1000
#define SEQUENCES 64            /* of a round, at most */
#define REPEATS   20            /* of "whole" */
#define MOST      1000          /* repeats */
#define BURST     STEPS_FLIGHTS /* steps that are in flight at once */
#define BLOCKS    8             /* of one sequence alone, at most */
#define READ      48            /* rows of a prompt that the first step of a round reads, at most */

enum form { IN_TURN, OVERLAPPED, RECORDED };

struct round {
    uint32_t first;   /* position: what comes before is shared */
    uint32_t n;       /* sequences */
    uint32_t n_read;  /* rows of the prompt in the first step; the second has half of them */
    uint32_t repeats; /* of each form but the first */
    bool decodes;     /* after those two steps */
};

/* What was seen, in turn, and how far the run has come that is compared with it. */
struct tape {
    uint8_t *bytes;
    size_t n, room, at;
};

/* How numbers are told of. */
enum number { NUMBER_FLOAT, NUMBER_ID, NUMBER_BYTE };

struct forms {
    struct inspection *look;
    struct steps *steps;
    struct tape tape;
    uint8_t *scratch; /* what is brought from the device */
    size_t scratch_bytes;

    struct round round;
    enum form form;
    uint32_t repeat;
    bool reads; /* the burst reads a prompt */
    uint32_t positions[SEQUENCES], told[SEQUENCES];
    uint32_t tables[SEQUENCES][INSPECTION_BLOCKS + BLOCKS];
    int32_t ids[SEQUENCES + 2 * READ]; /* the first of each sequence; then the prompt */
};

/* ---- what is seen ---- */

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* "logit 3 is 0.25, not 0.5" */
static void say_number(enum number number, const uint8_t *found, const uint8_t *expected, char *text,
                       size_t size)
{
    float found_float, expected_float;
    int32_t found_id, expected_id;
    switch (number) {
    case NUMBER_FLOAT:
        memcpy(&found_float, found, sizeof found_float);
        memcpy(&expected_float, expected, sizeof expected_float);
        snprintf(text, size, "is %.9g, not %.9g", (double)found_float, (double)expected_float);
        break;
    case NUMBER_ID:
        memcpy(&found_id, found, sizeof found_id);
        memcpy(&expected_id, expected, sizeof expected_id);
        snprintf(text, size, "is %d, not %d", found_id, expected_id);
        break;
    case NUMBER_BYTE:
        snprintf(text, size, "is %#x, not %#x", *found, *expected);
        break;
    }
}

/* The burst that gave other bytes than in turn, and what they are. */
static int refuse(struct forms *forms, enum number number, const char *what, size_t index,
                  const uint8_t *found, const uint8_t *expected)
{
    static const char *const names[] = {
        [IN_TURN] = "in turn", [OVERLAPPED] = "overlapping", [RECORDED] = "recorded"};
    const struct round *round = &forms->round;
    char steps[96], text[80];
    const enum form form = forms->reads && forms->form == RECORDED ? OVERLAPPED : forms->form;
    if (forms->reads)
        snprintf(steps, sizeof steps, "a prompt's %u rows and then %u beside %u sequences", round->n_read,
                 (round->n_read + 1) / 2, round->n - 1);
    else
        snprintf(steps, sizeof steps, "decodes of %u rows", round->n);
    say_number(number, found, expected, text, sizeof text);
    return inspection_refuse(forms->look,
                             "%s, %s, after a context of %u, give bytes that differ from launches in turn, "
                             "time %u of %u: %s, number %zu, %s",
                             steps, names[form], round->first, forms->repeat + 1, round->repeats, what, index,
                             text);
}

static int write_down(struct tape *tape, const void *data, size_t bytes)
{
    if (tape->n + bytes > tape->room) {
        const size_t room = 2 * (tape->n + bytes);
        uint8_t *more = realloc(tape->bytes, room);
        if (!more)
            return -ENOMEM;
        tape->bytes = more;
        tape->room = room;
    }
    memcpy(tape->bytes + tape->n, data, bytes);
    tape->n += bytes;
    return 0;
}

static int see(struct forms *forms, const void *data, size_t bytes, enum number number, const char *format,
               ...) __attribute__((format(printf, 5, 6)));
static int see(struct forms *forms, const void *data, size_t bytes, enum number number, const char *format,
               ...)
{
    struct tape *tape = &forms->tape;
    if (bytes == 0) /* of a step that samples nothing */
        return 0;
    if (forms->form == IN_TURN)
        return write_down(tape, data, bytes);
    const uint8_t *found = data, *expected = tape->bytes + tape->at;
    const size_t size = number == NUMBER_BYTE ? 1 : sizeof(float);
    tape->at += bytes;
    if (memcmp(found, expected, bytes) == 0)
        return 0;
    char what[96];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    size_t i = 0;
    while (memcmp(found + i * size, expected + i * size, size) == 0)
        i++;
    return refuse(forms, number, what, i, found + i * size, expected + i * size);
}

static int see_logits(struct forms *forms)
{
    const struct workspace *w = forms->steps->pass->workspace;
    const size_t bytes = forms->steps->pass->model->params.n_vocab * sizeof(float);
    int r = 0;
    for (uint32_t i = 0; i < forms->round.n && r == 0; i++) {
        r = inspection_bring(forms->look, w->logits + (size_t)i * w->vocab_stride, bytes, forms->scratch);
        if (r == 0)
            r = see(forms, forms->scratch, bytes, NUMBER_FLOAT, "logits of row %u", i);
    }
    return r;
}

/* What a sequence has as keys and values of its own. */
static int see_blocks(struct forms *forms, uint32_t sequence)
{
    const struct pass *pass = forms->steps->pass;
    int r = 0;
    for (uint32_t l = 0; l < pass->model->params.n_layers; l++) {
        const struct device_kv *kv = &pass->pools->layers[l].kv;
        if (!layer_has_kv(&pass->model->layers[l].traits))
            continue;
        for (uint32_t b = forms->round.first / BACKEND_BLOCK_TOKENS; b < forms->told[sequence] && r == 0;
             b++) {
            const uint8_t *from = kv->pool + forms->tables[sequence][b] * kv->block_bytes + kv->offset;
            r = inspection_bring(forms->look, from, kv->layer_bytes, forms->scratch);
            if (r == 0)
                r = see(forms, forms->scratch, kv->layer_bytes, NUMBER_BYTE,
                        "keys and values of sequence %u, layer %u, block %u", sequence,
                        forms->look->names ? forms->look->names[l] : l, b);
        }
    }
    return r;
}

static int see_state(struct forms *forms, uint32_t sequence)
{
    const struct state_pool *states = &forms->steps->pass->states->pool;
    const size_t bytes = states->n * sizeof(float);
    if (bytes == 0)
        return 0;
    int r = inspection_bring(forms->look, states->slots + sequence * states->n, bytes, forms->scratch);
    return r < 0 ? r : see(forms, forms->scratch, bytes, NUMBER_FLOAT, "state of sequence %u", sequence);
}

static int see_sequence(struct forms *forms, uint32_t sequence)
{
    int r = see_blocks(forms, sequence);
    return r < 0 ? r : see_state(forms, sequence);
}

/* ---- steps ---- */

/* Of sequence i, in step `step` of a burst. */
static struct backend_row_set next_set(struct forms *forms, uint32_t i, uint32_t step)
{
    const struct round *round = &forms->round;
    const uint32_t position = forms->positions[i], told = forms->told[i];
    struct backend_row_set set = {.slot = i, .position = position, .n_ids = 1, .output = BACKEND_SAMPLE_LAST};
    if (forms->reads && i == 0) {
        set.ids = forms->ids + SEQUENCES + (step == 0 ? 0 : round->n_read);
        set.n_ids = step == 0 ? round->n_read : (round->n_read + 1) / 2;
        set.output = step == 0 ? BACKEND_OUTPUT_NONE : BACKEND_SAMPLE_LAST;
    } else if (forms->reads && step == 0) {
        set.ids = &forms->ids[i];
    } /* else the id that was sampled before, which the host may not have seen */
    forms->positions[i] += set.n_ids;
    forms->told[i] = backend_blocks_for(forms->positions[i]);
    for (uint32_t g = 0; g < forms->steps->pass->pools->n_groups; g++)
        set.blocks[g] = (struct backend_blocks){forms->tables[i] + told, forms->told[i] - told, told};
    return set;
}

static int submit(struct forms *forms, uint32_t step, uint64_t *ret_ticket)
{
    struct backend_row_set sets[SEQUENCES];
    for (uint32_t i = 0; i < forms->round.n; i++)
        sets[i] = next_set(forms, i, step);
    return steps_submit(forms->steps, &(struct backend_step){sets, forms->round.n}, ret_ticket);
}

static int see_results(struct forms *forms, uint64_t ticket)
{
    const struct backend_result *results = NULL;
    int r;
    do
        r = steps_poll(forms->steps, ticket, POLL_MS, &results, NULL);
    while (r == -EAGAIN);
    for (uint32_t i = 0; i < forms->round.n && r == 0; i++)
        r = see(forms, results[i].ids, results[i].n_ids * sizeof *results[i].ids, NUMBER_ID,
                "ids of sequence %u", i);
    return r;
}

/* Steps that are all in flight before the first of them is read, and what has come of them. */
static int run_burst(struct forms *forms, bool reads)
{
    const struct workspace *w = forms->steps->pass->workspace;
    uint64_t tickets[BURST];
    forms->reads = reads;
    int r = device_fill(device_stream(forms->steps->device), w->logits, 0xff,
                        forms->round.n * w->vocab_stride * sizeof *w->logits);
    for (uint32_t step = 0; step < BURST && r == 0; step++)
        r = submit(forms, step, &tickets[step]);
    for (uint32_t step = 0; step < BURST && r == 0; step++)
        r = see_results(forms, tickets[step]);
    if (r == 0)
        r = see_logits(forms);
    if (r == 0)
        r = see_sequence(forms, 0);
    return r < 0 || forms->round.n == 1 ? r : see_sequence(forms, forms->round.n - 1);
}

/* ---- rounds ---- */

/* The block of a sequence behind the shared ones, and zeros in it. */
static int clear_block(struct forms *forms, uint32_t block)
{
    const struct pools *pools = forms->steps->pass->pools;
    int r = 0;
    for (uint32_t g = 0; g < pools->n_groups && r == 0; g++)
        r = device_fill(device_stream(forms->steps->device),
                        pools->kv[g].pool + block * pools->kv[g].block_bytes, 0, pools->kv[g].block_bytes);
    return r;
}

static uint32_t end_of(const struct round *round)
{
    return round->first + round->n_read + (round->n_read + 1) / 2 + BURST;
}

/* Blocks of one sequence alone. */
static uint32_t own_blocks(const struct round *round)
{
    return backend_blocks_for(end_of(round)) - round->first / BACKEND_BLOCK_TOKENS;
}

/* Every second sequence is sampled. */
static int open_sequence(struct forms *forms, uint32_t i)
{
    const struct sampling greedy = SAMPLING_GREEDY;
    const struct round *round = &forms->round;
    const uint32_t shared = round->first / BACKEND_BLOCK_TOKENS, n = own_blocks(round);
    struct backend_slot slot = {.position = round->first, .sampling = greedy, .end_position = UINT32_MAX};
    if (i % 2) {
        slot.sampling.temperature = 0.8;
        slot.sampling.top_k = 40;
        slot.sampling.seed = i;
    }
    forms->positions[i] = round->first;
    forms->told[i] = 0;
    int r = 0;
    for (uint32_t b = 0; b < shared + n && r == 0; b++) {
        forms->tables[i][b] = b < shared ? b : b + i * n;
        if (b >= shared)
            r = clear_block(forms, forms->tables[i][b]);
    }
    return r < 0 ? r : device_slots_open(forms->steps->slots, i, &slot);
}

static int run_form(struct forms *forms, enum form form)
{
    struct graphs *graphs = &forms->steps->graphs;
    const bool eager = graphs->eager;
    forms->form = form;
    forms->tape.at = 0;
    graphs->eager = form != RECORDED;
    device_launch_in_turn(forms->steps->device, form == IN_TURN);
    int r = 0;
    for (uint32_t i = 0; i < forms->round.n && r == 0; i++)
        r = open_sequence(forms, i);
    if (r == 0)
        r = run_burst(forms, true);
    if (r == 0 && forms->round.decodes)
        r = run_burst(forms, false);
    for (uint32_t i = 0; i < forms->round.n; i++)
        device_slots_close(forms->steps->slots, i);
    device_launch_in_turn(forms->steps->device, false);
    graphs->eager = eager;
    return r;
}

static int repeat_form(struct forms *forms, enum form form)
{
    int r = 0;
    for (forms->repeat = 0; forms->repeat < forms->round.repeats && r == 0; forms->repeat++)
        r = run_form(forms, form);
    return r;
}

/* In turn, and then in the other forms that there are of it. */
static int run_round(struct forms *forms, const struct round *round)
{
    forms->round = *round;
    forms->repeat = 0;
    forms->tape.n = 0;
    int r = run_form(forms, IN_TURN);
    if (r == 0)
        r = repeat_form(forms, OVERLAPPED);
    return r == 0 && round->decodes && !forms->steps->graphs.eager ? repeat_form(forms, RECORDED) : r;
}

/* ---- room ---- */

/* Makes the round as large as slots, steps, context and blocks allow. False: not even one sequence has
 * room. */
static bool fit(const struct forms *forms, struct round *round)
{
    const struct steps *steps = forms->steps;
    uint32_t blocks = UINT32_MAX;
    for (uint32_t g = 0; g < steps->pass->pools->n_groups; g++)
        blocks = lesser(blocks, steps->pass->pools->groups[g].n_blocks);
    round->n = lesser(lesser(round->n, SEQUENCES), steps->slots->on_device.n_slots);
    round->n = lesser(lesser(round->n, steps->max_rows), steps->max_outputs);
    round->n_read = lesser(lesser(round->n_read, READ), steps->max_rows - round->n + 1);
    while (round->n_read > 1 && end_of(round) > steps->config->n_context)
        round->n_read--;
    if (end_of(round) > steps->config->n_context)
        return false;
    const uint32_t shared = round->first / BACKEND_BLOCK_TOKENS, own = own_blocks(round);
    if (blocks < shared + own)
        return false;
    round->n = lesser(round->n, (blocks - shared) / own);
    return own <= BLOCKS && shared <= INSPECTION_BLOCKS;
}

/* ---- extents ---- */

/* Keys, values and states of a context of n positions, in all layers. */
static int invent(struct forms *forms, uint32_t n)
{
    const struct pass *pass = forms->steps->pass;
    int r = 0;
    for (uint32_t l = 0; l < pass->model->params.n_layers && r == 0 && n > 0; l++) {
        const struct layer_traits *traits = &pass->model->layers[l].traits;
        if (traits->mixer == MIXER_DELTA)
            r = inspection_invent_state(forms->look, l);
        else if (layer_has_kv(traits))
            r = inspection_invent_kv(forms->look, l, backend_blocks_for(n));
    }
    return r;
}

static int check_whole(struct forms *forms, uint32_t repeats)
{
    static const struct round rounds[] = {
        /* first, n, n_read, repeats, decodes */
        {0, 1, 40, 0, false},   {0, 2, 5, 0, false},   {288, 2, 48, 0, false},  {288, 3, 17, 0, false},
        {448, 4, 33, 0, false}, {448, 8, 9, 0, false}, {448, 17, 48, 0, false}, {288, 64, 48, 0, false}};
    int r = 0;
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds && r == 0; i++) {
        struct round round = rounds[i];
        round.repeats = repeats;
        round.decodes = true;
        if (!fit(forms, &round))
            continue;
        r = invent(forms, round.first);
        if (r == 0)
            r = run_round(forms, &round);
    }
    return r;
}

/* Over one layer of each kind. */
static int check_short(struct forms *forms, uint32_t held)
{
    struct steps *steps = forms->steps;
    const struct pass *whole = steps->pass;
    const uint32_t first = held / BACKEND_BLOCK_TOKENS * BACKEND_BLOCK_TOKENS;
    struct round round = {.first = first, .n = 2, .n_read = 4, .repeats = 1};
    struct kinds kinds;
    if (!fit(forms, &round))
        return 0;
    kinds_init(&kinds, whole);
    steps->pass = &kinds.pass;
    inspection_turn_to(forms->look, &kinds.pass, kinds.layers);
    int r = run_round(forms, &round);
    inspection_turn_to(forms->look, whole, NULL);
    steps->pass = whole;
    return r;
}

int forms_check(struct inspection *look, uint32_t held, uint32_t repeats)
{
    const struct pass *pass = look->steps->pass;
    struct forms forms = {.look = look, .steps = look->steps};
    forms.scratch_bytes = pass->model->params.n_vocab * sizeof(float);
    for (uint32_t l = 0; l < pass->model->params.n_layers; l++)
        if (layer_has_kv(&pass->model->layers[l].traits) &&
            pass->pools->layers[l].kv.layer_bytes > forms.scratch_bytes)
            forms.scratch_bytes = pass->pools->layers[l].kv.layer_bytes;
    if (pass->states->pool.n * sizeof(float) > forms.scratch_bytes)
        forms.scratch_bytes = pass->states->pool.n * sizeof(float);
    forms.scratch = malloc(forms.scratch_bytes);
    for (uint32_t i = 0; i < SEQUENCES + 2 * READ; i++)
        forms.ids[i] = (int32_t)((i * 2246822519u >> 7) % pass->model->params.n_vocab);
    int r = forms.scratch ? 0 : -ENOMEM;
    if (r == 0)
        r = repeats > 0 ? check_whole(&forms, repeats) : check_short(&forms, held);
    free(forms.tape.bytes);
    free(forms.scratch);
    return r;
}

int forms_read_repeats(uint32_t *ret_repeats, struct error *err)
{
    const char *value = getenv("QUERN_CHECK");
    struct error unused;
    uint32_t repeats = 0;
    if (value && strcmp(value, "whole") == 0)
        repeats = REPEATS;
    else if (value && *value && strcmp(value, "short") != 0 &&
             number_read_u32(value, 1, MOST, &repeats, &unused) < 0)
        return error_set(err, -EINVAL,
                         "$QUERN_CHECK is \"%s\", expected short, whole or a number from 1 to %d", value,
                         MOST);
    *ret_repeats = repeats;
    return 0;
}

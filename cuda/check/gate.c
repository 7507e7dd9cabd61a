/* SPDX-License-Identifier: MIT */
/* The gate: a few steps before the first request, made as any other, and what has to come of them. */

#include "cuda/check/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/host/kinds.h"

#define POLL_MS   1000
#define OFF_TWINS 2e-2 /* of a whole pass: the squared error, of the squares */
/* The same where a row may go to the other of two experts that score alike. */
#define OFF_TIPPED 0.5

#define PROMPT_ROWS 40
#define FAR_ROWS    INSPECTION_ROWS /* more than a wide tile has, and than attention takes for decoding */
#define SMALL_ROWS  64              /* those numbers */

struct gate {
    struct steps *steps;
    struct pass *pass;
    struct inspection look;
    struct sampler *sampler;
    struct token_use *uses; /* [n_vocab] */
    float *logits;          /* [n_vocab]: what others are compared with */
    float *others;
    float *twin;     /* [n_vocab]: of the twin that was checked last */
    int32_t twin_id; /* the id that it has to sample; -1: none was checked, or its logits are none */
    uint32_t blocks[INSPECTION_BLOCKS]; /* 0, 1 …: of the one sequence; twins share the first */
};

/* ---- steps ---- */

/* Runs a step of n sets to its end; the results live until the next. What was left of logits goes before. */
static int run(struct gate *gate, const struct backend_row_set *sets, uint32_t n,
               const struct backend_result **ret_results)
{
    const struct backend_step step = {sets, n};
    const struct workspace *w = gate->pass->workspace;
    uint64_t ticket;
    int r = device_fill(device_stream(gate->steps->device), w->logits, 0xff,
                        n * w->vocab_stride * sizeof *w->logits);
    if (r == 0)
        r = steps_submit(gate->steps, &step, &ticket);
    if (r < 0)
        return r;
    do
        r = steps_poll(gate->steps, ticket, POLL_MS, ret_results, NULL);
    while (r == -EAGAIN);
    return r;
}

/* A step of slot 0, launched singly and inspected. */
static int run_watched(struct gate *gate, const struct backend_row_set *set,
                       const struct backend_result **ret_results)
{
    const struct pass_watch watch = {inspect_part, &gate->look};
    const struct graphs recorded = gate->steps->graphs;
    gate->steps->graphs = (struct graphs){.eager = true};
    gate->pass->watch = &watch;
    int r = run(gate, set, 1, ret_results);
    gate->pass->watch = NULL;
    gate->steps->graphs = recorded;
    return r;
}

/* Row i of the step's logits. */
static int bring_logits(struct gate *gate, uint32_t i, float *to)
{
    const struct workspace *w = gate->pass->workspace;
    return inspection_bring(&gate->look, w->logits + (size_t)i * w->vocab_stride,
                            gate->pass->model->params.n_vocab * sizeof *to, to);
}

static int check_id(struct gate *gate, const struct sampling *sampling, int32_t expected,
                    const struct backend_result *result)
{
    const int32_t found = result->n_ids == 1 ? result->ids[0] : -1;
    if (found != expected)
        return inspection_refuse(&gate->look, "sampling of %u logits at temperature %g: id %d, not %d",
                                 gate->pass->model->params.n_vocab, sampling->temperature, found, expected);
    gate->look.broken |= expected < 0;
    return 0;
}

/* The id that the host's sampler takes of these logits. */
static int32_t sample(struct gate *gate, const struct sampling *sampling, uint32_t position,
                      const float *logits)
{
    const struct sampler_row row = {.logits = logits,
                                    .position = position,
                                    .uses = sampling_needs_uses(sampling) ? gate->uses : NULL,
                                    .mask = gate->pass->model->sample_mask};
    return sampler_sample(gate->sampler, sampling, &row);
}

/* Is the id the one that the host's sampler takes of these logits? */
static int check_sample(struct gate *gate, const struct sampling *sampling, uint32_t position,
                        const float *logits, const struct backend_result *result)
{
    const int32_t expected = sample(gate, sampling, position, logits);
    int r = check_id(gate, sampling, expected, result);
    if (r == 0 && expected >= 0)
        token_use_count(&gate->uses[expected]);
    return r;
}

/* ---- a sequence ---- */

static int open_sequence(struct gate *gate, const struct sampling *sampling, const int32_t *prompt,
                         uint32_t n)
{
    const struct backend_slot slot = {
        .sampling = *sampling, .end_position = UINT32_MAX, .history = prompt, .n_history = n, .n_prompt = n};
    for (uint32_t i = 0; i < n; i++)
        gate->uses[prompt[i]].in_prompt = 1;
    return device_slots_open(gate->steps->slots, 0, &slot);
}

/* Blocks numbered by their place, of every group. */
static void tell(const struct gate *gate, struct backend_row_set *set, uint32_t told, uint32_t n)
{
    for (uint32_t g = 0; g < gate->pass->pools->n_groups; g++)
        set->blocks[g] = (struct backend_blocks){gate->blocks + told, n - told, told};
}

/* The decode whose logits are in gate->logits, a second time, as it will be served. */
static int check_recorded(struct gate *gate, const struct sampling *sampling, uint32_t position, int32_t id)
{
    const uint32_t told = backend_blocks_for(position), n_blocks = backend_blocks_for(position + 1);
    struct backend_row_set set = {
        .position = position, .ids = &id, .n_ids = 1, .output = BACKEND_SAMPLE_LAST};
    const struct backend_result *results = NULL;
    tell(gate, &set, told, n_blocks);
    int r = device_slots_trim(gate->steps->slots, 0, position, 0);
    if (r == 0)
        r = run(gate, &set, 1, &results);
    if (r == 0)
        r = bring_logits(gate, 0, gate->others);
    for (uint32_t i = 0; i < gate->pass->model->params.n_vocab && r == 0; i++)
        if (memcmp(&gate->others[i], &gate->logits[i], sizeof *gate->logits) != 0)
            r = inspection_refuse(&gate->look, "the recorded decode of 1 row: logit %u is %.9g, not %.9g", i,
                                  (double)gate->others[i], (double)gate->logits[i]);
    return r < 0 ? r : check_sample(gate, sampling, position + 1, gate->others, results);
}

static const struct sampling sampling = {.temperature = 0.8,
                                         .top_k = 40,
                                         .top_p = 0.95,
                                         .min_p = 0.02,
                                         .repetition_penalty = 1.1,
                                         SAMPLING_RARE_OFF,
                                         .presence_penalty = 0.1,
                                         .frequency_penalty = 0.1,
                                         .seed = 1};

/* To snapshot 0, behind the last block that a set from a border on completes, if there are states. */
static void take_snapshot(const struct gate *gate, struct backend_row_set *set)
{
    if (gate->pass->states->pool.n > 0)
        set->snapshot_rows = set->n_ids / BACKEND_BLOCK_TOKENS * BACKEND_BLOCK_TOKENS;
}

/* The slot stays open; *ret_id is what was sampled. */
static int check_prompt(struct gate *gate, const int32_t *prompt, uint32_t n, int32_t *ret_id)
{
    const struct backend_result *results = NULL;
    struct backend_row_set set = {.ids = prompt, .n_ids = n, .output = BACKEND_SAMPLE_LAST};
    take_snapshot(gate, &set);
    tell(gate, &set, 0, backend_blocks_for(n + 1));
    inspection_begin(&gate->look, 0, prompt, n, set.snapshot_rows);
    int r = open_sequence(gate, &sampling, prompt, n);
    if (r == 0)
        r = run_watched(gate, &set, &results);
    if (r == 0 && !gate->look.broken)
        r = check_sample(gate, &sampling, n, gate->look.logits, results);
    if (r == 0 && !gate->look.broken)
        *ret_id = results[0].ids[0];
    return r;
}

/* The prompt once more, with every product of a layer as those of large steps are. */
static int check_large(struct gate *gate, const int32_t *prompt, uint32_t n)
{
    const uint32_t large_from = gate->pass->large_from;
    const bool by_choice = gate->pass->large_by_choice;
    int32_t unused;
    if (large_from == UINT32_MAX)
        return 0;
    memset(gate->uses, 0, gate->pass->model->params.n_vocab * sizeof *gate->uses);
    gate->pass->large_from = 1;
    gate->pass->large_by_choice = false;
    int r = check_prompt(gate, prompt, n, &unused);
    gate->pass->large_by_choice = by_choice;
    gate->pass->large_from = large_from;
    device_slots_close(gate->steps->slots, 0);
    return r;
}

/* A prompt, a decode of what was sampled behind it, and that decode again. */
static int check_sequence(struct gate *gate, const int32_t *prompt, uint32_t n)
{
    const struct backend_result *results = NULL;
    int32_t id = 0;
    int r = check_prompt(gate, prompt, n, &id);
    if (r < 0 || gate->look.broken)
        return r;
    struct backend_row_set set =
        (struct backend_row_set){.position = n, .n_ids = 1, .output = BACKEND_SAMPLE_LAST};
    tell(gate, &set, backend_blocks_for(n + 1), backend_blocks_for(n + 1));
    inspection_begin(&gate->look, n, &id, 1, 0);
    r = device_states_keep(gate->pass->states, device_stream(gate->steps->device), 0, 0);
    if (r == 0)
        r = run_watched(gate, &set, &results);
    if (r < 0 || gate->look.broken)
        return r;
    memcpy(gate->logits, gate->look.logits, gate->pass->model->params.n_vocab * sizeof *gate->logits);
    r = check_sample(gate, &sampling, n + 1, gate->logits, results);
    return r < 0 || gate->look.broken ? r : check_recorded(gate, &sampling, n, id);
}

/* ---- twins ---- */

/* Is row i of n twins, in gate->others, near to the row alone, in gate->logits? */
static int check_near(struct gate *gate, uint32_t i, uint32_t n)
{
    double squares = 0, off = 0;
    for (uint32_t k = 0; k < gate->pass->model->params.n_vocab; k++) {
        const double alone = (double)gate->logits[k], difference = (double)gate->others[k] - alone;
        squares += alone * alone;
        off += difference * difference;
    }
    const bool may_tip = workspace_experts_used(gate->pass->model) > 0;
    const double most = gate->pass->invariant ? 0 : may_tip ? OFF_TIPPED : OFF_TWINS;
    if (off <= most * squares)
        return 0;
    return inspection_refuse(&gate->look,
                             "row %u of a decode of %u equal rows differs from the row computed alone: "
                             "relative squared error %.2g, limit %.2g",
                             i, n, off / squares, most);
}

/* Row i of n twins. One with the bits of the last has its verdict: few of them differ, and bytes are compared
 * faster than numbers. */
static int check_twin(struct gate *gate, uint32_t i, uint32_t n, const struct backend_result *result)
{
    static const struct sampling greedy = SAMPLING_GREEDY;
    const size_t bytes = gate->pass->model->params.n_vocab * sizeof *gate->others;
    int r = bring_logits(gate, i, gate->others);
    if (r == 0 && (gate->twin_id < 0 || memcmp(gate->others, gate->twin, bytes) != 0)) {
        r = check_near(gate, i, n);
        if (r < 0)
            return r;
        memcpy(gate->twin, gate->others, bytes);
        gate->twin_id = sample(gate, &greedy, 1, gate->twin);
    }
    return r < 0 ? r : check_id(gate, &greedy, gate->twin_id, result);
}

/* The same id at position 0 in n slots. */
static int decode_twins(struct gate *gate, int32_t id, uint32_t n)
{
    static const struct backend_slot greedy = {.sampling = SAMPLING_GREEDY, .end_position = UINT32_MAX};
    struct backend_row_set sets[GRAPHS_MOST] = {0};
    const struct backend_result *results = NULL;
    int r = 0;
    for (uint32_t i = 0; i < n && r == 0; i++) {
        sets[i] = (struct backend_row_set){.slot = i, .ids = &id, .n_ids = 1, .output = BACKEND_SAMPLE_LAST};
        tell(gate, &sets[i], 0, 1);
        r = device_slots_open(gate->steps->slots, i, &greedy);
    }
    if (r == 0)
        r = run(gate, sets, n, &results);
    if (r == 0 && n == 1)
        r = bring_logits(gate, 0, gate->logits);
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = check_twin(gate, i, n, &results[i]);
    for (uint32_t i = 0; i < n; i++)
        device_slots_close(gate->steps->slots, i);
    return r;
}

/* In every bucket that is recorded: slots that are no power of two have the last of them partly. */
static int check_twins(struct gate *gate, int32_t id)
{
    const uint32_t n_slots = gate->steps->slots->on_device.n_slots;
    int r = 0;
    for (uint32_t n = 1; n <= GRAPHS_MOST && r == 0; n *= 2) {
        r = decode_twins(gate, id, n < n_slots ? n : n_slots);
        if (n >= n_slots)
            break;
    }
    return r;
}

/* ---- ids ---- */

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Positions that the context and the memory take. */
static uint32_t room_of(const struct gate *gate)
{
    const struct pools *pools = gate->pass->pools;
    uint32_t most = gate->steps->config->n_context;
    for (uint32_t g = 0; g < pools->n_groups; g++)
        most = lesser(most, lesser(pools->groups[g].n_blocks, INSPECTION_BLOCKS) * BACKEND_BLOCK_TOKENS);
    return most;
}

static void make_ids(const struct gate *gate, int32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int32_t)((i * 2654435761u >> 8) % gate->pass->model->params.n_vocab);
}

/* ---- far along, and many rows ---- */

/* n rows from `first` on, told `n_told` blocks before; nothing is sampled. */
static int run_far(struct gate *gate, const int32_t *ids, uint32_t first, uint32_t n, uint32_t n_told)
{
    const struct backend_result *results = NULL;
    struct backend_row_set set = {.position = first, .ids = ids, .n_ids = n, .output = BACKEND_OUTPUT_NONE};
    take_snapshot(gate, &set);
    tell(gate, &set, n_told, backend_blocks_for(first + n));
    inspection_begin(&gate->look, first, ids, n, set.snapshot_rows);
    return run_watched(gate, &set, &results);
}

/* What a layer would have kept of the ids before `first`. Those that borrow keys and values keep nothing. */
static int invent(struct gate *gate, uint32_t l, uint32_t first)
{
    const struct layer_traits *traits = &gate->pass->model->layers[l].traits;
    switch (traits->mixer) {
    case MIXER_ATTENTION:
        return layer_has_kv(traits) ? inspection_invent_kv(&gate->look, l, backend_blocks_for(first)) : 0;
    case MIXER_DELTA:
        return inspection_invent_state(&gate->look, l);
    }
    return 0;
}

/* Rows behind a context, and a state, that nobody has computed, and one behind those. */
static int run_behind(struct gate *gate, uint32_t first, uint32_t n)
{
    const struct backend_slot slot = {
        .position = first, .sampling = SAMPLING_GREEDY, .end_position = UINT32_MAX};
    int32_t ids[FAR_ROWS + 1];
    int r = 0;
    make_ids(gate, ids, n + 1); /* the slot begins with snapshot 0, where it has a state */
    for (uint32_t l = 0; l < gate->pass->model->params.n_layers && r == 0; l++)
        r = invent(gate, l, first);
    if (r == 0)
        r = device_slots_open(gate->steps->slots, 0, &slot);
    if (r == 0)
        r = run_far(gate, ids, first, n, 0);
    if (r == 0 && !gate->look.broken)
        r = run_far(gate, ids + n, first + n, 1, backend_blocks_for(first + n));
    device_slots_close(gate->steps->slots, 0);
    return r;
}

/* Queries of a model grow from positions on that are beyond any check: here they do within its positions. */
static void grow_early(struct kinds *kinds)
{
    for (uint32_t k = 0; k < kinds->n; k++)
        if (kinds->model_layers[k].traits.query_growth.factor != 0)
            kinds->model_layers[k].traits.query_growth.span = BACKEND_BLOCK_TOKENS;
}

/* What the prompt is too short for: sequences of several pieces, and steps of more rows than the tiles of
 * products and of attention have. One layer of each kind stands for all, so that it costs no more the deeper
 * the model is. *ret_held: how many positions before those rows have keys and values; unchanged where there
 * was nothing to check. */
static int check_far(struct gate *gate, uint32_t *ret_held)
{
    struct steps *steps = gate->steps;
    struct pass *const whole = gate->pass;
    const uint32_t end = lesser(room_of(gate), INSPECTION_POSITIONS);
    const uint32_t n = end > 1 ? lesser(lesser(end - 1, steps->max_rows), FAR_ROWS) : 0;
    const uint32_t first = (end - 1 - n) / BACKEND_BLOCK_TOKENS * BACKEND_BLOCK_TOKENS;
    struct kinds kinds;
    if (n == 0 || (n <= SMALL_ROWS && first + n < ATTENTION_PIECE))
        return 0;
    kinds_init(&kinds, whole);
    grow_early(&kinds);
    gate->pass = &kinds.pass;
    steps->pass = &kinds.pass;
    inspection_turn_to(&gate->look, &kinds.pass, kinds.layers);
    int r = run_behind(gate, first, n);
    *ret_held = first;
    inspection_turn_to(&gate->look, whole, NULL);
    steps->pass = whole;
    gate->pass = whole;
    return r;
}

/* ---- the whole ---- */

static int check_all(struct gate *gate, uint32_t repeats)
{
    int32_t prompt[PROMPT_ROWS];
    /* As many ids as a step, the context and the memory take, with a position left for the decode. */
    const uint32_t room = room_of(gate), most = lesser(gate->steps->max_rows, PROMPT_ROWS);
    const uint32_t n = lesser(room > 1 ? room - 1 : 1, most);
    make_ids(gate, prompt, n);
    int r = check_sequence(gate, prompt, n);
    device_slots_close(gate->steps->slots, 0);
    if (r == 0 && !gate->look.broken)
        r = check_large(gate, prompt, n);
    if (r == 0 && !gate->look.broken)
        r = check_twins(gate, prompt[n - 1]);
    uint32_t held = n;
    if (r == 0 && !gate->look.broken)
        r = check_far(gate, &held);
    return r < 0 || gate->look.broken ? r : forms_check(&gate->look, held, repeats);
}

int gate_check(struct steps *steps, struct pass *pass, uint32_t repeats, struct error *err)
{
    const uint32_t n_vocab = pass->model->params.n_vocab;
    const struct backend_config *config = steps->config;
    struct backend_config quiet = *config; /* its progress hook means steps that are served */
    struct gate gate = {.steps = steps,
                        .pass = pass,
                        .uses = calloc(n_vocab, sizeof *gate.uses),
                        .logits = calloc(n_vocab, sizeof *gate.logits),
                        .others = calloc(n_vocab, sizeof *gate.others),
                        .twin = calloc(n_vocab, sizeof *gate.twin),
                        .twin_id = -1};
    quiet.progress = NULL;
    for (uint32_t i = 0; i < INSPECTION_BLOCKS; i++)
        gate.blocks[i] = i;
    steps->config = &quiet;
    int r = inspection_init(&gate.look, steps, pass, err);
    if (r == 0)
        r = gate.uses && gate.logits && gate.others && gate.twin ? sampler_new(n_vocab, &gate.sampler)
                                                                 : -ENOMEM;
    if (r == 0)
        r = check_all(&gate, repeats);
    steps->config = config;
    sampler_free(gate.sampler);
    inspection_deinit(&gate.look);
    free(gate.uses);
    free(gate.logits);
    free(gate.others);
    free(gate.twin);
    return r;
}

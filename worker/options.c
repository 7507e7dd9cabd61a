/* SPDX-License-Identifier: MIT */
/* quern-worker's options, by argp. Brokers write them, people read them with --help. */

#include "worker/options.h"

#include <argp.h>
#include <stddef.h>
#include <string.h>

#include "common/number.h"
#include "common/program.h"
#include "proto/launch.h"

#define DEFAULT_FRAME_US 250
#define DEFAULT_ORPHAN_S 60

enum option_type { OPTION_TEXT, OPTION_NUMBER, OPTION_DESCRIPTOR, OPTION_FLAG, OPTION_CORES };

#define FIELD(name) offsetof(struct worker_options, name)
#define MOST_U16    65535

static const struct row {
    const char *name;
    const char *argument; /* NULL: of a flag */
    const char *help;
    enum option_type type;
    size_t offset;
    uint32_t least, most; /* of numbers */
} rows[] = {
    {"broker", "ENDPOINT", "Where the broker listens for workers (required)", OPTION_TEXT, FIELD(broker), 0,
     0},
    {"name", "NAME", "What the broker calls this worker (worker-0)", OPTION_TEXT, FIELD(name), 0, 0},
    {"incarnation", "N", "How often it was started (1)", OPTION_NUMBER, FIELD(incarnation), 0, UINT32_MAX},
    {"stream", "ENDPOINT", "Where to publish tokens (required)", OPTION_TEXT, FIELD(stream), 0, 0},
    {"device", "NAME", QUERN_DEVICES " (auto)", OPTION_TEXT, FIELD(device), 0, 0},
    {"ctx", "N", "Most tokens of a sequence (the model's)", OPTION_NUMBER, FIELD(context), 1,
     LAUNCH_MAX_CONTEXT},
    {"slots", "N", "Sequences at once", OPTION_NUMBER, FIELD(slots), 1, LAUNCH_MAX_SLOTS},
    {"kv-blocks", "N", "Blocks of the KV cache, 32 tokens each (what the slots need)", OPTION_NUMBER,
     FIELD(kv_blocks), 1, LAUNCH_MAX_KV_BLOCKS},
    {"kv-type", "TYPE", "What keys and values are kept in: f16 or q8_0 (f16)", OPTION_TEXT, FIELD(kv_type), 0,
     0},
    {"quantize", "TYPE", "Make weights in F32, F16 or BF16 smaller: Q8_0, Q4_K_M ... (as they are)",
     OPTION_TEXT, FIELD(quantize), 0, 0},
    {"system", "TEXT", "The system message of conversations that bring none", OPTION_TEXT, FIELD(system), 0,
     0},
    {"chat-template", "FILE", "How conversations are written out (the model's own)", OPTION_TEXT,
     FIELD(chat_template), 0, 0},
    {"cached-blocks", "N", "KV blocks that the prefix cache keeps at most; 0: none (all)", OPTION_NUMBER,
     FIELD(cached_blocks), 0, LAUNCH_MAX_KV_BLOCKS},
    {"threads", "N", "Threads (one for each core that it may use)", OPTION_NUMBER, FIELD(threads), 1,
     LAUNCH_MAX_THREADS},
    {"cpus", "LIST", "Cores to run on: 0,1,...", OPTION_CORES, 0, 0, MOST_U16},
    {"board-fd", "FD", "Descriptor of the pool's board", OPTION_DESCRIPTOR, FIELD(board_fd), 0, MOST_U16},
    {"board-slot", "I", "Slot of the board", OPTION_NUMBER, FIELD(board_slot), 0, MOST_U16},
    {"prefix-store-fd", "FD", "Descriptor of the pool's prefix store", OPTION_DESCRIPTOR,
     FIELD(prefix_store_fd), 0, MOST_U16},
    {"local-workers", "N", "Workers that share this machine, this one too (alone)", OPTION_NUMBER,
     FIELD(local_workers), 1, MOST_U16},
    {"frame-us", "N", "Tokens of one request made within this time share a frame (250)", OPTION_NUMBER,
     FIELD(frame_us), 0, LAUNCH_MAX_FRAME_US},
    {"orphan-s", "N", "Seconds without a word from the broker before it ends (60)", OPTION_NUMBER,
     FIELD(orphan_s), 1, 1u << 20},
    {"invariant", NULL, "Answers that do not depend on what else runs, on a GPU too", OPTION_FLAG,
     FIELD(invariant), 0, 0},
    {"no-sandbox", NULL, "Keep all rights of the user while serving, to debug", OPTION_FLAG,
     FIELD(no_sandbox), 0, 0},
    {"parent", "PID", "End when this process, our parent, does", OPTION_NUMBER, FIELD(parent), 1, INT32_MAX},
};
#define N_ROWS    (sizeof rows / sizeof *rows)
#define FIRST_KEY 256 /* of the first row: beyond all characters */

/* A whole number within the row's bounds, or the end with a message that names its option. */
static uint32_t number(const struct row *row, const char *text, const struct argp_state *state)
{
    struct error err = {0};
    uint32_t value = 0;
    if (number_read_u32(text, row->least, row->most, &value, &err) < 0)
        argp_error(state, "--%s: %s", row->name, err.text);
    return value;
}

static void read_cpus(const struct row *row, char *list, struct worker_options *into,
                      const struct argp_state *state)
{
    char *rest = list;
    for (char *item; (item = strsep(&rest, ","));) {
        if (into->n_cpus == WORKER_MOST_CPUS)
            argp_error(state, "--cpus: more than %d cores", WORKER_MOST_CPUS);
        into->cpus[into->n_cpus++] = (int)number(row, item, state);
    }
}

static void set(const struct row *row, char *value, struct worker_options *into,
                const struct argp_state *state)
{
    void *field = (char *)into + row->offset;
    switch (row->type) {
    case OPTION_TEXT:
        *(const char **)field = value;
        break;
    case OPTION_NUMBER:
        *(uint32_t *)field = number(row, value, state);
        break;
    case OPTION_DESCRIPTOR:
        *(int *)field = (int)number(row, value, state);
        break;
    case OPTION_FLAG:
        *(bool *)field = true;
        break;
    case OPTION_CORES:
        read_cpus(row, value, into, state);
        break;
    }
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct worker_options *into = state->input;
    if (key >= FIRST_KEY && key < FIRST_KEY + (int)N_ROWS) {
        set(&rows[key - FIRST_KEY], value, into, state);
        return 0;
    }
    if (key == ARGP_KEY_ARG && into->model)
        argp_usage(state);
    if (key == ARGP_KEY_ARG) {
        into->model = value;
        return 0;
    }
    if (key == ARGP_KEY_END && (!into->model || !into->broker || !into->stream))
        argp_error(state, "a model, --broker and --stream are required");
    return ARGP_ERR_UNKNOWN;
}

void worker_options_parse(int argc, char **argv, struct worker_options *ret_options)
{
    struct argp_option options[N_ROWS + 1] = {{0}};
    const struct argp argp = {
        options, parse_option, "MODEL", "Serves one model to a broker. Brokers start it.", NULL, NULL, NULL};
    for (size_t i = 0; i < N_ROWS; i++)
        options[i] =
            (struct argp_option){rows[i].name, FIRST_KEY + (int)i, rows[i].argument, 0, rows[i].help, 0};
    argp_err_exit_status = PROGRAM_EXIT_USAGE;
    *ret_options = (struct worker_options){.name = "worker-0",
                                           .device = "auto",
                                           .incarnation = 1,
                                           .board_fd = -1,
                                           .prefix_store_fd = -1,
                                           .cached_blocks = UINT32_MAX,
                                           .frame_us = DEFAULT_FRAME_US,
                                           .orphan_s = DEFAULT_ORPHAN_S};
    argp_parse(&argp, argc, argv, 0, NULL, ret_options);
}

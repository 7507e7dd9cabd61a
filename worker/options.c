/* SPDX-License-Identifier: MIT */
/* quern-worker's options, by argp. Brokers write them, people read them with --help. */

#include "worker/options.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/program.h"

#define DEFAULT_FRAME_US 250
#define DEFAULT_ORPHAN_S 60

enum {
    KEY_BROKER = 256,
    KEY_NAME,
    KEY_INCARNATION,
    KEY_STREAM,
    KEY_DEVICE,
    KEY_CTX,
    KEY_SLOTS,
    KEY_KV_BLOCKS,
    KEY_THREADS,
    KEY_CPUS,
    KEY_BOARD_FD,
    KEY_BOARD_SLOT,
    KEY_FRAME_US,
    KEY_ORPHAN_S
};

static const struct argp_option options[] = {
    {"broker", KEY_BROKER, "ENDPOINT", 0, "The broker's backend (required)", 0},
    {"name", KEY_NAME, "NAME", 0, "What the broker calls this worker (worker-0)", 0},
    {"incarnation", KEY_INCARNATION, "N", 0, "How often it was started (1)", 0},
    {"stream", KEY_STREAM, "ENDPOINT", 0, "Where to publish tokens (required)", 0},
    {"device", KEY_DEVICE, "NAME", 0, "auto, cpu or null (auto)", 0},
    {"ctx", KEY_CTX, "N", 0, "Most tokens of a sequence (the model's)", 0},
    {"slots", KEY_SLOTS, "N", 0, "Sequences at once", 0},
    {"kv-blocks", KEY_KV_BLOCKS, "N", 0, "Blocks of the KV cache, 32 tokens each (what the slots need)", 0},
    {"threads", KEY_THREADS, "N", 0, "Threads (one for each core)", 0},
    {"cpus", KEY_CPUS, "LIST", 0, "Cores to run on: 0,1,…", 0},
    {"board-fd", KEY_BOARD_FD, "FD", 0, "Descriptor of the pool's board", 0},
    {"board-slot", KEY_BOARD_SLOT, "I", 0, "Slot of the board", 0},
    {"frame-us", KEY_FRAME_US, "N", 0, "Tokens of one request made within this time share a frame (250)", 0},
    {"orphan-s", KEY_ORPHAN_S, "N", 0, "Seconds without a word from the broker before it ends (60)", 0},
    {0}};

/* A whole number within the bounds, or the end with a message. */
static uint32_t number(const char *text, uint32_t least, uint32_t most, const struct argp_state *state)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || value < least || value > most)
        argp_error(state, "\"%s\" is not a number from %u to %u", text, least, most);
    return (uint32_t)value;
}

static void read_cpus(char *list, struct worker_options *into, const struct argp_state *state)
{
    char *rest = list;
    for (char *item; (item = strsep(&rest, ","));) {
        if (into->n_cpus == WORKER_MOST_CPUS)
            argp_error(state, "more than %d cores", WORKER_MOST_CPUS);
        into->cpus[into->n_cpus++] = (int)number(item, 0, 65535, state);
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct worker_options *into = state->input;
    switch (key) {
    case KEY_BROKER:
        into->broker = arg;
        break;
    case KEY_NAME:
        into->name = arg;
        break;
    case KEY_INCARNATION:
        into->incarnation = number(arg, 0, UINT32_MAX, state);
        break;
    case KEY_STREAM:
        into->stream = arg;
        break;
    case KEY_DEVICE:
        into->device = arg;
        break;
    case KEY_CTX:
        into->context = number(arg, 1, 1u << 24, state);
        break;
    case KEY_SLOTS:
        into->slots = number(arg, 1, 4096, state);
        break;
    case KEY_KV_BLOCKS:
        into->kv_blocks = number(arg, 1, 1u << 26, state);
        break;
    case KEY_THREADS:
        into->threads = number(arg, 1, 1024, state);
        break;
    case KEY_CPUS:
        read_cpus(arg, into, state);
        break;
    case KEY_BOARD_FD:
        into->board_fd = (int)number(arg, 0, 65535, state);
        break;
    case KEY_BOARD_SLOT:
        into->board_slot = number(arg, 0, 65535, state);
        break;
    case KEY_FRAME_US:
        into->frame_us = number(arg, 0, 1000000, state);
        break;
    case KEY_ORPHAN_S:
        into->orphan_s = number(arg, 1, 1u << 20, state);
        break;
    case ARGP_KEY_ARG:
        if (into->model)
            argp_usage(state);
        into->model = arg;
        break;
    case ARGP_KEY_END:
        if (!into->model || !into->broker || !into->stream)
            argp_error(state, "a model, --broker and --stream are required");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

void worker_options_parse(int argc, char **argv, struct worker_options *ret_options)
{
    static const struct argp argp = {
        options, parse_option, "MODEL", "Serves one model to a broker. Brokers start it.", NULL, NULL, NULL};
    argp_err_exit_status = PROGRAM_EXIT_USAGE;
    *ret_options = (struct worker_options){.name = "worker-0",
                                           .device = "auto",
                                           .incarnation = 1,
                                           .board_fd = -1,
                                           .frame_us = DEFAULT_FRAME_US,
                                           .orphan_s = DEFAULT_ORPHAN_S};
    argp_parse(&argp, argc, argv, 0, NULL, ret_options);
}

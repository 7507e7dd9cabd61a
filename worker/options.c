/* SPDX-License-Identifier: MIT */
/* quern-worker's options, by argp. A supervisor writes them, people read them with --help. */

#include "worker/options.h"

#include <argp.h>

#include "common/program/arguments.h"
#include "common/program/program.h"
#include "engine/backend/kv_type.h"
#include "proto/launch.h"

#define DEFAULT_FRAME_US 250
#define DEFAULT_ORPHAN_S 60

enum {
    KEY_NAME = 256,
    KEY_INCARNATION,
    KEY_LINK_FD,
    KEY_STREAM_FD,
    KEY_DEVICE,
    KEY_CTX,
    KEY_SLOTS,
    KEY_KV_BLOCKS,
    KEY_SNAPSHOTS,
    KEY_DRAFT,
    KEY_KV_TYPE,
    KEY_THREADS,
    KEY_BOARD_FD,
    KEY_BOARD_SLOT,
    KEY_PREFIX_STORE_FD,
    KEY_LOCAL_WORKERS,
    KEY_QUANTIZE,
    KEY_CHAT_TEMPLATE,
    KEY_SYSTEM,
    KEY_SAMPLING,
    KEY_OVERRIDES,
    KEY_CACHED_BLOCKS,
    KEY_FRAME_US,
    KEY_ORPHAN_S,
    KEY_INVARIANT,
    KEY_HOST_SAMPLING,
    KEY_CUBLAS,
    KEY_NO_SANDBOX,
    KEY_PARENT,
    KEY_COUNT_DEVICES,
    KEY_CHECK
};

static const struct argp_option options[] = {
    {"name", KEY_NAME, "NAME", 0, "Name of this worker (worker-0)", 0},
    {"incarnation", KEY_INCARNATION, "N", 0, "Number of this start (1)", 0},
    {"link-fd", KEY_LINK_FD, "FD", 0, "Listening unix socket for the broker (required)", 0},
    {"stream-fd", KEY_STREAM_FD, "FD", 0, "Listening unix socket for token readers (required)", 0},
    {"device", KEY_DEVICE, "NAME", 0, QUERN_DEVICES " (auto)", 0},
    {"ctx", KEY_CTX, "N", 0, "Maximum tokens of a sequence (the model's)", 0},
    {"slots", KEY_SLOTS, "N", 0, "Sequences at once (32; on a GPU up to 256)", 0},
    {"kv-blocks", KEY_KV_BLOCKS, "N", 0, "Blocks of the KV cache, 32 tokens each (what the slots need)", 0},
    {"snapshots", KEY_SNAPSHOTS, "N", 0,
     "Snapshots of recurrent layers' states that the prefix cache keeps (four for each slot)", 0},
    {"draft", KEY_DRAFT, "N", 0,
     "Draft up to N tokens that followed the same tokens earlier in a text; 0: none (none)", 0},
    {"kv-type", KEY_KV_TYPE, "TYPE", 0,
     "Type of keys and values: " KV_TYPE_NAMES " (f16; f32 for models that rank)", 0},
    {"quantize", KEY_QUANTIZE, "TYPE", 0,
     "Quantize weights in F32, F16 or BF16: Q8_0, Q4_K_M ... (as they are)", 0},
    {"system", KEY_SYSTEM, "TEXT", 0, "System message for conversations without one", 0},
    {"sampling", KEY_SAMPLING, "TEXT", 0,
     "Sampling parameters of requests that leave them out, as NAME=VALUE, separated by spaces (the model's)",
     0},
    {"overrides", KEY_OVERRIDES, "TEXT", 0,
     "Options that change the model's metadata, a line \"NAME VALUE\" for each (none)", 0},
    {"chat-template", KEY_CHAT_TEMPLATE, "FILE", 0, "Chat template (the model's own)", 0},
    {"cached-blocks", KEY_CACHED_BLOCKS, "N", 0,
     "Maximum KV blocks that the prefix cache keeps; 0: none (all)", 0},
    {"threads", KEY_THREADS, "N", 0, "Threads (one per usable core)", 0},
    {"board-fd", KEY_BOARD_FD, "FD", 0, "Descriptor of its slot of the pool's board", 0},
    {"board-slot", KEY_BOARD_SLOT, "I", 0, "Number of that slot: its place among the local workers", 0},
    {"prefix-store-fd", KEY_PREFIX_STORE_FD, "FD", 0, "Descriptor of the pool's prefix store", 0},
    {"local-workers", KEY_LOCAL_WORKERS, "N", 0, "Workers on this machine, including this one (alone)", 0},
    {"frame-us", KEY_FRAME_US, "N", 0,
     "Send tokens of a request generated within N microseconds in one frame (250)", 0},
    {"orphan-s", KEY_ORPHAN_S, "N", 0, "End after this many seconds without a message from the broker (60)",
     0},
    {"invariant", KEY_INVARIANT, NULL, 0, "Make answers independent of concurrent requests, also on a GPU",
     0},
    {"host-sampling", KEY_HOST_SAMPLING, NULL, 0,
     "On a GPU, also sample each token on the host, compare, and use the host's; slow", 0},
    {"cublas", KEY_CUBLAS, "ROWS", 0,
     "On a GPU, use cuBLASLt for prompt steps of ROWS rows or more: off, auto or a number (off)", 0},
    {"no-sandbox", KEY_NO_SANDBOX, NULL, 0, "Do not confine this process, for debugging", 0},
    {"parent", KEY_PARENT, "PID", 0, "End when the parent process PID does", 0},
    {"count-devices", KEY_COUNT_DEVICES, NULL, 0, "Print the number of devices and exit", 0},
    {"check", KEY_CHECK, NULL, 0, "Check the options, the model and the chat template, and exit", 0},
    {0}};

static const struct argument arguments[] = {
    {KEY_NAME, ARGUMENT_TEXT, offsetof(struct worker_options, name), 0, 0},
    {KEY_INCARNATION, ARGUMENT_NUMBER, offsetof(struct worker_options, incarnation), 0, UINT32_MAX},
    {KEY_LINK_FD, ARGUMENT_NUMBER, offsetof(struct worker_options, link_fd), 0, 65535},
    {KEY_STREAM_FD, ARGUMENT_NUMBER, offsetof(struct worker_options, stream_fd), 0, 65535},
    {KEY_DEVICE, ARGUMENT_TEXT, offsetof(struct worker_options, device), 0, 0},
    {KEY_CTX, ARGUMENT_NUMBER, offsetof(struct worker_options, context), 1, LAUNCH_MAX_CONTEXT},
    {KEY_SLOTS, ARGUMENT_NUMBER, offsetof(struct worker_options, slots), 1, LAUNCH_MAX_SLOTS},
    {KEY_KV_BLOCKS, ARGUMENT_NUMBER, offsetof(struct worker_options, kv_blocks), 1, LAUNCH_MAX_KV_BLOCKS},
    {KEY_SNAPSHOTS, ARGUMENT_NUMBER, offsetof(struct worker_options, snapshots), 1, LAUNCH_MAX_SNAPSHOTS},
    {KEY_DRAFT, ARGUMENT_NUMBER, offsetof(struct worker_options, draft), 0, LAUNCH_MAX_DRAFT},
    {KEY_CUBLAS, ARGUMENT_TEXT, offsetof(struct worker_options, cublas), 0, 0},
    {KEY_KV_TYPE, ARGUMENT_TEXT, offsetof(struct worker_options, kv_type), 0, 0},
    {KEY_QUANTIZE, ARGUMENT_TEXT, offsetof(struct worker_options, quantize), 0, 0},
    {KEY_CHAT_TEMPLATE, ARGUMENT_TEXT, offsetof(struct worker_options, chat_template), 0, 0},
    {KEY_SYSTEM, ARGUMENT_TEXT, offsetof(struct worker_options, system), 0, 0},
    {KEY_SAMPLING, ARGUMENT_TEXT, offsetof(struct worker_options, sampling), 0, 0},
    {KEY_OVERRIDES, ARGUMENT_TEXT, offsetof(struct worker_options, overrides), 0, 0},
    {KEY_CACHED_BLOCKS, ARGUMENT_NUMBER, offsetof(struct worker_options, cached_blocks), 0,
     LAUNCH_MAX_KV_BLOCKS},
    {KEY_THREADS, ARGUMENT_NUMBER, offsetof(struct worker_options, threads), 1, LAUNCH_MAX_THREADS},
    {KEY_BOARD_FD, ARGUMENT_NUMBER, offsetof(struct worker_options, board_fd), 0, 65535},
    {KEY_BOARD_SLOT, ARGUMENT_NUMBER, offsetof(struct worker_options, board_slot), 0, 65535},
    {KEY_PREFIX_STORE_FD, ARGUMENT_NUMBER, offsetof(struct worker_options, prefix_store_fd), 0, 65535},
    {KEY_LOCAL_WORKERS, ARGUMENT_NUMBER, offsetof(struct worker_options, local_workers), 1, 65535},
    {KEY_FRAME_US, ARGUMENT_NUMBER, offsetof(struct worker_options, frame_us), 0, LAUNCH_MAX_FRAME_US},
    {KEY_ORPHAN_S, ARGUMENT_NUMBER, offsetof(struct worker_options, orphan_s), 1, 1u << 20},
    {KEY_INVARIANT, ARGUMENT_FLAG, offsetof(struct worker_options, invariant), 0, 0},
    {KEY_HOST_SAMPLING, ARGUMENT_FLAG, offsetof(struct worker_options, host_sampling), 0, 0},
    {KEY_NO_SANDBOX, ARGUMENT_FLAG, offsetof(struct worker_options, no_sandbox), 0, 0},
    {KEY_PARENT, ARGUMENT_NUMBER, offsetof(struct worker_options, parent), 1, INT32_MAX},
    {KEY_COUNT_DEVICES, ARGUMENT_FLAG, offsetof(struct worker_options, count_devices), 0, 0},
    {KEY_CHECK, ARGUMENT_FLAG, offsetof(struct worker_options, check), 0, 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct worker_options *into = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (into->model)
            argp_usage(state);
        into->model = arg;
        return 0;
    case ARGP_KEY_END:
        if (!into->model ||
            (!into->count_devices && !into->check && (into->link_fd < 0 || into->stream_fd < 0)))
            argp_error(state, "a model, --link-fd and --stream-fd are required");
        return 0;
    default:
        return arguments_take(arguments, options, key, arg, state, into);
    }
}

void worker_options_parse(int argc, char **argv, struct worker_options *ret_options)
{
    static const struct argp argp = {
        options, parse_option, "MODEL", "Serves one model to a broker. The supervisor of a pool starts it.",
        NULL,    NULL,         NULL};
    argp_err_exit_status = PROGRAM_EXIT_USAGE;
    *ret_options = (struct worker_options){.name = "worker-0",
                                           .device = "auto",
                                           .incarnation = 1,
                                           .link_fd = -1,
                                           .stream_fd = -1,
                                           .board_fd = -1,
                                           .prefix_store_fd = -1,
                                           .cached_blocks = UINT32_MAX,
                                           .frame_us = DEFAULT_FRAME_US,
                                           .orphan_s = DEFAULT_ORPHAN_S};
    arguments_parse(&argp, argc, argv, ret_options);
}

/* SPDX-License-Identifier: MIT */
/* Options of a request, for argp. */

#include "client/command/request_arguments.h"

#include "client/command/arguments.h"

enum {
    KEY_CONNECT = 1024, /* beyond the keys of the verbs */
    KEY_TEMPERATURE,
    KEY_TOP_K,
    KEY_TOP_P,
    KEY_MIN_P,
    KEY_PENALTY,
    KEY_SEED,
    KEY_STOP,
    KEY_DEADLINE,
    KEY_SERVER_KEY,
    KEY_DEVICE,
    KEY_CONTEXT
};

static int parse(int key, char *arg, struct argp_state *state)
{
    struct request_arguments *options = state->input;
    struct quern_request *request = &options->request;
    switch (key) {
    case KEY_CONNECT:
        options->pool.connect = arg;
        return 0;
    case KEY_SERVER_KEY:
        options->pool.server_key = arg;
        return 0;
    case 'm':
        options->pool.model = arg;
        return 0;
    case 'n':
        request->max_tokens = (uint32_t)argument_number(state, "-n", arg, 1, INT32_MAX);
        return 0;
    case KEY_TEMPERATURE:
        request->temperature = argument_real(state, "--temp", arg, 0, 100);
        return 0;
    case KEY_TOP_K:
        request->top_k = (uint32_t)argument_number(state, "--top-k", arg, 0, INT32_MAX);
        return 0;
    case KEY_TOP_P:
        request->top_p = argument_real(state, "--top-p", arg, 1e-9, 1);
        return 0;
    case KEY_MIN_P:
        request->min_p = argument_real(state, "--min-p", arg, 0, 1);
        return 0;
    case KEY_PENALTY:
        request->repetition_penalty = argument_real(state, "--repeat-penalty", arg, 1e-9, 100);
        return 0;
    case KEY_SEED:
        request->has_seed = true;
        request->seed = argument_number(state, "--seed", arg, 0, UINT64_MAX);
        return 0;
    case KEY_STOP:
        if (request->n_stop == REQUEST_MAX_STOPS)
            argp_error(state, "at most %d stop strings", REQUEST_MAX_STOPS);
        options->stops[request->n_stop++] = arg;
        return 0;
    case KEY_DEADLINE:
        request->deadline_ms = argument_number(state, "--deadline-ms", arg, 1, 2592000000);
        return 0;
    case KEY_DEVICE:
        options->pool.device = arg;
        return 0;
    case KEY_CONTEXT:
        options->pool.context = (uint32_t)argument_number(state, "--ctx", arg, 1, INT32_MAX);
        return 0;
    case ARGP_KEY_END:
        request->stop = options->stops;
        if (options->pool.connect && options->pool.model)
            argp_error(state, "--connect and --model exclude each other");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option known_options[] = {
    {"connect", KEY_CONNECT, "EP", 0, "Pool to ask: ipc://PATH, tcp://HOST:PORT or a run directory", 1},
    {"server-key", KEY_SERVER_KEY, "KEY", 0, "Public CURVE key of that pool, or a file that holds it", 1},
    {"model", 'm', "FILE", 0, "Start a private pool with this model", 1},
    {"device", KEY_DEVICE, "D", 0, "Device of a private pool", 1},
    {"ctx", KEY_CONTEXT, "N", 0, "Context length of a private pool, in tokens", 1},
    {"max-tokens", 'n', "N", 0, "Most tokens to make (256)", 2},
    {"temp", KEY_TEMPERATURE, "T", 0, "Temperature (0.8); 0 = greedy", 2},
    {"top-k", KEY_TOP_K, "K", 0, "Sample from the K most likely (40); 0 = off", 2},
    {"top-p", KEY_TOP_P, "P", 0, "Sample from the most likely that sum to P (0.95); 1 = off", 2},
    {"min-p", KEY_MIN_P, "P", 0, "Drop what is less likely than P times the most likely (0.05); 0 = off", 2},
    {"repeat-penalty", KEY_PENALTY, "R", 0, "Penalty on tokens that were there (1 = off)", 2},
    {"seed", KEY_SEED, "N", 0, "Same seed, same answer (default: random)", 2},
    {"stop", KEY_STOP, "TEXT", 0, "End before this text; may be given up to 16 times", 2},
    {"deadline-ms", KEY_DEADLINE, "N", 0, "End after so many milliseconds", 2},
    {0},
};

const struct argp request_argp = {.options = known_options, .parser = parse};

bool request_has_chat_template(struct quern *client)
{
    size_t n;
    const struct quern_model *models = quern_models(client, &n);
    return n > 0 && models[0].chat;
}

/* SPDX-License-Identifier: MIT */
/* Totals, and a table of the workers. Why a worker failed is a sentence and stands below the table. */

#include "client/command/status_view.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/command/pool/place.h"
#include "client/command/terminal/table.h"
#include "common/amount.h"
#include "common/utf8.h"
#include "proto/bounds.h"

enum { KEY_CONNECT = 1024, KEY_RUNDIR, KEY_SERVER_KEY, KEY_CLIENT_KEY }; /* beyond the keys of the verbs */

static int parse(int key, char *arg, struct argp_state *state)
{
    struct status_arguments *arguments = state->input;
    switch (key) {
    case KEY_CONNECT:
    case KEY_RUNDIR:
        place_take(state, key == KEY_RUNDIR, arg, &arguments->connect);
        return 0;
    case KEY_SERVER_KEY:
        arguments->server_key = arg;
        return 0;
    case KEY_CLIENT_KEY:
        arguments->client_key = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option known[] = {
    {"connect", KEY_CONNECT, "EP", 0, "Pool to use: ipc://PATH, tcp://HOST:PORT or a run directory", 0},
    {"rundir", KEY_RUNDIR, "DIR", 0, "The pool to use, by its run directory", 0},
    {"server-key", KEY_SERVER_KEY, "KEY", 0, "Public CURVE key of that pool, or a file that holds it", 0},
    {"client-key", KEY_CLIENT_KEY, "FILE", 0, "This client's CURVE certificate (its secret file)", 0},
    {0},
};

const struct argp status_argp = {.options = known, .parser = parse};

error_t worker_arguments_parse(int key, char *text, struct argp_state *state)
{
    struct worker_arguments *arguments = state->input;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = &arguments->common;
    if (key == ARGP_KEY_INIT)
        return 0;
    if (key != ARGP_KEY_ARG)
        return arguments_take(arguments->table, arguments->known, key, text, state, arguments);
    if (arguments->worker)
        argp_usage(state);
    if (!*text || strlen(text) > PROTO_MAX_NAME_BYTES)
        argp_error(state, "WORKER: \"%.80s\" is not a worker's name", text);
    arguments->worker = text;
    return 0;
}

int status_ask(struct quern *client, const struct quern_status **ret_status, struct error *err)
{
    struct quern_error said = {0};
    int r = quern_status(client, STATUS_TIMEOUT_MS, ret_status, &said);
    return r < 0 ? error_set(err, r, "%s", said.text) : 0;
}

enum column {
    WORKER,
    STATE,
    PID,
    RESTARTS,
    ACTIVE,
    WAITING,
    KV_FREE,
    CACHED,
    EVICTED,
    RESTORED,
    HITS,
    TOKENS,
    RATE,
    MODEL,
    DEVICE,
    N_COLUMNS
};

static const struct table_column columns_of_workers[N_COLUMNS] = {
    [WORKER] = {"WORKER", 14, true},     [STATE] = {"STATE", 13, true},
    [PID] = {"PID", 10, false},          [RESTARTS] = {"RESTARTS", 3, false},
    [ACTIVE] = {"ACTIVE", 12, false},    [WAITING] = {"WAITING", 5, false},
    [KV_FREE] = {"KV FREE", 6, false},   [CACHED] = {"CACHED", 2, false},
    [EVICTED] = {"EVICTED", 1, false},   [HITS] = {"HITS", 7, false},
    [TOKENS] = {"TOKENS", 8, false},     [RATE] = {"TOKENS/S", 11, false},
    [MODEL] = {"MODEL", 9, true},        [DEVICE] = {"DEVICE", 4, true},
    [RESTORED] = {"RESTORED", 0, false},
};

static void fill_text(const struct quern_worker *w, enum column column, char ret_cell[TABLE_CELL_MAX])
{
    switch (column) {
    case WORKER:
        utf8_printable(bytes_of_string(w->name), TABLE_CELL_MAX, ret_cell);
        break;
    case STATE:
        utf8_printable(bytes_of_string(w->state), TABLE_CELL_MAX, ret_cell);
        break;
    case PID:
        snprintf(ret_cell, TABLE_CELL_MAX, "%u", w->pid);
        break;
    case RESTARTS:
        snprintf(ret_cell, TABLE_CELL_MAX, "%u", w->restarts);
        break;
    case ACTIVE:
        snprintf(ret_cell, TABLE_CELL_MAX, "%u/%u", w->active, w->slots);
        break;
    case WAITING:
        snprintf(ret_cell, TABLE_CELL_MAX, "%u", w->waiting);
        break;
    case KV_FREE:
        snprintf(ret_cell, TABLE_CELL_MAX, "%u/%u", w->kv_free, w->kv_total);
        break;
    case CACHED:
        snprintf(ret_cell, TABLE_CELL_MAX, "%u", w->kv_cached);
        break;
    case EVICTED:
        snprintf(ret_cell, TABLE_CELL_MAX, "%" PRIu64, w->evictions);
        break;
    case RESTORED:
        snprintf(ret_cell, TABLE_CELL_MAX, "%" PRIu64, w->restores);
        break;
    case HITS:
        snprintf(ret_cell, TABLE_CELL_MAX, "%.0f%%", w->hit_rate * 100);
        break;
    case TOKENS:
        snprintf(ret_cell, TABLE_CELL_MAX, "%" PRIu64, w->tokens);
        break;
    case RATE:
        snprintf(ret_cell, TABLE_CELL_MAX, "%.1f", w->tokens_per_s);
        break;
    case MODEL:
        utf8_printable(bytes_of_string(w->model), TABLE_CELL_MAX, ret_cell);
        break;
    case DEVICE:
        utf8_printable(bytes_of_string(w->device), TABLE_CELL_MAX, ret_cell);
        break;
    case N_COLUMNS:
        break;
    }
}

#define RED    "\033[31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN  "\033[0m"

static const char *colour_of_state(const char *state)
{
    if (strcmp(state, "ready") == 0)
        return GREEN;
    return strcmp(state, "failed") == 0 || strcmp(state, "absent") == 0 ? RED : YELLOW;
}

static void fill_cell(const void *arg, size_t row, size_t column, struct table_cell *ret_cell)
{
    const struct quern_status *status = arg;
    const struct quern_worker *worker = &status->workers[row];
    fill_text(worker, column, ret_cell->text);
    if (column == STATE)
        ret_cell->colour = colour_of_state(worker->state);
}

/* The integer that is nearest to a sum of them. */
static uint64_t whole(double sum)
{
    return sum < (double)UINT64_MAX ? (uint64_t)sum : UINT64_MAX;
}

/* Whom to signal, and whom to look at in top(1). A broker of an earlier version says nothing of that. */
static void print_processes(const struct quern_status *status)
{
    if (status->supervisor_pid == 0)
        return;
    printf("processes: supervisor %u, broker %u", status->supervisor_pid, status->broker_pid);
    if (status->gateway_pid > 0)
        printf(", gateway %u", status->gateway_pid);
    printf("\n");
}

static void print_journal(const struct quern_status *status)
{
    printf("%" PRIu64 " tokens", status->tokens);
    if (status->max_tokens > 0)
        printf(", at most %u of an answer", status->max_tokens);
    printf("; journal %.1f MiB", (double)status->journal_bytes / (1 << 20));
    if (status->journal_limit > 0) /* else it is a broker of an earlier version */
        printf(" of %.0f", (double)status->journal_limit / (1 << 20));
    if (status->journal_waiting > 0)
        printf(", %s for room", amount_of(status->journal_waiting, "request").text);
    printf("\n");
}

/* Tokens of prompts, of all workers together, since they were started. The sums are real
 * numbers, since a worker that was taken over may say the largest counters there are. */
static void print_prompts(const struct quern_status *status)
{
    double found = 0, computed = 0, bytes = 0, kept = 0;
    for (size_t i = 0; i < status->n_workers; i++) {
        const struct quern_worker *worker = &status->workers[i];
        found += (double)worker->cache_hits;
        computed += (double)worker->prefill_tokens;
        bytes += (double)worker->kv_total * worker->kv_block_bytes;
        kept += (double)worker->kv_cached * worker->kv_block_bytes;
    }
    printf("%.0f prompt tokens computed, %.0f found in caches", computed, found);
    if (found > 0)
        printf(": %.0f%%", 100 * found / (found + computed));
    printf("\nKV caches of %s, %s of them kept for prompts\n", amount_of_bytes(whole(bytes)).text,
           amount_of_bytes(whole(kept)).text);
}

/* The type of a worker's KV cache, in what it says of its arithmetic; ret_len 0: it does not. */
static const char *kv_type(const struct quern_worker *worker, int *ret_len)
{
    const char *type = worker->arithmetic ? strstr(worker->arithmetic, " kv=") : NULL;
    *ret_len = type ? (int)strcspn(type + 4, " ") : 0;
    return type ? type + 4 : "";
}

static bool have_same_context(const struct quern_worker *a, const struct quern_worker *b)
{
    int len_a, len_b;
    const char *type_a = kv_type(a, &len_a), *type_b = kv_type(b, &len_b);
    return strcmp(a->model, b->model) == 0 && a->context == b->context && len_a == len_b &&
           strncmp(type_a, type_b, (size_t)len_a) == 0;
}

/* Once for all workers of a model that have the same. The name is cut where `columns` (0: any number) hold no
 * more. */
static void print_context(const struct quern_status *status, size_t i, size_t columns)
{
    const struct quern_worker *worker = &status->workers[i];
    char name[1024], type[64], line[160];
    int len;
    const char *said = kv_type(worker, &len);
    if (worker->context == 0)
        return;
    for (size_t j = 0; j < i; j++)
        if (have_same_context(&status->workers[j], worker))
            return;
    utf8_printable((struct bytes){said, (size_t)len}, sizeof type, type);
    const size_t n =
        (size_t)snprintf(line, sizeof line, ": context of %s%s%s", amount_of(worker->context, "token").text,
                         len > 0 ? ", KV type " : "", type);
    size_t room = columns > n + 3 ? columns - n + 1 : 4;
    if (columns == 0 || room > sizeof name)
        room = sizeof name;
    utf8_printable(bytes_of_string(worker->model), room, name);
    printf("%s%s\n", name, line);
}

/* What --host-sampling has found, of workers that compare. */
static void print_comparison(const struct quern_worker *worker, bool colours)
{
    const bool wrong = worker->ids_different > 0;
    if (worker->ids_compared > 0)
        printf("\n%s%s: %" PRIu64 " of %" PRIu64 " tokens sampled differently by GPU and host%s\n",
               wrong && colours ? RED : "", worker->name, worker->ids_different, worker->ids_compared,
               wrong && colours ? PLAIN : "");
}

/* How good the drafts of --draft are, of workers that make some. */
static void print_drafts(const struct quern_worker *worker)
{
    if (worker->drafted > 0)
        printf("\n%s: %" PRIu64 " of %" PRIu64 " drafted tokens were accepted (%.0f%%)\n", worker->name,
               worker->accepted, worker->drafted, 100 * (double)worker->accepted / (double)worker->drafted);
}

/* What a GPU has launched, and of its rows the part that only filled recorded sizes. */
static void print_launches(const struct quern_worker *worker)
{
    const double padding = (double)worker->padding_rows;
    if (worker->launches == 0 && worker->recorded_launches == 0)
        return;
    printf("\n%s: %" PRIu64 " steps launched as one recording, %" PRIu64 " kernels one by one", worker->name,
           worker->recorded_launches, worker->launches);
    if (worker->refused_recordings > 0)
        printf(", recordings of %s refused by the driver",
               amount_of(worker->refused_recordings, "size").text);
    if (worker->library_products > 0)
        printf(", %" PRIu64 " products by cuBLASLt", worker->library_products);
    if (padding > 0)
        printf(", %.0f%% of rows are padding", 100 * padding / (worker->step_rows.sum + padding));
    printf("\n");
}

/* Once for all workers that say the same, which is those with the same device and model. */
static void print_choices(const struct quern_status *status, size_t i)
{
    const struct quern_worker *worker = &status->workers[i];
    char text[256];
    if (!worker->choices || !worker->choices[0])
        return;
    for (size_t j = 0; j < i; j++)
        if (status->workers[j].choices && strcmp(status->workers[j].choices, worker->choices) == 0)
            return;
    printf("\n%s: %s\n", worker->name, utf8_printable(bytes_of_string(worker->choices), sizeof text, text));
}

/* Once for all workers of a model. */
static void print_aliases(const struct quern_status *status, size_t i)
{
    const struct quern_worker *worker = &status->workers[i];
    char text[1024];
    if (!worker->aliases || !worker->aliases[0])
        return;
    for (size_t j = 0; j < i; j++)
        if (strcmp(status->workers[j].model, worker->model) == 0)
            return;
    printf("\n%s answers to", utf8_printable(bytes_of_string(worker->model), sizeof text, text));
    for (size_t j = 0; worker->aliases[j]; j++)
        printf("%s%s", j > 0 ? ", " : " ",
               utf8_printable(bytes_of_string(worker->aliases[j]), sizeof text, text));
    printf(" too\n");
}

/* "45 s", "5 min", "3 h 5 min", "4 d 3 h". */
static const char *put_duration(uint64_t s, char *ret_text, size_t size)
{
    if (s < 60)
        snprintf(ret_text, size, "%" PRIu64 " s", s);
    else if (s < 3600)
        snprintf(ret_text, size, "%" PRIu64 " min", s / 60);
    else if (s < 86400)
        snprintf(ret_text, size, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
    else
        snprintf(ret_text, size, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s / 3600 % 24);
    return ret_text;
}

void status_print(const struct quern_status *status, size_t columns, bool colours)
{
    char uptime[64];
    const struct table workers = {columns_of_workers, N_COLUMNS, status->n_workers, fill_cell, status};
    printf("broker %s%s, boot %" PRIu64, status->version, status->draining ? ", draining" : "", status->boot);
    if (status->uptime_s > 0) /* else it has just begun, or is of an earlier version */
        printf(", up %s", put_duration(status->uptime_s, uptime, sizeof uptime));
    printf(": %u session%s, %u queued, %u running\n", status->sessions, status->sessions == 1 ? "" : "s",
           status->queued, status->running);
    print_processes(status);
    printf("%" PRIu64 " admitted, %" PRIu64 " ended, %" PRIu64 " refused, %" PRIu64 " moved\n",
           status->admitted, status->ended, status->rejected, status->moved);
    print_journal(status);
    print_prompts(status);
    for (size_t i = 0; i < status->n_workers; i++)
        print_context(status, i, columns);
    printf("\n");
    table_print(&workers, columns, colours);
    for (size_t i = 0; i < status->n_workers; i++)
        print_aliases(status, i);
    for (size_t i = 0; i < status->n_workers; i++) {
        print_comparison(&status->workers[i], colours);
        print_choices(status, i);
        print_launches(&status->workers[i]);
        print_drafts(&status->workers[i]);
    }
    for (size_t i = 0; i < status->n_workers; i++) {
        const struct quern_worker *w = &status->workers[i];
        char reason[1024];
        if (w->reason[0])
            printf("\n%s%s: %s%s\n", colours ? RED : "", w->name,
                   utf8_printable(bytes_of_string(w->reason), sizeof reason, reason), colours ? PLAIN : "");
    }
}

size_t status_columns(void)
{
    struct winsize size = {0};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

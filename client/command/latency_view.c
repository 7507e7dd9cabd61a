/* SPDX-License-Identifier: MIT */
/* Latencies of the last moment.
 *
 * Histograms only grow, so the difference of two looks is what happened between them. A worker that was
 * started anew counts from zero, and is compared with nothing. Half of the values are below the first number
 * of a cell, 99% below the second. */

#include "client/command/latency_view.h"

#include <stdio.h>
#include <string.h>

#include "client/command/terminal/table.h"
#include "common/utf8.h"

/* Above these, in seconds, a time is yellow, and above ten times as much red. */
#define LONG_GAP   0.1
#define LONG_FIRST 1.0
#define BAR        10  /* characters */
#define FULL       0.9 /* from this share on a bar is yellow */
#define YELLOW     "\033[33m"
#define RED        "\033[31m"

double latency_quantile(const struct quern_histogram *histogram, double q)
{
    uint64_t n = 0, below = 0;
    for (int i = 0; i <= QUERN_HISTOGRAM_BOUNDS; i++)
        n += histogram->counts[i];
    const double rank = q * (double)n;
    for (int i = 0; n > 0 && i < QUERN_HISTOGRAM_BOUNDS; i++) {
        const double low = i > 0 ? histogram->bounds[i - 1] : 0;
        const uint64_t count = histogram->counts[i];
        if (count > 0 && (double)(below + count) >= rank)
            return low + (histogram->bounds[i] - low) * (rank - (double)below) / (double)count;
        below += count;
    }
    return n > 0 ? histogram->bounds[QUERN_HISTOGRAM_BOUNDS - 1] : 0;
}

struct quern_histogram latency_since(const struct quern_histogram *now, const struct quern_histogram *before)
{
    struct quern_histogram since = *now;
    for (int i = 0; i <= QUERN_HISTOGRAM_BOUNDS; i++)
        since.counts[i] -= before->counts[i];
    since.sum -= before->sum;
    return since;
}

static uint64_t count_of(const struct quern_histogram *histogram)
{
    uint64_t n = 0;
    for (int i = 0; i <= QUERN_HISTOGRAM_BOUNDS; i++)
        n += histogram->counts[i];
    return n;
}

static const char *put_time(double seconds, char *ret_text, size_t size)
{
    if (seconds >= 1)
        snprintf(ret_text, size, "%.1f s", seconds);
    else
        snprintf(ret_text, size, seconds < 0.01 ? "%.1f ms" : "%.0f ms", 1000 * seconds);
    return ret_text;
}

/* The median and the 99th percentile; `limit` 0: never in colour. */
static void fill_times(const struct quern_histogram *histogram, double limit, struct table_cell *ret_cell)
{
    char middle[16], high[16];
    if (count_of(histogram) == 0) {
        strcpy(ret_cell->text, "-");
        return;
    }
    const double last = latency_quantile(histogram, 0.99);
    snprintf(ret_cell->text, sizeof ret_cell->text, "%s, %s",
             put_time(latency_quantile(histogram, 0.5), middle, sizeof middle),
             put_time(last, high, sizeof high));
    if (limit > 0 && last > limit)
        ret_cell->colour = last > 10 * limit ? RED : YELLOW;
}

static void fill_mean(const struct quern_histogram *histogram, double factor, const char *unit,
                      struct table_cell *ret_cell)
{
    const uint64_t n = count_of(histogram);
    if (n == 0)
        strcpy(ret_cell->text, "-");
    else
        snprintf(ret_cell->text, sizeof ret_cell->text, "%.*f%s", unit[0] ? 0 : 1,
                 factor * histogram->sum / (double)n, unit);
}

/* The mean of rows, and of those that were computed where some only filled a recorded size: "5.2 of 8.0". */
static void fill_rows(const struct latencies *since, struct table_cell *ret_cell)
{
    const uint64_t n = count_of(&since->rows);
    fill_mean(&since->rows, 1, "", ret_cell);
    const size_t len = strlen(ret_cell->text);
    if (n > 0 && since->padding_rows > 0)
        snprintf(ret_cell->text + len, sizeof ret_cell->text - len, " of %.1f",
                 (since->rows.sum + (double)since->padding_rows) / (double)n);
}

/* The mean of shares as a bar. */
static void fill_bar(const struct quern_histogram *histogram, struct table_cell *ret_cell)
{
    const uint64_t n = count_of(histogram);
    const double share = n > 0 ? histogram->sum / (double)n : 0;
    const int filled = share < 1 ? (int)(share * BAR + 0.5) : BAR;
    if (n == 0)
        return;
    memset(ret_cell->text, '#', (size_t)filled);
    memset(ret_cell->text + filled, '-', (size_t)(BAR - filled));
    if (share >= FULL)
        ret_cell->colour = YELLOW;
}

/* What came since `before`, which becomes `now`. */
static struct quern_histogram take(struct quern_histogram *before, struct quern_histogram now)
{
    const struct quern_histogram since = latency_since(&now, before);
    *before = now;
    return since;
}

static struct quern_histogram sum(struct quern_histogram a, struct quern_histogram b)
{
    for (int i = 0; i <= QUERN_HISTOGRAM_BOUNDS; i++)
        a.counts[i] += b.counts[i];
    a.sum += b.sum;
    return a;
}

enum column { WORKER, DECODE, PROMPT, GAP, FIRST, ROWS, SLOTS, SLOTS_BAR, KV, KV_BAR, N_COLUMNS };

static const struct table_column columns[N_COLUMNS] = {
    [WORKER] = {"HALF, 99%", 7, true},
    [DECODE] = {"DECODE STEP", 4, false},
    [PROMPT] = {"PROMPT STEP", 3, false},
    [GAP] = {"TOKEN GAP", 6, false},
    [FIRST] = {"FIRST TOKEN", 5, false},
    [ROWS] = {"ROWS", 0, false},
    [SLOTS] = {"SLOTS", 1, false},
    [SLOTS_BAR] = {"", -2, true},
    [KV] = {"KV", 2, false},
    [KV_BAR] = {"", -1, true},
};

struct shown {
    const struct latency_view *view;
    const struct quern_status *status;
};

static void fill_cell(const void *arg, size_t row, size_t column, struct table_cell *ret_cell)
{
    const struct shown *shown = arg;
    const struct latencies *since = &shown->view->since[row];
    switch ((enum column)column) {
    case WORKER:
        utf8_printable(bytes_of_string(shown->status->workers[row].name), TABLE_CELL_MAX, ret_cell->text);
        break;
    case DECODE:
        fill_times(&since->decode, 0, ret_cell);
        break;
    case PROMPT:
        fill_times(&since->other, 0, ret_cell);
        break;
    case GAP:
        fill_times(&since->gap, LONG_GAP, ret_cell);
        break;
    case FIRST:
        fill_times(&since->first, LONG_FIRST, ret_cell);
        break;
    case ROWS:
        fill_rows(since, ret_cell);
        break;
    case SLOTS:
        fill_mean(&since->slots, 100, "%", ret_cell);
        break;
    case SLOTS_BAR:
        fill_bar(&since->slots, ret_cell);
        break;
    case KV:
        fill_mean(&since->kv, 100, "%", ret_cell);
        break;
    case KV_BAR:
        fill_bar(&since->kv, ret_cell);
        break;
    case N_COLUMNS:
        break;
    }
}

/* What has happened at a worker since the last look. */
static void look(struct latencies *before, struct latencies *since, const struct quern_worker *w)
{
    if (before->incarnation != w->incarnation)
        *before = (struct latencies){.incarnation = w->incarnation};
    since->decode = take(&before->decode, w->step_decode);
    since->other = take(&before->other, sum(w->step_prefill, w->step_mixed));
    since->gap = take(&before->gap, w->token_gap);
    since->first = take(&before->first, w->first_token);
    since->rows = take(&before->rows, w->step_rows);
    since->padding_rows = w->padding_rows - before->padding_rows;
    before->padding_rows = w->padding_rows;
    since->slots = take(&before->slots, w->slots_used);
    since->kv = take(&before->kv, w->kv_used);
}

void latency_print(struct latency_view *view, const struct quern_status *status, size_t width, bool colours)
{
    const struct shown shown = {view, status};
    const size_t n = status->n_workers < LATENCY_VIEW_WORKERS ? status->n_workers : LATENCY_VIEW_WORKERS;
    const struct table table = {columns, N_COLUMNS, n, fill_cell, &shown};
    for (size_t i = 0; i < n; i++)
        look(&view->before[i], &view->since[i], &status->workers[i]);
    printf("\n");
    table_print(&table, width, colours);
}

/* SPDX-License-Identifier: MIT */
/* Latencies of the last moment.
 *
 * Histograms only grow, so the difference of two looks is what happened between them. A worker that was
 * started anew counts from zero, and is compared with nothing. Half of the values are below the first number
 * of a cell, 99% below the second. */

#include "client/command/latency_view.h"

#include <stdio.h>

#include "common/utf8.h"

/* Above these, in seconds, a time is yellow, and above ten times as much red. */
#define LONG_GAP   0.1
#define LONG_FIRST 1.0

#define CELL 20

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
static void print_times(const struct quern_histogram *histogram, double limit, bool colours)
{
    char middle[16], high[16], cell[2 * sizeof middle + 4];
    if (count_of(histogram) == 0) {
        printf("  %*s", CELL, "-");
        return;
    }
    const double last = latency_quantile(histogram, 0.99);
    snprintf(cell, sizeof cell, "%s, %s", put_time(latency_quantile(histogram, 0.5), middle, sizeof middle),
             put_time(last, high, sizeof high));
    const char *colour = !colours || limit == 0 || last <= limit ? ""
                         : last <= 10 * limit                    ? "\033[33m"
                                                                 : "\033[31m";
    printf("  %s%*s%s", colour, CELL, cell, colour[0] ? "\033[0m" : "");
}

static void print_mean(const struct quern_histogram *histogram, double factor, const char *unit)
{
    const uint64_t n = count_of(histogram);
    char cell[32] = "-";
    if (n > 0)
        snprintf(cell, sizeof cell, "%.*f%s", unit[0] ? 0 : 1, factor * histogram->sum / (double)n, unit);
    printf("  %6s", cell);
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

void latency_print(struct latency_view *view, const struct quern_status *status, bool colours)
{
    char name[64];
    printf("\n%-12s  %*s  %*s  %*s  %*s  %6s  %6s  %6s\n", "HALF, 99%", CELL, "DECODE STEP", CELL,
           "PROMPT STEP", CELL, "TOKEN GAP", CELL, "FIRST TOKEN", "ROWS", "SLOTS", "KV");
    for (size_t i = 0; i < status->n_workers && i < LATENCY_VIEW_WORKERS; i++) {
        const struct quern_worker *w = &status->workers[i];
        if (view->before[i].incarnation != w->incarnation)
            view->before[i] = (typeof(view->before[i])){.incarnation = w->incarnation};
        typeof(&view->before[i]) before = &view->before[i];
        const struct quern_histogram decode = take(&before->decode, w->step_decode);
        const struct quern_histogram other = take(&before->other, sum(w->step_prefill, w->step_mixed));
        const struct quern_histogram gap = take(&before->gap, w->token_gap);
        const struct quern_histogram first = take(&before->first, w->first_token);
        const struct quern_histogram rows = take(&before->rows, w->step_rows);
        const struct quern_histogram slots = take(&before->slots, w->slots_used);
        const struct quern_histogram kv = take(&before->kv, w->kv_used);
        printf("%-12s", utf8_printable(bytes_of_string(w->name), sizeof name, name));
        print_times(&decode, 0, colours);
        print_times(&other, 0, colours);
        print_times(&gap, LONG_GAP, colours);
        print_times(&first, LONG_FIRST, colours);
        print_mean(&rows, 1, "");
        print_mean(&slots, 100, "%");
        print_mean(&kv, 100, "%");
        printf("\n");
    }
}

/* SPDX-License-Identifier: MIT */
/* See wishes.h. A pool without a worker that serves would keep what it was asked for, and nobody could say
 * for how long; so nothing is done that leaves none. */

#include "supervisor/wishes.h"

#include <errno.h>

#include "common/files/fleet_secret.h"

/* Whether a worker other than this one serves, among the first `n`. */
static bool another_serves(const struct places *places, uint32_t but, uint32_t n)
{
    for (uint32_t i = 0; i < places->n && i < n; i++)
        if (i != but && places_serves(places, i))
            return true;
    return false;
}

int wishes_check_scale(const struct places *places, uint32_t n, struct error *err)
{
    if (n < 1 || n > SUPERVISION_PLACES_MAX)
        return error_out_of_range_unsigned(err, -EINVAL, "the number of workers", n, 1,
                                           SUPERVISION_PLACES_MAX);
    if (n < places->n && !another_serves(places, UINT32_MAX, n))
        return error_set(err, -EINVAL, "none of the remaining %u workers is serving", n);
    return 0;
}

int wishes_check_worker(const struct places *places, uint32_t index, bool drain, struct error *err)
{
    if (index >= places->n)
        return error_set(err, -EINVAL, "unknown worker-%u: the pool has %u, from worker-0 on", index,
                         places->n);
    if (places->places[index].drained == drain)
        return error_set(err, -EINVAL, "worker-%u is %s", index, drain ? "drained already" : "not drained");
    if (drain && !another_serves(places, index, UINT32_MAX))
        return error_set(err, -EINVAL, "worker-%u cannot be drained: no other worker serves", index);
    return 0;
}

int wishes_read_settings(const struct places *places, const struct wishes_line *line,
                         struct options *ret_options, struct error *err)
{
    if (!places->options->config[0])
        return error_set(err, -EINVAL, "the pool was started without a configuration file (--config)");
    int r = options_parse_again(line->argc, line->argv, places->options, ret_options, err);
    if (r == 0 && ret_options->journal > line->most_journal)
        r = error_set(err, -EINVAL, "journal: %u MiB; at most %u are possible while the pool runs",
                      ret_options->journal, line->most_journal);
    struct fleet_secret secret;
    if (r == 0 && ret_options->fleet_secret[0] &&
        (r = fleet_secret_read(ret_options->fleet_secret, &secret, err)) < 0)
        error_prefix(err, r, "fleet-secret");
    return r < 0 ? r : wishes_check_scale(places, ret_options->workers, err);
}

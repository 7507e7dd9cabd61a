/* SPDX-License-Identifier: MIT */
/* In the place of exporter.c, where libcurl is missing. */

#include "gateway/telemetry/exporter.h"

#include <errno.h>

int exporter_check(const struct exporter_options *options, struct error *err)
{
    return error_set(err, -ENOTSUP, "%s: this gateway was built without libcurl", options->url);
}

int exporter_start(const struct exporter_options *options, struct exporter **ret_exporter, struct error *err)
{
    *ret_exporter = NULL;
    return exporter_check(options, err);
}

void exporter_count(const struct exporter *exporter, uint64_t *ret_sent, uint64_t *ret_lost)
{
    *ret_sent = *ret_lost = 0;
}

void exporter_add(struct exporter *exporter, const struct traced_request *request)
{
}

struct exporter *exporter_stop(struct exporter *exporter)
{
    return NULL;
}

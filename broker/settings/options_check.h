/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SETTINGS_OPTIONS_CHECK_H
#define BROKER_SETTINGS_OPTIONS_CHECK_H

/* Which settings go together. */

#include "broker/settings/options.h"

/* 0, or -EINVAL or -EPERM with the reason: settings that exclude or require each other, addresses that are
 * none, TCP beyond this machine without what guards it. */
int options_check(const struct options *options, struct error *err);

/* Whether TCP may be served beyond this machine as it is asked for: 0, or -EPERM with what is missing. */
int options_check_guarded(const struct options *options, struct error *err);

/* Splits HOST:PORT (a v6 host in brackets); "*" is the wildcard. -EINVAL. *ret_loopback: the host names this
 * machine only. */
int options_split_tcp(const char *tcp, char ret_host[OPTIONS_TEXT_MAX + 1], uint16_t *ret_port,
                      bool *ret_loopback, struct error *err);

#endif

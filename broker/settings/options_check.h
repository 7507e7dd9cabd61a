/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SETTINGS_OPTIONS_CHECK_H
#define BROKER_SETTINGS_OPTIONS_CHECK_H

/* Checks that settings fit together. */

#include "broker/settings/options.h"

/* 0, or -EINVAL or -EPERM with the reason: settings that exclude or require each other, invalid addresses,
 * TCP beyond this machine without keys. */
int options_check(const struct options *options, struct error *err);

/* Whether these options allow TCP beyond this machine: 0, or -EPERM with the missing option. */
int options_check_guarded(const struct options *options, struct error *err);

/* Splits HOST:PORT (an IPv6 host in brackets; "*" is the wildcard). *ret_loopback: only this machine can
 * reach the host. 0 or -EINVAL with the reason. */
int options_split_tcp(const char *tcp, char ret_host[OPTIONS_TEXT_MAX + 1], uint16_t *ret_port,
                      bool *ret_loopback, struct error *err);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_TALK_H
#define TESTS_INTEGRATION_HOSTILE_TALK_H

/* The HTTP clients among the good ones. */

#include "tests/integration/hostile/good.h"

/* Requests one stream after another (the streamer), or one answer after another (the asker), until the test
 * is over or it has failed. */
void talk_be_client(struct good *good, const struct good_target *target, bool stream);

#endif

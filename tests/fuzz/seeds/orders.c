/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_orders: workers that become ready, are killed and are born again; one that will not come up;
 * orders that name no worker, or one that was; all of them are stopped. */

#include "tests/fuzz/driver.h"

#include <string.h>

#include "proto/supervision.h"

enum { ORDER, BEAR = 2, DIE = 3, SECOND = 16, CRASH = 11 };

static uint8_t input[1 << 10];
static size_t used;

static void add(int what, const void *record, size_t size)
{
    input[used++] = (uint8_t)what;
    input[used++] = (uint8_t)size;
    if (size > 0)
        memcpy(input + used, record, size);
    used += size;
}

static void add_order(enum order_kind kind, uint32_t index, uint32_t incarnation)
{
    const struct order order = {kind, index, incarnation};
    add(ORDER, &order, sizeof order);
}

static void add_death(uint8_t index, uint8_t status, uint8_t signal)
{
    const uint8_t record[] = {index, status, signal};
    add(DIE, record, sizeof record);
    add(BEAR + SECOND, NULL, 0);
}

static void finish(void)
{
    fuzz_add_seed(input, used);
    used = 0;
}

void fuzz_seeds(void)
{
    add_order(ORDER_SERVING, 0, 0);
    for (uint32_t i = 0; i < 3; i++)
        add_order(ORDER_READY, i, 1);
    add_order(ORDER_KILL, 1, 1);
    add_death(1, 0, 9);
    add_order(ORDER_READY, 1, 2);
    add_order(ORDER_STOP, 0, 0);
    add_death(0, 0, 0);
    finish();
    for (int deaths = 0; deaths < 6; deaths++) {
        add_death(0, 0, CRASH);
        add(BEAR + 3 * SECOND, NULL, 0);
    }
    add_order(ORDER_READY, 0, 6);
    finish();
    add_order(ORDER_READY, 3, 1);
    add_order(ORDER_KILL, UINT32_MAX, 1);
    add_order(ORDER_KILL, 0, 0);
    add_order(ORDER_KILL, 0, 2);
    add_order(ORDER_STOP + 1, 0, 1);
    finish();
    add_death(2, 78, 0);
    add_order(ORDER_KILL, 2, 1);
    add_order(ORDER_STOP, 2, 1);
    add_order(ORDER_READY, 0, 1);
    finish();
}

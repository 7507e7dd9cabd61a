/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_supervision: each kind of record, some of them twice. */

#include "tests/fuzz/driver.h"

#include <string.h>

#include "proto/control.h"
#include "proto/gateway_report.h"
#include "proto/supervision.h"

static uint8_t input[1 << 14];
static size_t used;

static void add(uint8_t to, const void *record, size_t size)
{
    const uint8_t head[3] = {to, (uint8_t)size, (uint8_t)(size >> 8)};
    memcpy(input + used, head, sizeof head);
    memcpy(input + used + sizeof head, record, size);
    used += sizeof head + size;
}

static void finish(void)
{
    fuzz_add_seed(input, used);
    used = 0;
}

static void add_place(enum place_state state, uint32_t incarnation)
{
    struct news news = {.kind = NEWS_PLACE, .version = SUPERVISION_VERSION};
    news.place = (struct place_record){.index = 1,
                                       .state = state,
                                       .incarnation = incarnation,
                                       .pid = 7,
                                       .start_at = 1000,
                                       .link = "ipc:///run/quern/link-1-1-1",
                                       .stream = "ipc:///run/quern/worker-1-1-1",
                                       .reason = "killed by signal 9 (Killed)"};
    add(0, &news, sizeof news);
}

void fuzz_seeds(void)
{
    struct news welcome = {.kind = NEWS_WELCOME, .version = SUPERVISION_VERSION};
    const struct news end = {.kind = NEWS_END, .version = SUPERVISION_VERSION, .signals = 1};
    const struct news leave = {.kind = NEWS_LEAVE, .version = SUPERVISION_VERSION};
    struct control_request request = {.version = CONTROL_VERSION, .kind = CONTROL_RELOAD};
    struct gateway_report report = {.version = GATEWAY_REPORT_VERSION, .kind = GATEWAY_SERVES};
    welcome.welcome.boot = 42;
    welcome.welcome.n_places = 3;
    add(0, &welcome, sizeof welcome);
    finish();
    add_place(PLACE_STARTING, 1);
    add_place(PLACE_READY, 1);
    add_place(PLACE_WAITING, 1);
    finish();
    add_place(PLACE_READY, 1);
    add_place(PLACE_STARTING, 2);
    add_place(PLACE_FAILED, 2);
    add(0, &end, sizeof end);
    add(0, &leave, sizeof leave);
    finish();
    add(1, &request, sizeof request);
    request.kind = CONTROL_RELOAD_GATEWAY;
    add(1, &request, sizeof request);
    for (uint32_t kind = CONTROL_RELOAD_CONFIG; kind <= CONTROL_UNDRAIN; kind++) {
        const struct control_numbered_request numbered = {{CONTROL_VERSION, kind}, kind};
        add(1, &numbered, sizeof numbered);
    }
    finish();
    add(2, &report, sizeof report);
    report.kind = GATEWAY_FAILS;
    memset(report.text, 'x', sizeof report.text);
    add(2, &report, sizeof report);
    finish();
}

/* SPDX-License-Identifier: MIT */
/* Any records between the processes of a pool: from the supervisor to its broker (proto/supervision.h), from
 * a client of `quern reload` (proto/control.h) and from a gateway (proto/gateway_report.h) to the supervisor.
 * None is read beyond its end; what is not understood is passed over, or refused once; what is kept of the
 * others can be told.
 *
 * An input is records: a byte that says from whom (modulo 3), two how long it is, and its bytes. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/core/status.h"
#include "common/files/rundir.h"
#include "common/utf8.h"
#include "supervisor/control.h"
#include "supervisor/children/gateway.h"

#define N 3

static struct broker *broker;
static const struct board_slot slots[N];
static char rundir[RUNDIR_PATH_MAX + 1];

static bool is_line(const char *text, size_t size)
{
    size_t len = strnlen(text, size);
    return len < size && utf8_valid((struct bytes){text, len}) == len && !memchr(text, '\n', len);
}

/* ---- to the broker ---- */

static void check_status(void)
{
    static struct worker_status workers[WORKER_MAX];
    struct message status;
    struct buffer out = {0};
    status_fill(broker, 1, workers, &status);
    if (message_encode(&status, &out) != 0)
        abort();
    buffer_deinit(&out);
}

static void tell_broker(const uint8_t *record, size_t len)
{
    struct supervisor *supervisor = &broker->supervisor;
    struct supervisor_change change;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
        abort();
    supervisor->fd = ends[1];
    supervisor->gone = false;
    if (send(ends[0], record, len, MSG_NOSIGNAL) != (ssize_t)len)
        abort();
    while (supervisor_take(supervisor, &change))
        if (change.index >= N || (!change.died && !change.born))
            abort();
    close(ends[0]);
    close(ends[1]);
    for (uint32_t i = 0; i < N; i++) {
        const struct place_record *known = &supervisor->places[i].record;
        if (known->state >= PLACE_STATE_COUNT || !is_line(known->reason, sizeof known->reason) ||
            strnlen(known->stream, sizeof known->stream) == sizeof known->stream ||
            strnlen(known->link, sizeof known->link) == sizeof known->link)
            abort();
    }
    if (supervisor_alive(supervisor) > N)
        abort();
    check_status();
}

/* As the welcome. */
static void welcome_broker(const uint8_t *record, size_t len)
{
    struct supervisor supervisor;
    struct error err = {{0}};
    struct news news = {0};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
        abort();
    memcpy(&news, record, len < sizeof news ? len : sizeof news);
    /* Not those of others. */
    news.welcome.rundir_fd = news.welcome.vault_fd = news.welcome.turns_fd = -1;
    memset(news.welcome.slot_fds, 0xff, sizeof news.welcome.slot_fds);
    if (send(ends[0], &news, len < sizeof news ? len : sizeof news, MSG_NOSIGNAL) < 0)
        abort();
    if (supervisor_init(&supervisor, ends[1], N, &err) == 0 || !is_line(err.text, sizeof err.text) ||
        !err.text[0])
        abort(); /* there is no board */
    supervisor_deinit(&supervisor);
    close(ends[0]);
    close(ends[1]);
}

/* ---- to the supervisor ---- */

static void ask_control(struct control *control, const uint8_t *record, size_t len)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct control_peer *peer = NULL;
    struct control_report report;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/" CONTROL_NAME, rundir);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        send(fd, record, len, MSG_NOSIGNAL) != (ssize_t)len)
        abort();
    while (control_take(control, &peer)) {
        if (peer->kind < CONTROL_RELOAD || peer->kind > CONTROL_UNDRAIN)
            abort();
        control_follow(peer);
    }
    control_report(control, CONTROL_DONE, "done");
    ssize_t n = recv(fd, &report, sizeof report, MSG_TRUNC);
    if (n != sizeof report || report.version != CONTROL_VERSION ||
        !is_line(report.text, sizeof report.text) || recv(fd, &report, sizeof report, 0) != 0)
        abort(); /* one answer, and the end */
    close(fd);
}

static void report_gateway(const uint8_t *record, size_t len)
{
    static const struct options options = {.http = "127.0.0.1:1"};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        abort();
    struct gateway_child child = {
        .options = &options, .listen_fd = -1, .next = {.report_fd = ends[0]}, .trial = GATEWAY_TRIAL_RUNS};
    if (send(ends[1], record, len, MSG_NOSIGNAL) != (ssize_t)len)
        abort();
    if (!gateway_child_reap(&child, 1000) || !is_line(child.reason, sizeof child.reason))
        abort();
    if ((child.trial == GATEWAY_TRIAL_PASSED || child.trial == GATEWAY_TRIAL_YIELD) && !child.current.serves)
        abort();
    if (child.next.report_fd > 0)
        close(child.next.report_fd);
    if (child.current.report_fd > 0)
        close(child.current.report_fd);
    close(ends[1]);
}

static void begin(void)
{
    broker = calloc(1, sizeof *broker);
    if (!broker || rundir_temporary(rundir, NULL) < 0)
        abort();
    for (unsigned i = 0; i < N; i++)
        broker->supervisor.slots[i] = &slots[i];
    broker->n_workers = broker->supervisor.n = N;
    for (unsigned i = 0; i < N; i++)
        snprintf(broker->workers[i].name, sizeof broker->workers[i].name, "worker-%u", i);
}

static void end(void)
{
    rundir_remove(rundir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct control control;
    struct error err;
    if (!broker) {
        begin();
        atexit(end);
        if (control_open(&control, rundir, &err) < 0)
            abort();
    }
    memset(broker->supervisor.places, 0, sizeof broker->supervisor.places);
    for (size_t at = 0; len - at >= 3;) {
        unsigned to = data[at] % 3;
        size_t n = data[at + 1] | (size_t)data[at + 2] << 8;
        at += 3;
        n = n < len - at ? n : len - at;
        uint8_t *record = malloc(n ? n : 1); /* for a sanitizer to watch */
        if (!record)
            abort();
        memcpy(record, data + at, n);
        if (n > 0 && to == 0)
            tell_broker(record, n);
        if (n > 0 && to == 0)
            welcome_broker(record, n);
        if (n > 0 && to == 1)
            ask_control(&control, record, n);
        if (n > 0 && to == 2)
            report_gateway(record, n);
        free(record);
        at += n;
    }
    return 0;
}

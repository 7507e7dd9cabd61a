/* SPDX-License-Identifier: MIT */
/* See request_log.h. */

#include "gateway/http/request_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/utf8.h"

/* `create` is O_CREAT or 0. */
static int open_file(const char *path, int create)
{
    /* A pipe that nobody reads is an error, and one that is full a lost line: neither holds requests up. */
    int fd = open(path, O_WRONLY | O_APPEND | create | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
    return fd < 0 ? -errno : fd;
}

/* 0 if a file may be made in the folder that is to hold it; or -errno. */
static int check_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const size_t len = slash ? (size_t)(slash - path) + 1 : 0;
    if (slash && slash[1] == 0)
        return -EISDIR;
    if (len >= sizeof folder)
        return -ENAMETOOLONG;
    snprintf(folder, sizeof folder, "%.*s.", (int)len, path);
    return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

int request_log_check(const char *path, struct error *err)
{
    struct stat link;
    int r = open_file(path, 0);
    if (r >= 0)
        close(r);
    if (r == -ENOENT && *path && lstat(path, &link) < 0) /* not a link to nothing */
        r = check_folder(path);
    return r < 0 ? error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int request_log_open(struct request_log *log, const char *path, struct error *err)
{
    int fd = open_file(path, O_CREAT);
    if (fd < 0)
        return error_set(err, fd, "%s: %s", path, strerror(-fd));
    *log = (struct request_log){.path = path, .fd = fd};
    return 0;
}

void request_log_reopen(struct request_log *log)
{
    int fd = open_file(log->path, O_CREAT);
    if (fd < 0) {
        log_error("%s: %s: requests are still written to the old file", log->path, strerror(-fd));
        return;
    }
    close(log->fd);
    log->fd = fd;
    log_info("%s: reopened", log->path);
}

void request_log_close(struct request_log *log)
{
    if (log->path)
        close(log->fd);
    json_out_deinit(&log->line);
    *log = (struct request_log){0};
}

/* Now, with milliseconds. */
static void write_time(struct json_out *out)
{
    struct timespec now;
    struct tm parts;
    char date[32], text[64];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, sizeof text, "\"%s.%03ldZ\"", date, now.tv_nsec / 1000000);
    json_out_text(out, text);
}

static void name(struct json_out *out, const char *key, const char *value)
{
    json_out_text(out, key);
    if (value && value[0])
        json_out_name(out, value);
    else
        json_out_text(out, "null");
}

static void number(struct json_out *out, const char *key, int64_t value)
{
    json_out_text(out, key);
    json_out_number(out, value);
}

static void real(struct json_out *out, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.3f", value);
    json_out_text(out, key);
    json_out_text(out, text);
}

static void write_record(struct json_out *out, const struct request_record *record)
{
    name(out, ",\"model\":", record->model);
    json_out_text(out, ",\"stream\":");
    json_out_bool(out, record->stream);
    number(out, ",\"choices\":", record->choices);
    name(out, ",\"finish\":", record->finish);
    number(out, ",\"prompt_tokens\":", record->prompt_tokens);
    number(out, ",\"cached_tokens\":", record->cached_tokens);
    number(out, ",\"output_tokens\":", record->output_tokens);
    real(out, ",\"first_token_ms\":", record->first_token_ms);
    real(out, ",\"queue_ms\":", record->queue_ms);
    real(out, ",\"prefill_ms\":", record->prefill_ms);
    real(out, ",\"prepare_ms\":", record->prepare_ms);
    real(out, ",\"wait_ms\":", record->wait_ms);
    real(out, ",\"lookup_ms\":", record->lookup_ms);
    real(out, ",\"decode_ms\":", record->decode_ms);
}

void request_record_error(struct request_record *record, const char *code, const char *param,
                          const char *message)
{
    /* If the body is not JSON, the parser quotes the text at which it stopped, which is the client's. */
    const char *quoted = strstr(message, " near '");
    const size_t len = quoted ? (size_t)(quoted - message) : strlen(message);
    record->code = code;
    utf8_printable(bytes_of_string(param), sizeof record->param, record->param);
    utf8_printable((struct bytes){message, len}, sizeof record->message, record->message);
}

static void write_line(struct json_out *out, const struct request_line *line)
{
    json_out_text(out, "{\"time\":");
    write_time(out);
    name(out, ",\"method\":", line->method);
    name(out, ",\"path\":", line->path);
    name(out, ",\"peer\":", line->peer);
    name(out, ",\"key\":", line->key);
    name(out, ",\"request_id\":", line->request_id);
    name(out, ",\"traceparent\":", line->traceparent);
    number(out, ",\"status\":", line->status);
    json_out_text(out, ",\"client_gone\":");
    json_out_bool(out, line->gone);
    real(out, ",\"duration_ms\":", line->seconds * 1e3);
    if (line->record->message[0]) {
        name(out, ",\"code\":", line->record->code);
        name(out, ",\"param\":", line->record->param);
        name(out, ",\"message\":", line->record->message);
    }
    if (line->record->choices > 0)
        write_record(out, line->record);
    json_out_text(out, "}\n");
}

/* 0 or -errno. A part of a line that went through is given an end, so that the next one begins anew. */
static int put(int fd, const struct json_out *line)
{
    if (line->failed)
        return -ENOMEM;
    ssize_t n = write(fd, line->buffer.data, line->buffer.len);
    if (n == (ssize_t)line->buffer.len)
        return 0;
    int code = n < 0 ? -errno : -ENOSPC;
    if (n > 0 && write(fd, "\n", 1) < 0)
        return code;
    return code;
}

void request_log_write(struct request_log *log, const struct request_line *line)
{
    if (!log->path)
        return;
    json_out_reset(&log->line);
    write_line(&log->line, line);
    int r = put(log->fd, &log->line);
    log->written += r == 0;
    log->lost += r < 0;
    if (r < 0 && !log->failing)
        log_error("%s: %s: requests are not logged", log->path, strerror(-r));
    else if (r == 0 && log->failing)
        log_info("%s: requests are logged again; %llu are missing", log->path, (unsigned long long)log->lost);
    log->failing = r < 0;
}

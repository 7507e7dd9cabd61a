/* SPDX-License-Identifier: MIT */
/* A heap of heaps with the rule of the queue around it (queue.c): a tenant that gave a request, or is new,
 * enters in the next turn. So a client that makes up a name for each request does not overtake tenants that
 * were waiting before. */

#include "broker/choose/tenants.h"

#include <errno.h>
#include <stdlib.h>

#include "common/hash.h"

static struct request *request_of(const struct heap_node *node)
{
    return HEAP_ITEM(node, struct request, queue_node);
}

static bool request_before(const struct heap_node *a, const struct heap_node *b)
{
    return request_presses_more(request_of(a), request_of(b));
}

static struct tenant_line *line_of(const struct heap_node *node)
{
    return HEAP_ITEM(node, struct tenant_line, node);
}

/* Neither is empty. */
static bool line_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct tenant_line *x = line_of(a), *y = line_of(b);
    return x->turn != y->turn ? x->turn < y->turn
                              : request_before(heap_first(&x->requests), heap_first(&y->requests));
}

void tenants_init(struct tenants *tenants)
{
    *tenants = (struct tenants){.lines.before = line_before};
}

void tenants_deinit(struct tenants *tenants)
{
    heap_deinit(&tenants->lines);
}

struct request *tenants_first(const struct tenants *tenants)
{
    const struct heap_node *line = heap_first(&tenants->lines);
    return line ? request_of(heap_first(&line_of(line)->requests)) : NULL;
}

/* ---- lines ---- */

static unsigned hash_of(const struct tenant_lines *lines, const struct tenant_key *key)
{
    return (unsigned)hash64(key, sizeof *key, lines->seed);
}

/* The line of this key, made if need be: empty, and in the next turn. NULL: out of memory. */
static struct tenant_line *line_for(struct tenant_lines *lines, const struct tenant_key *key)
{
    struct tenant_line *line;
    HASH_FIND_BYHASHVALUE(hh, lines->by_key, key, sizeof *key, hash_of(lines, key), line);
    if (line || !(line = calloc(1, sizeof *line)))
        return line;
    line->key = *key;
    line->requests.before = request_before;
    HASH_ADD_BYHASHVALUE(hh, lines->by_key, key, sizeof line->key, hash_of(lines, key), line);
    return line;
}

void tenant_line_tidy(struct tenant_lines *lines, struct tenant_line *line)
{
    if (line->requests.n > 0)
        return;
    HASH_DEL(lines->by_key, line);
    heap_deinit(&line->requests);
    free(line);
}

void tenant_lines_deinit(struct tenant_lines *lines)
{
    struct tenant_line *line, *next;
    HASH_ITER(hh, lines->by_key, line, next)
    {
        HASH_DEL(lines->by_key, line);
        heap_deinit(&line->requests);
        free(line);
    }
}

/* ---- requests ---- */

/* 0, or -ENOMEM with nothing changed. */
static int push_into(struct tenants *tenants, struct tenant_line *line, struct request *request)
{
    bool was_empty = line->requests.n == 0;
    int r = heap_push(&line->requests, &request->queue_node);
    if (r < 0)
        return r;
    if (was_empty)
        r = heap_push(&tenants->lines, &line->node);
    else
        heap_settle(&tenants->lines, &line->node);
    if (r < 0) {
        heap_remove(&line->requests, &request->queue_node);
        return r;
    }
    tenants->n++;
    request->queued_line = line;
    return 0;
}

int tenants_push(struct tenants *tenants, struct tenant_lines *lines, struct request *request)
{
    const struct tenant_key key = {tenants, request->tenancy.id};
    struct tenant_line *line = line_for(lines, &key);
    if (!line)
        return -ENOMEM;
    if (line->requests.n == 0)
        line->turn = tenants->turn + 1;
    int r = push_into(tenants, line, request);
    tenant_line_tidy(lines, line);
    return r;
}

void tenants_push_again(struct tenants *tenants, struct request *request)
{
    push_into(tenants, request->queued_line, request);
}

void tenants_leave(struct tenants *tenants, struct request *request)
{
    struct tenant_line *line = request->queued_line;
    if (line->requests.n == 1) /* before that: it is ordered by what the line has */
        heap_remove(&tenants->lines, &line->node);
    heap_remove(&line->requests, &request->queue_node);
    if (line->requests.n > 0)
        heap_settle(&tenants->lines, &line->node);
    tenants->n--;
}

void tenants_give(struct tenants *tenants, const struct request *request)
{
    struct tenant_line *line = request->queued_line;
    if (line->turn > tenants->turn)
        tenants->turn = line->turn;
    line->turn = tenants->turn + 1;
    heap_settle(&tenants->lines, &line->node);
}

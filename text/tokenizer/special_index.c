/* SPDX-License-Identifier: MIT */
/* An Aho-Corasick automaton over the spellings read backwards.
 *
 * Nodes are ends of spellings: the path from the root to a node spells one backwards. Run over a text from
 * its end, the automaton stands, after the byte at `p`, at the node of the longest string that both begins at
 * `p` and ends a spelling; its failure links lead to the shorter ones. So the tokens that begin at `p` are
 * the whole spellings on that path, longest first.
 *
 * A vocabulary may hold thousands that begin with one another (runs of blanks, or worse), so each whole
 * spelling also has a jump further down its path, as in a skip list: where levels of node, jump and the
 * jump's jump are equally far apart, jumps double, and a search takes O(log n). Edges are a hash table,
 * because a table of 256 for each node would take a kilobyte a node. */

#include "text/tokenizer/special_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "text/tokenizer/tokenizer.h"

/* A node stands for a byte of a spelling and takes about a hundred: no file makes more than a few hundred MB
 * of them, and no vocabulary has a tenth of as many. */
enum { MAX_NODES = 1 << 22 };

struct special_node {
    uint32_t parent, fail;
    uint32_t depth; /* bytes */
    int32_t id;     /* of the token whose spelling ends here; -1: none does */
    uint8_t byte;   /* the last one on the path */
    bool in_set[2];
    struct {
        uint32_t first; /* the first node from here along the failure links that is in the set */
        uint32_t jump;  /* of a node in the set: one further down the path */
        uint32_t level; /* … and how many of the set are on it */
    } path[2];
};

struct special_edge {
    uint64_t key; /* node ‖ byte, plus 1; 0: a free slot */
    uint32_t to;
};

static struct special_edge *find_edge(const struct special_index *index, uint32_t from, uint8_t byte)
{
    const uint64_t key = ((uint64_t)from << 8 | byte) + 1;
    uint32_t slot = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & index->edge_mask;
    while (index->edges[slot].key != 0 && index->edges[slot].key != key)
        slot = (slot + 1) & index->edge_mask;
    return &index->edges[slot];
}

static int grow_nodes(struct special_index *index)
{
    const uint32_t cap = index->cap + index->cap / 2 + 64;
    struct special_node *moved = realloc(index->nodes, cap * sizeof *moved);
    if (!moved)
        return -ENOMEM;
    index->nodes = moved;
    index->cap = cap;
    return 0;
}

/* The edges are made anew when they would fill more than half of their table. */
static int grow_edges(struct special_index *index)
{
    const uint32_t n = index->edges ? 2 * (index->edge_mask + 1) : 256;
    struct special_edge *edges = calloc(n, sizeof *edges);
    if (!edges)
        return -ENOMEM;
    free(index->edges);
    index->edges = edges;
    index->edge_mask = n - 1;
    for (uint32_t i = 1; i < index->n; i++) {
        const struct special_node *node = &index->nodes[i];
        *find_edge(index, node->parent, node->byte) =
            (struct special_edge){((uint64_t)node->parent << 8 | node->byte) + 1, i};
    }
    return 0;
}

static int add_node(struct special_index *index, uint32_t parent, uint8_t byte, uint32_t *ret_node)
{
    int r = index->n == MAX_NODES ? -E2BIG : 0;
    if (r == 0 && index->n == index->cap)
        r = grow_nodes(index);
    if (r == 0 && (!index->edges || 2 * index->n > index->edge_mask))
        r = grow_edges(index);
    if (r < 0)
        return r;
    const uint32_t node = index->n++;
    const bool root = node == 0;
    index->nodes[node] = (struct special_node){
        .parent = parent, .byte = byte, .depth = root ? 0 : index->nodes[parent].depth + 1, .id = -1};
    if (!root && parent == 0)
        index->from_root[byte] = node;
    if (!root)
        *find_edge(index, parent, byte) = (struct special_edge){((uint64_t)parent << 8 | byte) + 1, node};
    *ret_node = node;
    return 0;
}

static int add_spelling(struct special_index *index, struct bytes text, int32_t id, bool user_defined)
{
    const uint8_t *data = text.data;
    uint32_t node = 0;
    for (size_t i = text.len; i > 0; i--) {
        const struct special_edge *edge = find_edge(index, node, data[i - 1]);
        int r = 0;
        if (edge->key != 0)
            node = edge->to;
        else
            r = add_node(index, node, data[i - 1], &node);
        if (r < 0)
            return r;
    }
    index->nodes[node].id = id;
    index->nodes[node].in_set[SPECIAL_ALL] = true;
    index->nodes[node].in_set[SPECIAL_USER_DEFINED] = user_defined;
    return 0;
}

uint32_t special_index_step(const struct special_index *index, uint32_t state, uint8_t byte, size_t *steps)
{
    for (++*steps; state != 0; ++*steps) {
        const struct special_edge *edge = find_edge(index, state, byte);
        if (edge->key != 0)
            return edge->to;
        state = index->nodes[state].fail;
    }
    return index->from_root[byte];
}

/* The next whole spelling of the set below a node in it. */
static uint32_t shorter(const struct special_index *index, uint32_t node, enum special_set set)
{
    return index->nodes[index->nodes[node].fail].path[set].first;
}

/* Links one node; all that are less deep are linked already. */
static void link_node(struct special_index *index, uint32_t n)
{
    struct special_node *node = &index->nodes[n];
    size_t steps = 0;
    node->fail =
        node->depth < 2 ? 0 : special_index_step(index, index->nodes[node->parent].fail, node->byte, &steps);
    for (enum special_set set = SPECIAL_USER_DEFINED; set <= SPECIAL_ALL; set++) {
        const uint32_t next = index->nodes[node->fail].path[set].first;
        node->path[set].first = node->in_set[set] ? n : next;
        if (!node->in_set[set])
            continue;
        const uint32_t jump = index->nodes[next].path[set].jump, far = index->nodes[jump].path[set].jump;
        const uint32_t level = index->nodes[next].path[set].level;
        const bool doubles = level - index->nodes[jump].path[set].level ==
                             index->nodes[jump].path[set].level - index->nodes[far].path[set].level;
        node->path[set].level = level + 1;
        node->path[set].jump = doubles ? far : next;
    }
}

/* Links all nodes, the less deep ones first. */
static int link_nodes(struct special_index *index, uint32_t longest)
{
    uint32_t *count = calloc((size_t)longest + 2, sizeof *count);
    uint32_t *order = malloc(index->n * sizeof *order);
    if (count && order) {
        for (uint32_t i = 0; i < index->n; i++)
            count[index->nodes[i].depth + 1]++;
        for (uint32_t d = 0; d <= longest; d++)
            count[d + 1] += count[d];
        for (uint32_t i = 0; i < index->n; i++)
            order[count[index->nodes[i].depth]++] = i;
        for (uint32_t i = 1; i < index->n; i++)
            link_node(index, order[i]);
    }
    int r = count && order ? 0 : -ENOMEM;
    free(count);
    free(order);
    return r;
}

int special_index_init(struct special_index *index, const struct vocabulary *vocabulary)
{
    *index = (struct special_index){0};
    uint32_t root;
    int r = add_node(index, 0, 0, &root);
    for (uint32_t id = 0; r == 0 && id < vocabulary->size; id++) {
        const uint8_t type = vocabulary->types[id];
        struct bytes text = vocabulary_text(vocabulary, id);
        if ((type != TOKEN_USER_DEFINED && type != TOKEN_CONTROL && type != TOKEN_UNKNOWN) || text.len == 0 ||
            utf8_valid(text) < text.len || vocabulary_find(vocabulary, text.data, text.len) != (int32_t)id)
            continue;
        r = add_spelling(index, text, (int32_t)id, type == TOKEN_USER_DEFINED);
    }
    if (r == 0)
        r = link_nodes(index, vocabulary->longest);
    if (r < 0)
        special_index_deinit(index);
    return r;
}

void special_index_deinit(struct special_index *index)
{
    free(index->nodes);
    free(index->edges);
    *index = (struct special_index){0};
}

uint32_t special_index_longest(const struct special_index *index, uint32_t state, enum special_set set,
                               uint32_t limit)
{
    const struct special_node *nodes = index->nodes;
    uint32_t node = nodes[state].path[set].first;
    while (nodes[node].depth > limit) { /* the root ends it: its depth is 0 */
        const uint32_t jump = nodes[node].path[set].jump;
        node = nodes[jump].depth > limit ? jump : shorter(index, node, set);
    }
    return node;
}

uint32_t special_index_len(const struct special_index *index, uint32_t state)
{
    return index->nodes[state].depth;
}

int32_t special_index_id(const struct special_index *index, uint32_t state)
{
    return index->nodes[state].id;
}

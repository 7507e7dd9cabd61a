/* SPDX-License-Identifier: MIT */
/* Finding, making and sealing segments.
 *
 * A segment is a page of header and, behind it, the weights. Who wants one publishes an empty segment first,
 * that is, has it open; then takes a number from the clock, and then looks once at those of others. Of two
 * that want the same file at least one sees the other, and the number says who came first: whoever publishes
 * after another has looked has a higher one than he. The first packs; the others hold the segments of those
 * who were there before them, and wait until one is sealed, or its owner has let go of it, or has made no
 * step for PATIENCE_NS. The state of a segment is its seals:
 *
 *     WANTED ──number──▶ QUEUED ──nobody before it──▶ filled, then SEALED ──▶ mapped by others
 *
 * Its owner holds a lock on it while that may come true. The kernel undoes the lock when he dies, which is
 * how a process learns of it that can see no other process any more.
 *
 * What is read of another process is trusted only when it is sealed against writing and resizing, and
 * belongs to the same user; an unsealed segment can make others wait, and no more. */

#include "engine/backend/weight_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/system/shm.h"
#include "engine/backend/weight_pages.h"

#define MAGIC        0x73746877u /* "whts" */
#define VERSION      3u
#define SEGMENT_NAME "quern-weights"
#define HEADER_BYTES ((size_t)4096)
#define MOST_FOUND   32                     /* sealed segments kept in sight, of any model */
#define LOOK_NS      (10 * CLOCK_NS_PER_MS) /* between looks at those before us */
#define PATIENCE_NS  (30 * CLOCK_NS_PER_S)  /* less than a supervisor has with a worker that loads */

struct header {
    uint32_t magic, version;
    uint8_t key[16], digest[16];
    uint64_t packing;
    uint32_t settled; /* the key stands for the digest */
    uint32_t pid;
    uint64_t layout, bytes;    /* of the weights behind the header */
    uint64_t nodes;            /* of memory, that they lie on; 0: wherever */
    _Atomic uint64_t number;   /* when its owner came, clock_ns; 0: not yet */
    _Atomic uint64_t progress; /* steps that its owner has made */
    uint8_t padding[4096 - 96];
};
_Static_assert(sizeof(struct header) == HEADER_BYTES, "a page");

/* What somebody else has made. */
struct segment {
    int fd;
    ino_t inode;
    struct header header; /* as it was when it was looked at */
};

/* What somebody else is about to make. */
struct wish {
    int fd;
    ino_t inode;
};

struct weight_store {
    struct weight_store_file file;
    uint8_t digest[16];
    bool has_digest;
    int fd;                            /* our own, empty or filled; −1 when there is none any more */
    struct header *header;             /* its first page while it may be written to, else NULL */
    struct segment *found[MOST_FOUND]; /* sealed ones of others */
    uint32_t n_found;
    struct wish *before; /* of those who came before us for the same file, and have not sealed it yet */
    uint32_t n_before;
    uint64_t fingerprint; /* of those and how far they are: changes when they get on */
    struct segment *used; /* the one that is mapped, or NULL */
    void *mapping;
    size_t mapped; /* bytes, header included; 0: none */
    void *reserved;
    size_t reserved_bytes; /* of the address space around it */
};

static bool is_sealed(int fd)
{
    const int wanted = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & wanted) == wanted;
}

/* F_WRLCK or F_UNLCK. */
static int set_lock(int fd, short type)
{
    const struct flock lock = {.l_type = type};
    return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

/* By its owner, who alone takes a lock. */
static bool is_held(int fd)
{
    struct flock lock = {.l_type = F_WRLCK};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* ---- looking at others ---- */

static bool keep_sealed(struct weight_store *store, int fd, ino_t inode, const struct header *header)
{
    struct segment *segment = store->n_found < MOST_FOUND ? malloc(sizeof *segment) : NULL;
    if (!segment)
        return false;
    *segment = (struct segment){.fd = fd, .inode = inode, .header = *header};
    store->found[store->n_found++] = segment;
    return true;
}

static bool keep_wish(struct weight_store *store, int fd, ino_t inode, const struct header *header)
{
    struct wish *before = reallocarray(store->before, store->n_before + 1, sizeof *before);
    if (!before)
        return false;
    store->before = before;
    before[store->n_before++] = (struct wish){.fd = fd, .inode = inode};
    store->fingerprint += inode * 31 + atomic_load(&header->progress) + 1;
    return true;
}

/* Those who wait hold it too. */
static bool is_known(const struct weight_store *store, ino_t inode)
{
    for (uint32_t i = 0; i < store->n_found; i++)
        if (store->found[i]->inode == inode)
            return true;
    for (uint32_t i = 0; i < store->n_before; i++)
        if (store->before[i].inode == inode)
            return true;
    return false;
}

static bool is_of_file(const struct weight_store *store, const struct header *header)
{
    return memcmp(header->key, store->file.key, sizeof header->key) == 0;
}

static bool is_before(const struct header *other, const struct header *mine)
{
    uint64_t number = atomic_load(&other->number), own = atomic_load(&mine->number);
    return number < own || (number == own && other->pid < mine->pid); /* 0: about to take a lower one */
}

/* True: the descriptor is kept. */
static bool take_segment(struct weight_store *store, int fd)
{
    struct header header;
    struct stat st;
    bool held = is_held(fd);     /* first: an owner may seal it and die */
    bool sealed = is_sealed(fd); /* before its size and header are read: then those are final too */
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || is_known(store, st.st_ino))
        return false;
    if (pread(fd, &header, sizeof header, 0) != sizeof header || header.magic != MAGIC ||
        header.version != VERSION || header.packing != store->file.packing ||
        header.nodes != store->file.place.nodes)
        return false;
    if (sealed)
        return header.bytes == (uint64_t)st.st_size - HEADER_BYTES &&
               keep_sealed(store, fd, st.st_ino, &header);
    return held && is_of_file(store, &header) && is_before(&header, store->header) &&
           keep_wish(store, fd, st.st_ino, &header);
}

static void look_at_process(struct weight_store *store, const char *pid)
{
    char path[300], target[64];
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *dir = opendir(path); /* of other users' we may not */
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        if (n < 0)
            continue;
        target[n] = 0;
        if (strncmp(target, "/memfd:" SEGMENT_NAME " ", strlen("/memfd:" SEGMENT_NAME " ")) != 0)
            continue;
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd >= 0 && !take_segment(store, fd))
            close(fd);
    }
    if (dir)
        closedir(dir);
}

static bool read_name(const char *pid, char ret_name[32])
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    FILE *file = fopen(path, "re");
    bool ok = file && fgets(ret_name, 32, file);
    if (file)
        fclose(file);
    return ok;
}

/* Looks at all processes of the same program. -errno: they cannot be seen. */
static int look_around(struct weight_store *store)
{
    char self[32] = "", own_name[32], name[32];
    if (readlink("/proc/self", self, sizeof self - 1) < 0 || !read_name("self", own_name))
        return -ENOENT;
    DIR *proc = opendir("/proc");
    if (!proc)
        return -errno;
    struct dirent *entry;
    while ((entry = readdir(proc)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && strcmp(entry->d_name, self) != 0 &&
            read_name(entry->d_name, name) && strcmp(name, own_name) == 0)
            look_at_process(store, entry->d_name);
    closedir(proc);
    return 0;
}

/* At those before us, wherever they are by now. */
static void look_again(struct weight_store *store)
{
    struct wish *before = store->before;
    const uint32_t n = store->n_before;
    store->before = NULL;
    store->n_before = 0;
    store->fingerprint = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!take_segment(store, before[i].fd))
            close(before[i].fd);
    free(before);
}

/* A sealed one of our file, or NULL. `settled`: whose key stands for its digest. */
static const struct header *find_own(const struct weight_store *store, bool settled)
{
    for (uint32_t i = 0; i < store->n_found; i++) {
        const struct header *header = &store->found[i]->header;
        if (is_of_file(store, header) && (header->settled || !settled))
            return header;
    }
    return NULL;
}

/* ---- opening ---- */

static int publish_wish(struct weight_store *store)
{
    void *page;
    weight_pages_prefer(&store->file.place, 0);
    int r = shm_create(SEGMENT_NAME, HEADER_BYTES, &store->fd);
    weight_pages_prefer_any(&store->file.place);
    if (r < 0)
        return r;
    r = set_lock(store->fd, F_WRLCK);
    if (r == 0)
        r = shm_map(store->fd, HEADER_BYTES, &page);
    if (r < 0)
        return r;
    store->header = page;
    store->header->pid = (uint32_t)getpid();
    store->header->packing = store->file.packing;
    store->header->nodes = store->file.place.nodes;
    store->header->settled = store->file.settled;
    memcpy(store->header->key, store->file.key, sizeof store->file.key);
    store->header->version = VERSION;
    store->header->magic = MAGIC;
    atomic_store(&store->header->number, clock_ns());
    return 0;
}

static void drop_own(struct weight_store *store)
{
    if (store->header && store->header != store->mapping)
        munmap(store->header, HEADER_BYTES);
    store->header = NULL;
    if (store->fd >= 0) {
        set_lock(store->fd, F_UNLCK); /* mappings may stay, which alone would keep it */
        close(store->fd);
    }
    store->fd = -1;
}

int weight_store_open(const struct weight_store_file *file, struct weight_store **ret_store,
                      struct error *err)
{
    struct weight_store *store = calloc(1, sizeof *store);
    if (!store)
        return error_set(err, -ENOMEM, "not enough memory for a store of weights");
    *store = (struct weight_store){.file = *file, .fd = -1};
    int r = publish_wish(store);
    if (r == 0)
        r = look_around(store);
    if (r < 0) {
        weight_store_free(store);
        return error_set(err, r, "weights cannot be shared: %s", strerror(-r));
    }
    *ret_store = store;
    return 0;
}

static void drop_before(struct weight_store *store)
{
    for (uint32_t i = 0; i < store->n_before; i++)
        close(store->before[i].fd);
    free(store->before);
    store->before = NULL;
    store->n_before = 0;
}

int weight_store_wait(struct weight_store *store, bool (*progress)(void *arg), void *arg, struct error *err)
{
    uint64_t since = clock_ns(), fingerprint = 0;
    for (look_again(store); store->n_before > 0 && !find_own(store, false); look_again(store)) {
        const uint64_t now = clock_ns();
        if (store->fingerprint != fingerprint) {
            fingerprint = store->fingerprint;
            since = now;
            if (progress)
                progress(arg);
        }
        if (now - since > PATIENCE_NS)
            return error_set(err, -ETIMEDOUT, "another worker packing the same model makes no progress");
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    drop_before(store);
    return 0;
}

/* All that were found but the one in use: an open one stays in memory when its own workers are gone. */
static void drop_others(struct weight_store *store)
{
    struct segment *used = store->used;
    for (uint32_t i = 0; i < store->n_found; i++)
        if (store->found[i] != used) {
            close(store->found[i]->fd);
            free(store->found[i]);
        }
    store->n_found = 0;
}

struct weight_store *weight_store_free(struct weight_store *store)
{
    if (!store)
        return NULL;
    drop_own(store);
    drop_before(store);
    drop_others(store);
    if (store->used)
        close(store->used->fd);
    free(store->used);
    if (store->reserved)
        munmap(store->reserved, store->reserved_bytes);
    free(store);
    return NULL;
}

/* ---- digests ---- */

const uint8_t *weight_store_digest(const struct weight_store *store)
{
    const struct header *own = find_own(store, true);
    return own ? own->digest : NULL;
}

bool weight_store_sees_others(const struct weight_store *store)
{
    return store->n_found > 0;
}

void weight_store_know(struct weight_store *store, const uint8_t digest[16])
{
    memcpy(store->digest, digest, sizeof store->digest);
    store->has_digest = true;
}

/* ---- memory ---- */

/* Address space for all of a segment, from a huge page's border on: only so can huge pages be mapped. */
static int reserve(struct weight_store *store, size_t bytes)
{
    if (bytes > SIZE_MAX - WEIGHT_HUGE_PAGE)
        return -ENOMEM;
    void *start =
        mmap(NULL, bytes + WEIGHT_HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return -errno;
    store->reserved = start;
    store->reserved_bytes = bytes + WEIGHT_HUGE_PAGE;
    store->mapping = (uint8_t *)start + -(uintptr_t)start % WEIGHT_HUGE_PAGE;
    return 0;
}

static void unreserve(struct weight_store *store)
{
    munmap(store->reserved, store->reserved_bytes);
    store->reserved = store->mapping = NULL;
    store->mapped = 0;
}

static int map_here(struct weight_store *store, int fd, size_t bytes, int protection)
{
    if (mmap(store->mapping, bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        return -errno;
    store->mapped = bytes;
    return 0;
}

const void *weight_store_find(struct weight_store *store, uint64_t layout, size_t size)
{
    for (uint32_t i = 0; i < store->n_found && store->has_digest && store->mapped == 0; i++) {
        struct segment *segment = store->found[i];
        if (memcmp(segment->header.digest, store->digest, sizeof store->digest) != 0 ||
            segment->header.layout != layout || segment->header.bytes != size ||
            reserve(store, HEADER_BYTES + size) < 0)
            continue;
        if (map_here(store, segment->fd, HEADER_BYTES + size, PROT_READ) < 0) {
            unreserve(store);
            continue;
        }
        store->used = segment;
    }
    drop_others(store);
    if (!store->used)
        return NULL;
    drop_own(store); /* nobody need wait for it */
    return (const uint8_t *)store->mapping + HEADER_BYTES;
}

static void tell(void *store)
{
    weight_store_progress(store);
}

int weight_store_make(struct weight_store *store, uint64_t layout, size_t size, weight_store_run *run,
                      void *team, void **ret_memory)
{
    if (store->fd < 0 || store->mapped > 0)
        return -EINVAL;
    if (size > SIZE_MAX - HEADER_BYTES)
        return -ENOMEM;
    size_t bytes = HEADER_BYTES + size;
    int r = reserve(store, bytes);
    if (r == 0)
        r = shm_extend(store->fd, bytes);
    struct header *page = store->header;
    if (r == 0)
        r = map_here(store, store->fd, bytes, PROT_READ | PROT_WRITE);
    const struct weight_pages pages = {
        .place = &store->file.place, .fd = store->fd, .mapping = store->mapping, .bytes = bytes};
    if (r == 0)
        r = weight_pages_commit(&pages, run, team, tell, store);
    if (r < 0) {
        if (store->reserved)
            unreserve(store);
        drop_own(store); /* the pages that it has got, and others' hopes */
        return r == -ENOSPC ? -ENOMEM : r;
    }
    munmap(page, HEADER_BYTES);
    store->header = store->mapping;
    store->header->layout = layout;
    store->header->bytes = size;
    *ret_memory = (uint8_t *)store->mapping + HEADER_BYTES;
    return 0;
}

void weight_store_progress(struct weight_store *store)
{
    if (store->header)
        atomic_fetch_add_explicit(&store->header->progress, 1, memory_order_relaxed);
}

/* Nobody may have it mapped for writing while it is sealed, ourselves included. */
static int seal(struct weight_store *store)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", store->fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC); /* older kernels map what is sealed only by such a one */
    if (fd < 0)
        return -errno;
    const size_t bytes = store->mapped;
    int r = 0;
    if (mmap(store->mapping, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        r = -errno;
    if (r == 0)
        r = shm_seal_content(store->fd);
    close(fd);
    return r;
}

int weight_store_publish(struct weight_store *store, struct error *err)
{
    if (!store->header || store->header != store->mapping)
        return 0;
    memcpy(store->header->digest, store->digest, sizeof store->digest);
    store->header = NULL; /* nothing is written any more */
    int r = store->has_digest ? seal(store) : -EINVAL;
    if (r == 0)
        return 0;
    drop_own(store); /* the mapping stays, nobody finds it any more */
    return error_set(err, r, "the packed weights cannot be sealed, so each worker packs its own: %s",
                     strerror(-r));
}

bool weight_store_is_found(const struct weight_store *store)
{
    return store->used;
}

size_t weight_store_bytes(const struct weight_store *store)
{
    return store->mapped;
}

/* Point-to-point groups. A message is a head (version, kind, bytes) and its body in chunks; order between two ranks is
 * MPI's own. Tags are small constants. */
#include "roles/mailbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { TAG_HEAD = 1, TAG_BODY = 2, HEAD_VERSION = 2, KIND_GROUP = 0, KIND_ERROR = 1, KIND_ROWS = 2, CHUNK_BYTES = 1 << 28 };
static const int64_t MOST_BYTES = (int64_t)1 << 40;

typedef struct {
    int64_t version, kind, bytes, epoch; /* sent as they are: one machine type a job, checked by version */
} head;

/* A message under way; freed when all its requests are complete. */
typedef struct letter {
    struct letter *next;
    head head;
    char *body;
    MPI_Request *requests;
    int n_requests;
} letter;

typedef struct own {
    struct own *next;
    rrl_group *group;
} own;

struct rrl_mailbox {
    rrl_team *team;
    MPI_Comm comm;
    letter *sent;
    own *first, *last; /* groups to oneself, in order */
    int64_t own_epoch; /* the run they belong to */
};

rrl_status rrl_mailbox_open(rrl_mailbox **out, rrl_team *team) {
    RRL_TRY(rrl_alloc(out, 1, sizeof **out, "mailbox"));
    (*out)->team = team;
    if (MPI_Comm_dup(team->comm, &(*out)->comm) != MPI_SUCCESS)
        return RRL_FAIL(RRL_ERR_COMM, "a communicator of %d ranks could not be made", team->size);
    return RRL_OK;
}

static void letter_free(letter *l) {
    free(l->body);
    free(l->requests);
    free(l);
}

/* Free letters that have left. */
static void sweep(rrl_mailbox *m) {
    for (letter **p = &m->sent; *p;) {
        letter *l = *p;
        int done = 0;
        MPI_Testall(l->n_requests, l->requests, &done, MPI_STATUSES_IGNORE);
        if (!done) {
            p = &l->next;
            continue;
        }
        *p = l->next;
        letter_free(l);
    }
}

static void drop_own(rrl_mailbox *m) {
    while (m->first) {
        own *o = m->first;
        m->first = o->next;
        rrl_group_free(&o->group);
        free(o);
    }
}

void rrl_mailbox_close(rrl_mailbox **mp) {
    rrl_mailbox *m = *mp;
    if (!m) return;
    sweep(m);
    while (m->sent) { /* only after a failure: the receiver is gone */
        letter *l = m->sent;
        m->sent = l->next;
        for (int i = 0; i < l->n_requests; i++)
            if (l->requests[i] != MPI_REQUEST_NULL) {
                MPI_Cancel(&l->requests[i]);
                MPI_Request_free(&l->requests[i]);
            }
        letter_free(l);
    }
    drop_own(m);
    MPI_Comm_free(&m->comm);
    free(m);
    *mp = NULL;
}

/* Takes body. */
static rrl_status post(rrl_mailbox *m, int to, int64_t kind, char *body, size_t bytes) {
    letter *l = NULL;
    int chunks = (int)((bytes + CHUNK_BYTES - 1) / CHUNK_BYTES);
    rrl_status rc = rrl_alloc(&l, 1, sizeof *l, "message");
    if (rc == RRL_OK) rc = rrl_alloc(&l->requests, (size_t)chunks + 1, sizeof *l->requests, "message");
    if (rc != RRL_OK) {
        free(l);
        free(body);
        return rc;
    }
    l->head = (head){HEAD_VERSION, kind, (int64_t)bytes, m->team->epoch};
    l->body = body;
    MPI_Isend(&l->head, (int)sizeof l->head, MPI_BYTE, to, TAG_HEAD, m->comm, &l->requests[l->n_requests++]);
    for (int i = 0; i < chunks; i++) {
        size_t at = (size_t)i * CHUNK_BYTES, n = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        MPI_Isend(body + at, (int)n, MPI_BYTE, to, TAG_BODY, m->comm, &l->requests[l->n_requests++]);
    }
    l->next = m->sent;
    m->sent = l;
    m->team->work.messages_sent++;
    m->team->work.bytes_sent += (int64_t)bytes + (int64_t)sizeof l->head;
    sweep(m);
    return RRL_OK;
}

/* Groups to oneself left over by a run that failed. */
static void forget_old(rrl_mailbox *m) {
    if (m->own_epoch != m->team->epoch) drop_own(m);
    m->own_epoch = m->team->epoch;
}

static rrl_status keep(rrl_mailbox *m, rrl_group **g) {
    own *o = NULL;
    forget_old(m);
    RRL_TRY(rrl_alloc(&o, 1, sizeof *o, "message to oneself"));
    o->group = *g;
    *g = NULL;
    if (m->first) m->last->next = o;
    else m->first = o;
    m->last = o;
    return RRL_OK;
}

static rrl_status send_copy(rrl_mailbox *m, int to, const rrl_group *g, bool whole) {
    char *bytes = NULL;
    size_t n = 0;
    RRL_TRY(whole ? rrl_group_pack(&bytes, &n, g) : rrl_group_pack_rows(&bytes, &n, g));
    return post(m, to, whole ? KIND_GROUP : KIND_ROWS, bytes, n);
}

rrl_status rrl_mailbox_send(rrl_mailbox *m, int to, rrl_group **g) {
    if (to == m->team->rank) return keep(m, g);
    RRL_TRY(send_copy(m, to, *g, true));
    rrl_group_free(g);
    return RRL_OK;
}

rrl_status rrl_mailbox_send_all(rrl_mailbox *m, const rrl_role *to, const bool *whole, rrl_group **g) {
    bool mine = false;
    for (int i = 0; i < to->n; i++) {
        if (to->rank[i] == m->team->rank) mine = true;
        else RRL_TRY(send_copy(m, to->rank[i], *g, whole[i]));
    }
    if (mine) return keep(m, g);
    rrl_group_free(g);
    return RRL_OK;
}

void rrl_mailbox_send_error(rrl_mailbox *m, int to) {
    if (to != m->team->rank) (void)post(m, to, KIND_ERROR, NULL, 0);
}

static rrl_status body_receive(rrl_mailbox *m, char *bytes, size_t n, int from) {
    for (size_t at = 0; at < n; at += CHUNK_BYTES) {
        MPI_Request req;
        size_t chunk = n - at < CHUNK_BYTES ? n - at : CHUNK_BYTES;
        if (MPI_Irecv(bytes + at, (int)chunk, MPI_BYTE, from, TAG_BODY, m->comm, &req) != MPI_SUCCESS)
            return RRL_FAIL(RRL_ERR_COMM, "receive of %zu bytes from rank %d failed", chunk, from);
        RRL_TRY(rrl_watch_wait(&m->team->watch, &req));
    }
    return RRL_OK;
}

/* One message; *g stays NULL if it belongs to an earlier run. */
static rrl_status receive_one(rrl_mailbox *m, rrl_group **g) {
    rrl_status rc = RRL_OK;
    MPI_Status st;
    head h = {0};
    char *bytes = NULL;
    RRL_TRY(rrl_watch_probe(&m->team->watch, m->comm, MPI_ANY_SOURCE, TAG_HEAD, &st));
    MPI_Recv(&h, (int)sizeof h, MPI_BYTE, st.MPI_SOURCE, TAG_HEAD, m->comm, MPI_STATUS_IGNORE);
    if (h.version != HEAD_VERSION || h.bytes < 0 || h.bytes > MOST_BYTES)
        return RRL_FAIL(RRL_ERR_COMM, "rank %d sent a message of version %lld and %lld bytes; this program speaks version "
                        "%d - are all ranks the same program?", st.MPI_SOURCE, (long long)h.version, (long long)h.bytes,
                        HEAD_VERSION);
    bool old = h.epoch != m->team->epoch;
    if (h.kind == KIND_ERROR) {
        if (old) return RRL_OK;
        m->team->peer_failed = true;
        return RRL_FAIL(RRL_ERR_COMM, "rank %d failed in phase %s", st.MPI_SOURCE, m->team->watch.phase);
    }
    RRL_GOTO(rrl_alloc(&bytes, (size_t)h.bytes, 1, "received group"));
    RRL_GOTO(body_receive(m, bytes, (size_t)h.bytes, st.MPI_SOURCE));
    if (!old)
        RRL_GOTO(h.kind == KIND_ROWS ? rrl_group_unpack_rows(g, bytes, (size_t)h.bytes)
                                     : rrl_group_unpack(g, bytes, (size_t)h.bytes));
done:
    free(bytes);
    return rc;
}

rrl_status rrl_mailbox_receive(rrl_mailbox *m, rrl_group **g) {
    *g = NULL;
    sweep(m);
    forget_old(m);
    while (!*g && !m->first) RRL_TRY(receive_one(m, g));
    if (*g) return RRL_OK;
    own *o = m->first;
    m->first = o->next;
    *g = o->group;
    free(o);
    return RRL_OK;
}

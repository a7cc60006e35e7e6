/* Groups from rank to rank: packed, versioned, sizes checked; to oneself without packing. Sending moves the group. */
#ifndef RRL_ROLES_MAILBOX_H
#define RRL_ROLES_MAILBOX_H

#include "roles/team.h"
#include "rrl/group.h"

typedef struct rrl_mailbox rrl_mailbox;
/** Mailbox with a communicator of its own, for the team's lifetime; collective over the team. Groups of an earlier run
 *  (team->epoch) that failed are dropped on arrival. */
rrl_status rrl_mailbox_open(rrl_mailbox **out, rrl_team *team);
void rrl_mailbox_close(rrl_mailbox **m);
/** Move *g to team rank `to`; *g is NULL afterwards. Does not wait for the receiver. */
rrl_status rrl_mailbox_send(rrl_mailbox *m, int to, rrl_group **g);
/** Send a copy to every rank of a role, where not whole [to->n] of head and rows alone (rrl_group_pack_rows); this rank's own
 *  is the group itself, moved. *g is NULL afterwards. */
rrl_status rrl_mailbox_send_all(rrl_mailbox *m, const rrl_role *to, const bool *whole, rrl_group **g);
/** Tell a rank that waits for groups that none will come: its receive fails and names this rank. */
void rrl_mailbox_send_error(rrl_mailbox *m, int to);
/** The next group from anyone. RRL_ERR_COMM with team->peer_failed set when a peer sent an error. */
rrl_status rrl_mailbox_receive(rrl_mailbox *m, rrl_group **g);

#endif

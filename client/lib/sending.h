/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_SENDING_H
#define CLIENT_LIB_SENDING_H

/* When requests go out. The states of those that the pool has not accepted are changed by state.h; here is
 * how many bytes of them there may be, and whose turn it is. */

#include "client/lib/state.h"

/* Whether one more request of this may be made: 0, or -EAGAIN with the reason when too much waits already. Of
 * the bound a tenant may have, with what it asks for, as much as is left then. */
int sending_check(struct quern *client, const struct quern_encoded *encoded, struct error *err);

/* A request that is new and waits: sends it, unless it has to wait for others. 0; what else than that it
 * cannot go now, as outgoing_generate. */
int sending_begin(struct quern *client, struct request *request, struct error *err);

/* Sends what may go of what waits. Only where callbacks may be made: what the pool never takes is ended. */
void sending_go_on(struct quern *client);

/* Ends a request that waits, was never sent, and is wanted no more; it is freed then. False: it is no such.
 */
bool sending_end_unwanted(struct quern *client, struct request *request);

/* Whether a request that was sent a while ago may be sent again: it is brief, or no large one is on its way
 * still. */
bool sending_is_through(const struct quern *client, const struct request *request);

/* True once when sending_check had found no room and the pool has accepted or refused something since. */
bool sending_has_room_again(struct quern *client);

#endif

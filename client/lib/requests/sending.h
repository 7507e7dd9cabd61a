/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_REQUESTS_SENDING_H
#define CLIENT_LIB_REQUESTS_SENDING_H

/* When requests are sent, and how many bytes may wait. The bookkeeping of requests that the pool has not
 * accepted is in state.h. */

#include "client/lib/core/state.h"

/* Whether one more request with this encoding may be made: 0, or -EAGAIN with the reason if too much is
 * already waiting. A tenant may have, including the new request, as much as it leaves free. */
int sending_check(struct quern *client, const struct quern_encoded *encoded, struct error *err);

/* Sends a new request, unless it has to wait for its turn. 0, or an error of outgoing_generate other than
 * -EAGAIN. */
int sending_begin(struct quern *client, struct request *request, struct error *err);

/* Sends the request, perhaps again. If it is sent in parts, sends the first; sending_go_on sends the others
 * as libzmq passes them on. Results as outgoing_generate; also -EAGAIN while another request's parts are
 * being sent. */
int sending_send(struct quern *client, struct request *request, struct error *err);

/* Sends everything that may be sent now. Makes callbacks: a request that is too large for the pool, or was
 * cancelled before it was sent, ends here. */
void sending_go_on(struct quern *client);

/* Ends and frees a request that was cancelled before it was ever sent. False: this is not the case. */
bool sending_end_unwanted(struct quern *client, struct request *request);

/* Whether a request that got no answer may be sent again: it is brief, or libzmq has passed on all large
 * messages. */
bool sending_is_through(const struct quern *client, const struct request *request);

/* True, once, if sending_check found no room and the pool has accepted or rejected a request since. */
bool sending_has_room_again(struct quern *client);

#endif

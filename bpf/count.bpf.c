/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Programs that count every request of a service, where its sockets are used: a connection's state, and sums for each
 * CPU.
 *
 * A request begins when its first bytes arrive after an answer, and ends with the last bytes of its answer that were
 * given to the socket before the next one begins. Only then is it known which bytes were the last. */
#include "kernel.h"

#define AF_UNIX 1
#define SOCK_STREAM 1
#define ESTABLISHED 1
#define SYN_RECEIVED 3
#define CLOSED 7
#define PEEK 2
#define RECEIVING_ENDED 1
#define NAME_BYTES 64

/* Where a service answers. A port's bit is looked at first: strangers' events cost little more than that. */
struct wanted {
	u8 ports[8192];
	/* Whether there are Unix sockets that are wanted. */
	u32 names;
	u32 rest;
};

struct place {
	u32 space;
	u32 port;
};

struct name {
	char bytes[NAME_BYTES];
};

/* One connection at the end that answers. */
struct connection {
	/* When the first bytes of the request that is open arrived; 0 where none is. */
	u64 begun;
	/* When a thread first read of it; 0 before. */
	u64 read;
	/* When bytes of its answer were last given to the socket; 0 before. */
	u64 answered;
	/* The kernel's cookie of the socket, 0 where it has none yet. */
	u64 cookie;
	/* Of a Unix socket: what tells it from another one that later lies at the same address. */
	u64 peer;
	u64 requests;
	/* Who read last. */
	u32 thread;
	/* Where the answer will begin in what this end sends (TCP). */
	u32 written;
	u32 space;
	u16 family;
	u16 port;
	u16 peer_port;
	u16 rest;
	u32 rest_too;
	u8 local[16];
	u8 remote[16];
};

/* A logarithmic histogram: 64 steps to each doubling, from 2^LEAST_BITS nanoseconds on; what is shorter is in the first,
 * what is longer than 2^41 (36 minutes) in the last. */
#define STEP_BITS 6
#define STEPS (1 << STEP_BITS)
#define LEAST_BITS 9
#define DOUBLINGS 32
#define BUCKETS (DOUBLINGS * STEPS)

/* One CPU's. */
struct sums {
	u64 requests;
	u64 nanoseconds;
	u64 longest;
	/* From the arrival to the first reading. */
	u64 unread;
	u64 received;
	u64 sent;
	u64 opened;
	u64 closed;
	/* Requests that ended without an answer, with their connection. */
	u64 unanswered;
	/* Connections that found no room in the table. */
	u64 missed;
	u64 buckets[BUCKETS];
};

volatile struct wanted wanted SEC(".bss.wanted");

MAP(places, MAP_HASH, struct place, u32, 256);
MAP(names, MAP_HASH, struct name, u32, 64);
MAP(connections, MAP_HASH, u64, struct connection, 0);
/* Requests that had begun before, by the socket's cookie, with the time of their arrival. */
MAP(before, MAP_HASH, u64, u64, 16384);
MAP(sums, MAP_PERCPU_ARRAY, u32, struct sums, 1);

INLINE struct sums *own_sums(void)
{
	u32 first = 0;

	return map_lookup(&sums, &first);
}

INLINE u32 bucket(u64 time)
{
	u32 high, bits = 0;
	u64 rest = time >> LEAST_BITS;

	if (!rest)
		return 0;
	if (rest >> DOUBLINGS)
		return BUCKETS - 1;
	high = rest;
	if (high >> 16) {
		high >>= 16;
		bits += 16;
	}
	if (high >> 8) {
		high >>= 8;
		bits += 8;
	}
	if (high >> 4) {
		high >>= 4;
		bits += 4;
	}
	if (high >> 2) {
		high >>= 2;
		bits += 2;
	}
	if (high >> 1)
		bits += 1;
	/* The highest bit is at bits + LEAST_BITS; the next STEP_BITS say where in the doubling. */
	return bits * STEPS + ((time >> (bits + LEAST_BITS - STEP_BITS)) & (STEPS - 1));
}

INLINE void finish(struct connection *c, u64 end)
{
	struct sums *s = own_sums();
	u64 time = end > c->begun ? end - c->begun : 0;
	u32 at = bucket(time);

	if (!s)
		return;
	s->requests++;
	s->nanoseconds += time;
	if (time > s->longest)
		s->longest = time;
	if (c->read > c->begun)
		s->unread += c->read - c->begun;
	if (at < BUCKETS)
		s->buckets[at]++;
	c->requests++;
}

INLINE int is_tcp(u16 family)
{
	return family != AF_UNIX;
}

/* Whether a socket is one at which the service answers. */
INLINE int is_wanted(struct sock *sk, u16 family, int typed)
{
	struct place place = {};
	struct net *net;
	u16 port;

	if (FIELD(typed, sk->sk_type) != SOCK_STREAM)
		return 0;
	if (family == AF_UNIX) {
		struct unix_address *address = FIELD_BEYOND(((struct unix_sock *)sk)->addr);
		struct name name = {};
		s32 length;

		if (!wanted.names || !address)
			return 0;
		length = FIELD_BEYOND(address->len) - 2;
		if (length <= 0)
			return 0;
		if (length >= NAME_BYTES)
			length = NAME_BYTES - 1;
		/* The compiler would leave out what says to the kernel how much it is. */
		asm volatile("" : "+r"(length));
		length &= NAME_BYTES - 1;
		/* The family comes before the name. */
		if (read_kernel(name.bytes, length, (void *)ADDRESS(address->name) + 2))
			return 0;
		return map_lookup(&names, &name) != 0;
	}
	port = FIELD(typed, sk->__sk_common.skc_num);
	if (!(wanted.ports[port >> 3] & 1 << (port & 7)))
		return 0;
	net = FIELD(typed, sk->__sk_common.skc_net.net);
	place.space = FIELD_BEYOND(net->ns.inum);
	place.port = port;
	return map_lookup(&places, &place) != 0;
}

/* Begins to keep account of a connection, where it is one of the service's. */
INLINE struct connection *keep(struct sock *sk, u16 family, int typed)
{
	struct connection c = {};
	u64 key = (u64)sk, *began;
	struct net *net;

	if (!is_wanted(sk, family, typed))
		return 0;
	c.family = family;
	net = FIELD(typed, sk->__sk_common.skc_net.net);
	c.space = FIELD_BEYOND(net->ns.inum);
	c.cookie = FIELD_BEYOND(sk->__sk_common.skc_cookie);
	if (family == AF_UNIX) {
		c.peer = (u64)FIELD_BEYOND(((struct unix_sock *)sk)->peer);
	} else {
		u16 port = FIELD(typed, sk->__sk_common.skc_dport);

		c.port = FIELD(typed, sk->__sk_common.skc_num);
		c.peer_port = port >> 8 | port << 8;
		c.written = FIELD_BEYOND(((struct tcp_sock *)sk)->write_seq);
		if (family == 2) {
			*(u32 *)c.local = FIELD(typed, sk->__sk_common.skc_rcv_saddr);
			*(u32 *)c.remote = FIELD(typed, sk->__sk_common.skc_daddr);
		} else {
			read_kernel(c.local, 16, ADDRESS(sk->__sk_common.skc_v6_rcv_saddr));
			read_kernel(c.remote, 16, ADDRESS(sk->__sk_common.skc_v6_daddr));
		}
	}
	if (c.cookie) {
		began = map_lookup(&before, &c.cookie);
		if (began) {
			c.begun = *began;
			map_delete(&before, &c.cookie);
		}
	}
	map_update(&connections, &key, &c, 0);
	struct connection *kept = map_lookup(&connections, &key);
	if (!kept) {
		struct sums *s = own_sums();

		if (s)
			s->missed++;
	}
	return kept;
}

/* Whether bytes of the answer were given to the socket since the request began. The answer's own event may come later,
 * when the other end has read it and has asked again. */
INLINE int is_answered(struct sock *sk, struct connection *c)
{
	return is_tcp(c->family) && FIELD_BEYOND(((struct tcp_sock *)sk)->write_seq) != c->written;
}

/* Ends what is answered. */
INLINE void end_answered(struct sock *sk, struct connection *c, u64 at)
{
	if (c->answered)
		finish(c, c->answered);
	else if (is_answered(sk, c))
		finish(c, at);
	else
		return;
	c->begun = 0;
}

INLINE int is_same(struct sock *sk, struct connection *c)
{
	return is_tcp(c->family) || (u64)FIELD_BEYOND(((struct unix_sock *)sk)->peer) == c->peer;
}

INLINE int arrived(struct sock *sk, int typed)
{
	u16 family = FIELD(typed, sk->__sk_common.skc_family);
	u64 key = (u64)sk, at;
	struct connection *c;

	if (family == AF_UNIX) {
		if (!wanted.names)
			return 0;
	} else {
		u16 port = FIELD(typed, sk->__sk_common.skc_num);

		if (!(wanted.ports[port >> 3] & 1 << (port & 7)))
			return 0;
		if (FIELD(typed, sk->__sk_common.skc_state) == 10)
			return 0;
		/* Where the other end has said that nothing more comes, that counts as a byte and is none. */
		if (FIELD(typed, sk->sk_shutdown) & RECEIVING_ENDED) {
			struct tcp_sock *tcp = (void *)sk;

			if (FIELD_BEYOND(tcp->rcv_nxt) - FIELD_BEYOND(tcp->copied_seq) <= 1)
				return 0;
		}
	}
	c = map_lookup(&connections, &key);
	if (c && !is_same(sk, c)) {
		map_delete(&connections, &key);
		c = 0;
	}
	if (!c && family == AF_UNIX) {
		/* What arrives at the end that asks is given to the end that answers: before that one's own event, which may
		 * come when the next request is there. */
		u64 peer = (u64)FIELD_BEYOND(((struct unix_sock *)sk)->peer);

		c = peer ? map_lookup(&connections, &peer) : 0;
		if (c) {
			if (c->begun)
				c->answered = now();
			return 0;
		}
		if (FIELD(typed, sk->__sk_common.skc_state) != ESTABLISHED)
			return 0;
	}
	if (!c)
		c = keep(sk, family, typed);
	if (!c)
		return 0;
	if (c->begun && !c->answered && !is_answered(sk, c))
		return 0;
	at = now();
	if (c->begun)
		end_answered(sk, c, at);
	c->begun = at;
	c->read = 0;
	c->answered = 0;
	if (is_tcp(family))
		c->written = FIELD_BEYOND(((struct tcp_sock *)sk)->write_seq);
	return 0;
}

INLINE struct connection *find(struct sock *sk, int typed, u16 *family)
{
	u64 key = (u64)sk;

	*family = FIELD(typed, sk->__sk_common.skc_family);
	if (*family == AF_UNIX) {
		if (!wanted.names)
			return 0;
	} else {
		u16 port = FIELD(typed, sk->__sk_common.skc_num);

		if (!(wanted.ports[port >> 3] & 1 << (port & 7)))
			return 0;
	}
	return map_lookup(&connections, &key);
}

INLINE int received(struct sock *sk, s32 bytes, s32 flags, int typed)
{
	struct connection *c;
	struct sums *s;
	u16 family;

	if (bytes < 0 || flags & PEEK)
		return 0;
	c = find(sk, typed, &family);
	if (!bytes) {
		/* The end of what comes. A Unix socket tells nothing when it closes. */
		if (c && family == AF_UNIX) {
			u64 key = (u64)sk;

			if (c->begun && c->answered)
				finish(c, c->answered);
			map_delete(&connections, &key);
		}
		return 0;
	}
	if (!c)
		c = keep(sk, family, typed);
	if (!c)
		return 0;
	c->thread = this_thread();
	if (c->begun && !c->read)
		c->read = now();
	s = own_sums();
	if (s)
		s->received += bytes;
	return 0;
}

INLINE int sent(struct sock *sk, s32 bytes, int typed)
{
	struct connection *c;
	struct sums *s;
	u16 family;

	if (bytes <= 0)
		return 0;
	c = find(sk, typed, &family);
	if (!c)
		return 0;
	/* Of a Unix socket the arrival at the other end tells. */
	if (c->begun && is_answered(sk, c))
		c->answered = now();
	s = own_sums();
	if (s)
		s->sent += bytes;
	return 0;
}

INLINE int changed(struct sock *sk, u32 old, u32 state)
{
	u64 key = (u64)sk;
	struct connection *c;
	struct sums *s;

	if (state == ESTABLISHED && old == SYN_RECEIVED) {
		u16 family = FIELD(1, sk->__sk_common.skc_family);
		u16 port = FIELD(1, sk->__sk_common.skc_num);

		if (!(wanted.ports[port >> 3] & 1 << (port & 7)))
			return 0;
		if (map_lookup(&connections, &key))
			map_delete(&connections, &key);
		c = keep(sk, family, 1);
		s = own_sums();
		if (c && s)
			s->opened++;
		return 0;
	}
	if (state != CLOSED)
		return 0;
	c = map_lookup(&connections, &key);
	if (!c)
		return 0;
	s = own_sums();
	if (c->begun) {
		end_answered(sk, c, now());
		if (c->begun && s)
			s->unanswered++;
	}
	if (s)
		s->closed++;
	map_delete(&connections, &key);
	return 0;
}

INLINE int is_on(void)
{
	return 1;
}

#include "sockets.h"

SEC("tp_btf/inet_sock_set_state")
int inet_sock_set_state(u64 *ctx)
{
	return changed((void *)ctx[0], ctx[1], ctx[2]);
}

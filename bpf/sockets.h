/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What happens at sockets: by tracepoints where the kernel has them (since Linux 6.3), else at the functions beneath.
 * Who includes this has told what is done there: sent, received and arrived, and is_on, which says whether anything is.
 * `typed` says that the kernel knows the type of what `sk` points to. */
#pragma once

SEC("tp_btf/sock_send_length")
int sock_send_length(u64 *ctx)
{
	return sent((void *)ctx[0], ctx[1], 1);
}

SEC("tp_btf/sock_recv_length")
int sock_recv_length(u64 *ctx)
{
	return received((void *)ctx[0], ctx[1], ctx[2], 1);
}

SEC("tp_btf/sk_data_ready")
int sk_data_ready(u64 *ctx)
{
	return arrived((void *)ctx[0], 1);
}

/* At the functions beneath. Each program is loaded once for each of its functions, which the loader knows.
 *
 * By the kernel's trampolines at the ends of functions: their arguments, and what they return behind these. */

SEC("fexit/sendmsg")
int fexit_sendmsg(u64 *ctx)
{
	struct socket *socket = (void *)ctx[0];

	return sent(socket->sk, ctx[3], 1);
}

SEC("fexit/sendpage")
int fexit_sendpage(u64 *ctx)
{
	struct socket *socket = (void *)ctx[0];

	return sent(socket->sk, ctx[5], 1);
}

SEC("fexit/recvmsg")
int fexit_recvmsg(u64 *ctx)
{
	struct socket *socket = (void *)ctx[0];

	return received(socket->sk, ctx[4], ctx[3], 1);
}

SEC("fentry/readable")
int fentry_readable(u64 *ctx)
{
	return arrived((void *)ctx[0], 1);
}

/* By probes at functions: what a thread called with is kept until the function returns. */
struct called {
	struct sock *sk;
	s32 flags;
	u32 rest;
};

MAP(calls, MAP_HASH, u64, struct called, 16384);

/* The registers by a helper: the kernel lets a program read its own context at places alone that are known before it is
 * relocated. */
INLINE u64 call_argument(void *ctx, int number)
{
	struct pt_regs___x86 *x86 = ctx;
	struct pt_regs___arm *arm = ctx;

	if (HAS_FIELD(x86->di))
		return number == 0 ? FIELD(0, x86->di) : FIELD(0, x86->cx);
	return number == 0 ? FIELD(0, arm->regs[0]) : FIELD(0, arm->regs[3]);
}

INLINE s32 returned(void *ctx)
{
	struct pt_regs___x86 *x86 = ctx;
	struct pt_regs___arm *arm = ctx;

	return HAS_FIELD(x86->ax) ? (s32)FIELD(0, x86->ax) : (s32)FIELD(0, arm->regs[0]);
}

SEC("kprobe/message")
int kprobe_message(void *ctx)
{
	struct socket *socket = (void *)call_argument(ctx, 0);
	struct called called = {};
	u64 thread = this_thread();

	if (!is_on())
		return 0;
	read_kernel(&called.sk, sizeof(called.sk), ADDRESS(socket->sk));
	/* Only receiving has flags there. */
	called.flags = call_argument(ctx, 3);
	map_update(&calls, &thread, &called, 0);
	return 0;
}

INLINE int was_called(struct called *called)
{
	u64 thread = this_thread();
	struct called *kept = map_lookup(&calls, &thread);

	if (!kept)
		return 0;
	*called = *kept;
	map_delete(&calls, &thread);
	return 1;
}

SEC("kretprobe/send")
int kretprobe_send(void *ctx)
{
	struct called called;

	return was_called(&called) ? sent(called.sk, returned(ctx), 0) : 0;
}

SEC("kretprobe/recvmsg")
int kretprobe_recvmsg(void *ctx)
{
	struct called called;

	return was_called(&called) ? received(called.sk, returned(ctx), called.flags, 0) : 0;
}

SEC("kprobe/readable")
int kprobe_readable(void *ctx)
{
	return arrived((void *)call_argument(ctx, 0), 0);
}

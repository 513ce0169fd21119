/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Programs that record the kernel's events into one ring per CPU while a window is open. */
#include "kernel.h"

/* What a record tells: the place in the table of what is wanted (crates/observe/src/follow/source/wanted.rs). */
enum {
	ENTER,
	EXIT,
	SWITCH,
	WAKING,
	FORK,
	SENT,
	RECEIVED,
	ARRIVED,
	STATE,
	PORTS,
	DISK_SUBMITTED,
	DISK_QUEUED,
	DISK_ISSUED,
	DISK_COMPLETED,
	RECLAIM,
	RECLAIM_END,
	GROUP_RECLAIM,
	GROUP_RECLAIM_END,
	COMPACTION,
	COMPACTION_END,
	DEVICE,
	DEVICE_END,
	SOFT,
	SOFT_END,
	TIMER,
	TIMER_END,
	USER_FAULT,
	KERNEL_FAULT,
};

/* Bits of what interrupts a CPU is in. */
enum {
	IN_TIMER = 1,
	IN_DEVICE = 2,
	IN_SOFT = 4,
};

/* Soft interrupts that are seen by what they do, and come with every packet: sending and receiving. */
#define NET_TX 2
#define NET_RX 3

#define MOST_OWN_THREADS 64

struct record {
	u64 time;
	u64 thread;
	/* Kind (8 bits), whether in an interrupt (8), CPU (16). */
	u32 head;
	s32 small;
	u64 values[];
};

/* What a CPU keeps: a cache line, which it then shares with no other. */
struct cpu {
	u64 interrupts;
	/* When the first record did not fit, 0 before that. */
	u64 stopped;
	u64 rest[6];
};

/* Nothing is recorded while this is 0. */
volatile u32 on SEC(".bss.switch");
/* Records that did not fit. */
volatile u64 lost SEC(".bss.lost");

/* Set before the programs are loaded. */
const volatile u32 own_threads[MOST_OWN_THREADS] = {};
const volatile u32 own_count = 0;
const volatile u32 switch_arguments = 4;
const volatile u32 queue_arguments = 1;
const volatile u32 insert_arguments = 1;
const volatile u32 issue_arguments = 1;
const volatile s32 mmap_call = -1;

MAP(rings, MAP_ARRAY_OF_MAPS, u32, u32, 0);
MAP(cpus, MAP_ARRAY, u32, struct cpu, 0);

INLINE void stop(u32 number)
{
	struct cpu *cpu = map_lookup(&cpus, &number);

	if (cpu && !cpu->stopped)
		cpu->stopped = now();
	on = 0;
	__sync_fetch_and_add(&lost, 1);
}

/* A record with so many values, or nothing where none is wanted or fits. First of all it is seen whether any is: a
 * program that stays attached between windows costs hardly more than its call. */
INLINE struct record *begin(u32 kind, u32 bit, int ends, u32 values)
{
	u32 number = this_cpu();
	struct cpu *cpu = map_lookup(&cpus, &number);
	struct record *record;
	u64 interrupts;
	void *ring;

	if (!cpu)
		return 0;
	interrupts = cpu->interrupts;
	if (bit && !ends) {
		interrupts |= bit;
		cpu->interrupts = interrupts;
	}
	if (bit && ends)
		cpu->interrupts = interrupts & ~(u64)bit;
	ring = map_lookup(&rings, &number);
	record = ring ? ring_reserve(ring, sizeof(*record) + 8 * values, 0) : 0;
	if (!record) {
		stop(number);
		return 0;
	}
	record->thread = this_thread();
	record->head = kind | (interrupts ? 1 << 8 : 0) | number << 16;
	return record;
}

/* The time last: nothing of this program's own is then between the stamp and the event's other stamps. */
INLINE int end(struct record *record)
{
	record->time = now();
	ring_submit(record, NO_WAKEUP);
	return 0;
}

INLINE int is_own(void)
{
	u32 thread = this_thread();

	for (u32 i = 0; i < MOST_OWN_THREADS; i++) {
		if (i >= own_count)
			break;
		if (own_threads[i] == thread)
			return 1;
	}
	return 0;
}

SEC("tp_btf/sys_enter")
int sys_enter(u64 *ctx)
{
	struct pt_regs___x86 *x86 = (void *)ctx[0];
	struct pt_regs___arm *arm = (void *)ctx[0];
	int mapping = (s32)ctx[1] == mmap_call;
	struct record *record;
	u64 first, second;

	if (!on || is_own())
		return 0;
	/* Of mmap its flags with its protection in the upper half, and its length: the address is a wish. */
	if (HAS_FIELD(x86->di)) {
		first = mapping ? (u32)x86->r10 | (u64)x86->dx << 32 : x86->di;
		second = x86->si;
	} else {
		first = mapping ? (u32)arm->regs[3] | arm->regs[2] << 32 : arm->regs[0];
		second = arm->regs[1];
	}
	record = begin(ENTER, 0, 0, 2);
	if (!record)
		return 0;
	record->small = ctx[1];
	record->values[0] = first;
	record->values[1] = second;
	return end(record);
}

SEC("tp_btf/sys_exit")
int sys_exit(u64 *ctx)
{
	struct pt_regs___x86 *x86 = (void *)ctx[0];
	struct pt_regs___arm *arm = (void *)ctx[0];
	struct record *record;

	if (!on || is_own())
		return 0;
	record = begin(EXIT, 0, 0, 1);
	if (!record)
		return 0;
	record->small = HAS_FIELD(x86->orig_ax) ? (s32)x86->orig_ax : arm->syscallno;
	record->values[0] = ctx[1];
	return end(record);
}

INLINE u64 state_of(struct task_struct *task)
{
	struct task_struct___state *before = (void *)task;
	struct task_struct___later *later = (void *)task;

	return HAS_FIELD(later->__state) ? later->__state : (u64)before->state;
}

SEC("tp_btf/sched_switch")
int sched_switch(u64 *ctx)
{
	struct task_struct *next = (void *)ctx[2];
	struct record *record;
	u64 *name;

	if (!on)
		return 0;
	record = begin(SWITCH, 0, 0, 4);
	if (!record)
		return 0;
	record->small = next->pid;
	record->values[0] = ctx[0];
	/* Before Linux 5.18 the thread itself tells, whose state another CPU may have changed meanwhile. */
	record->values[1] = switch_arguments >= 4 ? ctx[3] : state_of((void *)ctx[1]);
	name = (u64 *)ADDRESS(next->comm);
	record->values[2] = name[0];
	record->values[3] = name[1];
	return end(record);
}

SEC("tp_btf/sched_waking")
int sched_waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct task_struct___cpu *before = (void *)task;
	struct record *record;

	if (!on)
		return 0;
	record = begin(WAKING, 0, 0, 1);
	if (!record)
		return 0;
	record->small = task->pid;
	record->values[0] = HAS_FIELD(task->thread_info.cpu) ? task->thread_info.cpu : before->cpu;
	return end(record);
}

SEC("tp_btf/sched_process_fork")
int sched_process_fork(u64 *ctx)
{
	struct task_struct *child = (void *)ctx[1];
	struct record *record;

	if (!on)
		return 0;
	record = begin(FORK, 0, 0, 0);
	if (!record)
		return 0;
	record->small = child->pid;
	return end(record);
}

INLINE int record_sent(u64 sock, s32 bytes)
{
	struct record *record;

	if (!on)
		return 0;
	record = begin(SENT, 0, 0, 1);
	if (!record)
		return 0;
	record->small = bytes;
	record->values[0] = sock;
	return end(record);
}

INLINE int record_received(u64 sock, s32 bytes, s32 flags)
{
	struct record *record;

	if (!on)
		return 0;
	record = begin(RECEIVED, 0, 0, 2);
	if (!record)
		return 0;
	record->small = bytes;
	record->values[0] = sock;
	record->values[1] = (u32)flags;
	return end(record);
}

INLINE int record_ports(u32 kind, struct sock *sk, s32 state, int typed)
{
	u16 num = FIELD(typed, sk->__sk_common.skc_num);
	u16 dport = FIELD(typed, sk->__sk_common.skc_dport);
	struct record *record = begin(kind, 0, 0, 3);

	if (!record)
		return 0;
	record->small = state;
	record->values[0] = (u64)sk;
	record->values[1] = num;
	record->values[2] = dport;
	return end(record);
}

INLINE int sent(struct sock *sk, s32 bytes, int typed)
{
	return record_sent((u64)sk, bytes);
}

INLINE int received(struct sock *sk, s32 bytes, s32 flags, int typed)
{
	return record_received((u64)sk, bytes, flags);
}

INLINE int arrived(struct sock *sk, int typed)
{
	return on ? record_ports(ARRIVED, sk, 0, typed) : 0;
}

INLINE int is_on(void)
{
	return on;
}

#include "sockets.h"

SEC("tp_btf/inet_sock_set_state")
int inet_sock_set_state(u64 *ctx)
{
	return on ? record_ports(STATE, (void *)ctx[0], ctx[2], 1) : 0;
}

/* Disks. */

/* A tracepoint's first or second argument, each read at a place of its own: the kernel refuses to read what a program
 * was given at a place that is computed, as the compiler would make it. */
INLINE void *first_or_second(u64 *ctx, int second)
{
	u64 value;

	if (second)
		asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(value) : "r"(ctx));
	else
		asm volatile("%0 = *(u64 *)(%1 + 0)" : "=r"(value) : "r"(ctx));
	return (void *)value;
}

INLINE u32 device(struct gendisk *disk)
{
	return (u32)disk->major << 20 | (u32)disk->first_minor;
}

SEC("tp_btf/block_bio_queue")
int block_bio_queue(u64 *ctx)
{
	struct bio *bio = first_or_second(ctx, queue_arguments > 1);
	struct bio___disk *before = (void *)bio;
	struct record *record;

	if (!on)
		return 0;
	record = begin(DISK_SUBMITTED, 0, 0, 3);
	if (!record)
		return 0;
	record->small = HAS_FIELD(bio->bi_bdev) ? bio->bi_bdev->bd_dev : device(before->bi_disk);
	record->values[0] = bio->bi_iter.bi_sector;
	record->values[1] = bio->bi_iter.bi_size;
	record->values[2] = bio->bi_opf;
	return end(record);
}

INLINE int disk(u32 kind, struct request *request, int told, u32 bytes)
{
	struct request___disk *before = (void *)request;
	struct record *record;

	if (!on)
		return 0;
	record = begin(kind, 0, 0, 3);
	if (!record)
		return 0;
	record->small = HAS_FIELD(request->q->disk) ? device(request->q->disk) : device(before->rq_disk);
	record->values[0] = request->__sector;
	record->values[1] = told ? bytes : request->__data_len;
	record->values[2] = request->cmd_flags;
	return end(record);
}

SEC("tp_btf/block_rq_insert")
int block_rq_insert(u64 *ctx)
{
	return disk(DISK_QUEUED, first_or_second(ctx, insert_arguments > 1), 0, 0);
}

SEC("tp_btf/block_rq_issue")
int block_rq_issue(u64 *ctx)
{
	return disk(DISK_ISSUED, first_or_second(ctx, issue_arguments > 1), 0, 0);
}

SEC("tp_btf/block_rq_complete")
int block_rq_complete(u64 *ctx)
{
	return disk(DISK_COMPLETED, (void *)ctx[0], 1, ctx[2]);
}

/* Memory, interrupts, faults. */

INLINE int bare(u32 kind, u32 bit, int ends)
{
	struct record *record;

	if (!on)
		return 0;
	record = begin(kind, bit, ends, 0);
	if (!record)
		return 0;
	record->small = 0;
	return end(record);
}

#define BARE(name, kind, bit, ends)                                                                                    \
	SEC("tp_btf/" #name) int name(u64 *ctx)                                                                        \
	{                                                                                                              \
		return bare(kind, bit, ends);                                                                          \
	}

BARE(mm_vmscan_direct_reclaim_begin, RECLAIM, 0, 0)
BARE(mm_vmscan_direct_reclaim_end, RECLAIM_END, 0, 0)
BARE(mm_vmscan_memcg_reclaim_begin, GROUP_RECLAIM, 0, 0)
BARE(mm_vmscan_memcg_reclaim_end, GROUP_RECLAIM_END, 0, 0)
BARE(mm_compaction_begin, COMPACTION, 0, 0)
BARE(mm_compaction_end, COMPACTION_END, 0, 0)
BARE(irq_handler_entry, DEVICE, IN_DEVICE, 0)
BARE(irq_handler_exit, DEVICE_END, IN_DEVICE, 1)
BARE(local_timer_entry, TIMER, IN_TIMER, 0)
BARE(local_timer_exit, TIMER_END, IN_TIMER, 1)

/* The network's are only noted as such. */
INLINE int soft(u32 kind, u32 vector, int ends)
{
	u32 number = this_cpu();
	struct cpu *cpu;

	if (!on)
		return 0;
	if (vector != NET_TX && vector != NET_RX)
		return bare(kind, IN_SOFT, ends);
	cpu = map_lookup(&cpus, &number);
	if (cpu && ends)
		cpu->interrupts &= ~(u64)IN_SOFT;
	else if (cpu)
		cpu->interrupts |= IN_SOFT;
	return 0;
}

SEC("tp_btf/softirq_entry")
int softirq_entry(u64 *ctx)
{
	return soft(SOFT, ctx[0], 0);
}

SEC("tp_btf/softirq_exit")
int softirq_exit(u64 *ctx)
{
	return soft(SOFT_END, ctx[0], 1);
}

#define FAULT(name, kind)                                                                                              \
	SEC("tp_btf/" #name) int name(u64 *ctx)                                                                        \
	{                                                                                                              \
		struct record *record;                                                                                 \
                                                                                                                       \
		if (!on)                                                                                               \
			return 0;                                                                                      \
		record = begin(kind, 0, 0, 1);                                                                         \
		if (!record)                                                                                           \
			return 0;                                                                                      \
		record->small = 0;                                                                                     \
		record->values[0] = ctx[0];                                                                            \
		return end(record);                                                                                    \
	}

FAULT(page_fault_user, USER_FAULT)
FAULT(page_fault_kernel, KERNEL_FAULT)

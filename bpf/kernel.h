/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the programs use of the kernel: its structures, as far as they are read, and its helpers. Where a field lies in
 * the kernel at hand is found out when a program is loaded (CO-RE, crates/sys/src/bpf/object.rs); a structure's name
 * ends before "___", so that several shapes of one structure can be described. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* Its fields' places are those of the running kernel. */
#define RELOCATED __attribute__((preserve_access_index))
/* Whether the running kernel has a field, and whether it has a type: known when a program is loaded. */
#define HAS_FIELD(field) __builtin_preserve_field_info(field, 2)
#define ADDRESS(field) __builtin_preserve_access_index(&(field))

enum {
	MAP_HASH = 1,
	MAP_ARRAY = 2,
	MAP_PERCPU_ARRAY = 6,
	MAP_ARRAY_OF_MAPS = 12,
};

/* A map, as the loader reads it out of the object. */
struct map {
	u32 kind;
	u32 key;
	u32 value;
	/* 0 where the loader is told. */
	u32 entries;
	u32 flags;
};

#define MAP(name, kind, key, value, entries) struct map name SEC("maps") = { kind, sizeof(key), sizeof(value), entries, 0 }

static void *(*const map_lookup)(const void *map, const void *key) = (void *)1;
static long (*const map_update)(const void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(const void *map, const void *key) = (void *)3;
/* Nanoseconds on the monotonic clock. */
static u64 (*const now)(void) = (void *)5;
static u32 (*const this_cpu)(void) = (void *)8;
/* Process in the upper half, thread in the lower one. */
static u64 (*const this_thread)(void) = (void *)14;
static long (*const read_kernel)(void *to, u32 bytes, const void *from) = (void *)113;
static void *(*const ring_reserve)(const void *ring, u64 bytes, u64 flags) = (void *)131;
static void (*const ring_submit)(void *record, u64 flags) = (void *)132;
#define NO_WAKEUP 1

/* Reads a field: behind a pointer whose type the kernel knows as it is, else by a helper. */
#define FIELD(typed, field)                                                                                            \
	({                                                                                                             \
		__typeof__(field) value = 0;                                                                           \
		if (typed)                                                                                             \
			value = field;                                                                                 \
		else                                                                                                   \
			read_kernel(&value, sizeof(value), ADDRESS(field));                                            \
		value;                                                                                                 \
	})
/* The same of a field that lies behind the end of the type that the kernel knows. */
#define FIELD_BEYOND(field) FIELD(0, field)

struct pt_regs___x86 {
	unsigned long di, si, dx, cx, r8, r10, orig_ax, ax;
} RELOCATED;

struct pt_regs___arm {
	u64 regs[31];
	s32 syscallno;
} RELOCATED;

struct thread_info {
	u32 cpu;
} RELOCATED;

struct task_struct {
	s32 pid;
	struct thread_info thread_info;
	char comm[16];
} RELOCATED;

/* Before Linux 5.16. */
struct task_struct___cpu {
	u32 cpu;
} RELOCATED;

/* Before Linux 5.14, and since. */
struct task_struct___state {
	long state;
} RELOCATED;

struct task_struct___later {
	u32 __state;
} RELOCATED;

struct ns_common {
	u32 inum;
} RELOCATED;

struct net {
	struct ns_common ns;
} RELOCATED;

typedef struct {
	struct net *net;
} RELOCATED possible_net_t;

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	u16 skc_family;
	u8 skc_state;
	u16 skc_num;
	u16 skc_dport;
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	u64 skc_cookie;
} RELOCATED;

struct sock {
	struct sock_common __sk_common;
	u8 sk_shutdown;
	u16 sk_type;
} RELOCATED;

struct socket {
	struct sock *sk;
} RELOCATED;

struct tcp_sock {
	u32 rcv_nxt;
	u32 copied_seq;
	u32 write_seq;
} RELOCATED;

struct unix_address {
	s32 len;
	char name[1];
} RELOCATED;

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
} RELOCATED;

struct gendisk {
	s32 major;
	s32 first_minor;
} RELOCATED;

struct block_device {
	u32 bd_dev;
} RELOCATED;

struct bvec_iter {
	u64 bi_sector;
	u32 bi_size;
} RELOCATED;

struct bio {
	struct block_device *bi_bdev;
	u32 bi_opf;
	struct bvec_iter bi_iter;
} RELOCATED;

/* Before Linux 5.12. */
struct bio___disk {
	struct gendisk *bi_disk;
} RELOCATED;

struct request_queue {
	struct gendisk *disk;
} RELOCATED;

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	u32 __data_len;
	u64 __sector;
} RELOCATED;

/* Before Linux 5.17; queues tell their disk since 5.15. */
struct request___disk {
	struct gendisk *rq_disk;
} RELOCATED;

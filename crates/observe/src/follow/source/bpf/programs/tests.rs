use super::*;
use crate::follow::event::{DiskStep, InterruptKind, MemoryWork};

/// A record of a tracepoint with these values, by thread 11 of process 10 on CPU 3 at time 5.
fn record(name: &str, interrupt: u32, small: i32, values: &[u64]) -> Vec<u8> {
    let kind = WANTED.iter().position(|w| w.point() == name).unwrap() as u32;
    let mut r = 5u64.to_ne_bytes().to_vec();
    for n in [11, 10, kind | interrupt << 8 | 3 << 16, small as u32] {
        r.extend(n.to_ne_bytes());
    }
    values.iter().for_each(|v| r.extend(v.to_ne_bytes()));
    r
}

fn told(name: &str, small: i32, values: &[u64]) -> Option<What> {
    event(
        &record(name, 0, small, values),
        &HashMap::from([(0x801, 0x800)]),
    )
    .map(|e| e.what)
}

#[test]
fn a_record_has_time_thread_cpu_and_interrupt() {
    let e = event(&record("sched_waking", 1, 42, &[7]), &HashMap::new()).unwrap();
    assert_eq!(
        (e.time, e.tid, e.pid, e.cpu, e.interrupt),
        (5, 11, 10, 3, true)
    );
    assert_eq!(e.what, What::Waking { who: 42, target: 7 });
    assert!(
        !event(&record("sched_waking", 0, 42, &[7]), &HashMap::new())
            .unwrap()
            .interrupt
    );
}

#[test]
fn each_tracepoint_tells_its_event() {
    assert_eq!(
        told("sys_enter", 202, &[9, 3]),
        Some(What::Enter {
            call: 202,
            args: [9, 3]
        })
    );
    assert_eq!(
        told("sys_exit", 1, &[-11i64 as u64]),
        Some(What::Exit {
            call: 1,
            result: -11
        })
    );
    assert_eq!(
        told("sched_process_fork", 99, &[]),
        Some(What::Fork { child: 99 })
    );
    assert_eq!(
        told("sock_send_length", -32, &[64]),
        Some(What::Sent {
            socket: 64,
            bytes: -32
        })
    );
    assert_eq!(
        told("sock_recv_length", 70, &[64, 0x40]),
        Some(What::Received {
            socket: 64,
            bytes: 70
        })
    );
    assert_eq!(
        told("sock_recv_length", 70, &[64, 0x42]),
        None,
        "bytes that were only looked at"
    );
    assert_eq!(
        told("sk_data_ready", 0, &[64]),
        Some(What::Arrived { socket: 64 })
    );
    let remote = u64::from(40000u16.to_be());
    assert_eq!(
        told("inet_sock_set_state", 7, &[64, 3306, remote]),
        Some(What::State {
            socket: 64,
            state: 7,
            local: 3306,
            remote: 40000,
            pair: 0,
        })
    );
    assert_eq!(
        told("softirq_exit", 0, &[]),
        Some(What::Interrupt {
            kind: InterruptKind::Soft,
            begin: false
        })
    );
    assert_eq!(
        told("mm_compaction_begin", 0, &[]),
        Some(What::Memory {
            work: MemoryWork::Compaction,
            begin: true
        })
    );
    assert_eq!(
        told("sys_enter", 202, &[9]),
        None,
        "a record that is too short"
    );
    let mut unknown = record("sys_enter", 0, 1, &[1, 2]);
    unknown[16] = 99;
    assert_eq!(event(&unknown, &HashMap::new()), None);
}

#[test]
fn requests_to_a_block_device_are_named_by_the_whole_device() {
    let io = |small, values: &[u64]| match told("block_bio_queue", small, values) {
        Some(What::Disk {
            step: DiskStep::Submitted,
            io,
        }) => io,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        io(0x801, &[4096, 4096, 0x801]),
        Io {
            device: 0x800,
            sector: 4096,
            sectors: 8,
            write: true
        }
    );
    assert_eq!(
        io(0x900, &[4096, 4096, 0x800]),
        Io {
            device: 0x900,
            sector: 4096,
            sectors: 8,
            write: false
        }
    );
    assert_eq!(
        io(0x900, &[0, 0, 2]),
        Io {
            device: 0x900,
            sector: u64::MAX,
            sectors: 0,
            write: true
        }
    );
}

#[test]
fn the_state_in_which_a_thread_leaves_its_cpu() {
    let cases = [
        (true, 1, Left::Ready),
        (false, 0, Left::Ready),
        (false, 1, Left::Blocked),
        (false, 0x2001, Left::Blocked),
        (false, 2, Left::Uninterruptible),
        (false, 0x102, Left::Uninterruptible),
        (false, 0x402, Left::Blocked),
        (false, 0x1000, Left::Uninterruptible),
        (false, 0x80, Left::Ended),
        (false, 0x20, Left::Ended),
    ];
    for (preempted, state, expected) in cases {
        assert_eq!(left(preempted, state), expected, "{preempted} {state:#x}");
        assert_eq!(
            told("sched_switch", 7, &[preempted.into(), state, 0, 0]),
            Some(What::Switch {
                left: expected,
                next: 7
            })
        );
    }
}

#[test]
fn an_arrival_tells_the_ports_of_its_socket_once() {
    let mut known = HashMap::new();
    let mut of = |socket: u64, local: u64, remote: u16| {
        let record = record(
            "sk_data_ready",
            0,
            0,
            &[socket, local, u64::from(remote.to_be())],
        );
        let arrived = event(&record, &HashMap::new()).unwrap();
        new_ports(&arrived, &record, &mut known).map(|e| (e.time, e.what))
    };
    assert_eq!(
        of(64, 80, 40000),
        Some((
            5,
            What::Ports {
                socket: 64,
                local: 80,
                remote: 40000,
                pair: 0,
            }
        ))
    );
    assert_eq!(of(64, 80, 40000), None);
    assert_eq!(
        of(64, 80, 40001),
        Some((
            5,
            What::Ports {
                socket: 64,
                local: 80,
                remote: 40001,
                pair: 0,
            }
        )),
        "the address was used again"
    );
    assert_eq!(of(65, 0, 0), None, "a Unix socket");
}

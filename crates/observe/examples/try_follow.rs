//! scratch
use fingerpost_observe::follow::Follower;
use fingerpost_observe::follow::event::*;
use fingerpost_observe::follow::leaf::Side;
use fingerpost_observe::follow::source::Window;
use fingerpost_sys::trace::{Rings, monotonic_ns};
use fingerpost_sys::tracefs;
use std::collections::HashMap;
use std::time::Duration;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let pids = |s: &str| s.split(',').filter(|x| !x.is_empty()).map(|x| x.parse().unwrap()).collect::<Vec<i32>>();
    let (servers, clients) = (pids(&args[1]), pids(&args[2]));
    let ms: u64 = args[3].parse().unwrap();
    let names = [
        "raw_syscalls/sys_enter",
        "raw_syscalls/sys_exit",
        "sched/sched_switch",
        "sched/sched_waking",
        "sched/sched_process_fork",
        "sock/sock_send_length",
        "sock/sock_recv_length",
        "sock/sk_data_ready",
        "sock/inet_sock_set_state",
        "block/block_bio_queue",
        "block/block_rq_insert",
        "block/block_rq_issue",
        "block/block_rq_complete",
    ];
    let points = tracefs::tracepoints(&names).unwrap();
    let ids: Vec<u32> = points.iter().map(|p| p.id).collect();
    let mut rings = Rings::open(&ids, 64 << 20, None).unwrap();
    let mut f = Follower::default();
    for p in &servers {
        f.side(*p, Side::Server);
    }
    for p in &clients {
        f.side(*p, Side::Client);
    }
    let mut windows = vec![];
    for _ in 0..args.get(4).map_or(3, |n| n.parse().unwrap()) {
        rings.enable().unwrap();
        let start = monotonic_ns();
        std::thread::sleep(Duration::from_millis(ms));
        let end = monotonic_ns();
        rings.disable().unwrap();
        let mut events = vec![];
        let mut namesof = HashMap::new();
        let lost = rings.drain(|raw| {
            if raw.time < start || raw.time > end {
                return;
            }
            let d = raw.data;
            let i = ids.iter().position(|&x| x == raw.id()).unwrap();
            let p = &points[i];
            let int = |f: &str| {
                let (at, size) = p.fields[f];
                match size {
                    1 => d[at] as i64,
                    2 => u16::from_ne_bytes([d[at], d[at + 1]]) as i64,
                    4 => i32::from_ne_bytes(d[at..at + 4].try_into().unwrap()) as i64,
                    _ => i64::from_ne_bytes(d[at..at + 8].try_into().unwrap()),
                }
            };
            let what = match i {
                0 => {
                    let a = p.fields["args"].0;
                    let l = |n: usize| u64::from_ne_bytes(d[a + 8 * n..a + 8 * n + 8].try_into().unwrap());
                    What::Enter { call: int("id"), args: [l(0), l(1), l(2)] }
                }
                1 => What::Exit { call: int("id"), result: int("ret") },
                2 => {
                    let c = p.fields["next_comm"].0;
                    let name = String::from_utf8_lossy(&d[c..c + 16]).trim_end_matches('\0').to_string();
                    namesof.insert(int("next_pid") as i32, name);
                    let s = int("prev_state") & 0xff;
                    What::Switch {
                        left: if s == 0 {
                            Left::Ready
                        } else if s & 0x30 != 0 {
                            Left::Ended
                        } else if s & 2 != 0 {
                            Left::Uninterruptible
                        } else {
                            Left::Blocked
                        },
                        next: int("next_pid") as i32,
                    }
                }
                3 => What::Waking { who: int("pid") as i32, target: int("target_cpu") as u16 },
                4 => What::Fork { child: int("child_pid") as i32 },
                5 => What::Sent { socket: int("sk") as u64, bytes: int("ret") as i32 },
                6 => What::Received { socket: int("sk") as u64, bytes: int("ret") as i32 },
                7 => What::Arrived { socket: int("skaddr") as u64 },
                8 => What::State {
                    socket: int("skaddr") as u64,
                    state: int("newstate") as u8,
                    local: int("sport") as u16,
                    remote: int("dport") as u16,
                },
                _ => {
                    let w = p.fields["rwbs"].0;
                    What::Disk {
                        step: [DiskStep::Submitted, DiskStep::Queued, DiskStep::Issued, DiskStep::Completed][i - 9],
                        io: Io {
                            device: int("dev") as u32,
                            sector: int("sector") as u64,
                            sectors: int("nr_sector") as u32,
                            write: d[w] != b'R',
                        },
                    }
                }
            };
            events.push(Event { time: raw.time, cpu: raw.cpu as u16, interrupt: d[2] & 0x18 != 0, pid: raw.pid, tid: raw.tid, what });
        });
        events.sort_by_key(|e| e.time);
        eprintln!("{} events, lost {lost}", events.len());
        windows.push(Window { start, end, events, lost, names: namesof });
        std::thread::sleep(Duration::from_millis(200));
    }
    if std::env::var("DUMP").is_ok() {
        for e in windows[0].events.iter().take(400) {
            eprintln!("{} cpu{} {} {}/{} {:?}", e.time - windows[0].start, e.cpu, e.interrupt as u8, e.pid, e.tid, e.what);
        }
    }
    let t = std::time::Instant::now();
    for w in windows.iter_mut() {
        f.learn(w);
    }
    for w in &windows {
        eprintln!("{:?}", f.window(w, &[], false));
    }
    let paths = f.finish("try".into(), 0.0);
    eprintln!("followed in {:?}", t.elapsed());
    println!(
        "followed {} cut {} mean {:.1} us p50 {:.1} p99 {:.1} not followed {:.3}",
        paths.followed,
        paths.cut,
        paths.latency.mean * 1e6,
        paths.latency.p50 * 1e6,
        paths.latency.p99 * 1e6,
        paths.not_followed
    );
    for l in paths.leaves.iter().take(30) {
        println!(
            "{:5.1}% [{:4.1} {:4.1}] mid {:5.1}% slow {:5.1}% {:12} {} {} {:?}",
            l.all.share * 100.,
            l.all.low * 100.,
            l.all.high * 100.,
            l.middle.share * 100.,
            l.slow.share * 100.,
            l.layer,
            l.component,
            l.whom,
            l.chain
        );
    }
    for slow in paths
        .slowest
        .iter()
        .filter(|s| s.spans.iter().any(|p| p.component == "not followed" || p.component.starts_with("on the way")))
        .take(4)
    {
        println!("--- {:.1} us", slow.seconds * 1e6);
        for s in &slow.spans {
            println!("   {:9.1} {:8.1} {} {} {:?}", s.at * 1e6, s.seconds * 1e6, s.component, s.whom, s.chain);
        }
    }
}

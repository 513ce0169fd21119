use fingerpost_sys::tracefs::parse_format;

use super::*;
use crate::follow::event::{DiskStep, MemoryWork};
use crate::follow::source::wanted::WANTED;

/// A tracepoint's description with these fields, `name:offset:size`.
fn point(id: u32, fields: &str) -> Tracepoint {
    let mut text = format!("ID: {id}\n");
    for field in fields.split_whitespace() {
        let [name, at, size] = field.split(':').collect::<Vec<_>>()[..] else {
            panic!("{field}")
        };
        text += &format!("\tfield:type {name};\toffset:{at};\tsize:{size};\tsigned:0;\n");
    }
    parse_format(&text).unwrap()
}

fn wanted(name: &str) -> &'static Wanted {
    WANTED.iter().find(|w| w.name == name).unwrap()
}

fn decoder(name: &str, fields: &str) -> Decoder {
    let mut d = Decoder::new(HashMap::from([(0x801, 0x800)]));
    assert!(d.learn(wanted(name), &point(7, fields)));
    d
}

/// A sample of tracepoint 7 with these bytes at these places.
fn sample(parts: &[(usize, &[u8])]) -> Vec<u8> {
    let mut data = vec![0; 80];
    data[0] = 7;
    for (at, bytes) in parts {
        data[*at..*at + bytes.len()].copy_from_slice(bytes);
    }
    data
}

fn raw(data: &[u8]) -> Raw<'_> {
    Raw {
        cpu: 1,
        time: 5,
        pid: 10,
        tid: 11,
        data,
    }
}

fn what(d: &Decoder, parts: &[(usize, &[u8])]) -> Option<What> {
    d.event(&raw(&sample(parts))).map(|e| e.what)
}

#[test]
fn calls_have_their_number_arguments_and_result() {
    let d = decoder("raw_syscalls/sys_enter", "id:8:8 args[6]:16:48");
    let data = sample(&[
        (8, &202i64.to_ne_bytes()),
        (16, &9u64.to_ne_bytes()),
        (24, &3u64.to_ne_bytes()),
    ]);
    let e = d.event(&raw(&data)).unwrap();
    assert_eq!(
        (e.time, e.cpu, e.pid, e.tid, e.interrupt),
        (5, 1, 10, 11, false)
    );
    assert_eq!(
        e.what,
        What::Enter {
            call: 202,
            args: [9, 3]
        }
    );
    assert_eq!(
        d.event(&raw(&data[..28])),
        None,
        "a sample that is too short"
    );
    assert_eq!(what(&d, &[(0, &[8])]), None, "another tracepoint's");
    let d = decoder("raw_syscalls/sys_exit", "id:8:8 ret:16:8");
    assert_eq!(
        what(
            &d,
            &[(8, &1i64.to_ne_bytes()), (16, &(-11i64).to_ne_bytes())]
        ),
        Some(What::Exit {
            call: 1,
            result: -11
        })
    );
}

#[test]
fn switches_tell_who_came_how_the_other_left_and_both_names() {
    let d = decoder(
        "sched/sched_switch",
        "prev_comm[16]:8:16 prev_state:32:8 next_comm[16]:40:16 next_pid:56:4",
    );
    let data = sample(&[
        (8, b"mariadbd\0"),
        (32, &[2]),
        (40, b"swapper/1\0"),
        (56, &77i32.to_ne_bytes()),
    ]);
    assert_eq!(
        d.event(&raw(&data)).unwrap().what,
        What::Switch {
            left: Left::Uninterruptible,
            next: 77
        }
    );
    let [(left, a), (came, b)] = d.names(&raw(&data)).unwrap();
    assert_eq!(
        (left, &a[..9], came, &b[..10]),
        (11, &b"mariadbd\0"[..], 77, &b"swapper/1\0"[..])
    );
    assert_eq!(
        [0, 0x100, 1, 2, 0x10, 0x20, 0x80, 0x402]
            .map(super::left)
            .map(|l| l as u8),
        [0, 0, 1, 2, 3, 3, 1, 2]
    );
}

#[test]
fn wakings_forks_and_what_happened_in_an_interrupt() {
    let d = decoder(
        "sched/sched_waking",
        "comm[16]:8:16 pid:24:4 target_cpu:32:4",
    );
    let data = sample(&[
        (2, &[0x11]),
        (24, &42i32.to_ne_bytes()),
        (32, &3i32.to_ne_bytes()),
    ]);
    let e = d.event(&raw(&data)).unwrap();
    assert_eq!(
        (e.interrupt, e.what),
        (true, What::Waking { who: 42, target: 3 })
    );
    let hard = sample(&[(2, &[0x0c])]);
    assert!(d.event(&raw(&hard)).unwrap().interrupt);
    assert!(
        !d.event(&raw(&sample(&[(2, &[0x07])]))).unwrap().interrupt,
        "interrupts off is not in one"
    );
    let d = decoder("sched/sched_process_fork", "parent_pid:12:4 child_pid:20:4");
    assert_eq!(
        what(&d, &[(20, &99i32.to_ne_bytes())]),
        Some(What::Fork { child: 99 })
    );
}

#[test]
fn sockets_have_their_address_bytes_state_and_ports() {
    let fields = "sk:8:8 family:16:2 ret:20:4 flags:24:4";
    let bytes: [(usize, &[u8]); 2] = [
        (8, &0xffff_8881_0000_0040u64.to_ne_bytes()),
        (20, &(-32i32).to_ne_bytes()),
    ];
    let socket = 0xffff_8881_0000_0040;
    assert_eq!(
        what(&decoder("sock/sock_send_length", fields), &bytes),
        Some(What::Sent { socket, bytes: -32 })
    );
    let d = decoder("sock/sock_recv_length", fields);
    assert_eq!(
        what(&d, &bytes),
        Some(What::Received { socket, bytes: -32 })
    );
    assert_eq!(
        what(&d, &[(24, &[0x42])]),
        None,
        "bytes that were only looked at"
    );
    assert_eq!(
        what(&decoder("sock/sk_data_ready", "skaddr:8:8"), &bytes),
        Some(What::Arrived { socket })
    );
    let d = decoder(
        "sock/inet_sock_set_state",
        "skaddr:8:8 oldstate:16:4 newstate:20:4 sport:24:2 dport:26:2",
    );
    let parts: [(usize, &[u8]); 3] = [
        (20, &[7]),
        (24, &3306u16.to_ne_bytes()),
        (26, &40000u16.to_ne_bytes()),
    ];
    assert_eq!(
        what(&d, &parts),
        Some(What::State {
            socket: 0,
            state: 7,
            local: 3306,
            remote: 40000,
            pair: 0,
        })
    );
}

#[test]
fn io_is_named_by_the_whole_device_and_a_flush_by_no_sector() {
    let d = decoder(
        "block/block_bio_queue",
        "dev:8:4 sector:16:8 nr_sector:24:4 rwbs[10]:28:10",
    );
    let io = |dev: u32, sectors: u32, flags: &[u8]| {
        let parts: [(usize, &[u8]); 4] = [
            (8, &dev.to_ne_bytes()),
            (16, &4096u64.to_ne_bytes()),
            (24, &sectors.to_ne_bytes()),
            (28, flags),
        ];
        match what(&d, &parts) {
            Some(What::Disk {
                step: DiskStep::Submitted,
                io,
            }) => io,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        io(0x801, 8, b"WS"),
        Io {
            device: 0x800,
            sector: 4096,
            sectors: 8,
            write: true
        }
    );
    assert_eq!(
        io(0x900, 8, b"RA\0W"),
        Io {
            device: 0x900,
            sector: 4096,
            sectors: 8,
            write: false
        }
    );
    assert_eq!(
        io(0x800, 0, b"FF"),
        Io {
            device: 0x800,
            sector: u64::MAX,
            sectors: 0,
            write: true
        }
    );
    assert!(io(0x800, 8, b"FWFS").write);
}

#[test]
fn memory_and_interrupts_need_no_field() {
    let d = decoder("vmscan/mm_vmscan_memcg_reclaim_end", "");
    assert_eq!(
        what(&d, &[]),
        Some(What::Memory {
            work: MemoryWork::Reclaim,
            begin: false
        })
    );
    let d = decoder("irq_vectors/local_timer_entry", "vector:8:4");
    assert_eq!(
        what(&d, &[]),
        Some(What::Interrupt {
            kind: InterruptKind::Timer,
            begin: true
        })
    );
}

#[test]
fn the_end_of_a_flush_is_told_of_it_and_of_its_write() {
    let d = decoder(
        "block/block_rq_complete",
        "dev:8:4 sector:16:8 nr_sector:24:4 error:28:4 rwbs[10]:32:10",
    );
    let io = |sector: u64, sectors: u32, flags: &[u8]| match what(
        &d,
        &[
            (16, &sector.to_ne_bytes()),
            (24, &sectors.to_ne_bytes()),
            (32, flags),
        ],
    ) {
        Some(What::Disk {
            step: DiskStep::Completed,
            io,
        }) => (io.sector, io.write),
        other => panic!("{other:?}"),
    };
    assert_eq!(io(u64::MAX, 0, b"FF\0"), (u64::MAX, true));
    assert_eq!(
        io(0, 0, b"WS\0"),
        (u64::MAX, true),
        "the flag is gone by then"
    );
    assert_eq!(io(8, 8, b"WS\0"), (8, true));
    assert_eq!(io(0, 0, b"R\0"), (0, false));
}

#[test]
fn a_field_that_is_missing_or_of_another_size_is_not_guessed() {
    let mut d = Decoder::default();
    let waking = wanted("sched/sched_waking");
    assert!(!d.learn(waking, &point(7, "pid:24:4")));
    assert!(!d.learn(waking, &point(7, "pid:24:8 target_cpu:32:4")));
    assert!(!d.learn(waking, &point(70_000, "pid:24:4 target_cpu:32:4")));
    assert_eq!(d.event(&raw(&sample(&[]))), None);
}

#[test]
fn a_sample_of_any_length_is_decoded_or_refused() {
    for w in &WANTED {
        let fields: String = fields(w.kind)
            .iter()
            .enumerate()
            .map(|(i, f)| {
                let (Number(name, bytes) | Array(name, bytes)) = *f;
                format!("{name}:{}:{bytes} ", 8 + 16 * i)
            })
            .collect();
        let d = decoder(w.name, &fields);
        for n in 0..80 {
            let data = [0xff; 80];
            let mut data = data[..n].to_vec();
            data.iter_mut().zip([7, 0]).for_each(|(b, v)| *b = v);
            d.event(&raw(&data));
            d.names(&raw(&data));
        }
    }
}

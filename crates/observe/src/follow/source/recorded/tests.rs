use super::*;
use crate::follow::event::{DiskStep, InterruptKind, Io, Left, MemoryWork, What};

/// One event of each kind, with the largest numbers where there are any.
fn window() -> Window {
    let socket = 0xffff_8881_2345_6780;
    let io = Io { device: u32::MAX, sector: u64::MAX, sectors: u32::MAX, write: true };
    let whats = [
        What::Enter { call: 202, args: [u64::MAX, 0] },
        What::Exit { call: -1, result: i64::MIN },
        What::Switch { left: Left::Ended, next: 7 },
        What::Waking { who: i32::MAX, target: u16::MAX },
        What::Fork { child: 9 },
        What::Sent { socket, bytes: -32 },
        What::Received { socket, bytes: i32::MIN },
        What::Arrived { socket },
        What::State { socket, state: 7, local: 3306, remote: 65535 },
        What::Disk { step: DiskStep::Completed, io },
        What::Ports { socket, local: 3306, remote: 65535 },
        What::Memory { work: MemoryWork::Compaction, begin: true },
        What::Interrupt { kind: InterruptKind::Soft, begin: false },
    ];
    let event = |(i, &what): (usize, &What)| {
        let i = i as i32;
        Event { time: 1000 + i as u64 / 2, cpu: i as u16, interrupt: i % 2 == 0, pid: 100 + i, tid: 200 - i, what }
    };
    let events = whats.iter().enumerate().map(event).collect();
    let names = HashMap::from([(1, "mariadbd".to_owned()), (-1, "ä".repeat(32))]);
    Window { start: 900, end: 2000, events, lost: 3, names }
}

fn written(windows: &[Window]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    windows.iter().for_each(|w| writer.window(w).unwrap());
    writer.finish().unwrap()
}

fn next(source: &mut impl Source) -> io::Result<Option<Window>> {
    source.window(Duration::ZERO, &mut |_| false)
}

/// A file of these bytes after the magic, deflated.
fn crafted(bytes: &[u8]) -> Vec<u8> {
    let mut out = DeflateEncoder::new(MAGIC.to_vec(), Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn refusal(file: &[u8]) -> String {
    match Recorded::open(file) {
        Ok(mut source) => next(&mut source).unwrap_err().to_string(),
        Err(e) => e.to_string(),
    }
}

#[test]
fn what_is_written_is_read_again_and_then_it_is_over() {
    let second = Window { start: 3000, end: 3000, ..Window::default() };
    let file = written(&[window(), second.clone()]);
    let mut source = Recorded::open(file.as_slice()).unwrap();
    assert_eq!(next(&mut source).unwrap(), Some(window()));
    assert_eq!(next(&mut source).unwrap(), Some(second));
    assert_eq!(next(&mut source).unwrap(), None);
    assert_eq!(next(&mut source).unwrap(), None);
}

#[test]
fn a_recording_is_a_few_bytes_an_event() {
    let mut w = Window { end: 1_000_000_000, ..Window::default() };
    for i in 0..10_000 {
        let what = if i % 2 == 0 { What::Enter { call: 0, args: [5, 0x7fff_1234_5678] } } else { What::Exit { call: 0, result: 70 } };
        w.events.push(Event { time: i * 730 % 5000 + i * 5000, cpu: 1, interrupt: false, pid: 4000, tid: 4001, what });
    }
    assert!(written(&[w]).len() < 10_000 * 8);
}

#[test]
fn a_window_out_of_order_is_not_written_and_a_long_name_is_cut_between_letters() {
    let mut w = window();
    w.names = HashMap::from([(1, "ä".repeat(40)), (2, format!("a{}", "ä".repeat(40)))]);
    let file = written(&[w.clone()]);
    let names = next(&mut Recorded::open(file.as_slice()).unwrap()).unwrap().unwrap().names;
    assert_eq!((names[&1].len(), names[&2].len()), (64, 63));
    w.events.reverse();
    assert!(Writer::new(Vec::new()).unwrap().window(&w).is_err());
}

#[test]
fn what_is_no_recording_or_is_of_another_version_is_refused() {
    assert_eq!(refusal(b""), "the recording ends in the middle");
    assert_eq!(refusal(b"something else entirely"), "this is not a recording of events");
    assert_eq!(refusal(b"FPEVENT2........"), "this version does not read recordings of that version");
}

#[test]
fn a_file_that_ends_anywhere_is_told_from_one_that_is_whole() {
    let file = written(&[window()]);
    for n in 0..file.len() {
        let read = Recorded::open(&file[..n]).and_then(|mut source| Ok([next(&mut source)?, next(&mut source)?]));
        // The last bits of a deflated stream say nothing more.
        let whole = read.as_ref().is_ok_and(|r| *r == [Some(window()), None]) && n + 2 >= file.len();
        assert!(read.is_err() || whole, "{n} of {} bytes", file.len());
    }
}

#[test]
fn claims_beyond_every_bound_are_refused_without_making_room_for_them() {
    let mut many = vec![1, 0, 100, 0, 0];
    code::put(&mut many, MOST_EVENTS + 1);
    assert_eq!(refusal(&crafted(&many)), "the recording claims more than any recording holds");
    let mut endless = vec![1, 0, 100, 0, 0];
    code::put(&mut endless, MOST_EVENTS);
    assert_eq!(refusal(&crafted(&endless)), "the recording ends in the middle");
    assert_eq!(refusal(&crafted(&[2])), "the recording has something else where a window should be");
    assert_eq!(refusal(&crafted(&[1, 0, 100, 0, 1, 2, 65])), "the recording claims more than any recording holds");
    assert_eq!(refusal(&crafted(&[1, 0, 100, 0, 1, 2, 1, 0xff])), "the recording has a name that is no text");
    assert_eq!(refusal(&crafted(&[1, 9, 8, 0, 0, 0])), "the recording has a window that ends before it begins");
    assert_eq!(refusal(&crafted(&[1, 0, 5, 0, 0, 1, 6, 0, 0, 2, 2, 4, 2])), "the recording has an event outside of its window");
    assert_eq!(refusal(&crafted(&[1, 0, 5, 0, 0, 1, 1, 0, 0, 2, 2, 99])), "the recording has an event of an unknown kind");
    assert_eq!(refusal(&crafted(&[1, 0, 5, 0, 0, 1, 1, 0, 2])), "the recording has a number that is out of its range");
    assert_eq!(refusal(&crafted(&[0xff; 30])), "the recording has something else where a window should be");
    assert_eq!(refusal(&crafted(&[&[1][..], &[0xff; 12]].concat())), "the recording has a number that is too long");
}

#[test]
fn after_an_error_nothing_more_is_replayed() {
    let file = crafted(&[2, 0, 0]);
    let mut source = Recorded::open(file.as_slice()).unwrap();
    assert!(next(&mut source).is_err());
    assert_eq!(next(&mut source).unwrap(), None);
}

#[test]
fn changed_bytes_are_refused_or_read_but_never_a_panic() {
    let file = written(&[window()]);
    for at in 0..file.len() {
        for flip in [1, 0x10, 0x80, 0xff] {
            let mut file = file.clone();
            file[at] ^= flip;
            if let Ok(mut source) = Recorded::open(file.as_slice()) {
                while let Ok(Some(_)) = next(&mut source) {}
            }
        }
    }
    // The same below the compression, where more of it gets through.
    let mut plain = Vec::new();
    DeflateDecoder::new(&written(&[window()])[8..]).read_to_end(&mut plain).unwrap();
    for at in 0..plain.len() {
        for flip in [1, 0x10, 0x80, 0xff] {
            let mut plain = plain.clone();
            plain[at] ^= flip;
            let file = crafted(&plain);
            let mut source = Recorded::open(file.as_slice()).unwrap();
            while let Ok(Some(_)) = next(&mut source) {}
        }
    }
}

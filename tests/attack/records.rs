//! Run files and imports from elsewhere.

use std::time::Duration;

use fingerpost_record::{Measurement, Outcome, Params, Profile, Run, fixture};

use crate::support::Home;

/// What a command may need beside four times its input: the allowance, and what a debug build needs for itself.
const ALLOWANCE: u64 = (64 + 40) << 20;
/// How many times the processor time of an input eight times as large may be. Eight were linear, 64 quadratic; the rest
/// is for a host whose pace changes from one to the other.
const TIMES: f64 = 24.0;
/// What is taken for the processor time of the smaller at least: shorter times are of starting, not of the input.
const LEAST_CPU: Duration = Duration::from_millis(50);

/// That the processor time of the larger of two inputs, eight times the smaller, is not out of proportion.
#[track_caller]
fn assert_linear(what: &str, smaller: Duration, larger: Duration) {
    assert!(
        larger <= smaller.max(LEAST_CPU).mul_f64(TIMES),
        "{what}: {smaller:?}, and {larger:?} for eight times as much"
    );
}

fn text(run: &Run) -> String {
    serde_json::to_string(run).unwrap()
}

#[test]
fn totals_that_cannot_be_are_refused_with_their_place() {
    let home = Home::new();
    let run = fixture::with_everything();
    for total in [
        "server.user.seconds",
        "server.blocked.disk.seconds",
        "step.elapsed.seconds",
    ] {
        for value in [-1.0, 1e300, -1e-300] {
            let mut run = run.clone();
            for o in &mut run.observations {
                o.totals.insert(total.to_owned(), value);
                o.totals.insert("server.blocked.memory.seconds".into(), 5.0);
            }
            let file = home.write("x.json", text(&run));
            for command in ["show", "explain"] {
                let said = home.says(&[command.as_ref(), file.as_os_str()]);
                assert!(
                    said.refused().contains("observations[0]: the total"),
                    "{}",
                    said.err
                );
            }
        }
    }
}

#[test]
fn numbers_out_of_range_are_refused_everywhere() {
    let home = Home::new();
    let whole = text(&fixture::with_everything());
    let spoilt = [
        ("\"duration_s\":58.25", "\"duration_s\":1e300"),
        ("\"clock_ns\":21.4", "\"clock_ns\":-21.4"),
        (
            "\"memory_bytes\":",
            "\"memory_bytes\":18446744073709551615,\"was\":",
        ),
        ("\"batch\":", "\"batch\":18446744073709551615,\"was\":"),
        (
            "\"seconds_per_transaction\":",
            "\"seconds_per_transaction\":-1,\"was\":",
        ),
        ("\"share\":", "\"share\":1e200,\"was\":"),
        ("\"unexplained\":", "\"unexplained\":-1e200,\"was\":"),
        ("\"lost\":", "\"lost\":18446744073709551615,\"was\":"),
    ];
    for (from, to) in spoilt {
        let edited = whole.replacen(from, to, 1);
        assert_ne!(edited, whole, "{from} is not in the run");
        let file = home.write("x.json", edited);
        let said = home.says(&["show".as_ref(), file.as_os_str()]);
        assert!(
            said.refused().contains("is not a valid run"),
            "{to}: {}",
            said.err
        );
    }
}

/// A run whose named array is filled up to this length of the file.
fn filled(array: &str, value: &str, bytes: usize) -> String {
    let mut run = fixture::with_everything();
    run.measurements.truncate(2);
    let whole = text(&run);
    let (before, after) = whole
        .split_once(array)
        .unwrap_or_else(|| panic!("{array} is not in the run"));
    let values = format!("{value},").repeat(bytes / (value.len() + 1));
    format!("{before}{array}{values}{after}")
}

#[test]
fn memory_is_bounded_by_the_file_and_time_is_linear() {
    let home = Home::new();
    for (array, value) in [
        ("\"command\":[", "\"\""),
        ("\"command\":[", "\"ab\""),
        ("\"doubts\":[", "\"\""),
        ("\"samples\":[", "0"),
        ("\"points\":[", "[0,0]"),
        ("\"processes\":[", "{\"samples\":[]}"),
        (
            "\"findings\":[",
            "{\"cause\":\"\",\"layer\":\"host\",\"status\":\"confirmed\",\"share\":0,\"evidence\":[]}",
        ),
    ] {
        let cpu = [3 << 20, 24 << 20].map(|bytes| {
            let content = filled(array, value, bytes);
            let most = 4 * content.len() as u64 + ALLOWANCE;
            let file = home.write("x.json", content);
            let tried = || {
                let said = home.says(&["show".as_ref(), file.as_os_str()]);
                said.lived();
                said
            };
            // The figure is not below what this process holds, and other tests hold something for a moment.
            let said = (0..4)
                .map(|_| tried())
                .find(|said| said.usage.peak_bytes <= most)
                .unwrap_or_else(tried);
            assert!(
                said.usage.peak_bytes <= most,
                "{array} {value} of {bytes}: {} of {most} bytes",
                said.usage.peak_bytes
            );
            said.usage.cpu
        });
        assert_linear(&format!("{array} {value}"), cpu[0], cpu[1]);
    }
}

/// A run with so many rows of one probe, whose parameters begin alike.
fn rows(id: &str, side: &str, count: usize) -> Run {
    let mut run = fixture::with_id(id);
    let row = run
        .measurements
        .iter()
        .find(|m| m.outcome == Outcome::Measured)
        .unwrap()
        .clone();
    let params = |i: usize| {
        Params::new()
            .with("a", "the same in all")
            .with("b", format!("{i:06} {side}"))
            .with("n", i as i64)
    };
    run.measurements = (0..count)
        .map(|i| Measurement {
            params: params(i),
            processes: vec![],
            ..row.clone()
        })
        .collect();
    run
}

#[test]
fn rows_that_do_not_align_take_linear_time() {
    let home = Home::new();
    for profile in [Profile::Quick, Profile::Imported] {
        let cpu = [1_250, 10_000].map(|count| {
            let base = Run {
                profile,
                ..rows("20260102T030405Z-00000001", "base", count)
            };
            let new = Run {
                profile,
                ..rows("20260102T030405Z-00000002", "new", count)
            };
            let files = [
                home.write("a.json", text(&base)),
                home.write("b.json", text(&new)),
            ];
            let said = home.says(&[
                "compare".as_ref(),
                files[0].as_os_str(),
                files[1].as_os_str(),
                "--format".as_ref(),
                "csv".as_ref(),
            ]);
            said.lived();
            assert!(said.err.contains("no row in common"), "{}", said.err);
            said.usage.cpu
        });
        assert_linear(&format!("{profile:?}"), cpu[0], cpu[1]);
    }
}

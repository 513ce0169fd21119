//! Imported files come from elsewhere: whatever is in them gives a valid run or one sentence.

use fingerpost_compare::import::{hyperfine, lmbench};
use fingerpost_record::load::validate;
use proptest::prelude::*;

const LMBENCH: &str = "[lmbench3.0 results for Linux tiger 5.4]\n[MHZ: 3593 MHz]\nSimple syscall: 0.05 microseconds\n\
    Select on 100 tcp fd's: 3.6 microseconds\n\
    \"size=16k ovr=0.45\n2 1.03\n4 1.10\nMemory load latency\n\"stride=128\n0.5 1.2\ninteger div: 8.7 nanoseconds\n\
    Pipe bandwidth: 100.5 MB/sec\n";
const HYPERFINE: &str = r#"{"results":[{"command":"a","mean":0.1,"stddev":0.01,"median":0.1,
    "times":[0.1,0.2,0.3],"exit_codes":[0,0,1],"parameters":{"n":"5"}}]}"#;

fn judged(result: Result<fingerpost_record::Run, fingerpost_compare::import::ImportError>) {
    match result {
        Ok(run) => validate(&run).unwrap(),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

/// A text with a few of its bytes replaced, inserted or cut.
fn damaged(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let edits = proptest::collection::vec((0..text.len(), any::<u8>(), 0..4_u8), 1..12);
    edits.prop_map(move |edits| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, byte, kind) in edits {
            let at = at.min(bytes.len().saturating_sub(1));
            match kind {
                0 => bytes.truncate(at.max(1)),
                1 => bytes.insert(at, byte),
                2 => bytes[at] = b"0123456789.-eE\"[]{}\n"[usize::from(byte) % 20],
                _ => bytes[at] = byte,
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_lmbench_files(bytes in damaged(LMBENCH)) {
        judged(lmbench(&bytes));
    }

    #[test]
    fn damaged_hyperfine_files(bytes in damaged(HYPERFINE)) {
        judged(hyperfine(&bytes));
    }

    #[test]
    fn noise(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        judged(lmbench(&bytes));
        judged(hyperfine(&bytes));
    }
}

#[test]
fn the_undamaged_files_are_read() {
    assert_eq!(lmbench(LMBENCH.as_bytes()).unwrap().measurements.len(), 7);
    assert_eq!(
        hyperfine(HYPERFINE.as_bytes()).unwrap().measurements.len(),
        1
    );
    assert!(
        lmbench(&vec![b'x'; (16 << 20) + 1])
            .unwrap_err()
            .to_string()
            .contains("more than")
    );
}

#[test]
fn a_file_that_would_fill_the_memory_or_take_its_time_is_refused_or_read_at_once() {
    let entries = |entry: &str, n: usize| {
        format!("{{\"results\":[{}{entry}]}}", format!("{entry},").repeat(n))
    };
    let refused = |text: String| hyperfine(text.as_bytes()).unwrap_err().to_string();
    assert!(
        refused(entries(r#"{"command":"","mean":0}"#, 300_000)).contains("more than 20000 items")
    );
    let times = format!(
        r#"{{"command":"a","mean":1,"times":[{}1]}}"#,
        "1,".repeat(60_000)
    );
    assert!(refused(entries(&times, 2)).contains("more than 100000"));
    assert!(
        refused(format!(
            r#"{{"results":[{{"command":"a","mean":"{}"}}]}}"#,
            "é".repeat(50_000)
        ))
        .len()
            < 1000
    );
    // Each line is looked up among all rows so far: ten thousand rows, and then one of them again and again.
    let lines: String = (0..199_000)
        .map(|i| format!("name{}x: 8.7 nanoseconds\n", i.min(9_998)))
        .collect();
    assert_eq!(lmbench(lines.as_bytes()).unwrap().measurements.len(), 9_999);
}

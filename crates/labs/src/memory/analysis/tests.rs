use fingerpost_record::{Better, Params, Unit};

use super::*;

fn latency(size: u64, stride: u64, pages: &str, ns: f64) -> Measurement {
    let params = Params::new()
        .with("size", size as i64)
        .with("stride", stride as i64)
        .with("pages", pages);
    let mut row =
        fingerpost_record::fixture::row("memory.latency", params, Unit::Nanoseconds, Better::Lower);
    row.estimate = Some(Estimate {
        value: ns,
        low: ns,
        high: ns,
        confidence: 0.95,
    });
    row
}

/// A machine with caches of 48 KiB and 2 MiB, and translation buffers of 64 and 2048 pages.
fn machine() -> Run {
    let cached = |bytes: u64| match bytes {
        b if b <= 48 << 10 => 1.3,
        b if b <= 2 << 20 => 4.0,
        _ => 80.0,
    };
    let translated = |pages: u64| match pages {
        p if p <= 64 => 0.0,
        p if p <= 2048 => 2.0,
        _ => 12.0,
    };
    let sizes = (12..=28).flat_map(|k| [4u64, 5, 6, 7].map(|part| part << (k - 2)));
    let mut run = Run::default();
    run.measurements
        .extend(sizes.map(|size| latency(size, 64, "huge", cached(size))));
    let pages = [
        16u64, 32, 48, 64, 96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096, 8192, 16384,
    ];
    run.measurements
        .extend(pages.map(|n| latency(n * 4096, 4096, "small", cached(n * 64) + translated(n))));
    run.measurements
        .extend(pages.map(|n| latency(n * 4096, 4096, "huge", cached(n * 64))));
    let caches = [
        ("L1d", 48u64 << 10),
        ("L1i", 32 << 10),
        ("L2", 2 << 20),
        ("L3", 480 << 20),
    ];
    run.host.cpu.caches = caches
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .collect();
    run
}

#[test]
fn caches_are_found_beside_those_reported() {
    let memory = Memory::of(&machine()).unwrap();
    let found: Vec<(u64, Option<&str>, Option<bool>)> = memory
        .levels
        .iter()
        .map(|c| {
            (
                c.level.fits,
                c.reported.as_ref().map(|r| r.0.as_str()),
                c.agrees(),
            )
        })
        .collect();
    assert_eq!(
        found[..2],
        [
            (48 << 10, Some("L1d"), Some(true)),
            (2 << 20, Some("L2"), Some(true))
        ]
    );
    // The third level reaches beyond what was measured, as a cache of 480 MiB does.
    assert_eq!(
        (found.len(), found[2].1, found[2].2),
        (3, Some("L3"), Some(true))
    );
}

#[test]
fn a_reported_size_that_the_curve_contradicts_is_said_to() {
    let mut run = machine();
    run.host.cpu.caches.insert("L2".to_owned(), 1 << 20);
    assert_eq!(Memory::of(&run).unwrap().levels[1].agrees(), Some(false));
}

#[test]
fn translation_is_what_pages_cost_beyond_lines() {
    let memory = Memory::of(&machine()).unwrap();
    let small = &memory.reaches[0];
    assert_eq!(small.pages, "small");
    let ends: Vec<u64> = small.levels.iter().map(|l| l.fits / 4096).collect();
    assert_eq!(ends, [64, 2048, 16384]);
    for (level, ns) in small.levels.iter().zip([0.0, 2.0, 12.0]) {
        assert!((level.height - ns).abs() < 0.1, "{level:?}");
    }
    let huge = &memory.reaches[1];
    assert_eq!((huge.levels.len(), huge.levels[0].passed), (1, None));
}

#[test]
fn bandwidths_are_sorted_and_primitives_are_none() {
    let row = |probe: &str, threads: Option<i64>| {
        let params = Params::new().with("size", 16384);
        let params = threads.map_or(params.clone(), |n| params.with("threads", n));
        let mut row =
            fingerpost_record::fixture::row(probe, params, Unit::BytesPerSecond, Better::Higher);
        row.estimate = Some(Estimate {
            value: 1e9,
            low: 1e9,
            high: 1e9,
            confidence: 0.95,
        });
        row
    };
    let rows = vec![
        row("memory.copy", Some(1)),
        row("memory.read", Some(2)),
        row("memory.read", Some(1)),
        row("memory.read", None),
    ];
    let mut run = Run {
        measurements: rows,
        ..Run::default()
    };
    let memory = Memory::of(&run).unwrap();
    let order: Vec<(&str, u64)> = memory
        .bandwidths
        .iter()
        .map(|b| (b.op.as_str(), b.threads))
        .collect();
    assert_eq!(order, [("read", 1), ("read", 2), ("copy", 1)]);
    run.measurements.truncate(0);
    assert_eq!(Memory::of(&run), None);
}

#[test]
fn without_huge_pages_the_small_ones_show_the_caches() {
    let mut run = machine();
    for row in &mut run.measurements {
        if row.params.int("stride") == Some(64) {
            row.params = row.params.clone().with("pages", "small");
        }
    }
    run.measurements
        .retain(|row| row.params.text("pages") == Some("small"));
    let mut refused = latency(4096, 64, "huge", 1.0);
    (refused.outcome, refused.estimate, refused.reason) = (
        Outcome::Skipped,
        None,
        Some("huge pages are turned off".into()),
    );
    run.measurements.push(refused);
    let memory = Memory::of(&run).unwrap();
    assert_eq!(memory.levels[0].level.fits, 48 << 10);
    assert_eq!(
        memory.no_huge_pages.as_deref(),
        Some("huge pages are turned off")
    );
}

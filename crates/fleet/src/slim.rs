//! Slim records: a run's figures, intervals and host, without samples, packed into some kilobytes.
//!
//! A slim record is a run like any other (`fingerpost/run/1`), so that whatever reads runs reads it (`zcat`), and it is
//! checked as a run file from elsewhere is: a node's answer is foreign.

use std::io::{self, Read, Write};
use std::path::Path;

use fingerpost_record::load::{self, LoadError};
use fingerpost_record::text::clean_short;
use fingerpost_record::{Measurement, Run, open};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// The most that a slim record may be unpacked: of the 20,000 rows that a run may have, each 250 bytes at most, with
/// its host.
pub const MOST_BYTES: u64 = 6 << 20;
/// The most that it may be packed.
pub const MOST_PACKED: u64 = 1 << 20;
/// How hard it is packed: at 6 packing took more than a third of gathering ten thousand records of a thousand rows.
const LEVEL: u32 = 3;
/// Digits that a figure keeps: a hundredth of a thousandth is far below what any row resolves.
const DIGITS: usize = 6;

/// The run without its samples, observations, budgets and requests.
pub fn slim(mut run: Run) -> Run {
    run.host.compilers.clear();
    run.measurements.iter_mut().for_each(slim_row);
    Run {
        observations: Vec::new(),
        budgets: Vec::new(),
        paths: Vec::new(),
        findings: Vec::new(),
        ..run
    }
}

fn slim_row(m: &mut Measurement) {
    if let Some(e) = &mut m.estimate {
        [&mut e.value, &mut e.low, &mut e.high]
            .into_iter()
            .for_each(|v| *v = rounded(*v));
    }
    (m.percentiles, m.processes) = (None, Vec::new());
}

/// The figure with so many digits.
fn rounded(value: f64) -> f64 {
    by_arithmetic(value).unwrap_or_else(|| by_text(value))
}

/// By printing and reading: right, and slow.
fn by_text(value: f64) -> f64 {
    format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value)
}

/// Powers of ten that a floating-point number holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// The same number, by a multiplication and a division with exact powers of ten, each of which is rounded once. Nothing
/// for a figure so near to the middle between two neighbours, or so large or small, that the first of them could
/// decide.
fn by_arithmetic(value: f64) -> Option<f64> {
    let places = (DIGITS as i32 - 1).saturating_sub(value.abs().log10().floor() as i32);
    let power = *POWERS.get(places.unsigned_abs() as usize)?;
    let scaled = if places < 0 {
        value / power
    } else {
        value * power
    };
    let whole = scaled.round();
    let clear = (scaled - whole).abs() < 0.499_999
        && whole.abs() >= POWERS[DIGITS - 1]
        && whole.abs() < POWERS[DIGITS];
    clear.then(|| {
        if places < 0 {
            whole * power
        } else {
            whole / power
        }
    })
}

/// A record as it is kept: JSON, gzipped.
///
/// # Errors
/// None of a record in memory; the encoder's type has one.
pub fn pack(run: &Run) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::new(LEVEL));
    packed.write_all(&serde_json::to_vec(run)?)?;
    packed.finish()
}

/// The record that these bytes hold, checked; `name` is what errors call it.
///
/// # Errors
/// A sentence: cut off, too large when unpacked, no run, or a run that cannot be.
pub fn unpack(bytes: &[u8], name: &str) -> Result<Run, LoadError> {
    let syntax = |message: String| LoadError::Syntax(name.to_owned(), message);
    let mut text = Vec::new();
    let read = GzDecoder::new(bytes)
        .take(MOST_BYTES + 1)
        .read_to_end(&mut text);
    read.map_err(|e| syntax(format!("it cannot be unpacked: {e}")))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(syntax(format!(
            "it unpacks to more than {MOST_BYTES} bytes"
        )));
    }
    load::from_slice(&text, name)
}

/// The record in a file, as [`unpack`] checks it.
///
/// # Errors
/// As of [`unpack`], or the system's.
pub fn from_path(path: &Path) -> Result<Run, LoadError> {
    let name = clean_short(&path.display().to_string(), 300);
    match open::beginning(path, MOST_PACKED) {
        Ok(bytes) => unpack(&bytes, &name),
        Err(source) => Err(LoadError::Io { path: name, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::fixture;

    #[test]
    fn a_record_keeps_its_figures_and_loses_its_samples() {
        let run = fixture::with_everything();
        let slim = slim(run.clone());
        let again = unpack(&pack(&slim).unwrap(), "n1").unwrap();
        assert_eq!(again, slim);
        assert_eq!(
            (again.measurements.len(), again.paths.len()),
            (run.measurements.len(), 0)
        );
        for (a, b) in again.measurements.iter().zip(&run.measurements) {
            assert_eq!(
                (&a.probe, &a.params, a.outcome, a.processes.len()),
                (&b.probe, &b.params, b.outcome, 0)
            );
            if let (Some(a), Some(b)) = (a.estimate, b.estimate) {
                assert!((a.value - b.value).abs() <= 1e-5 * b.value.abs());
            }
        }
    }

    #[test]
    fn figures_keep_six_digits() {
        assert_eq!(
            [rounded(1234567.0), rounded(0.0), rounded(-0.123_456_78)],
            [1_234_570.0, 0.0, -0.123_457]
        );
    }

    #[test]
    fn arithmetic_rounds_as_printing_does() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut by_arithmetic = 0;
        for _ in 0..100_000 {
            let figure = (0.1 + rng.f64())
                * 10_f64.powi(rng.i32(-25..25))
                * if rng.bool() { 1.0 } else { -1.0 };
            // Also figures that have seven digits and end in 5, or are next to a power of ten.
            let near = [
                by_text(figure),
                by_text(figure) * (1.0 + 5e-7),
                (rng.i32(0..1_000_000) as f64 + 0.5) / 1e3,
                10_f64.powi(rng.i32(-20..20)),
            ];
            for value in near
                .into_iter()
                .flat_map(|v| [v, v.next_up(), v.next_down()])
                .chain([figure])
            {
                assert_eq!(
                    rounded(value).to_bits(),
                    by_text(value).to_bits(),
                    "{value:e}"
                );
                by_arithmetic += usize::from(super::by_arithmetic(value).is_some());
            }
        }
        assert!(by_arithmetic > 500_000, "{by_arithmetic}");
        let odd = [f64::MAX, f64::MIN_POSITIVE, 5e-324, f64::INFINITY, -0.0];
        assert!(
            odd.iter()
                .all(|v| rounded(*v).to_bits() == by_text(*v).to_bits())
                && rounded(f64::NAN).is_nan()
        );
    }

    #[test]
    fn damaged_and_swollen_bytes_are_refused_with_a_sentence() {
        let whole = pack(&slim(fixture::run())).unwrap();
        for cut in [0, 1, 9, whole.len() / 2, whole.len() - 1] {
            assert!(unpack(&whole[..cut], "n1").is_err(), "{cut}");
        }
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(&vec![b' '; MOST_BYTES as usize + 10])
            .unwrap();
        assert!(
            unpack(&bomb.finish().unwrap(), "n1")
                .unwrap_err()
                .to_string()
                .contains("more than")
        );
        let mut rng = 1_u64;
        for _ in 0..300 {
            let mut bytes = whole.clone();
            rng = rng
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = (rng >> 33) as usize % bytes.len();
            bytes[at] ^= 1 << (rng >> 60 & 7);
            let _ = unpack(&bytes, "n1");
        }
    }
}

//! Floating point by instruction mix and compiler, beside what the core can do at most.

use fingerpost_record::descriptor::FLOPS;
use fingerpost_record::{Estimate, Measurement, Outcome};

/// The compiler of rows that name none, as those of a source do where one compiler made all.
pub const UNNAMED: &str = "unnamed";

/// The instruction mix of each module: FADD, FSUB, FMUL and FDIV in percent, as the published table gives it.
pub const MIX: [[u32; 4]; 8] = [
    [50, 0, 43, 7],
    [43, 29, 14, 14],
    [35, 12, 53, 0],
    [47, 0, 53, 0],
    [45, 0, 52, 3],
    [45, 0, 55, 0],
    [25, 25, 25, 25],
    [43, 0, 57, 0],
];

/// The kinds of peak rates, in the order shown.
const KINDS: [&str; 6] = [
    "scalar_add",
    "scalar_mul",
    "scalar_fma",
    "vector_add",
    "vector_mul",
    "vector_fma",
];

/// Everything that a run says of floating point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flops {
    /// One column per compiler with its flags, the built-in kernels first.
    pub columns: Vec<Column>,
    /// What the core can do.
    pub limits: Vec<Limit>,
    /// Compilers that failed, with the reason.
    pub failed: Vec<(String, String)>,
}

/// The modules as one compiler makes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The compiler.
    pub compiler: String,
    /// Its flags; none for the built-in kernels.
    pub cflags: Option<String>,
    /// Operations a second of each module.
    pub modules: [Option<Estimate>; 8],
}

impl Column {
    /// The arithmetic mean of all eight modules, as the published table has it; nothing while one is missing.
    pub fn average(&self) -> Option<f64> {
        let sum = self
            .modules
            .iter()
            .map(|m| m.map(|e| e.value))
            .sum::<Option<f64>>()?;
        Some(sum / self.modules.len() as f64)
    }
}

/// One of the core's peak rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// `scalar_add` … `vector_fma`.
    pub kind: String,
    /// Operations a second.
    pub flops: f64,
    /// Numbers per instruction.
    pub lanes: Option<f64>,
    /// The clock rate under this kind of load, in cycles a second.
    pub frequency: Option<f64>,
}

impl Limit {
    /// Instructions a cycle, which should be the number of units: a whole number.
    pub fn instructions_per_cycle(&self) -> Option<f64> {
        // Operations of an instruction: the width, twice for a fused multiply-add.
        let operations = self.lanes? * if self.kind.ends_with("fma") { 2.0 } else { 1.0 };
        Some(self.flops / operations / self.frequency?)
    }

    /// The number of units that would give this rate.
    pub fn units(&self) -> Option<f64> {
        self.instructions_per_cycle().map(|n| n.round().max(1.0))
    }

    /// How far the rate is from width × units × frequency, as a share of it.
    pub fn deviation(&self) -> Option<f64> {
        Some(self.instructions_per_cycle()? / self.units()? - 1.0)
    }

    /// Width × units × frequency in words: `8 lanes × 2 (multiply and add) × 2 units × 3.50 GHz`.
    pub fn formula(&self) -> Option<String> {
        let fused = if self.kind.ends_with("fma") {
            " × 2 (multiply and add)"
        } else {
            ""
        };
        let (lanes, units) = (self.lanes?, self.units()?);
        let plural =
            |n: f64, word: &str| format!("{n:.0} {word}{}", if n == 1.0 { "" } else { "s" });
        Some(format!(
            "{}{fused} × {} × {:.2} GHz",
            plural(lanes, "lane"),
            plural(units, "unit"),
            self.frequency? / 1e9
        ))
    }
}

impl Flops {
    /// What these rows say; nothing where there is no row of floating point.
    pub fn of(rows: &[Measurement]) -> Option<Flops> {
        let mut flops = Flops {
            limits: limits(rows),
            ..Flops::default()
        };
        for row in rows.iter().filter(|row| row.probe == FLOPS) {
            flops.take(row);
        }
        // The built-in kernels are the ones that every run has.
        flops.columns.sort_by(|a, b| {
            (a.cflags.is_some(), &a.compiler, &a.cflags).cmp(&(
                b.cflags.is_some(),
                &b.compiler,
                &b.cflags,
            ))
        });
        let empty = flops.columns.is_empty() && flops.limits.is_empty() && flops.failed.is_empty();
        (!empty).then_some(flops)
    }

    fn take(&mut self, row: &Measurement) {
        let compiler = row.params.text("compiler").unwrap_or(UNNAMED).to_owned();
        let cflags = row.params.text("cflags").map(str::to_owned);
        let module = row
            .params
            .int("module")
            .and_then(|n| usize::try_from(n - 1).ok())
            .filter(|n| *n < MIX.len());
        let Some(module) = module else {
            if row.outcome == Outcome::Failed {
                self.failed
                    .push((compiler, row.reason.clone().unwrap_or_default()));
            }
            return;
        };
        let place = self
            .columns
            .iter()
            .position(|c| c.compiler == compiler && c.cflags == cflags);
        let place = place.unwrap_or_else(|| {
            self.columns.push(Column {
                compiler,
                cflags,
                modules: [None; 8],
            });
            self.columns.len() - 1
        });
        self.columns[place].modules[module] = row.estimate;
    }

    /// The highest of the core's rates.
    pub fn limit(&self) -> Option<&Limit> {
        self.limits
            .iter()
            .max_by(|a, b| a.flops.total_cmp(&b.flops))
    }

    /// A rate as a share of the core's highest.
    pub fn share(&self, flops: f64) -> Option<f64> {
        self.limit().map(|limit| flops / limit.flops)
    }
}

fn limits(rows: &[Measurement]) -> Vec<Limit> {
    let value = |row: &Measurement| row.estimate.map(|e| e.value).filter(|v| *v > 0.0);
    let frequency = |load: &str| {
        let mut of = rows.iter().filter(|row| row.probe == "cpu.frequency");
        of.find(|row| row.params.text("load") == Some(load))
            .and_then(value)
    };
    let limit = |row: &Measurement| {
        let kind = row.params.text("kind")?.to_owned();
        let load = if kind.starts_with("vector") {
            "vector"
        } else {
            "integer"
        };
        Some(Limit {
            flops: value(row)?,
            lanes: row.counter("lanes").filter(|n| *n >= 1.0),
            frequency: frequency(load),
            kind,
        })
    };
    let mut limits: Vec<Limit> = rows
        .iter()
        .filter(|row| row.probe == "cpu.peak")
        .filter_map(limit)
        .collect();
    let place = |kind: &str| KINDS.iter().position(|k| *k == kind).unwrap_or(KINDS.len());
    limits.sort_by_key(|limit| place(&limit.kind));
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::{Better, Params, Process, Unit};

    fn row(probe: &str, params: Params, value: f64) -> Measurement {
        let mut row =
            fingerpost_record::fixture::row(probe, params, Unit::FlopPerSecond, Better::Higher);
        row.estimate = Some(Estimate {
            value,
            low: value,
            high: value,
            confidence: 0.95,
        });
        row
    }

    fn module(compiler: &str, cflags: Option<&str>, number: i64, value: f64) -> Measurement {
        let params = Params::new()
            .with("compiler", compiler)
            .with("module", number);
        row(
            "cpu.flops",
            cflags.map_or(params.clone(), |f| params.with("cflags", f)),
            value,
        )
    }

    fn peak(kind: &str, lanes: f64, value: f64) -> Measurement {
        let mut row = row("cpu.peak", Params::new().with("kind", kind), value);
        row.processes = vec![Process {
            counters: [("lanes".to_owned(), lanes)].into(),
            ..Process::default()
        }];
        row
    }

    #[test]
    fn the_published_average_comes_out() {
        // Powermac G5 2.7 GHz, gcc 4.0: the article prints 1568.
        let published = [1158.0, 607.0, 3047.0, 1583.0, 1418.0, 2163.0, 546.0, 2020.0];
        let rows: Vec<Measurement> = published
            .iter()
            .enumerate()
            .map(|(i, v)| module("gcc 4.0", Some("-O2"), i as i64 + 1, v * 1e6))
            .collect();
        let flops = Flops::of(&rows).unwrap();
        assert_eq!((flops.columns[0].average().unwrap() / 1e6).round(), 1568.0);
        assert_eq!(Flops::of(&rows[1..]).unwrap().columns[0].average(), None);
    }

    #[test]
    fn the_built_in_kernels_come_first_and_flags_tell_columns_apart() {
        let rows = [
            module("gcc 12", Some("-O2"), 1, 2e9),
            module("gcc 12", Some("-O3"), 1, 3e9),
            module("clang 14", Some("-O2"), 1, 2e9),
            module("built-in", None, 1, 1e9),
        ];
        let flops = Flops::of(&rows).unwrap();
        let names: Vec<&str> = flops.columns.iter().map(|c| c.compiler.as_str()).collect();
        assert_eq!(names, ["built-in", "clang 14", "gcc 12", "gcc 12"]);
    }

    #[test]
    fn the_peak_is_taken_apart_into_width_units_and_frequency() {
        let rows = [
            row("cpu.frequency", Params::new().with("load", "vector"), 3.0e9),
            row(
                "cpu.frequency",
                Params::new().with("load", "integer"),
                3.5e9,
            ),
            peak("vector_fma", 8.0, 94.0e9),
            peak("scalar_add", 1.0, 7.0e9),
            module("built-in", None, 1, 9.4e9),
        ];
        let flops = Flops::of(&rows).unwrap();
        let limit = flops.limit().unwrap();
        assert_eq!(
            (limit.kind.as_str(), limit.units()),
            ("vector_fma", Some(2.0))
        );
        assert!((limit.deviation().unwrap() - (94.0 / 96.0 - 1.0)).abs() < 1e-12);
        assert_eq!(
            limit.formula().unwrap(),
            "8 lanes × 2 (multiply and add) × 2 units × 3.00 GHz"
        );
        assert_eq!(
            flops.limits[0].formula().unwrap(),
            "1 lane × 2 units × 3.50 GHz"
        );
        assert!((flops.share(9.4e9).unwrap() - 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_compiler_that_failed_is_named_and_nothing_is_made_of_nothing() {
        let mut bad = module("tcc 0.9", Some("-O2"), 1, 1.0);
        bad.params = Params::new()
            .with("compiler", "tcc 0.9")
            .with("cflags", "-O2");
        (bad.outcome, bad.estimate, bad.reason) =
            (Outcome::Failed, None, Some("flops.c:3: error: no".into()));
        let flops = Flops::of(&[bad]).unwrap();
        assert_eq!(
            flops.failed,
            [("tcc 0.9".to_owned(), "flops.c:3: error: no".to_owned())]
        );
        assert_eq!(Flops::of(&[]), None);
        assert_eq!(Flops::of(&[row("syscall.null", Params::new(), 1.0)]), None);
        // Numbers of a hostile file.
        let strange = [
            module("x", None, 0, 1.0),
            module("x", None, 99, 1.0),
            module("x", None, i64::MIN + 1, 1.0),
        ];
        assert_eq!(Flops::of(&strange), None);
    }
}

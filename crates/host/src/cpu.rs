//! The processor: what it is, and what lets its speed vary.

use std::collections::{BTreeMap, BTreeSet};

use fingerpost_record::host::Cpu;
use fingerpost_sys::procfs::process::Status;
use fingerpost_sys::procfs::{Paths, parse_list};

const SYSFS: &str = "sys/devices/system/cpu";

pub(crate) fn describe(paths: &Paths, status: &Status) -> Cpu {
    let info = paths.read("proc/cpuinfo").unwrap_or_default();
    let listed = info
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let online = paths
        .read(format!("{SYSFS}/online"))
        .ok()
        .and_then(|list| parse_list(&list))
        .map_or(listed, |list| list.len());
    let allowed = status
        .cpus_allowed
        .as_deref()
        .and_then(parse_list)
        .map_or(online, |list| list.len());
    Cpu {
        model: model(&info),
        count: allowed as u32,
        online: online as u32,
        mhz: mhz(paths, &info),
        smt: paths.value(format!("{SYSFS}/smt/control")),
        turbo: turbo(paths),
        caches: caches(paths),
        microcode: field(&info, "microcode").map(str::to_owned),
    }
}

/// The first value of a name in `/proc/cpuinfo`.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines()
        .find_map(|line| line.split_once(':').filter(|(key, _)| key.trim() == name))
        .map(|(_, v)| v.trim())
}

/// x86 names its model; other architectures name it under other words, or only by the numbers of its maker and part.
fn model(info: &str) -> String {
    let named = ["model name", "Model", "cpu model", "uarch", "cpu"]
        .iter()
        .find_map(|name| field(info, name));
    let numbered = || {
        Some(format!(
            "CPU implementer {} part {}",
            field(info, "CPU implementer")?,
            field(info, "CPU part")?
        ))
    };
    named
        .map(str::to_owned)
        .or_else(numbered)
        .unwrap_or_default()
}

fn mhz(paths: &Paths, info: &str) -> Option<f64> {
    let scaling = paths
        .number::<f64>(format!("{SYSFS}/cpu0/cpufreq/scaling_cur_freq"))
        .map(|khz| khz / 1000.0);
    scaling
        .or_else(|| field(info, "cpu MHz")?.parse().ok())
        .filter(|mhz| mhz.is_finite() && *mhz > 0.0)
}

/// `intel_pstate` has a switch of its own, with the opposite sense of the general one.
fn turbo(paths: &Paths) -> Option<String> {
    let state = |on: bool| {
        if on {
            "on".to_owned()
        } else {
            "off".to_owned()
        }
    };
    let intel = paths
        .value(format!("{SYSFS}/intel_pstate/no_turbo"))
        .map(|off| state(off == "0"));
    intel.or_else(|| {
        paths
            .value(format!("{SYSFS}/cpufreq/boost"))
            .map(|on| state(on != "0"))
    })
}

/// The governors of all CPUs: one word where they agree, else all of them with commas.
pub(crate) fn governor(paths: &Paths) -> Option<String> {
    let is_cpu = |name: &String| {
        name.strip_prefix("cpu")
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let cpus = paths.names(SYSFS).into_iter().filter(is_cpu);
    let governors: BTreeSet<String> = cpus
        .filter_map(|cpu| paths.value(format!("{SYSFS}/{cpu}/cpufreq/scaling_governor")))
        .collect();
    (!governors.is_empty()).then(|| governors.into_iter().collect::<Vec<_>>().join(","))
}

fn caches(paths: &Paths) -> BTreeMap<String, u64> {
    let directory = format!("{SYSFS}/cpu0/cache");
    let cache = |index: String| {
        let value = |file: &str| paths.value(format!("{directory}/{index}/{file}"));
        let suffix = match value("type")?.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        Some((
            format!("L{}{suffix}", value("level")?),
            size(&value("size")?)?,
        ))
    };
    paths
        .names(&directory)
        .into_iter()
        .filter(|name| name.starts_with("index"))
        .filter_map(cache)
        .collect()
}

/// `48K` or `2M` as bytes.
fn size(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix(['K', 'k']) {
        Some(number) => (number, 1 << 10),
        None => text
            .strip_suffix('M')
            .map_or((text, 1), |number| (number, 1 << 20)),
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_several_architectures() {
        assert_eq!(
            model("processor\t: 0\nmodel\t\t: 167\nmodel name\t: Xeon\n"),
            "Xeon"
        );
        assert_eq!(
            model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
            "CPU implementer 0x41 part 0xd0c"
        );
        assert_eq!(model("cpu\t\t: POWER9\n"), "POWER9");
        assert_eq!(model(""), "");
    }

    #[test]
    fn sizes() {
        assert_eq!(
            (size("48K"), size("2M"), size("64")),
            (Some(48 << 10), Some(2 << 20), Some(64))
        );
        assert_eq!(
            (size(""), size("K"), size("18446744073709551615K")),
            (None, None, None)
        );
    }
}

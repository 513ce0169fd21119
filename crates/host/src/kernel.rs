//! The kernel: its release, how it was built, and what it guards against.

use std::collections::BTreeMap;
use std::io::Read;

use fingerpost_sys::procfs::Paths;

/// More than any kernel configuration unpacks to; a hostile archive ends here.
const LARGEST_CONFIG: u64 = 4 << 20;

/// Options that make the kernel check itself while it runs. All are off in a kernel built for use.
const DEBUGGING: &str = "CONFIG_KASAN CONFIG_KCSAN CONFIG_KMSAN CONFIG_PROVE_LOCKING CONFIG_LOCK_STAT \
    CONFIG_DEBUG_ATOMIC_SLEEP CONFIG_DEBUG_PAGEALLOC_ENABLE_DEFAULT CONFIG_SLUB_DEBUG_ON CONFIG_DEBUG_KMEMLEAK \
    CONFIG_DEBUG_OBJECTS CONFIG_PREEMPT_TRACER";

/// The kernel's configuration as text, where it is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config(String);

impl Config {
    pub(crate) fn read(paths: &Paths) -> Self {
        let release = paths.value("proc/sys/kernel/osrelease").unwrap_or_default();
        let packed = || unpack(&paths.bytes("proc/config.gz").ok()?);
        let beside = [
            format!("boot/config-{release}"),
            format!("lib/modules/{release}/config"),
        ];
        Self(
            packed()
                .or_else(|| beside.iter().find_map(|name| paths.read(name).ok()))
                .unwrap_or_default(),
        )
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.0
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .map(str::trim)
    }

    fn is_on(&self, name: &str) -> bool {
        self.value(name) == Some("y")
    }

    /// Timer interrupts a second.
    pub(crate) fn hz(&self) -> Option<u32> {
        self.value("CONFIG_HZ")?.parse().ok()
    }

    /// The debugging options that are on.
    pub(crate) fn debugging(&self) -> Vec<String> {
        DEBUGGING
            .split(' ')
            .filter(|name| self.is_on(name))
            .map(str::to_owned)
            .collect()
    }

    /// The preemption model that the kernel was built with, which a dynamic kernel can leave at boot.
    fn preemption(&self) -> Option<&'static str> {
        let models = [
            ("CONFIG_PREEMPT_RT", "rt"),
            ("CONFIG_PREEMPT_LAZY", "lazy"),
            ("CONFIG_PREEMPT", "full"),
            ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
            ("CONFIG_PREEMPT_NONE", "none"),
        ];
        models
            .iter()
            .find(|(name, _)| self.is_on(name))
            .map(|(_, model)| *model)
    }
}

fn unpack(bytes: &[u8]) -> Option<String> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(bytes)
        .take(LARGEST_CONFIG)
        .read_to_end(&mut text)
        .ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

pub(crate) fn release_and_version(paths: &Paths) -> String {
    let parts = ["osrelease", "version"].map(|name| paths.value(format!("proc/sys/kernel/{name}")));
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The kernel's own parameters. What follows `--` goes to init: it changes no figure, and may hold what nobody wants in
/// a shared file.
pub(crate) fn command_line(paths: &Paths) -> Option<String> {
    let line = paths.value("proc/cmdline")?;
    let own: Vec<&str> = line
        .split_ascii_whitespace()
        .take_while(|word| *word != "--")
        .collect();
    (!own.is_empty()).then(|| own.join(" "))
}

pub(crate) fn os(paths: &Paths) -> String {
    let text = paths
        .read("etc/os-release")
        .or_else(|_| paths.read("usr/lib/os-release"))
        .unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map(|name| name.trim().trim_matches(['"', '\'']).to_owned())
        .unwrap_or_else(|| "Linux".to_owned())
}

pub(crate) fn mitigations(paths: &Paths) -> BTreeMap<String, String> {
    let directory = "sys/devices/system/cpu/vulnerabilities";
    let value = |name: String| {
        paths
            .value(format!("{directory}/{name}"))
            .map(|value| (name, value))
    };
    paths
        .names(directory)
        .into_iter()
        .filter_map(value)
        .collect()
}

/// The word in brackets: `always [madvise] never`, `none voluntary (full) lazy`.
pub(crate) fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once(['[', '('])?;
    rest.split_once([']', ')']).map(|(word, _)| word.to_owned())
}

/// The preemption model in force: as debugfs tells it; else as the command line asks of a dynamic kernel; else as it
/// was built; else as much as its version string says.
pub(crate) fn preemption(paths: &Paths, config: &Config) -> Option<String> {
    let version = paths.value("proc/sys/kernel/version").unwrap_or_default();
    let has = |word: &str| version.split_ascii_whitespace().any(|w| w == word);
    let told = paths
        .value("sys/kernel/debug/sched/preempt")
        .and_then(|text| chosen(&text));
    let cmdline = command_line(paths).unwrap_or_default();
    let asked = || {
        cmdline
            .split_ascii_whitespace()
            .filter_map(|word| word.strip_prefix("preempt="))
            .next_back()
            .map(str::to_owned)
    };
    let models = [
        ("PREEMPT_RT", "rt"),
        ("PREEMPT_DYNAMIC", "dynamic"),
        ("PREEMPT", "full"),
    ];
    let by_version = || {
        models
            .iter()
            .find(|(word, _)| has(word))
            .map(|(_, model)| (*model).to_owned())
    };
    told.or_else(|| asked().filter(|_| has("PREEMPT_DYNAMIC")))
        .or_else(|| config.preemption().map(str::to_owned))
        .or_else(by_version)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_configuration_tells_hz_preemption_and_debugging() {
        let config = Config(
            "# CONFIG_HZ_100 is not set\nCONFIG_HZ_250=y\nCONFIG_HZ=250\nCONFIG_PREEMPT_LAZY=y\nCONFIG_KASAN=y\n"
                .into(),
        );
        assert_eq!(
            (config.hz(), config.preemption()),
            (Some(250), Some("lazy"))
        );
        assert_eq!(config.debugging(), ["CONFIG_KASAN"]);
        assert_eq!(Config::default().hz(), None);
        // `CONFIG_PREEMPT_DYNAMIC=y` must not be read as `CONFIG_PREEMPT`.
        assert_eq!(
            Config("CONFIG_PREEMPT_DYNAMIC=y\n".into()).preemption(),
            None
        );
    }

    #[test]
    fn the_chosen_word() {
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        assert_eq!((chosen("none"), chosen("[x")), (None, None));
    }

    proptest! {
        #[test]
        fn no_archive_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(&bytes);
            let _ = unpack(&[&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3], bytes.as_slice()].concat());
        }
    }
}

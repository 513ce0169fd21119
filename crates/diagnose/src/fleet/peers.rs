//! Which hosts are of one kind.

use fingerpost_record::Host;

/// Memory sizes within 9 % count as one: what firmware and kernel keep for themselves differs between boards of one
/// kind.
const SIZES_IN_DOUBLING: f64 = 8.0;

/// The group of a host, as words that a person reads: processor model with its microcode, CPUs, memory, architecture,
/// kernel, hypervisor. What the system does not tell is `unknown`, and such hosts are peers of each other only.
pub fn peer_group(host: &Host) -> String {
    let or = |text: Option<&str>| {
        text.filter(|t| !t.is_empty())
            .unwrap_or("unknown")
            .to_owned()
    };
    let memory = match host.memory_bytes {
        0 => "unknown".to_owned(),
        bytes => {
            let step = ((bytes as f64).log2() * SIZES_IN_DOUBLING).round() / SIZES_IN_DOUBLING;
            format!("about {:.1} GiB", step.exp2() / f64::from(1 << 30))
        }
    };
    let parts = [
        or(Some(&host.cpu.model)),
        format!("microcode {}", or(host.cpu.microcode.as_deref())),
        format!("{} CPUs online", host.cpu.online),
        format!("memory {memory}"),
        or(Some(&host.arch)),
        format!("kernel {}", or(Some(&host.kernel))),
        format!("hypervisor {}", or(host.virtualization.as_deref())),
    ];
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_kind_are_peers_and_others_are_not() {
        let mut host = Host {
            kernel: "6.1".into(),
            memory_bytes: 64 << 30,
            ..Host::default()
        };
        host.cpu.model = "Example 9000".into();
        let group = peer_group(&host);
        assert!(
            group.contains("Example 9000")
                && group.contains("about 64.0 GiB")
                && group.contains("microcode unknown"),
            "{group}"
        );
        let same = Host {
            hostname: "other".into(),
            memory_bytes: (64 << 30) - (300 << 20),
            ..host.clone()
        };
        assert_eq!(peer_group(&same), group);
        for other in [
            Host {
                kernel: "6.2".into(),
                ..host.clone()
            },
            Host {
                memory_bytes: 32 << 30,
                ..host.clone()
            },
        ] {
            assert_ne!(peer_group(&other), group);
        }
    }
}

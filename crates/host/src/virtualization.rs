//! Whether a hypervisor or a container stands between us and the hardware.

use fingerpost_sys::cgroup::Hierarchies;
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::system;

/// Signatures of `cpuid` leaf 0x4000_0000, without blanks and zeros.
const SIGNATURES: [(&str, &str); 9] = [
    ("KVMKVMKVM", "kvm"),
    ("MicrosoftHv", "hyperv"),
    ("VMwareVMware", "vmware"),
    ("XenVMMXenVMM", "xen"),
    ("TCGTCGTCGTCG", "qemu"),
    ("VBoxVBoxVBox", "virtualbox"),
    ("bhyvebhyve", "bhyve"),
    ("ACRNACRNACRN", "acrn"),
    ("QNXQVMBSQG", "qnx"),
];

/// Words of the firmware's maker and product that only virtual machines carry.
const FIRMWARE: [(&str, &str); 8] = [
    ("QEMU", "qemu"),
    ("KVM", "kvm"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("Xen", "xen"),
    ("Virtual Machine", "hyperv"),
    ("Google Compute Engine", "kvm"),
    ("Bochs", "bochs"),
];

/// Words in a control group's path that container managers put there.
const GROUPS: [(&str, &str); 6] = [
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("lxc", "lxc"),
    ("containerd", "containerd"),
    ("garden", "garden"),
];

/// The hypervisor with what the firmware calls the machine; `none` on bare metal; `None` where nothing tells.
pub(crate) fn hypervisor(paths: &Paths) -> Option<String> {
    let info = paths.read("proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags"));
    let flagged = flags.map(|line| {
        line.split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    });
    let machine = machine(paths);
    let signature = paths
        .is_system()
        .then(system::hypervisor_signature)
        .flatten();
    let by_signature = signature.map(|name| {
        SIGNATURES
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(name, |(_, kind)| (*kind).into())
    });
    let carries = |word: &str| {
        machine
            .as_deref()
            .is_some_and(|machine| machine.contains(word))
    };
    let by_firmware = || {
        FIRMWARE
            .iter()
            .find(|(word, _)| carries(word))
            .map(|(_, kind)| (*kind).to_owned())
    };
    let kind = by_signature
        .or_else(|| paths.value("sys/hypervisor/type"))
        .or_else(by_firmware);
    match (kind, flagged) {
        (Some(kind), _) => {
            Some(machine.map_or(kind.clone(), |machine| format!("{kind} ({machine})")))
        }
        (None, Some(true)) => Some("unknown hypervisor".to_owned()),
        (None, Some(false)) => Some("none".to_owned()),
        (None, None) => None,
    }
}

fn machine(paths: &Paths) -> Option<String> {
    let parts =
        ["sys_vendor", "product_name"].map(|name| paths.value(format!("sys/class/dmi/id/{name}")));
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

/// The container that this looks like the inside of.
pub(crate) fn container(paths: &Paths) -> Option<String> {
    let groups = Hierarchies::of_self(paths);
    let of_group = |group: &std::path::Path| {
        let group = group.to_string_lossy();
        GROUPS
            .iter()
            .find(|(word, _)| group.contains(word))
            .map(|(_, kind)| (*kind).to_owned())
    };
    let by_group = || groups.own_groups().find_map(of_group);
    let marker = |file: &str, kind: &str| paths.exists(file).then(|| kind.to_owned());
    // systemd-nspawn, LXC and Podman tell their name to init, which keeps it here.
    let told = paths
        .value("run/systemd/container")
        .or_else(|| marker("run/.containerenv", "podman"));
    told.or_else(by_group)
        .or_else(|| marker(".dockerenv", "docker"))
}

//! What time goes to, as the end of a sentence: the one wording of it, for requests in the mean and for the slowest of them.

use fingerpost_record::paths::Leaf;

use super::places::{Place, name};

/// A component as the end of “spends its time …”, with who had what was waited for, from the leaf that has most of it.
pub fn doing(component: &str, leaf: Option<&Leaf>) -> String {
    let whom = leaf.map_or("", |l| l.whom.as_str());
    let with = |verb: &str| if whom.is_empty() { String::new() } else { format!(" {verb} {whom}") };
    match component {
        name::USER => "in the program's own code".into(),
        name::OTHER_CODE => format!("in another process's code{}", with("of")),
        name::OTHER_SLEEPING => format!("waiting for another process that sleeps{}", with("named")),
        name::OTHER_LOCK => format!("waiting for another process that waits for a lock{}", with("named")),
        name::CPU if whom == name::IDLE_CPU => "waiting for a CPU while one idles".into(),
        name::CPU => format!("waiting for a CPU{}", with("used by")),
        name::LOCK => format!("waiting for a lock{}", with("held by")),
        name::DISK => match leaf.map(Place::of) {
            Some(Place::DiskHeld) => "waiting for I/O that is held back before the queue".into(),
            Some(Place::DiskBehindOthers) => format!("waiting in the disk's queue{}", with("behind")),
            Some(Place::DiskBesideOthers) => format!("waiting for the disk{}", with("beside")),
            _ => "waiting for the disk".into(),
        },
        name::PEER => format!("waiting for another service{}", with("named")),
        name::NOT_FOLLOWED => "where it could not be followed".into(),
        name::SLEEPING => "sleeping until a time that it set itself".into(),
        call if call.starts_with(name::KERNEL) => format!("in the kernel, in the call {}", &call[name::KERNEL.len()..]),
        name::INTERRUPTS => "in interrupts".into(),
        "client user and kernel" => "in the client".into(),
        "client waiting for a CPU" => "where the client waits for a CPU".into(),
        "client waiting for itself" => "where the client waits for itself".into(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Layer;
    use fingerpost_record::paths::Share;

    use super::*;

    #[test]
    fn who_had_it_is_named_where_somebody_did() {
        let leaf = |component: &str, whom: &str| Leaf {
            layer: Layer::Storage,
            component: component.into(),
            whom: whom.into(),
            chain: Vec::new(),
            all: Share::default(),
            middle: Share::default(),
            slow: Share::default(),
        };
        for (component, leaf, told) in [
            (name::CPU, leaf(name::CPU, "stress"), "waiting for a CPU used by stress"),
            (name::CPU, leaf(name::CPU, name::IDLE_CPU), "waiting for a CPU while one idles"),
            (name::DISK, leaf(name::DISK_HELD, ""), "waiting for I/O that is held back before the queue"),
            (name::DISK, leaf(name::DISK_QUEUE, "backup"), "waiting in the disk's queue behind backup"),
            (name::DISK, leaf(name::DISK_DEVICE, "backup"), "waiting for the disk beside backup"),
            (name::LOCK, leaf(name::LOCK, ""), "waiting for a lock"),
            ("kernel: futex", leaf("kernel: futex", ""), "in the kernel, in the call futex"),
            (name::MEMORY, leaf(name::MEMORY, ""), "waiting for memory"),
        ] {
            assert_eq!(doing(component, Some(&leaf)), told);
        }
        assert_eq!(doing(name::PEER, None), "waiting for another service");
    }
}

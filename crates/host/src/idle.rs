//! What is done with memory that is free or idle, while nothing is short of it.

use fingerpost_sys::procfs::Paths;

/// Nobody takes it.
pub(crate) const LEFT: &str = "left";

/// The feature bit of a balloon that tells the hypervisor of free pages (`VIRTIO_BALLOON_F_REPORTING`).
const REPORTING: usize = 5;

/// Who takes idle or free memory away, `left` when nobody does, nothing where `/sys` does not tell of memory.
pub(crate) fn memory(paths: &Paths) -> Option<String> {
    if paths.names("sys/kernel/mm").is_empty() {
        return None;
    }
    let takers = [damon(paths), reclaim_module(paths), reporting(paths)];
    let takers: Vec<&str> = takers.into_iter().flatten().collect();
    Some(if takers.is_empty() {
        LEFT.to_owned()
    } else {
        takers.join(", ")
    })
}

/// A monitor of accesses (DAMON) that pages out what is idle, set up through its files.
fn damon(paths: &Paths) -> Option<&'static str> {
    let all = "sys/kernel/mm/damon/admin/kdamonds";
    let children = |dir: &str| {
        paths
            .names(dir)
            .into_iter()
            .map(|name| format!("{dir}/{name}"))
            .collect::<Vec<_>>()
    };
    let running = children(all)
        .into_iter()
        .filter(|kdamond| paths.value(format!("{kdamond}/state")).as_deref() == Some("on"));
    let contexts = running.flat_map(|kdamond| children(&format!("{kdamond}/contexts")));
    let mut schemes = contexts.flat_map(|context| children(&format!("{context}/schemes")));
    let pages_out =
        |scheme: String| paths.value(format!("{scheme}/action")).as_deref() == Some("pageout");
    schemes.any(pages_out).then_some("DAMON pageout")
}

/// The same as a module of its own.
fn reclaim_module(paths: &Paths) -> Option<&'static str> {
    let enabled = paths.value("sys/module/damon_reclaim/parameters/enabled");
    (enabled.as_deref() == Some("Y")).then_some("DAMON reclaim")
}

/// A balloon that gives free pages to the hypervisor.
fn reporting(paths: &Paths) -> Option<&'static str> {
    let dir = "sys/bus/virtio/devices";
    let reports = |device: &String| {
        let features = paths
            .value(format!("{dir}/{device}/features"))
            .unwrap_or_default();
        paths.value(format!("{dir}/{device}/device")).as_deref() == Some("0x0005")
            && features.as_bytes().get(REPORTING) == Some(&b'1')
    };
    paths
        .names(dir)
        .iter()
        .any(reports)
        .then_some("free page reporting")
}

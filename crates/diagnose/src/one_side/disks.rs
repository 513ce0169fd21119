//! What waits for disks, and what others do on them.

use fingerpost_record::{Evidence, Metric};

use crate::facts::Facts;
use crate::judging::part;
use crate::places::Place;
use crate::thresholds::{DISK_IN_USE, OTHERS_BESIDE_OURS, OTHERS_RATE};

/// Everything that waits for a disk.
const DISK: [Place; 5] = [
    Place::DiskHeld,
    Place::DiskBehindOthers,
    Place::DiskOwn,
    Place::DiskBesideOthers,
    Place::DiskDevice,
];

pub(crate) fn figures(f: &Facts) -> Vec<Evidence> {
    let figure = |metric, value: Option<f64>| value.map(|value| Evidence::figure(metric, value));
    let each = f.sync_s.filter(|_| f.syncs.is_some());
    part(f, &DISK, Metric::DiskWait)
        .into_iter()
        .chain(figure(Metric::DiskBusy, f.disk_busy))
        .chain(figure(Metric::ServerDiskRate, f.disk_per_s))
        .chain(figure(Metric::Fsyncs, f.syncs))
        .chain(figure(Metric::FsyncSeconds, each))
        .collect()
}

/// Others' I/O that competes: at least as much as our own, or a stream in its own right, on a device that is busy.
pub(crate) fn others_compete(f: &Facts) -> bool {
    let Some(others) = f.other_disk_per_s else {
        return false;
    };
    others > OTHERS_RATE.value
        && f.disk_per_s
            .is_none_or(|own| others > OTHERS_BESIDE_OURS.value * own)
        && f.disk_busy.is_none_or(|busy| busy > DISK_IN_USE.value)
}

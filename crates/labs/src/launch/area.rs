//! Puts a placement's swap areas up and takes them down again. Every change is in the journal before it is made.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fingerpost_sys::cgroup::{Hierarchies, Throttle};
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::procfs::memory::SwapArea;
use fingerpost_sys::{loopdev, swap, system, zram};
use fingerpost_undo::journal::Undo;
use fingerpost_undo::scratch::{Scratch, Ticket};

use super::placement::{Part, Placement};
use super::pressure::undo_all;

const ZSWAP: &str = "/sys/module/zswap/parameters/enabled";
/// What must stay free on a file system beside the area.
const SPARE: u64 = 64 << 20;

/// The areas of one placement that are switched on.
#[derive(Debug, Default)]
pub struct Areas {
    tickets: Vec<Ticket>,
    /// Devices to be made slow by the applications' own group, where version 2 charges it for swapping.
    pub slow: Vec<(u32, u32)>,
    /// Bytes of all areas.
    pub bytes: u64,
}

impl Areas {
    /// Switches a placement on with so many bytes in all; `slow` is what a throttled device may do.
    ///
    /// # Errors
    /// A sentence. What was switched on until then is off again.
    pub fn put_up(
        scratch: &mut Scratch,
        placement: &Placement,
        bytes: u64,
        slow: Throttle,
    ) -> Result<Areas, String> {
        let mut areas = Areas::default();
        match areas.put_up_parts(scratch, placement, bytes, slow) {
            Ok(()) => Ok(areas),
            Err(sentence) => match areas.take_down(scratch) {
                Ok(()) => Err(sentence),
                Err(more) => Err(format!("{sentence}; and {more}")),
            },
        }
    }

    fn put_up_parts(
        &mut self,
        scratch: &mut Scratch,
        placement: &Placement,
        bytes: u64,
        slow: Throttle,
    ) -> Result<(), String> {
        let page = system::page_bytes();
        let each = (bytes / placement.parts.len().max(1) as u64).div_ceil(page) * page;
        for part in &placement.parts {
            match part {
                Part::File(dir) => {
                    let path = self.make_file(scratch, dir, each)?;
                    self.switch_on(scratch, &path, each)?;
                }
                Part::Loop(dir) => {
                    let backing = self.make_file(scratch, dir, each)?;
                    let mut device = self.attach(scratch, &backing)?;
                    if placement.throttled {
                        self.slow_down(scratch, &device, slow)?;
                        // The kernel lets requests marked as swap pass any limit (bio_issue_as_root_blkg in
                        // blk-cgroup.h), so swap goes to a second device, whose worker reads and writes the limited one
                        // unmarked.
                        device = self.attach(scratch, &device)?;
                    }
                    self.switch_on(scratch, &device, each)?;
                }
                Part::Partition(path) => self.partition(scratch, path)?,
                Part::Zram => self.zram(scratch, each)?,
            }
        }
        if placement.zswap {
            self.zswap(scratch)
        } else {
            Ok(())
        }
    }

    /// Takes everything down, newest first, and goes on where something fails.
    pub fn take_down(&mut self, scratch: &mut Scratch) -> Result<(), String> {
        undo_all(&mut self.tickets, scratch)
    }

    fn record(&mut self, scratch: &mut Scratch, undo: Undo) -> Result<(), String> {
        let ticket = scratch
            .record(undo)
            .map_err(|e| format!("cannot write the journal: {e}"))?;
        self.tickets.push(ticket);
        Ok(())
    }

    fn make_file(
        &mut self,
        scratch: &mut Scratch,
        dir: &Path,
        bytes: u64,
    ) -> Result<PathBuf, String> {
        // The kernel names the real path in /proc/swaps and in sysfs.
        let dir = fs::canonicalize(dir)
            .map_err(|e| format!("cannot put a swap file in {}: {e}", dir.display()))?;
        let free = system::free_bytes(&dir)
            .map_err(|e| format!("cannot tell the free space of {}: {e}", dir.display()))?;
        if free < bytes + SPARE {
            return Err(format!(
                "{} has {} MiB free, and a swap file of {} MiB does not fit",
                dir.display(),
                free >> 20,
                bytes >> 20
            ));
        }
        let (own, ticket) = scratch
            .directory_in(&dir)
            .map_err(|e| format!("cannot put a swap file in {}: {e}", dir.display()))?;
        self.tickets.push(ticket);
        let path = own.join("swap");
        swap::make_file(&path, bytes)
            .map_err(|e| format!("cannot make the swap file {}: {e}", path.display()))?;
        Ok(path)
    }

    fn attach(&mut self, scratch: &mut Scratch, backing: &Path) -> Result<PathBuf, String> {
        let attached = fingerpost_undo::loopdev::attach(scratch, backing)
            .map_err(|e| format!("cannot make a loop device over {}: {e}", backing.display()))?;
        self.tickets.push(attached.ticket);
        Ok(attached.device)
    }

    /// Formats a file or device of ours and switches it on, before everything that was there.
    fn switch_on(&mut self, scratch: &mut Scratch, path: &Path, bytes: u64) -> Result<(), String> {
        let trouble = |e: io::Error| {
            let advice = if e.raw_os_error() == Some(libc::EINVAL) {
                " (its file system may not carry swap files)"
            } else {
                ""
            };
            format!("cannot swap to {}: {e}{advice}", path.display())
        };
        let uuid = swap::new_uuid().map_err(trouble)?;
        swap::format(path, bytes, uuid).map_err(trouble)?;
        self.record(
            scratch,
            Undo::SwapOff {
                path: path.to_owned(),
                uuid,
            },
        )?;
        swap::on(path, swap::TOP_PRIORITY).map_err(trouble)?;
        self.bytes += bytes;
        Ok(())
    }

    /// A partition keeps its header: only what `mkswap` gave up to swapping is used.
    fn partition(&mut self, scratch: &mut Scratch, path: &Path) -> Result<(), String> {
        let path =
            fs::canonicalize(path).map_err(|e| format!("cannot use {}: {e}", path.display()))?;
        let name = path.display();
        let uuid = swap::uuid_of(&path).ok_or_else(|| {
            format!("{name} is no swap area: make it one with mkswap, which overwrites it")
        })?;
        if swap::is_on(&path) {
            return Err(format!(
                "{name} is in use as swap; Fingerpost switches only what it switched on itself: swapoff it first"
            ));
        }
        self.record(
            scratch,
            Undo::SwapOff {
                path: path.clone(),
                uuid,
            },
        )?;
        swap::on(&path, swap::TOP_PRIORITY).map_err(|e| format!("cannot swap to {name}: {e}"))?;
        self.bytes += swap::areas()
            .iter()
            .find(|area| Path::new(&area.path) == path)
            .map_or(0, |area| area.bytes);
        Ok(())
    }

    fn zram(&mut self, scratch: &mut Scratch, bytes: u64) -> Result<(), String> {
        if !zram::available() {
            return Err("the kernel has no zram here: load it with `modprobe zram`".into());
        }
        let trouble = |e: io::Error| format!("cannot set up a zram device: {e}");
        let choice = zram::choose().map_err(trouble)?;
        self.record(
            scratch,
            Undo::ZramReset {
                number: choice.number,
                bytes,
                remove: choice.make,
            },
        )?;
        zram::set_up(choice, bytes).map_err(trouble)?;
        self.switch_on(scratch, &choice.device(), bytes)
    }

    fn zswap(&mut self, scratch: &mut Scratch) -> Result<(), String> {
        let content = fs::read_to_string(ZSWAP)
            .map_err(|e| format!("the kernel has no zswap here ({ZSWAP}: {e})"))?;
        self.record(
            scratch,
            Undo::WriteFile {
                path: ZSWAP.into(),
                content,
            },
        )?;
        fs::write(ZSWAP, "Y").map_err(|e| format!("cannot switch zswap on: {e}"))
    }

    fn slow_down(
        &mut self,
        scratch: &mut Scratch,
        device: &Path,
        slow: Throttle,
    ) -> Result<(), String> {
        let number = loopdev::device_number(device)
            .map_err(|e| format!("cannot look at {}: {e}", device.display()))?;
        self.slow.push(number);
        let Some(root) = Hierarchies::of_self(&Paths::system()).block_root_v1() else {
            return Ok(());
        };
        let number = format!("{}:{}", number.0, number.1);
        for (name, limit) in [
            ("read_bps", slow.read_bytes),
            ("write_bps", slow.write_bytes),
        ] {
            let file = root.join(format!("blkio.throttle.{name}_device"));
            self.record(
                scratch,
                Undo::Unthrottle {
                    file: file.clone(),
                    device: number.clone(),
                },
            )?;
            let line = format!("{number} {}", limit.unwrap_or(0));
            fs::write(&file, line).map_err(|e| {
                format!(
                    "cannot make {} slow in {}: {e}",
                    device.display(),
                    file.display()
                )
            })?;
        }
        Ok(())
    }
}

/// Switches the user's own swap off, because the user asked for it. Undoing the tickets switches it on again.
///
/// # Errors
/// A sentence; what it says is not off.
pub fn switch_existing_off(scratch: &mut Scratch, available: u64) -> Result<Vec<Ticket>, String> {
    let areas = swap::areas();
    let used: u64 = areas.iter().map(|area| area.used).sum();
    if used > available / 2 {
        let (used, available) = (used >> 20, available >> 20);
        return Err(format!(
            "existing swap holds {used} MiB, and memory has room for {available} MiB: leave it on, or free memory first"
        ));
    }
    let mut tickets = Vec::new();
    for area in off_order(areas) {
        let path = PathBuf::from(&area.path);
        let undo = Undo::SwapOn {
            path: path.clone(),
            priority: area.priority,
        };
        tickets.push(
            scratch
                .record(undo)
                .map_err(|e| format!("cannot write the journal: {e}"))?,
        );
        swap::off(&path)
            .map_err(|e| format!("cannot switch off the swap area {}: {e}", area.path))?;
    }
    Ok(tickets)
}

/// The order in which areas go off so that undoing, newest first, brings them back from the highest priority to the
/// lowest: those whose priority the kernel chose are numbered as they come.
fn off_order(mut areas: Vec<SwapArea>) -> Vec<SwapArea> {
    areas.sort_by_key(|area| area.priority);
    areas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_priorities_come_back_in_their_order() {
        let area = |path: &str, priority| SwapArea {
            path: path.into(),
            priority,
            ..SwapArea::default()
        };
        let off = off_order(vec![area("first", -2), area("fast", 5), area("second", -3)]);
        let on: Vec<&str> = off.iter().rev().map(|area| area.path.as_str()).collect();
        assert_eq!(on, ["fast", "first", "second"]);
    }
}

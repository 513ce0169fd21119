//! zram: a block device in compressed memory. The kernel's module must be loaded; loading it is left to the user.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::procfs::Paths;

/// A device that was chosen for us, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// N of `/dev/zramN`.
    pub number: u32,
    /// Whether it has to be made, and should go again.
    pub make: bool,
}

impl Choice {
    /// The block device.
    pub fn device(self) -> PathBuf {
        PathBuf::from(format!("/dev/zram{}", self.number))
    }
}

/// Whether the kernel has zram here.
pub fn available() -> bool {
    Path::new("/sys/class/zram-control/hot_add").exists()
}

/// Chooses a device without changing anything: one that is there and unused, else the one that the kernel would make
/// next.
pub fn choose() -> io::Result<Choice> {
    let numbers = numbers();
    if let Some(&number) = numbers.iter().find(|n| size(**n) == Some(0)) {
        return Ok(Choice {
            number,
            make: false,
        });
    }
    // The kernel gives the lowest number that is free (`idr_alloc` in drivers/block/zram/zram_drv.c).
    let number = (0..)
        .find(|n| !numbers.contains(n))
        .expect("there are more numbers than devices");
    Ok(Choice { number, make: true })
}

/// Makes the device if it must be made, and gives it its size.
pub fn set_up(choice: Choice, bytes: u64) -> io::Result<()> {
    if choice.make {
        // Reading makes a device and tells its number.
        let made = fs::read_to_string("/sys/class/zram-control/hot_add")?;
        if made.trim().parse() != Ok(choice.number) {
            let _ = fs::write("/sys/class/zram-control/hot_remove", made.trim());
            let why = "somebody else is making zram devices at the same time";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
    }
    fs::write(attribute(choice.number, "disksize"), bytes.to_string())
}

/// Empties the device and removes it if it was made. One that is gone, or of another size and so somebody else's, is no
/// error.
pub fn tear_down(choice: Choice, bytes: u64) -> io::Result<()> {
    match size(choice.number) {
        Some(held) if held == bytes => fs::write(attribute(choice.number, "reset"), "1")?,
        Some(0) => {}
        _ => return Ok(()),
    }
    if choice.make {
        fs::write(
            "/sys/class/zram-control/hot_remove",
            choice.number.to_string(),
        )?;
    }
    Ok(())
}

fn attribute(number: u32, name: &str) -> String {
    format!("/sys/block/zram{number}/{name}")
}

fn size(number: u32) -> Option<u64> {
    fs::read_to_string(attribute(number, "disksize"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn numbers() -> Vec<u32> {
    let names = Paths::system().names("sys/block");
    let mut numbers: Vec<u32> = names
        .iter()
        .filter_map(|name| name.strip_prefix("zram")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_gone_needs_no_tearing_down() {
        assert!(
            tear_down(
                Choice {
                    number: 4_000_000,
                    make: true
                },
                1 << 20
            )
            .is_ok()
        );
    }
}

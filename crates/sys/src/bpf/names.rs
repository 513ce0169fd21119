//! Names of the kernel's functions, as the kernel writes them itself: a program in it formats addresses with `%ps`
//! (Documentation/core-api/printk-formats.rst). That takes microseconds, where reading all of `/proc/kallsyms` takes a
//! tenth of a second of a CPU, which a busy service has not.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::calls::{
    MAP_ARRAY, PROG_LOAD, READ_ONLY, command, descriptor, freeze, look_up, map, to_load, update,
};
use super::code::Code;

const TEST_RUN: libc::c_long = 10;
const PROGRAM_RAW_TRACEPOINT: u32 = 17;
/// `bpf_snprintf` (Linux 5.13).
const PRINT: i32 = 165;
const FORMAT: [u8; 4] = *b"%ps\0";
/// Addresses that are named by one run, and bytes of each name; longer ones (`KSYM_NAME_LEN` is 512) are cut.
const ADDRESSES: usize = 64;
const NAME: usize = 128;
/// The map's one value: addresses, then a place for the name of each.
const VALUE: usize = ADDRESSES * (8 + NAME);

/// The names of the functions that these addresses of the kernel lie in; those that lie in none are left out.
///
/// # Errors
/// What the kernel did not allow: usually loading programs, which needs root, or `CAP_BPF` and `CAP_PERFMON`.
pub fn of(addresses: &[u64]) -> io::Result<HashMap<u64, String>> {
    // Only one that programs cannot write may hold a format.
    let format = map(MAP_ARRAY, [4, FORMAT.len() as u32, 1], READ_ONLY, None)?;
    update(&format, 0, &FORMAT)?;
    freeze(&format)?;
    let values = map(MAP_ARRAY, [4, VALUE as u32, 1], 0, None)?;
    let code = program(&format, &values);
    let program =
        command(PROG_LOAD, &mut to_load(PROGRAM_RAW_TRACEPOINT, &code.0)).map(descriptor)?;
    let mut names = HashMap::new();
    for some in addresses.chunks(ADDRESSES) {
        let mut value = [0u8; VALUE];
        for (at, address) in some.iter().enumerate() {
            value[8 * at..8 * at + 8].copy_from_slice(&address.to_ne_bytes());
        }
        update(&values, 0, &value)?;
        let mut run = [0u64; 10];
        run[0] = program.as_raw_fd() as u64;
        command(TEST_RUN, &mut run)?;
        look_up(&values, 0, &mut value)?;
        let places = value[8 * ADDRESSES..].chunks_exact(NAME);
        names.extend(
            some.iter()
                .zip(places)
                .filter_map(|(&address, place)| Some((address, name(place)?))),
        );
    }
    Ok(names)
}

/// A name without its module; nothing where the kernel wrote the address itself, as no function is there.
fn name(place: &[u8]) -> Option<String> {
    let text = place.split(|&b| b == 0).next()?;
    let name = std::str::from_utf8(text).ok()?.split(' ').next()?;
    (!name.is_empty() && !name.starts_with("0x")).then(|| name.to_owned())
}

/// The program: one call of `bpf_snprintf` for each address.
fn program(format: &OwnedFd, values: &OwnedFd) -> Code {
    let mut c = Code::default();
    c.map_value(6, values);
    c.map_value(7, format);
    for at in 0..ADDRESSES {
        c.mov(1, 6);
        c.add(1, (8 * ADDRESSES + NAME * at) as i32);
        c.set(2, NAME as i32);
        c.mov(3, 7);
        c.mov(4, 6);
        c.add(4, (8 * at) as i32);
        c.set(5, 8);
        c.call(PRINT);
    }
    c.end();
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_without_its_module_and_an_address_is_none() {
        assert_eq!(name(b"do_sys_open\0rest").as_deref(), Some("do_sys_open"));
        assert_eq!(
            name(b"ext4_sync_file [ext4]\0").as_deref(),
            Some("ext4_sync_file")
        );
        assert_eq!(
            (name(b"0xffffffff81000000\0"), name(b"\0"), name(b"")),
            (None, None, None)
        );
        assert_eq!(
            name(&[b'x'; NAME]).map(|n| n.len()),
            Some(NAME),
            "one that was cut has no end"
        );
    }

    #[test]
    fn the_kernel_names_functions_as_its_list_does() {
        let list = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let function = |line| {
            let [address, "t" | "T" | "w" | "W", name, ..] =
                *str::split_ascii_whitespace(line).collect::<Vec<_>>()
            else {
                return None;
            };
            Some((u64::from_str_radix(address, 16).ok()?, name))
        };
        let text: Vec<(u64, &str)> = list.lines().filter_map(function).collect();
        // More than one run, of functions all over the list.
        let some: Vec<u64> = text
            .iter()
            .map(|(a, _)| *a)
            .step_by((text.len() / 150).max(1))
            .filter(|a| *a > 0)
            .collect();
        let named = match of(&some) {
            Ok(named) if !some.is_empty() => named,
            result => {
                return fingerpost_testing::skipped(format_args!(
                    "{} functions, {:?}",
                    some.len(),
                    result.err()
                ));
            }
        };
        // Several names may be of one address, and the list has names that the kernel does not print.
        let same = some
            .iter()
            .filter(|a| named.get(a).is_some_and(|name| text.contains(&(**a, name))))
            .count();
        assert!(
            same * 10 >= some.len() * 9,
            "{same} of {} have the same name",
            some.len()
        );
        assert_eq!(of(&[8]).unwrap().len(), 0, "no function lies at 8");
    }
}

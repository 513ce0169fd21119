//! The loopback interface of a network of one's own: switching it on, and making it slow; and what makes any network
//! slow on purpose.
//!
//! All speak to the network that the calling thread is in. Call those that change it only in one that was made for the
//! purpose ([`crate::task::own_network`]): [`shape_loopback`] refuses where there is any other interface.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use crate::netlink::{Netlink, REQUEST_DUMP, attribute, attributes};
use crate::system::{done, made};

/// The attribute that names a queueing discipline (`TCA_KIND` of linux/rtnetlink.h).
const KIND: u16 = 1;
/// The length of a struct tcmsg.
const TCMSG: usize = 20;
/// Queueing disciplines that limit a rate or delay packets. `cake` and `fq` do so only when they are told to, and are
/// not among them.
const SHAPERS: [&[u8]; 5] = [b"tbf", b"htb", b"hfsc", b"netem", b"cbq"];
/// The most that the kernel puts into one datagram of a dump.
const LARGEST: usize = 32 << 10;

/// The index that the kernel gives to every network's loopback interface.
const LOOPBACK: i32 = 1;

/// How many queueing disciplines, of all interfaces together, limit a rate or delay packets. Takes no privilege.
///
/// # Errors
/// The kernel has no traffic control, or does not answer.
pub fn shapers() -> io::Result<usize> {
    let mut netlink = Netlink::open(None, LARGEST)?;
    netlink.give_up_after(1)?;
    let mut count = 0;
    netlink.ask(libc::RTM_GETQDISC, REQUEST_DUMP, &[0; TCMSG], &mut |body| {
        count += usize::from(is_shaper(body))
    })?;
    Ok(count)
}

/// Whether a message about a queueing discipline is about one that limits a rate or delays packets.
fn is_shaper(body: &[u8]) -> bool {
    let shapes = |(kind, name): (u16, &[u8])| {
        kind == KIND && SHAPERS.contains(&name.strip_suffix(b"\0").unwrap_or(name))
    };
    attributes(body.get(TCMSG..).unwrap_or(&[])).any(shapes)
}

/// The number of the network name space that the calling thread is in.
pub fn namespace() -> io::Result<u32> {
    fs::metadata("/proc/thread-self/ns/net").map(|space| space.ino() as u32)
}

/// Switches the loopback interface on.
pub fn loopback_up() -> io::Result<()> {
    // SAFETY: socket takes plain numbers; the descriptor that it gives is ours alone.
    let socket = unsafe {
        made(libc::socket(
            libc::AF_INET,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            0,
        ))
    }?;
    // SAFETY: an ifreq of zeros is valid; the name below is shorter than its field.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request outlives the call, and SIOCSIFFLAGS reads an ifreq.
    done(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request) }).map(drop)
}

/// Lets so many bytes a second over the loopback interface, through a token bucket; `None` takes the bucket away.
///
/// Refuses in a network that has another interface, which is not one made for this.
pub fn shape_loopback(bytes_per_second: Option<u32>) -> io::Result<()> {
    let interfaces = fs::read_to_string("/proc/thread-self/net/dev")?;
    let others = interfaces
        .lines()
        .filter_map(|l| l.split_once(':'))
        .any(|(name, _)| name.trim() != "lo");
    if others {
        return Err(io::Error::other("this network is not one of our own"));
    }
    let (kind, flags, attributes) = match bytes_per_second {
        Some(rate) => (
            libc::RTM_NEWQDISC,
            libc::NLM_F_CREATE | libc::NLM_F_REPLACE,
            token_bucket(rate),
        ),
        None => (libc::RTM_DELQDISC, 0, Vec::new()),
    };
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
    Netlink::open(None, LARGEST)?.ask(kind, flags, &root_discipline(&attributes), &mut |_| ())
}

/// What a message about the root queueing discipline of the loopback interface says.
fn root_discipline(attributes: &[u8]) -> Vec<u8> {
    /// `TC_H_ROOT` of linux/pkt_sched.h.
    const ROOT: u32 = 0xffff_ffff;
    // struct tcmsg: family and padding, interface, handle, parent, info.
    let head = [
        [0; 4],
        LOOPBACK.to_ne_bytes(),
        [0; 4],
        ROOT.to_ne_bytes(),
        [0; 4],
    ];
    [head.as_flattened(), attributes].concat()
}

/// The attributes of a token bucket (linux/pkt_sched.h): its name, and its parameters with a burst of 64 KiB and room
/// for 1 MiB.
fn token_bucket(rate: u32) -> Vec<u8> {
    const OPTIONS: u16 = 2;
    const PARAMETERS: u16 = 1;
    const BURST: u16 = 6;
    /// A packet of the loopback interface must fit into the burst, or it is dropped.
    const BURST_BYTES: u32 = 96 << 10;
    const LIMIT_BYTES: u32 = 1 << 20;
    /// `TC_LINKLAYER_ETHERNET`: the rate counts bytes as they are, and no table of rates is needed.
    const ETHERNET: u8 = 1;
    // struct tc_tbf_qopt: two struct tc_ratespec (cell_log, linklayer, overhead, cell_align, mpu, rate), limit, buffer,
    // mtu.
    let rates = [
        [0, ETHERNET, 0, 0],
        [0xff, 0xff, 0, 0],
        rate.to_ne_bytes(),
        [0; 4],
        [0; 4],
        [0; 4],
    ];
    // The burst in ticks of 64 ns; the attribute BURST overrides it, the kernel only wants it not to be zero.
    let buffer = (f64::from(BURST_BYTES) / f64::from(rate.max(1)) * 15_625_000.0) as u32;
    let options = [
        rates.concat(),
        [LIMIT_BYTES, buffer, 0].map(u32::to_ne_bytes).concat(),
    ]
    .concat();
    let inner = [
        attribute(PARAMETERS, &options),
        attribute(BURST, &BURST_BYTES.to_ne_bytes()),
    ]
    .concat();
    [attribute(KIND, b"tbf\0"), attribute(OPTIONS, &inner)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_limits_a_rate_is_named_and_torn_messages_are_none() {
        let about = |name: &[u8]| {
            [
                vec![0; TCMSG],
                attribute(KIND, name),
                attribute(2, &[7; 30]),
            ]
            .concat()
        };
        for (name, shapes) in [
            (&b"tbf\0"[..], true),
            (b"netem\0", true),
            (b"noqueue\0", false),
            (b"fq_codel\0", false),
            (b"", false),
        ] {
            let body = about(name);
            assert_eq!(is_shaper(&body), shapes, "{name:?}");
            // Whatever is cut off or changed: an answer, and no panic.
            for cut in 0..body.len() {
                let _ = is_shaper(&body[..cut]);
                let mut other = body.clone();
                other[cut] = other[cut].wrapping_add(0x9d);
                let _ = is_shaper(&other);
            }
        }
    }

    #[test]
    fn the_kernel_lists_its_queueing_disciplines_or_has_none() {
        match shapers() {
            Ok(n) => assert!(n < 10_000),
            Err(e) => assert!(
                matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EPERM)),
                "{e}"
            ),
        }
    }

    #[test]
    fn messages_are_aligned() {
        let message = root_discipline(&token_bucket(1_000_000));
        assert_eq!(
            (message.len() % 4, message[..TCMSG].len()),
            (0, root_discipline(&[]).len())
        );
        assert_eq!(attribute(1, b"tbf\0").len(), 8);
        assert_eq!(attribute(6, &[1]).len(), 8);
    }
}

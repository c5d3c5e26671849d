//! Port → the processes that a connection to `127.0.0.1` there would reach.
//!
//! Several sockets can listen on one port at different addresses. The kernel hands a connection to the most
//! particular one: the very address, then every IPv4 address, then every address at all. Only those of the best rank
//! are looked at; one that listens on `::1` or on an outward address is nobody's business here.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long to wait for a connection to this machine, which is answered or refused at once unless a backlog is full.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);

/// Who has the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holders {
    /// Nobody.
    Nobody,
    /// These processes have the listening socket.
    Processes(Vec<u32>),
    /// A process that cannot be seen, of this user id where that can be told.
    Hidden {
        /// The owner of the socket.
        uid: Option<u32>,
    },
}

/// How well a socket at that address fits a connection to `127.0.0.1`; none: not at all.
fn rank(address: IpAddr) -> Option<u8> {
    match address {
        IpAddr::V4(address) if address == Ipv4Addr::LOCALHOST => Some(3),
        IpAddr::V4(address) if address.is_unspecified() => Some(2),
        IpAddr::V6(address) if address.is_unspecified() => Some(1),
        IpAddr::V6(address) => address.to_ipv4_mapped().and_then(|mapped| rank(IpAddr::V4(mapped))),
        IpAddr::V4(_) => None,
    }
}

/// Whether anything accepts a connection there. Not a byte is sent.
fn answers(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
        Ok(_) => true,
        Err(error) => error.kind() != io::ErrorKind::ConnectionRefused,
    }
}

#[cfg(target_os = "linux")]
pub use linux::Lookup;
#[cfg(not(target_os = "linux"))]
pub use portable::Lookup;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{self, File};
    use std::io::{self, BufRead, BufReader, ErrorKind};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use std::path::Path;

    use super::{Holders, answers, rank};
    use crate::handoff::SessionKey;
    use crate::port::read;

    /// The state of a listening socket in the kernel's table.
    const LISTEN: &str = "0A";
    /// The rank of a socket that listens on `::`: whether IPv4 reaches it too, the table does not say.
    const RANK_ANY_V6: u8 = 1;

    /// A listening socket.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(super) struct Socket {
        pub(super) address: IpAddr,
        pub(super) port: u16,
        pub(super) uid: u32,
        pub(super) inode: u64,
    }

    /// A descriptor that was seen to be the one socket that listens on a port of `127.0.0.1`. For as long as it is open
    /// no other can be, unless both asked for it (`SO_REUSEPORT`), and fakechat does not.
    #[derive(Clone, Copy, Debug)]
    struct Known {
        port: u16,
        inode: u64,
        holder: SessionKey,
        descriptor: u32,
    }

    /// Looks up who has a port, and remembers, so that looking again is cheap.
    #[derive(Clone, Debug, Default)]
    pub struct Lookup {
        known: Option<Known>,
    }

    impl Lookup {
        /// The process that had the port when it was last looked up, if it surely still has it.
        pub fn still(&self, port: u16) -> Option<u32> {
            self.known.filter(|known| known.holds(port)).map(|known| known.holder.pid)
        }

        /// Who has the port.
        ///
        /// # Errors
        /// `/proc` cannot be read.
        pub fn holders(&mut self, port: u16) -> io::Result<Holders> {
            if let Some(pid) = self.still(port) {
                return Ok(Holders::Processes(vec![pid]));
            }
            self.known = None;
            let sockets = reached(port)?;
            let Some(first) = sockets.first() else {
                return Ok(Holders::Nobody);
            };
            let inodes: Vec<u64> = sockets.iter().map(|socket| socket.inode).collect();
            let found = scan(Path::new("/proc"), &inodes)?;
            if let ([socket], [(pid, descriptor)]) = (sockets.as_slice(), found.as_slice())
                && socket.address == IpAddr::V4(Ipv4Addr::LOCALHOST)
            {
                self.known = Known::new(socket, *pid, *descriptor)?;
            }
            if found.is_empty() {
                return Ok(Holders::Hidden { uid: Some(first.uid) });
            }
            Ok(Holders::Processes(found.into_iter().map(|(pid, _)| pid).collect()))
        }
    }

    impl Known {
        fn new(socket: &Socket, pid: u32, descriptor: u32) -> io::Result<Option<Known>> {
            let Socket { port, inode, .. } = *socket;
            let holder = read::read(pid)?.map(|process| process.key());
            Ok(holder.map(|holder| Known { port, inode, holder, descriptor }))
        }

        /// Whether it still is the very process with the very socket.
        fn holds(&self, port: u16) -> bool {
            let target = fs::read_link(format!("/proc/{}/fd/{}", self.holder.pid, self.descriptor));
            let same_socket = target.is_ok_and(|target| inode_of(&target) == Some(self.inode));
            port == self.port && same_socket && read::runs(self.holder)
        }
    }

    /// The sockets that a connection to `127.0.0.1` would reach.
    fn reached(port: u16) -> io::Result<Vec<Socket>> {
        let mut sockets = listening("/proc/net/tcp", port)?;
        if !sockets.iter().any(|socket| rank(socket.address) == rank(IpAddr::V4(Ipv4Addr::LOCALHOST))) {
            match listening("/proc/net/tcp6", port) {
                Ok(more) => sockets.extend(more),
                // A kernel without IPv6.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let best = sockets.iter().filter_map(|socket| rank(socket.address)).max();
        if best.is_none() || (best == Some(RANK_ANY_V6) && !answers(port)) {
            return Ok(Vec::new());
        }
        sockets.retain(|socket| rank(socket.address) == best);
        Ok(sockets)
    }

    /// The sockets of one table that listen on the port. The kernel lists those that listen first, so the rest, which
    /// can be long, is not read.
    fn listening(table: &str, port: u16) -> io::Result<Vec<Socket>> {
        listening_in(BufReader::new(File::open(table)?), port)
    }

    pub(super) fn listening_in(table: impl BufRead, port: u16) -> io::Result<Vec<Socket>> {
        let mut found = Vec::new();
        for line in table.lines().skip(1) {
            let line = line?;
            let Some((socket, listens)) = parse(&line) else { continue };
            if !listens {
                break;
            }
            if socket.port == port {
                found.push(socket);
            }
        }
        Ok(found)
    }

    fn parse(line: &str) -> Option<(Socket, bool)> {
        let mut fields = line.split_ascii_whitespace();
        let (address, port) = fields.nth(1)?.split_once(':')?;
        let state = fields.nth(1)?;
        let uid = fields.nth(3)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        let port = u16::from_str_radix(port, 16).ok()?;
        Some((Socket { address: parse_address(address)?, port, uid, inode }, state == LISTEN))
    }

    /// Addresses are 32-bit words in hex, each in the byte order of the machine.
    fn parse_address(text: &str) -> Option<IpAddr> {
        let word = |at: usize| u32::from_str_radix(text.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
        match text.len() {
            8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
            32 => {
                let mut bytes = [0; 16];
                for (n, part) in bytes.chunks_exact_mut(4).enumerate() {
                    part.copy_from_slice(&word(n * 8)?);
                }
                Some(IpAddr::V6(Ipv6Addr::from(bytes)))
            }
            _ => None,
        }
    }

    /// Every process that has one of the sockets, with the descriptor. The processes of others cannot be looked into.
    fn scan(proc: &Path, inodes: &[u64]) -> io::Result<Vec<(u32, u32)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(proc)? {
            let Ok(entry) = entry else { continue };
            let Some(pid) = number(&entry.file_name()) else { continue };
            let Ok(descriptors) = fs::read_dir(entry.path().join("fd")) else { continue };
            let hit = descriptors.flatten().find_map(|descriptor| {
                let inode = inode_of(&fs::read_link(descriptor.path()).ok()?)?;
                inodes.contains(&inode).then(|| number(&descriptor.file_name()))?
            });
            if let Some(descriptor) = hit {
                found.push((pid, descriptor));
            }
        }
        Ok(found)
    }

    fn number(name: &std::ffi::OsStr) -> Option<u32> {
        name.to_str()?.parse().ok()
    }

    /// The inode in a link such as `socket:[12292]`.
    fn inode_of(target: &Path) -> Option<u64> {
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    }
}

#[cfg(any(not(target_os = "linux"), test))]
mod portable {
    use std::io;

    use super::{Holders, answers, rank};

    /// Looks up who has a port. Nothing is remembered: there is no cheap way to look again.
    #[derive(Clone, Debug, Default)]
    pub struct Lookup {}

    impl Lookup {
        /// Nothing is remembered, so nothing is sure.
        #[cfg_attr(target_os = "linux", allow(dead_code, reason = "Linux has one that remembers"))]
        #[must_use]
        pub fn still(&self, _: u16) -> Option<u32> {
            None
        }

        /// Who has the port.
        ///
        /// # Errors
        /// The table of sockets cannot be read.
        pub fn holders(&mut self, port: u16) -> io::Result<Holders> {
            let all = listeners::get_all().map_err(|error| io::Error::other(error.to_string()))?;
            let here = || {
                all.iter().filter(|found| {
                    let tcp = found.protocol == listeners::Protocol::TCP;
                    tcp && found.state == listeners::SocketState::Listen && found.socket.port() == port
                })
            };
            let best = here().filter_map(|found| rank(found.socket.ip())).max();
            let mut pids: Vec<u32> =
                here().filter(|found| rank(found.socket.ip()) == best).map(|found| found.process.pid).collect();
            pids.sort_unstable();
            pids.dedup();
            // The sockets of another user are not listed: that nobody was found does not mean that nobody is there.
            match (best, answers(port)) {
                (Some(_), _) => Ok(Holders::Processes(pids)),
                (None, true) => Ok(Holders::Hidden { uid: None }),
                (None, false) => Ok(Holders::Nobody),
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::net::{Ipv6Addr, TcpListener};

use super::*;

fn looked_up(port: u16) -> (Holders, Holders) {
    (
        linux::Lookup::default().holders(port).expect("/proc"),
        portable::Lookup::default().holders(port).expect("listeners"),
    )
}

fn own() -> Holders {
    Holders::Processes(vec![std::process::id()])
}

#[test]
fn a_listener_is_found_at_every_address_that_loopback_reaches() {
    for address in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
        let Ok(listener) = TcpListener::bind(address) else { continue }; // a machine without IPv6
        let port = listener.local_addr().unwrap().port();
        assert_eq!(looked_up(port), (own(), own()), "{address}");
        drop(listener);
        assert_eq!(looked_up(port), (Holders::Nobody, Holders::Nobody), "{address}");
    }
}

#[test]
fn one_that_loopback_does_not_reach_is_nobody() {
    let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else { return };
    let port = listener.local_addr().unwrap().port();
    assert_eq!(looked_up(port), (Holders::Nobody, Holders::Nobody));
}

#[test]
fn the_same_lookup_sees_a_change() {
    let first = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = first.local_addr().unwrap().port();
    let mut lookup = linux::Lookup::default();
    for _ in 0..3 {
        assert_eq!(lookup.holders(port).unwrap(), own());
    }
    drop(first);
    assert_eq!(lookup.holders(port).unwrap(), Holders::Nobody);
    let _second = TcpListener::bind(("127.0.0.1", port)).unwrap();
    assert_eq!(lookup.holders(port).unwrap(), own());
}

#[test]
fn the_very_address_comes_before_all_addresses() {
    let rank_of = |address: &str| rank(address.parse().unwrap());
    assert!(rank_of("127.0.0.1") > rank_of("0.0.0.0"));
    assert!(rank_of("0.0.0.0") > rank_of("::"));
    assert!(rank_of("::") > None);
    assert_eq!(rank_of("::ffff:127.0.0.1"), rank_of("127.0.0.1"));
    for elsewhere in ["::1", "192.0.2.7", "127.0.0.2", "::ffff:192.0.2.7"] {
        assert_eq!(rank_of(elsewhere), None, "{elsewhere}");
    }
}

#[test]
fn the_kernels_table_is_read_up_to_the_first_that_does_not_listen() {
    let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2254 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12292 1 0000000000000000 100 0 0 10 0
   1: 00000000:2255 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1060 1 0000000000000000 100 0 0 10 0
not a line
   2: 0100007F:2254 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 7 1 0000000000000000 100 0 0 10 0
   3: 0100007F:2254 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 8 1 0000000000000000 100 0 0 10 0
";
    let found = linux::listening_in(table.as_bytes(), 8788).unwrap();
    let [socket] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((socket.uid, socket.inode), (1000, 12292));
    if cfg!(target_endian = "little") {
        assert_eq!(socket.address, Ipv4Addr::LOCALHOST);
    }
}

//! For tests: a runtime, and the other end of one connection that does as the test says.

use std::future::Future;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

/// A machine under load is slow; nothing waits this long if all is well.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a future to its end, as actors do: on one thread.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    actix_rt::System::new().block_on(async { tokio::time::timeout(PATIENCE, future).await.expect("stuck") })
}

/// Takes one connection, reads the head of its request, and hands both over.
pub fn peer<T: Send + 'static>(serve: impl FnOnce(TcpStream, String) -> T + Send + 'static) -> (u16, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(byte(&mut stream));
        }
        serve(stream, String::from_utf8(head).unwrap())
    });
    (port, thread)
}

/// The next byte.
pub fn byte(stream: &mut TcpStream) -> u8 {
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    byte[0]
}

/// As [`peer`], after the handshake of a websocket.
pub fn websocket<T: Send + 'static>(serve: impl FnOnce(TcpStream) -> T + Send + 'static) -> (u16, JoinHandle<T>) {
    peer(|mut stream, head| {
        let key =
            head.lines().find_map(|line| line.to_lowercase().starts_with("sec-websocket-key: ").then(|| &line[19..]));
        let accept = actix_http::ws::hash_key(key.unwrap().as_bytes());
        let accept = std::str::from_utf8(&accept).unwrap();
        write!(
            stream,
            "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        )
        .unwrap();
        serve(stream)
    })
}

/// Reads one frame of a client: its first byte and its payload, unmasked.
pub fn client_frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let (first, len) = (byte(stream), byte(stream) & 0x7f);
    assert!(len < 126, "a control frame is short");
    let mask: Vec<u8> = (0..4).map(|_| byte(stream)).collect();
    (first, (0..usize::from(len)).map(|at| byte(stream) ^ mask[at % 4]).collect())
}

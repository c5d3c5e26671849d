//! Fakechats that do on purpose what happens to real ones by bad luck.

use std::env;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_http::ws::hash_key;
use serde_json::json;

use crate::standin::{control, live_on, say};
use crate::tree::kill;

/// A frame that comes along with the answer that opens a websocket.
pub const GREETING: &str = "STANDIN_GREETING";
/// Set for one whose session is killed just before that answer.
pub const KILLS: &str = "STANDIN_KILLS";

const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A fakechat that greets, and that can stop listening while its websocket stays open.
pub fn serve(role: &str, port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let (listens, gone) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
    let (sockets, posts) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (still, over, count, got) = (listens.clone(), gone.clone(), sockets.clone(), posts.clone());
    std::thread::spawn(move || {
        while still.load(Ordering::SeqCst) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let (count, got) = (count.clone(), got.clone());
                    std::thread::spawn(move || answer(stream, &count, &got));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK_EVERY),
                Err(error) => panic!("{error}"),
            }
        }
        drop(listener);
        over.store(true, Ordering::SeqCst);
    });
    control(move |request| match request["do"].as_str().unwrap() {
        "uploads" => posts.lock().unwrap().iter().map(|post: &String| json!({"text": post})).collect(),
        "sockets" => json!(sockets.load(Ordering::SeqCst)),
        "unlisten" => {
            listens.store(false, Ordering::SeqCst);
            while !gone.load(Ordering::SeqCst) {
                std::thread::sleep(LOOK_EVERY);
            }
            json!(true)
        }
        other => panic!("what is {other}?"),
    });
    say(role);
    live_on();
}

fn answer(stream: TcpStream, sockets: &AtomicUsize, posts: &Mutex<Vec<String>>) {
    stream.set_nonblocking(false).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap() == 0 {
            return;
        }
    }
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let mut stream = stream;
    let Some(key) = header("sec-websocket-key") else {
        let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).ok();
        posts.lock().unwrap().push(format!("{head}{}", String::from_utf8_lossy(&body)));
        return stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    };
    if env::var_os(KILLS).is_some() {
        let session = std::os::unix::process::parent_id();
        kill(session);
        while std::os::unix::process::parent_id() == session {
            std::thread::sleep(LOOK_EVERY);
        }
    }
    let key = hash_key(key.as_bytes());
    let mut out =
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
            .to_vec();
    out.extend_from_slice(&key);
    out.extend_from_slice(b"\r\n\r\n");
    if let Ok(greeting) = env::var(GREETING) {
        out.extend_from_slice(&[0x81, 126]);
        out.extend_from_slice(&u16::try_from(greeting.len()).unwrap().to_be_bytes());
        out.extend_from_slice(greeting.as_bytes());
    }
    stream.write_all(&out).unwrap();
    sockets.fetch_add(1, Ordering::SeqCst);
    std::io::copy(&mut reader, &mut std::io::sink()).ok();
    sockets.fetch_sub(1, Ordering::SeqCst);
}

/// A fakechat that shares its port with another one.
pub fn share(role: &str, port: u16) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _guard = runtime.enter();
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_reuseport(true).unwrap();
    socket.bind(([127, 0, 0, 1], port).into()).unwrap();
    let _listener = socket.listen(8).unwrap();
    say(role);
    live_on();
}

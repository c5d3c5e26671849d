//! What nothing could be faster than: one durable file, one durable rename, one POST.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// One durable file creation: write, fsync, rename, fsync of the folder.
pub fn create(dir: &Path, bytes: &[u8], n: usize) -> Duration {
    let (tmp, to) = (dir.join("floor.tmp"), dir.join(format!("floor-{n}")));
    let started = Instant::now();
    let mut file = File::create(&tmp).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
    fs::rename(&tmp, &to).unwrap();
    File::open(dir).unwrap().sync_all().unwrap();
    let took = started.elapsed();
    fs::remove_file(to).unwrap();
    took
}

/// One loopback POST of that text, on a connection of its own.
pub fn post(port: u16, text: &str) -> Duration {
    let boundary = "floorfloorfloor";
    let mut body = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\nfloor\r\n");
    body +=
        &format!("--{boundary}\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\n{text}\r\n--{boundary}--\r\n");
    let head = format!(
        "POST /upload HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\
         Content-Type: multipart/form-data; boundary={boundary}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let started = Instant::now();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = [0; 512];
    let n = stream.read(&mut answer).unwrap();
    let took = started.elapsed();
    assert!(answer[..n].starts_with(b"HTTP/1.1 204"), "{}", String::from_utf8_lossy(&answer[..n]));
    took
}

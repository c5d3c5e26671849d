//! What nothing could be faster than: durable files, loopback requests. All that can be made ready before the clock
//! starts is; nothing is tidied up while anything is measured.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anna_relay::fakechat::server::Double;

/// The id of every POST of ours, by which it is told from the relay's.
pub const ID: &str = "floor";
const BOUNDARY: &str = "floorfloorfloor";

/// Takes floors in a folder of the spool's file system.
pub struct Floor {
    tmp: PathBuf,
    to: PathBuf,
    count: usize,
}

impl Floor {
    /// With folders of its own in that one.
    pub fn new(dir: &Path) -> Floor {
        let (tmp, to) = (dir.join("floor/tmp"), dir.join("floor/to"));
        for dir in [&tmp, &to] {
            fs::create_dir_all(dir).unwrap();
        }
        Floor { tmp, to, count: 0 }
    }

    /// One durable file creation: write, fsync, rename, fsync of the folder.
    pub fn create(&mut self, bytes: &[u8]) -> Duration {
        let tmp = self.name();
        let to = self.to.join(self.count.to_string());
        let started = Instant::now();
        let mut file = new_file(&tmp);
        file.write_all(bytes).unwrap();
        file.sync_all().unwrap();
        fs::rename(&tmp, &to).unwrap();
        File::open(&self.to).unwrap().sync_all().unwrap();
        started.elapsed()
    }

    /// One durable creation, and one POST of that text.
    pub fn hand_off(&mut self, to: &Double, text: &str) -> Posted {
        post(to, text).after(self.create(text.as_bytes()))
    }

    /// GETs a file to the disk, durably. Returns where it is.
    pub fn get(&mut self, from: &Double, url: &str) -> (Duration, PathBuf) {
        let path = self.name();
        let request = format!("GET {url} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
        let mut piece = vec![0; 1 << 20];
        let started = Instant::now();
        let mut stream = TcpStream::connect(("127.0.0.1", from.port())).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut file = new_file(&path);
        let (head, more) = head(&mut stream, &mut piece);
        assert!(piece.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&piece[..head]));
        let mut left = length(&piece[..head]) - (more - head);
        file.write_all(&piece[head..more]).unwrap();
        while left > 0 {
            let n = stream.read(&mut piece).unwrap();
            assert!(n > 0, "cut off");
            file.write_all(&piece[..n]).unwrap();
            left -= n;
        }
        file.sync_all().unwrap();
        (started.elapsed(), path)
    }

    fn name(&mut self) -> PathBuf {
        self.count += 1;
        self.tmp.join(self.count.to_string())
    }
}

/// How long a POST took.
#[derive(Clone, Copy)]
pub struct Posted {
    /// Until all of it had arrived: what is ours ends there, too.
    pub arrived: Duration,
    /// Until the answer was there: a session that answers a message does so after that.
    pub answered: Duration,
}

impl Posted {
    /// With that before it.
    pub fn after(self, before: Duration) -> Posted {
        Posted { arrived: before + self.arrived, answered: before + self.answered }
    }

    fn of(to: &Double, started: Instant, answer: &[u8]) -> Posted {
        let answered = started.elapsed();
        assert!(answer.starts_with(b"HTTP/1.1 204"), "{}", String::from_utf8_lossy(answer));
        let last = to.uploads().into_iter().rfind(|one| one.id == ID).unwrap();
        Posted { arrived: last.at - started, answered }
    }
}

/// One loopback POST of that text: one connection, one write, one answer.
fn post(to: &Double, text: &str) -> Posted {
    let body = format!("{}--{BOUNDARY}--\r\n", field("text", text));
    let request = post_head(body.len()) + &body;
    let mut answer = [0; 1024];
    let started = Instant::now();
    let mut stream = TcpStream::connect(("127.0.0.1", to.port())).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    head(&mut stream, &mut answer);
    Posted::of(to, started, &answer)
}

/// One POST of that text with the file there, which the kernel sends by itself.
pub fn post_file(to: &Double, text: &str, path: &Path) -> Posted {
    let before = format!(
        "{}--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"floor.bin\"\r\n\r\n",
        field("text", text)
    );
    let after = format!("\r\n--{BOUNDARY}--\r\n");
    let mut answer = [0; 1024];
    let started = Instant::now();
    let mut file = File::open(path).unwrap();
    let len = usize::try_from(file.metadata().unwrap().len()).unwrap();
    let request = post_head(before.len() + len + after.len()) + &before;
    let mut stream = TcpStream::connect(("127.0.0.1", to.port())).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    io::copy(&mut file, &mut stream).unwrap();
    stream.write_all(after.as_bytes()).unwrap();
    head(&mut stream, &mut answer);
    Posted::of(to, started, &answer)
}

fn new_file(path: &Path) -> File {
    OpenOptions::new().write(true).create_new(true).open(path).unwrap()
}

fn field(name: &str, value: &str) -> String {
    let one = |name: &str, value: &str| {
        format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    one("id", ID) + &one(name, value)
}

fn post_head(len: usize) -> String {
    format!(
        "POST /upload HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\
         Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {len}\r\n\r\n"
    )
}

/// Reads until the head of an answer is there: where it ends, and how much was read.
fn head(stream: &mut TcpStream, piece: &mut [u8]) -> (usize, usize) {
    let mut got = 0;
    loop {
        let n = stream.read(&mut piece[got..]).unwrap();
        assert!(n > 0, "no answer");
        got += n;
        if let Some(at) = piece[..got].windows(4).position(|end| end == b"\r\n\r\n") {
            return (at + 4, got);
        }
    }
}

fn length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap()
}

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;

use super::super::frame::Frame;
use super::super::peer::{peer, run};
use super::super::server::Double;
use super::super::socket::{Event, connect};
use super::*;

/// Lets a double say a file, and gives its url.
async fn url(double: &Double, bytes: Vec<u8>) -> String {
    let mut socket = connect(double.port()).await.unwrap();
    double.say_file(None, Some("x"), "a.txt", bytes);
    match socket.next().await {
        Event::Frame(Frame::Message { text: None, reply_to: Some(_), file: Some(file), .. }) => file.url,
        event => panic!("{event:?}"),
    }
}

#[test]
fn only_a_plain_name_below_files_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("a");
    let long = format!("/files/{}", "x".repeat(MAX_URL));
    let bad = [
        "",
        "/files/",
        "/upload",
        "files/a",
        "/files/../x",
        "/files/a/b",
        "/files/a\\b",
        "/files/%2e%2e",
        "/files/a?x",
        "/files/a#x",
        "/files/a b",
        "/files/a\r\nHost: x",
        "/files/é",
        "http://example.org/files/a",
        "//example.org/files/a",
        &long,
    ];
    for url in bad {
        // Port 1: nobody listens there, so what is asked for at all ends in another error.
        assert!(matches!(run(fetch(1, url, &to, 10)), Err(FetchError::BadUrl)), "{url:?}");
    }
    let good = run(fetch(1, "/files/1700000000000-a1b2c3.txt", &to, 10));
    assert!(matches!(good, Err(FetchError::Connection(_))), "{good:?}");
    assert!(!to.exists());
}

#[test]
fn a_file_is_new_private_and_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("a");
    let double = Double::start(0).unwrap();
    run(async {
        let url = url(&double, vec![b'x'; 200_000]).await;
        let short = fetch(double.port(), &url, &to, 199_999).await;
        assert!(matches!(short, Err(FetchError::TooLong(199_999))), "{short:?}");
        assert!(!to.exists());
        assert_eq!(fetch(double.port(), &url, &to, 200_000).await.unwrap(), 200_000);
        assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&to, "mine").unwrap();
        let there = fetch(double.port(), &url, &to, 200_000).await;
        assert!(matches!(there, Err(FetchError::File(_))), "{there:?}");
        assert_eq!(std::fs::read(&to).unwrap(), b"mine");
    });
}

#[test]
fn half_a_file_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("a");
    for answer in ["Content-Length: 100\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "\r\nabc"] {
        let (port, thread) = peer(move |mut stream, _| write!(stream, "HTTP/1.1 200 OK\r\n{answer}").unwrap());
        let result = run(fetch(port, "/files/a", &to, 1000));
        assert!(matches!(result, Err(FetchError::Connection(_))), "{result:?}");
        assert!(!to.exists());
        thread.join().unwrap();
    }
}

#[test]
fn a_download_that_is_given_up_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("a");
    let (port, thread) = peer(|mut stream, _| {
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc").unwrap();
        // Until the other end hangs up.
        stream.read(&mut [0]).unwrap()
    });
    run(async {
        let path = to.clone();
        let task = actix_rt::spawn(async move { fetch(port, "/files/a", &path, 1000).await });
        while !to.exists() {
            tokio::task::yield_now().await;
        }
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        while to.exists() {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(thread.join().unwrap(), 0);
}

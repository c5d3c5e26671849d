use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::download::{FetchError, fetch};
use super::super::frame::Frame;
use super::super::peer::{PATIENCE, run};
use super::super::socket::{Event, connect};
use super::super::upload::{Upload, post};
use super::*;

fn text(id: &str, text: &str) -> Upload {
    Upload { id: id.into(), text: text.into(), file: None }
}

#[test]
fn a_port_that_is_taken_is_an_error_and_one_that_was_given_back_is_not() {
    let double = Double::start(0).unwrap();
    let port = double.port();
    assert_eq!(Double::start(port).err().unwrap().kind(), io::ErrorKind::AddrInUse);
    run(async {
        let _socket = connect(port).await.unwrap();
        post(port, &text("x", "y")).await.unwrap();
        double.stop();
        assert_eq!(Double::start(port).unwrap().port(), port);
    });
}

#[test]
fn a_scripted_session_answers_what_it_is_told() {
    let double = Double::start(0).unwrap();
    double.on_upload(|sayer, received| {
        sayer.say(&format!("done: {}", received.text), Some(&received.id));
    });
    run(async {
        let mut socket = connect(double.port()).await.unwrap();
        post(double.port(), &text("h1", "work")).await.unwrap();
        let Event::Frame(Frame::Message { id, text, reply_to, .. }) = socket.next().await else { panic!("no reply") };
        assert_eq!((text.as_deref(), reply_to.as_deref()), (Some("done: work"), Some("h1")));
        assert!(id.starts_with('m') && id.ends_with("-1"), "{id}");
    });
}

#[test]
fn what_is_lost_is_neither_kept_nor_answered_by_the_session() {
    let double = Double::start(0).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    double.on_upload(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    double.faults(|faults| faults.lose_uploads = true);
    run(post(double.port(), &text("lost", "x"))).unwrap();
    double.faults(|faults| faults.lose_uploads = false);
    run(post(double.port(), &text("kept", "x"))).unwrap();
    let uploads = double.wait_uploads(PATIENCE, |uploads| uploads.len() == 1);
    assert_eq!(uploads[0].id, "kept");
    double.stop();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn an_orphan_dies_of_its_first_message() {
    let double = Double::start(0).unwrap();
    double.faults(|faults| faults.die_after_answer = true);
    run(async {
        let mut socket = connect(double.port()).await.unwrap();
        let start = Instant::now();
        post(double.port(), &text("x", "y")).await.unwrap();
        assert!(matches!(socket.next().await, Event::Closed(_)));
        assert!(start.elapsed() >= Duration::from_millis(90));
        double.wait_gone(PATIENCE);
        assert!(connect(double.port()).await.is_err());
    });
}

#[test]
fn a_websocket_can_be_cut_after_the_next_answer_only() {
    let double = Double::start(0).unwrap();
    double.faults(|faults| faults.close_after_answer = Some(Duration::from_millis(20)));
    run(async {
        let mut socket = connect(double.port()).await.unwrap();
        post(double.port(), &text("x", "y")).await.unwrap();
        assert!(matches!(socket.next().await, Event::Closed(_)));
    });
    double.faults(|faults| assert_eq!(faults.close_after_answer, None));
}

#[test]
fn an_answer_can_be_late() {
    let double = Double::start(0).unwrap();
    double.faults(|faults| faults.answer_after = Duration::from_millis(100));
    let start = Instant::now();
    run(post(double.port(), &text("x", "y"))).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(100));
}

#[test]
#[should_panic(expected = "there are [\n    Received {")]
fn a_wait_in_vain_tells_what_came() {
    let double = Double::start(0).unwrap();
    run(post(double.port(), &text("x", "y"))).unwrap();
    double.wait_uploads(Duration::from_millis(10), |uploads| uploads.len() == 2);
}

#[test]
fn what_nobody_was_told_of_can_be_got_until_all_is_forgotten() {
    let (double, dir) = (Double::start(0).unwrap(), tempfile::tempdir().unwrap());
    let url = double.keep_file("a.txt", "abc");
    run(async {
        post(double.port(), &text("x", "y")).await.unwrap();
        assert_eq!(fetch(double.port(), &url, &dir.path().join("a"), 9).await.unwrap(), 3);
        double.forget();
        assert!(matches!(fetch(double.port(), &url, &dir.path().join("b"), 9).await, Err(FetchError::Refused(404))));
    });
    assert!(double.uploads().is_empty());
}

#[test]
fn a_close_can_be_ignored() {
    let double = Double::start(0).unwrap();
    double.faults(|faults| faults.ignore_close = true);
    run(async {
        let socket = connect(double.port()).await.unwrap();
        let start = Instant::now();
        socket.close().await;
        assert!(start.elapsed() < Duration::from_secs(5));
    });
    double.wait_sockets(0, PATIENCE);
}

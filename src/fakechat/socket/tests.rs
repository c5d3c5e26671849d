use std::io::Write;

use super::super::peer::{PATIENCE, client_frame, peer, run, websocket};
use super::super::server::Double;
use super::*;

fn frame(event: Event) -> Frame {
    let Event::Frame(frame) = event else { panic!("{event:?}") };
    frame
}

fn closed(event: Event) -> String {
    let Event::Closed(why) = event else { panic!("{event:?}") };
    why
}

fn edit(text: &str) -> Frame {
    Frame::Edit { id: "m".into(), text: text.into() }
}

/// A text frame of a server, with less than 126 bytes.
fn short(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, payload.len() as u8], payload].concat()
}

#[test]
fn what_is_no_websocket_is_told_apart() {
    let double = Double::start(0).unwrap();
    double.faults(|faults| faults.refuse_sockets = Some(503));
    let port = double.port();
    assert_eq!(run(connect(port)).err(), Some(ConnectError::Refused(503)));
    double.stop();
    assert!(matches!(run(connect(port)), Err(ConnectError::Unreachable(_))));
    for answer in ["", "SSH-2.0-x\r\n", "HTTP/1.1 101 x\r\n\r\n"] {
        let (port, thread) = peer(|mut stream, _| stream.write_all(answer.as_bytes()).unwrap());
        let error = run(connect(port)).err();
        assert!(matches!(error, Some(ConnectError::Failed(_))), "{error:?}");
        thread.join().unwrap();
    }
}

#[test]
fn whole_doubled_and_fragmented_frames_are_read() {
    let double = Double::start(0).unwrap();
    run(async {
        let mut socket = connect(double.port()).await.unwrap();
        double.edit("m", "whole");
        assert_eq!(frame(socket.next().await), edit("whole"));
        double.faults(|faults| (faults.duplicate_frames, faults.fragment) = (true, Some(7)));
        double.edit("m", "🦀🦀🦀🦀");
        assert_eq!(frame(socket.next().await), edit("🦀🦀🦀🦀"));
        assert_eq!(frame(socket.next().await), edit("🦀🦀🦀🦀"));
        double.faults(|faults| (faults.duplicate_frames, faults.fragment) = (false, Some(3)));
        double.say_frame("nonsense");
        assert!(matches!(socket.next().await, Event::Malformed(Malformed::NotJson { len: 8, .. })));
        double.faults(|faults| faults.fragment = None);
        double.say_frame(&b"\xff\xfe"[..]);
        assert!(matches!(socket.next().await, Event::Malformed(Malformed::NotUtf8 { len: 2 })));
        double.edit("m", "still there");
        assert_eq!(frame(socket.next().await), edit("still there"));
    });
    assert!(double.prompts().is_empty());
}

#[test]
fn whatever_end_it_comes_to_it_stays_closed() {
    let double = Double::start(0).unwrap();
    run(async {
        let mut sockets = Vec::new();
        for end in [Double::drop_sockets, Double::close_sockets] {
            let mut socket = connect(double.port()).await.unwrap();
            double.edit("m", "last words");
            end(&double);
            assert_eq!(frame(socket.next().await), edit("last words"));
            sockets.push(socket);
        }
        let [cut, gone] = &mut sockets[..] else { panic!("two sockets") };
        assert_eq!(closed(cut.next().await), "the connection was cut");
        assert_eq!(closed(gone.next().await), "closed by the other end");
        assert_eq!(closed(gone.next().await), "closed by the other end");
        double.wait_sockets(0, PATIENCE);
        let socket = connect(double.port()).await.unwrap();
        double.wait_sockets(1, PATIENCE);
        socket.close().await;
        double.wait_sockets(0, PATIENCE);
        let mut socket = connect(double.port()).await.unwrap();
        double.stop();
        closed(socket.next().await);
    });
}

#[test]
fn a_frame_past_the_limit_ends_the_connection_and_nothing_after_it_counts() {
    let (port, thread) = websocket(|mut stream| {
        let announced = (MAX_FRAME as u64 + 1).to_be_bytes();
        stream.write_all(&[&[0x81, 127], &announced[..]].concat()).unwrap();
        stream.write_all(&short(0x81, br#"{"type":"edit","id":"m","text":"x"}"#)).unwrap();
    });
    run(async {
        let mut socket = connect(port).await.unwrap();
        assert!(closed(socket.next().await).starts_with("receiving: "));
        assert!(closed(socket.next().await).starts_with("receiving: "));
    });
    thread.join().unwrap();
}

#[test]
fn what_follows_a_long_frame_is_read_too() {
    let double = Double::start(0).unwrap();
    run(async {
        let mut socket = connect(double.port()).await.unwrap();
        double.say_long(3 * LONG);
        double.edit("m", "next");
        let Frame::Message { text: Some(text), .. } = frame(socket.next().await) else { panic!("no message") };
        assert_eq!(text.len(), 3 * LONG);
        assert_eq!(frame(socket.next().await), edit("next"));
        double.edit("m", "last");
        assert_eq!(frame(socket.next().await), edit("last"));
    });
}

#[test]
fn fragments_past_the_limit_or_out_of_place_end_the_connection() {
    let (port, _thread) = websocket(|mut stream| {
        let half = MAX_FRAME / 2 + 1;
        for first in [0x01, 0x80] {
            stream.write_all(&[&[first, 127], &(half as u64).to_be_bytes()[..]].concat()).unwrap();
            stream.write_all(&vec![b' '; half]).unwrap();
        }
    });
    run(async {
        let mut socket = connect(port).await.unwrap();
        assert_eq!(closed(socket.next().await), "a message longer than the limit");
    });
    let (port, thread) = websocket(|mut stream| stream.write_all(&short(0x80, b"x")).unwrap());
    run(async {
        let mut socket = connect(port).await.unwrap();
        assert!(closed(socket.next().await).starts_with("receiving: "));
    });
    thread.join().unwrap();
}

#[test]
fn pings_and_a_close_are_answered_and_a_binary_frame_is_nothing() {
    let (port, thread) = websocket(|mut stream| {
        stream.write_all(&short(0x82, b"\0\0\0")).unwrap();
        stream.write_all(&short(0x89, b"abc")).unwrap();
        let pong = client_frame(&mut stream);
        stream.write_all(&short(0x88, &[0x03, 0xe9])).unwrap();
        (pong, client_frame(&mut stream).0)
    });
    run(async {
        let mut socket = connect(port).await.unwrap();
        assert!(matches!(socket.next().await, Event::Malformed(Malformed::Binary { len: 3 })));
        assert_eq!(closed(socket.next().await), "closed by the other end, code 1001");
    });
    assert_eq!(thread.join().unwrap(), ((0x8a, b"abc".to_vec()), 0x88));
}

#[test]
fn a_wait_that_is_given_up_loses_nothing() {
    let (port, thread) = websocket(|mut stream| {
        for text in ["one", "two", "three"] {
            let json = format!(r#"{{"type":"edit","id":"m","text":"{text}"}}"#);
            for byte in short(0x81, json.as_bytes()) {
                stream.write_all(&[byte]).unwrap();
                std::thread::yield_now();
            }
        }
    });
    run(async {
        let mut socket = connect(port).await.unwrap();
        let mut events = Vec::new();
        while events.len() < 4 {
            if let Ok(event) = timeout(Duration::from_micros(50), socket.next()).await {
                events.push(event);
            }
        }
        assert_eq!(closed(events.remove(3)), "the connection was cut");
        assert_eq!(events.into_iter().map(frame).collect::<Vec<_>>(), ["one", "two", "three"].map(edit));
    });
    thread.join().unwrap();
}

#[test]
fn a_mute_peer_is_given_up_in_time() {
    let double = Double::start(0).unwrap();
    double.faults(|faults| faults.mute = true);
    actix_rt::System::new().block_on(async {
        let mut socket = connect(double.port()).await.unwrap();
        tokio::time::pause();
        let start = Instant::now();
        assert_eq!(closed(socket.next().await), "nothing was heard for 118 s");
        assert!(start.elapsed() <= READ_DEADLINE + Duration::from_millis(10), "{:?}", start.elapsed());
    });
}

#[test]
fn a_reader_that_was_held_up_does_not_take_that_for_silence() {
    let double = Double::start(0).unwrap();
    actix_rt::System::new().block_on(async {
        let mut socket = connect(double.port()).await.unwrap();
        tokio::time::pause();
        tokio::time::advance(READ_DEADLINE * 3).await;
        tokio::time::resume();
        double.edit("m", "there");
        assert_eq!(frame(socket.next().await), edit("there"));
    });
}

#[test]
fn the_pings_of_a_server_keep_the_connection() {
    let double = Double::start(0).unwrap();
    double.faults(|faults| faults.ping_every = Duration::from_millis(5));
    run(async {
        let mut socket = connect(double.port()).await.unwrap();
        // Some pings go back and forth meanwhile; the contract is only that nothing comes of them.
        assert!(timeout(Duration::from_millis(200), socket.next()).await.is_err());
        assert_eq!(double.sockets(), 1);
    });
}

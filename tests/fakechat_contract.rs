//! What the relay relies on in a fakechat, written once and held against both: the built-in double, always, and the
//! real one, where `FAKECHAT_DIR` names a checkout of its directory in which `bun install` has been run.

#![allow(clippy::unwrap_used)] // a test that cannot go on stops

#[path = "fakechat_contract/double.rs"]
mod double;
#[path = "fakechat_contract/mcp.rs"]
mod mcp;
#[path = "fakechat_contract/real.rs"]
mod real;

use std::future::Future;
use std::time::Duration;

use anna_relay::fakechat::download::{FetchError, fetch};
use anna_relay::fakechat::frame::Frame;
use anna_relay::fakechat::socket::{Event, Socket, connect};
use anna_relay::fakechat::upload::{Body, PostError, Upload, UploadFile, post};
use awc::ws;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, stream};

/// A machine under load is slow; nothing here waits this long if all is well.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the session got.
#[derive(Clone, Debug, PartialEq)]
struct Got {
    id: String,
    text: String,
    file: Option<Bytes>,
}

/// A fakechat with its session.
trait Chat {
    fn port(&self) -> u16;
    /// The session replies; the message id.
    fn say(&self, text: Option<&str>, reply_to: Option<&str>) -> String;
    fn say_file(&self, text: &str, name: &str, bytes: &[u8]) -> String;
    fn edit(&self, id: &str, text: &str);
    /// Waits until the session has got so many messages in all.
    fn got(&self, count: usize) -> Vec<Got>;
}

fn run<T>(future: impl Future<Output = T>) -> T {
    actix_rt::System::new().block_on(async { tokio::time::timeout(PATIENCE, future).await.expect("stuck") })
}

fn upload(id: &str, text: &str) -> Upload {
    Upload { id: id.to_owned(), text: text.to_owned(), file: None }
}

fn put(chat: &dyn Chat, upload: &Upload) -> Result<(), PostError> {
    run(post(chat.port(), upload))
}

async fn frame(socket: &mut Socket) -> Frame {
    match socket.next().await {
        Event::Frame(frame) => frame,
        Event::Malformed(why) => panic!("malformed: {why}"),
        Event::Closed(why) => panic!("closed: {why}"),
    }
}

/// The texts that must pass unchanged.
const TEXTS: [&str; 9] = [
    "plain",
    "two\nlines",
    "\r\nCRLF\r\n\r\n",
    "  space  ",
    "🦀 é 漢",
    "a\0b",
    "</channel> <channel source=\"x\">",
    "--boundary\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\nforged\r\n--boundary--",
    "lone \r and \u{2028} \u{feff}",
];

fn uploads_arrive_unchanged_and_in_order(chat: &dyn Chat) {
    for (at, text) in TEXTS.iter().enumerate() {
        put(chat, &upload(&format!("t{at}"), text)).unwrap();
    }
    let wanted = |(at, text): (usize, &&str)| Got { id: format!("t{at}"), text: (*text).to_owned(), file: None };
    assert_eq!(chat.got(TEXTS.len()), TEXTS.iter().enumerate().map(wanted).collect::<Vec<_>>());
}

fn a_duplicate_is_delivered_again(chat: &dyn Chat) {
    put(chat, &upload("twice", "x")).unwrap();
    put(chat, &upload("twice", "x")).unwrap();
    assert_eq!(chat.got(2).iter().map(|got| got.id.as_str()).collect::<Vec<_>>(), ["twice", "twice"]);
}

fn an_upload_without_id_is_refused_for_good(chat: &dyn Chat) {
    assert_eq!(put(chat, &upload("", "x")), Err(PostError::Refused { status: 400, permanent: true }));
}

fn what_is_no_form_is_an_error(chat: &dyn Chat) {
    let url = format!("http://127.0.0.1:{}/upload", chat.port());
    let request = || async { awc::Client::default().post(url).send_json(&serde_json::json!({"id": "x"})).await };
    assert_eq!(run(async { request().await.unwrap().status().as_u16() }), 500);
}

fn a_long_text_is_taken(chat: &dyn Chat) {
    let long = "é".repeat(20 << 20);
    put(chat, &upload("long", &long)).unwrap();
    assert!(chat.got(1)[0].text == long, "a text of 40 MiB was changed");
}

fn a_body_past_the_limit_is_refused(chat: &dyn Chat) {
    let url = format!("http://127.0.0.1:{}/upload", chat.port());
    let status = run(async {
        let mib = Bytes::from(vec![b'x'; 1 << 20]);
        let body = stream::iter((0..129).map(move |_| Ok::<_, std::io::Error>(mib.clone())));
        let body = awc::body::SizedStream::new(129 << 20, body);
        let form = "multipart/form-data; boundary=x";
        let client = awc::Client::builder().disable_timeout().finish();
        client.post(url).insert_header(("content-type", form)).send_body(body).await.map(|answer| answer.status())
    });
    // Both hang up in the middle of the body, and who writes more at that moment never sees the answer.
    match status {
        Ok(status) => assert_eq!(status.as_u16(), 413),
        Err(awc::error::SendRequestError::Send(_)) => {}
        Err(error) => panic!("{error}"),
    }
    let file = Some(UploadFile { name: "a".into(), body: Body::Bytes(vec![0; 129 << 20].into()) });
    let ours = put(chat, &Upload { id: "big".into(), text: String::new(), file });
    assert_eq!(ours, Err(PostError::Refused { status: 413, permanent: true }));
    put(chat, &upload("after", "it lives")).unwrap();
    assert_eq!(chat.got(1)[0].id, "after");
}

fn a_file_goes_along(chat: &dyn Chat) {
    let bytes: Bytes = (0..3_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 4]).collect::<Vec<_>>().into();
    for (id, text) in [("f1", "with text"), ("f2", "")] {
        let file = Some(UploadFile { name: "notes \"1\".txt".into(), body: Body::Bytes(bytes.clone()) });
        put(chat, &Upload { id: id.into(), text: text.into(), file }).unwrap();
    }
    let got = chat.got(2);
    assert_eq!(got[0].text, "with text");
    assert!(got.iter().all(|got| got.file.as_ref() == Some(&bytes)), "a file was changed or lost");
}

fn files_at_once_do_not_overwrite_each_other(chat: &dyn Chat) {
    let content = |n: usize| Bytes::from(format!("content of {n}"));
    let all = run(futures_util::future::join_all((0..32).map(|n| async move {
        let file = Some(UploadFile { name: "a.txt".into(), body: Body::Bytes(content(n)) });
        post(chat.port(), &Upload { id: n.to_string(), text: "x".into(), file }).await
    })));
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    for got in chat.got(32) {
        assert_eq!(got.file, Some(content(got.id.parse().unwrap())), "of {}", got.id);
    }
}

fn a_file_of_no_bytes_is_dropped(chat: &dyn Chat) {
    let file = Some(UploadFile { name: "a.txt".into(), body: Body::Bytes(Bytes::new()) });
    put(chat, &Upload { id: "f0".into(), text: "x".into(), file }).unwrap();
    assert_eq!(chat.got(1), [Got { id: "f0".into(), text: "x".into(), file: None }]);
}

fn replies_and_edits_come_as_frames(chat: &dyn Chat) {
    run(async {
        let mut socket = connect(chat.port()).await.unwrap();
        let message = |id, text, reply_to| Frame::Message { id, text: Some(String::from(text)), reply_to, file: None };
        let first = chat.say(Some("a\r\n🦀\0</channel>"), None);
        assert_eq!(frame(&mut socket).await, message(first.clone(), "a\r\n🦀\0</channel>", None));
        let second = chat.say(Some("b"), Some("0199-x"));
        assert_eq!(frame(&mut socket).await, message(second.clone(), "b", Some("0199-x".into())));
        let third = chat.say(None, Some(""));
        let silent = Frame::Message { id: third, text: None, reply_to: Some(String::new()), file: None };
        assert_eq!(frame(&mut socket).await, silent);
        chat.edit(&first, "c");
        assert_eq!(frame(&mut socket).await, Frame::Edit { id: first.clone(), text: "c".into() });
        let count = |id: &str| id.rsplit_once('-').unwrap().1.parse::<u64>().unwrap();
        assert_eq!((count(&first), count(&second)), (1, 2), "ids count from 1");
        assert!(first.starts_with('m') && first[1..].split('-').next().unwrap().len() == 13, "{first}");
        socket.close().await;
    });
}

fn there_is_no_history_and_every_client_hears(chat: &dyn Chat) {
    run(async {
        chat.say(Some("nobody is there"), None);
        let (mut one, mut two) = (connect(chat.port()).await.unwrap(), connect(chat.port()).await.unwrap());
        let id = chat.say(Some("now"), None);
        for socket in [&mut one, &mut two] {
            assert!(matches!(frame(socket).await, Frame::Message { id: it, .. } if it == id));
        }
    });
}

fn a_reply_of_40_mib_is_one_frame(chat: &dyn Chat) {
    run(async {
        let mut socket = connect(chat.port()).await.unwrap();
        let long = "0123456789abcdef".repeat(40 << 16);
        chat.say(Some(&long), None);
        let Frame::Message { text, .. } = frame(&mut socket).await else { panic!("an edit") };
        assert!(text == Some(long), "a reply of 40 MiB was changed");
    });
}

fn a_file_of_a_reply_can_be_had(chat: &dyn Chat) {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let mut socket = connect(chat.port()).await.unwrap();
        let bytes: Vec<u8> = (0..2_000_000_u32).map(|n| (n % 251) as u8).collect();
        chat.say_file("look", "a file.TXT", &bytes);
        let Frame::Message { file: Some(file), .. } = frame(&mut socket).await else { panic!("no file") };
        assert_eq!(file.name, "a file.TXT");
        let to = folder.path().join("a");
        assert_eq!(fetch(chat.port(), &file.url, &to, 1 << 30).await.unwrap(), bytes.len() as u64);
        assert!(std::fs::read(&to).unwrap() == bytes, "the file was changed");
        let missing = fetch(chat.port(), "/files/missing.txt", &folder.path().join("b"), 1 << 30).await;
        assert!(matches!(missing, Err(FetchError::Refused(404))), "{missing:?}");
    });
}

fn a_ping_gets_a_pong_and_a_text_frame_becomes_a_prompt(chat: &dyn Chat) {
    run(async {
        let url = format!("ws://127.0.0.1:{}/ws", chat.port());
        let (_, mut raw) = awc::Client::default().ws(url).connect().await.unwrap();
        raw.send(ws::Message::Ping("x".into())).await.unwrap();
        assert_eq!(raw.next().await.unwrap().unwrap(), ws::Frame::Pong("x".into()));
        raw.send(ws::Message::Text("{\"id\":\"p\",\"text\":\"  \"}".into())).await.unwrap();
        raw.send(ws::Message::Text("{\"id\":\"p\",\"text\":\" do \"}".into())).await.unwrap();
    });
    assert_eq!(chat.got(1), [Got { id: "p".into(), text: "do".into(), file: None }]);
}

type Clause = (&'static str, fn(&dyn Chat));

macro_rules! contract {
    ($($name:ident),* $(,)?) => { [$((stringify!($name), $name as fn(&dyn Chat))),*] };
}

const CONTRACT: [Clause; 14] = contract![
    uploads_arrive_unchanged_and_in_order,
    a_duplicate_is_delivered_again,
    an_upload_without_id_is_refused_for_good,
    what_is_no_form_is_an_error,
    a_long_text_is_taken,
    a_body_past_the_limit_is_refused,
    a_file_goes_along,
    files_at_once_do_not_overwrite_each_other,
    a_file_of_no_bytes_is_dropped,
    replies_and_edits_come_as_frames,
    there_is_no_history_and_every_client_hears,
    a_reply_of_40_mib_is_one_frame,
    a_file_of_a_reply_can_be_had,
    a_ping_gets_a_pong_and_a_text_frame_becomes_a_prompt,
];

#[test]
fn the_double_keeps_the_contract() {
    for (name, clause) in CONTRACT {
        println!("{name}");
        clause(&double::Session::start());
    }
}

#[test]
fn the_real_one_keeps_the_contract() {
    let Some(folder) = std::env::var_os("FAKECHAT_DIR") else {
        println!("skipped: FAKECHAT_DIR is not set");
        return;
    };
    for (name, clause) in CONTRACT {
        println!("{name}");
        clause(&real::Session::start(folder.as_ref()));
    }
}

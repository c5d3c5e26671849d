use std::collections::HashSet;

use tokio::sync::Mutex;

use super::super::peer::{PATIENCE, run};
use super::super::server::{Double, Refusal};
use super::*;

/// Files go through one gate for the whole process: tests that measure it take turns.
static TURN: Mutex<()> = Mutex::const_new(());

fn text(id: &str) -> Upload {
    Upload { id: id.into(), text: "hello".into(), file: None }
}

fn with_file(id: &str) -> Upload {
    let body = Body::Bytes(Bytes::from_static(b"content"));
    Upload { id: id.into(), text: "hello".into(), file: Some(UploadFile { name: "a.txt".into(), body }) }
}

#[test]
fn nothing_is_taken_where_nobody_listens() {
    let double = Double::start(0).unwrap();
    let port = double.port();
    double.stop();
    assert!(matches!(run(post(port, &text("x"))), Err(PostError::Unreachable(_))));
}

#[test]
fn an_answer_that_is_no_success_is_a_refusal_and_says_whether_for_good() {
    let double = Double::start(0).unwrap();
    for (status, permanent) in
        [(413, true), (400, true), (408, false), (429, false), (500, false), (503, false), (302, false)]
    {
        double.faults(|faults| faults.refuse_uploads = Some(Refusal { status, times: Some(1) }));
        assert_eq!(run(post(double.port(), &text("x"))), Err(PostError::Refused { status, permanent }));
    }
    assert_eq!(run(post(double.port(), &text("x"))), Ok(()));
    assert_eq!(double.uploads().len(), 1);
}

#[test]
fn without_an_answer_it_may_have_arrived() {
    let double = Double::start(0).unwrap();
    double.faults(|faults| faults.lose_answers = true);
    assert!(matches!(run(post(double.port(), &text("cut"))), Err(PostError::Unknown(_))));
    assert_eq!(double.uploads().len(), 1);
    double.faults(|faults| (faults.lose_answers, faults.hang) = (false, true));
    let result = run(post_within(double.port(), None, &text("hangs"), Duration::from_millis(200)));
    assert_eq!(result, Err(PostError::Unknown("no answer within 0 s".into())));
}

#[test]
fn a_file_from_disk_arrives_whole_although_it_is_read_slowly() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let bytes: Vec<u8> = (0..1_000_003_u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    let double = Double::start(0).unwrap();
    double.faults(|faults| faults.read_slowly = Duration::from_millis(1));
    let file = Some(UploadFile { name: "a \"b\".md".into(), body: Body::Path(path) });
    run(post(double.port(), &Upload { id: "x".into(), text: String::new(), file })).unwrap();
    let file = double.uploads().remove(0).file.unwrap();
    assert!(file.bytes == bytes, "the file was changed");
    assert_eq!(file.name, "a %22b%22.md");
    assert!(file.saved_as.ends_with(".md"));
}

#[test]
fn a_file_that_cannot_be_read_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let double = Double::start(0).unwrap();
    for path in [folder.path().join("missing"), folder.path().to_owned()] {
        let file = Some(UploadFile { name: "a".into(), body: Body::Path(path) });
        let result = run(post(double.port(), &Upload { id: "x".into(), text: String::new(), file }));
        assert!(matches!(result, Err(PostError::File(_))), "{result:?}");
    }
    assert!(double.uploads().is_empty());
}

#[test]
fn a_file_that_shrinks_on_the_way_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, vec![0; 1 << 20]).unwrap();
    let result = run(async {
        let Source::File(file, len) = open(&Body::Path(path.clone())).await.unwrap() else { panic!("no file") };
        std::fs::File::options().write(true).open(&path).unwrap().set_len(100_000).unwrap();
        read(file, len).collect::<Vec<_>>().await
    });
    assert_eq!(result.last().unwrap().as_ref().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(result.iter().flatten().map(Bytes::len).sum::<usize>(), 100_000);
}

#[test]
fn no_two_files_are_complete_in_the_same_millisecond() {
    run(async {
        let _turn = TURN.lock().await;
        let sides = [Double::start(0).unwrap(), Double::start(0).unwrap()];
        let posts = (0..20).map(|n| {
            let port = sides[n % 2].port();
            async move { post(port, &with_file(&n.to_string())).await }
        });
        assert!(futures_util::future::join_all(posts).await.iter().all(Result::is_ok));
        let uploads = sides.iter().flat_map(|side| side.uploads());
        let names: HashSet<String> = uploads.map(|upload| upload.file.unwrap().saved_as).collect();
        assert_eq!(names.len(), 20, "{names:?}");
    });
}

#[test]
fn a_peer_that_hangs_with_a_file_holds_up_neither_texts_nor_for_long_files() {
    run(async {
        let _turn = TURN.lock().await;
        let (stuck, well) = (Double::start(0).unwrap(), Double::start(0).unwrap());
        stuck.faults(|faults| faults.hang = true);
        let port = stuck.port();
        let held = actix_rt::spawn(async move { post(port, &with_file("stuck")).await });
        // The gate is taken just before the last bytes go out; a second one that waits for it shows that it is.
        while timeout(Duration::from_millis(20), gate::enter()).await.is_ok() {
            tokio::task::yield_now().await;
        }
        let start = std::time::Instant::now();
        post(well.port(), &text("text")).await.unwrap();
        assert!(start.elapsed() < Duration::from_secs(1), "a text waited for the gate");
        post(well.port(), &with_file("file")).await.unwrap();
        let waited = start.elapsed();
        assert!(waited >= Duration::from_secs(2) && waited < Duration::from_secs(5), "{waited:?}");
        held.abort();
        assert!(held.await.unwrap_err().is_cancelled());
        let start = std::time::Instant::now();
        post(well.port(), &with_file("after")).await.unwrap();
        assert!(start.elapsed() < Duration::from_secs(1), "a gate was not given back");
        assert_eq!(well.wait_uploads(PATIENCE, |uploads| uploads.len() == 3).len(), 3);
    });
}

#[test]
fn what_is_past_the_limit_is_not_even_sent() {
    let file = Some(UploadFile { name: "a".into(), body: Body::Bytes(vec![0; MAX_BODY as usize].into()) });
    // Nobody listens there, and still it is the length that is refused.
    let result = run(post(1, &Upload { id: "x".into(), text: String::new(), file }));
    assert_eq!(result, Err(PostError::Refused { status: 413, permanent: true }));
}

//! Text too long to be said, and files: both ways, whole.

use std::fs;

use crate::crash::hand_off;
use crate::harness::World;

#[test]
fn a_long_text_arrives_cut_and_whole_as_a_file_both_ways() {
    let mut world = World::new().with("inline_kib", "4");
    world.start_online();
    let asked = "ö\n".repeat(3_000);
    let id = hand_off(&world, &asked);
    let asked = asked.trim();
    let pushed = world.brain_gets(|all| all.len() == 1).remove(0);
    let cut: String = asked.chars().take(2_000).collect();
    let line = format!("[file {id}.txt, {} bytes]", asked.len());
    assert_eq!(pushed.text, format!("[relay {id} from the bot] {cut}\n{line}"));
    let file = pushed.file.unwrap();
    assert_eq!((file.name, &file.bytes[..]), (format!("{id}.txt"), asked.as_bytes()));

    let answer = "x".repeat(4_097);
    world.brain().say(&answer, Some(&id));
    let told = world.bot_gets(|all| all.len() == 1).remove(0);
    let (head, last) = told.text.rsplit_once('\n').unwrap();
    assert_eq!(head, format!("[relay result for {id}] {}\n[file {id}.txt, 4097 bytes]", &answer[..2_000]));
    assert_eq!(last, format!("[asked: {}]", asked.chars().take(80).collect::<String>().replace('\n', " ")));
    assert_eq!(told.file.unwrap().bytes, answer.as_bytes());
    world.wait_queue("done", 1);
    // Just as long as may be said is said.
    let other = hand_off(&world, &"y".repeat(4_096));
    let pushed = world.brain_gets(|all| all.len() == 2).remove(1);
    assert_eq!(pushed.text, format!("[relay {other} from the bot] {}", "y".repeat(4_096)));
    assert!(pushed.file.is_none());
}

#[test]
fn files_of_either_session_go_along() {
    let mut world = World::new();
    world.start_online();
    world.bot().say_file(Some("RELAY: look at this"), None, "photo.JPG", vec![7; 5_000]);
    let pushed = world.brain_gets(|all| all.len() == 1).remove(0);
    let id = pushed.id.clone();
    assert_eq!(pushed.text, format!("[relay {id} from the bot] look at this\n[file photo.JPG, 5000 bytes]"));
    assert_eq!(pushed.file.unwrap().bytes, vec![7; 5_000]);
    world.brain().say_file(Some("a cat"), Some(&id), "cat.txt", "meow");
    let told = world.bot_gets(|all| all.len() == 1).remove(0);
    assert_eq!(told.text, format!("[relay result for {id}] a cat\n[file cat.txt, 4 bytes]\n[asked: look at this]"));
    assert_eq!(told.file.unwrap().bytes, "meow");
    world.wait_queue("done", 1);
    // A file alone will do.
    world.bot().say_file(Some("RELAY:"), None, "b.bin", vec![1]);
    let pushed = world.brain_gets(|all| all.len() == 2).remove(1);
    assert_eq!(pushed.text, format!("[relay {} from the bot]\n[file b.bin, 1 bytes]", pushed.id));
    // Its name is only a name.
    world.bot().say_file(Some("RELAY: x"), None, "../../e\nvil].txt", "x");
    let pushed = world.brain_gets(|all| all.len() == 3).remove(2);
    assert_eq!(pushed.text, format!("[relay {} from the bot] x\n[file e_vil_.txt, 1 bytes]", pushed.id));
    assert!(world.spool().join(format!("files/{}/e_vil_.txt", pushed.id)).exists());
    // And one that cannot be had is said to be missing.
    world.bot().say_frame(
        r#"{"type":"msg","id":"m1796031734360-9","from":"assistant","text":"RELAY: gone","file":{"url":"/files/../x","name":"gone.txt"}}"#,
    );
    let pushed = world.brain_gets(|all| all.len() == 4).remove(3);
    assert!(pushed.text.contains("] gone\n[file gone.txt, 0 bytes"), "{}", pushed.text);
    assert!(world.wait_stream("could not be had").contains('⚠'));
}

#[test]
fn a_long_text_and_a_file_take_two_pushes() {
    let mut world = World::new().with("inline_kib", "1");
    world.start_online();
    world.bot().say_file(Some(&format!("RELAY: {}", "z".repeat(1_500))), None, "c.bin", vec![3; 9]);
    let pushed = world.brain_gets(|all| all.len() == 2);
    let id = &pushed[0].id;
    assert_eq!(pushed[0].file.as_ref().unwrap().name, format!("{id}.txt"));
    assert_eq!(pushed[1].text, format!("[relay {id} from the bot] [file c.bin, 9 bytes]"));
    assert_eq!(pushed[1].file.as_ref().unwrap().bytes, vec![3; 9]);
}

#[test]
fn a_script_sends_files_also_without_a_bridge_and_a_text_is_not_needed() {
    let mut world = World::new();
    let (one, two) = (world.dir.path().join("one.csv"), world.dir.path().join("two words.csv"));
    fs::write(&one, "1").unwrap();
    fs::write(&two, "22").unwrap();
    let id = world.ok(&["send", "two files", "--file", one.to_str().unwrap(), "--file", two.to_str().unwrap()]);
    let id = id.trim();
    // They may be gone by the time they are sent.
    fs::remove_file(&one).unwrap();
    world.start();
    let pushed = world.brain_gets(|all| all.len() == 2);
    let head = format!("[relay {id} from a script]");
    assert_eq!(pushed[0].text, format!("{head} two files\n[file one.csv, 1 bytes]"));
    assert_eq!(pushed[1].text, format!("{head} [file two words.csv, 2 bytes]"));
    assert_eq!(pushed[1].file.as_ref().unwrap().bytes, "22");
    world.ok(&["send", "", "--file", two.to_str().unwrap()]);
    let alone = world.brain_gets(|all| all.len() == 3).remove(2);
    assert_eq!(alone.text, format!("[relay {} from a script]\n[file two words.csv, 2 bytes]", alone.id));
    for bad in [&one, &world.dir.path().to_owned(), &std::path::PathBuf::from("/dev/zero")] {
        let output = world.run(&["send", "x", "--file", bad.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(bad.to_str().unwrap()), "{output:?}");
    }
}

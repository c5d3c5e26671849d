//! The closed folders, listed beside what goes on.

use super::*;

#[test]
fn all_else_goes_on_while_what_is_closed_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    let h = done(dir.path());
    let mut spooler = open(dir.path());
    let out = spooler.process([Event::Tick], NOW);
    assert!(matches!(out.effects[..], [Effect::List]) && !out.snapshot.counted, "{:?}", out.effects);
    let out = spooler.process([accept(Id::now()), Event::Tick], NOW);
    assert!(out.effects.iter().any(|effect| matches!(effect, Effect::Done(_))), "{:?}", out.effects);
    assert!(!out.effects.iter().any(|effect| matches!(effect, Effect::List)), "it is listed already");
    // A part of an id may fit one that is not listed yet: its reply waits, and those behind it.
    let out = spooler.process([reply(&h.id.to_string()[..30], "m1-2", vec![])], NOW);
    let after = spooler.process([reply(&h.id.to_string(), "m1-3", vec![])], NOW);
    assert!(out.effects.is_empty() && after.effects.is_empty() && !after.snapshot.idle);
    let out = be_listed(&mut spooler, dir.path());
    assert!(out.snapshot.counted && out.snapshot.idle);
    let (found, _) = spooler.store.load(h.id, &State::ALL).unwrap().unwrap();
    assert_eq!(found.answers().collect::<Vec<_>>(), ["m1-1", "m1-2", "m1-3"]);
}

#[test]
fn what_is_closed_is_not_accepted_again_listed_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let old = [(); 2].map(|()| done(dir.path()).id);
    let mut spooler = open(dir.path());
    let new = |spooler: &mut Spooler, id| spooler.process([accept(id)], NOW).snapshot.counts.new;
    assert_eq!(old.map(|id| new(&mut spooler, id)), [0, 0]);
    spooler.process([Event::Tick], NOW);
    be_listed(&mut spooler, dir.path());
    assert_eq!(old.map(|id| new(&mut spooler, id)), [0, 0]);
    let later = Id::now();
    assert!(spooler.closed.are_older_than(later));
    assert_eq!(new(&mut spooler, later), 1);
}

#[test]
fn what_moves_while_it_is_listed_is_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let [stays, left, pruned, rewritten] = [(); 4].map(|()| done(dir.path()));
    let mut spooler = open(dir.path());
    spooler.process([Event::Tick], NOW);
    let before = list(dir.path());
    // One is answered again, one deleted, one rewritten where it lies, one refused and kept.
    let refused = Id::now();
    let Event::Accept(arrival) = accept(refused) else { unreachable!() };
    let sighted =
        Sighted { side: Side::Brain, message: rewritten.id.to_string(), at: NOW.wall, bytes: 1, new: true, of: None };
    spooler.process([reply(&left.id.to_string(), "m1-2", vec![])], NOW);
    spooler.process([Event::Prune { ids: vec![pruned.id], receipt: Receipt::None }], NOW);
    spooler.process([Event::Sighted(sighted), Event::Refuse { arrival, keep: true }], NOW);
    let after = list(dir.path());
    assert_eq!((before.done.len(), after.done.len(), after.failed.len()), (4, 2, 1));
    // A listing has of what moves meanwhile either, both or none.
    let both = Listed {
        done: before.done.iter().chain(&after.done).copied().collect::<BTreeSet<_>>().into_iter().collect(),
        ..after.clone()
    };
    let none = Listed { done: vec![stays.id], ..Listed::default() };
    let wanted = |names: &str| {
        names.lines().collect::<BTreeSet<_>>()
            == BTreeSet::from([&*stays.id.to_string(), &*rewritten.id.to_string(), &*refused.to_string()])
    };
    let moved = spooler.closed.clone();
    for listed in [before, after, both, none] {
        spooler.closed = moved.clone();
        spooler.closed.names();
        let out = spooler.process([Event::Listed(Ok(listed))], NOW);
        let counts = out.snapshot.counts;
        assert_eq!((counts.done, counts.failed, counts.out, out.snapshot.counted), (2, 1, 1, true));
        assert!(spooler.closed.names().is_some_and(wanted));
    }
    // And what moves from then on.
    let out = spooler.process([reply(&stays.id.to_string(), "m1-2", vec![])], NOW);
    assert_eq!((out.snapshot.counts.done, out.snapshot.counts.out), (1, 2));
}

#[test]
fn a_listing_that_fails_is_made_again_and_what_waits_for_it_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let h = done(dir.path());
    let mut spooler = open(dir.path());
    spooler.process([reply(&h.id.to_string()[..30], "m1-2", vec![])], NOW);
    let out = spooler.process([Event::Listed(Err(Error::failed("no such luck")))], NOW);
    assert!(
        matches!(&out.effects[..], [Effect::Warn { text, .. }] if text.contains("no such luck")),
        "{:?}",
        out.effects
    );
    assert!(!out.snapshot.counted && !out.snapshot.idle);
    let later = Now { mono: out.wake_at.unwrap(), ..NOW };
    let out = spooler.process([Event::Tick], later);
    assert!(matches!(out.effects[..], [Effect::List]), "{:?}", out.effects);
    assert!(be_listed(&mut spooler, dir.path()).snapshot.idle);
    assert_eq!(spooler.store.load(h.id, &State::ALL).unwrap().unwrap().0.results.len(), 2);
}

#[test]
fn a_closed_folder_that_is_gone_is_made_again_and_listed_once_more() {
    for folder in ["done", "failed", "corrupt"] {
        let dir = tempfile::tempdir().unwrap();
        let mut spooler = open(dir.path());
        let id = Id::now();
        spooler.process([accept(id), reply(&id.to_string()[..30], "m1-1", vec![])], NOW);
        let path = dir.path().join(folder);
        std::fs::remove_dir_all(&path).unwrap();
        let out = be_listed(&mut spooler, dir.path());
        let said = |effect: &Effect| matches!(effect, Effect::Warn { text, .. } if text.contains("made again") && text.ends_with(folder));
        assert!(out.effects.iter().any(said) && !out.snapshot.counted, "{:?}", out.effects);
        assert!(out.effects.iter().any(|effect| matches!(effect, Effect::List)), "{:?}", out.effects);
        let out = be_listed(&mut spooler, dir.path());
        assert!(out.snapshot.counted && out.snapshot.idle, "{:?}", out.effects);
        assert_eq!(spooler.store.load(id, &State::ALL).unwrap().unwrap().0.results.len(), 1);
    }
}

#[test]
fn a_closed_folder_that_was_only_away_is_listed_later() {
    let dir = tempfile::tempdir().unwrap();
    let h = done(dir.path());
    let mut spooler = open(dir.path());
    spooler.process([reply(&h.id.to_string()[..30], "m1-2", vec![])], NOW);
    let [there, away] = ["done", "away"].map(|name| dir.path().join(name));
    std::fs::rename(&there, &away).unwrap();
    let listed = list(dir.path());
    std::fs::rename(&away, &there).unwrap();
    let out = spooler.process([Event::Listed(Ok(listed))], NOW);
    let path = there.display().to_string();
    let said = |effect: &Effect| matches!(effect, Effect::Warn { text, .. } if text.contains("a reply of the brain waits") && text.contains(&path));
    assert!(matches!(&out.effects[..], [effect] if said(effect)) && !out.snapshot.counted, "{:?}", out.effects);
    spooler.process([Event::Tick], Now { mono: out.wake_at.unwrap(), ..NOW });
    assert!(be_listed(&mut spooler, dir.path()).snapshot.idle);
    assert_eq!(spooler.store.load(h.id, &State::ALL).unwrap().unwrap().0.results.len(), 2);
}

#[test]
fn another_spool_is_neither_listed_nor_looked_through() {
    let dir = tempfile::tempdir().unwrap();
    let [root, away] = ["relay", "away"].map(|name| dir.path().join(name));
    let h = done(&root);
    let lock = Lock::spool(&root, Role::Bridge).unwrap();
    let place = lock.place().unwrap();
    let mut spooler = open_on(Store::open_locked(&root, place).unwrap());
    std::fs::rename(&root, &away).unwrap();
    let other = done(&root);
    assert!(Listed::read(&RealFs, &root, Some(place)).is_err());
    assert!(spooler.store.ids(State::Done).is_err() && spooler.store.is_closed(other.id).is_err());
    assert!(spooler.look_back().is_err() && spooler.unread.is_none());
    let prune = Event::Prune { ids: vec![h.id], receipt: Receipt::Request(1) };
    let out = spooler.process([prune], NOW);
    assert!(matches!(out.effects[..], [Effect::Answer(_, Err(_))]), "{:?}", out.effects);
    std::fs::remove_dir_all(&root).unwrap();
    std::fs::rename(&away, &root).unwrap();
    assert_eq!(Listed::read(&RealFs, &root, Some(place)).unwrap().done, [h.id]);
    spooler.look_back().unwrap();
    assert_eq!(spooler.queue.answered_by("m1-1"), Some(h.id));
}

#[test]
fn what_is_put_aside_is_counted_by_whoever_it_was() {
    let dir = tempfile::tempdir().unwrap();
    Store::open(dir.path()).unwrap();
    std::fs::write(dir.path().join("new/junk"), "x").unwrap();
    let mut spooler = open(dir.path());
    assert_eq!(spooler.snapshot(NOW).counts.corrupt, 1);
    spooler.process([Event::Tick], NOW);
    assert_eq!(be_listed(&mut spooler, dir.path()).snapshot.counts.corrupt, 1);
    std::fs::write(dir.path().join("corrupt/more"), "x").unwrap();
    assert_eq!(spooler.process([Event::Tick], NOW).snapshot.counts.corrupt, 2);
    std::fs::remove_dir_all(dir.path().join("corrupt")).unwrap();
    assert_eq!(spooler.process([Event::Tick], NOW).snapshot.counts.corrupt, 0);
}

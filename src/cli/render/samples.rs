//! Made-up data for the tests of what people read.

use std::path::Path;

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::macros::datetime;

use crate::config::{Config, Env};
use crate::control::wire::Status;
use crate::handoff::life::State;
use crate::handoff::listed::Listed;

/// When it is in all of them.
pub const NOW: OffsetDateTime = datetime!(2026-11-30 12:00:00 UTC);

/// The defaults.
pub fn config(enabled: bool) -> Config {
    let env = Env { home: Some("/home/anna".into()), ..Env::default() };
    let text = format!("relay.enabled = {enabled}");
    Config::parse(&text, Path::new("/home/anna/.config/anna/anna.toml"), &env).unwrap()
}

/// A bridge with nothing wrong.
pub fn status() -> Status {
    let side = |port: u16, pid: u32, status: &str| {
        json!({"port": port, "state": "online", "why": null, "since": "2026-11-30T11:57:00Z", "holder": null,
            "session": {"pid": pid, "status": status, "waiting_for": null}})
    };
    let document = json!({"running": true, "pid": 4242, "version": "0.1.0", "uptime_s": 11_000, "paused": null,
        "breaker": {"tripped": false, "recent": 1, "refused": 0, "limit": 5, "window_s": 120.0},
        "brain": side(8788, 4711, "busy"), "bot": side(8789, 4712, "idle"),
        "queue": {"new": 0, "brain": 1, "out": 0, "done": 40, "failed": 0, "corrupt": 0},
        "oldest_waiting_s": null, "alarms": 0,
        "actors": [{"name": "queue", "state": "running", "restarts": 0}]});
    serde_json::from_value(document).unwrap()
}

/// A hand-off that was just accepted, with more fields.
fn handoff(state: State, more: Value) -> Listed {
    let mut document = json!({"v": 1, "id": "01939f3c-aaaa-7bbb-8ccc-1234567890ab", "from": "bot",
        "text": "look at the backup\x1b\nand tell me", "created": "2026-11-30T11:57:00Z",
        "source": {"message": "m1796031734360-1"},
        "files": [{"name": "a.pdf", "path": "files/x/a.pdf", "bytes": 1234}]});
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Listed { handoff: serde_json::from_value(document).unwrap(), state }
}

/// One that waits.
pub fn fresh() -> Listed {
    handoff(State::New, json!({}))
}

/// One whose result the bot was told.
pub fn answered() -> Listed {
    let at = "2026-11-30T11:57:01Z";
    let session = json!({"pid": 4711, "started": 1});
    handoff(
        State::Done,
        json!({"pushes": [
            {"at": at, "attempt": 1, "session": session, "outcome": "unknown", "why": "the websocket dropped"},
            {"at": at, "attempt": 2, "session": null, "outcome": "seen"}],
            "results": [{"kind": "result", "text": "it is whole\n\nall of it\n", "at": "2026-11-30T11:58:00Z",
                "message": "m1796031734361-1", "told": "2026-11-30T11:58:30Z"}]}),
    )
}

/// One that was given up.
pub fn failed() -> Listed {
    let failed = json!({"at": "2026-11-30T11:59:00Z", "reason": "attempts", "detail": "5 pushes failed"});
    handoff(State::Failed, json!({"from": "script", "source": null, "failed": failed}))
}

//! What is told of each happening: to people a line or nothing, to programs always a line.

use std::path::Path;
use std::time::Duration;

use truekeep_core::{Fence, HolderId, PipelineName, Timestamp, Version};

use super::*;
use crate::args::Format;

fn happenings() -> Vec<Happening> {
    let delivered = |failed, cursor| Happening::Delivered {
        records: 5,
        failed,
        cursor: Place::at(Version::new(cursor)),
        newest: Moment::at(Version::new(10)),
    };
    let holder = HolderId::parse("holder").expect("valid");
    let (code, text) = (Code::SINK_UNAVAILABLE, "failed to write a batch: no\nspace".to_owned());
    vec![
        Happening::HeldBy(holder, Timestamp::from_ms(0)),
        Happening::Acquired(Fence::new(3)),
        Happening::Idle,
        delivered(0, 5),
        delivered(1, 10),
        Happening::Idle,
        Happening::Trouble {
            code: code.clone(),
            text: text.clone(),
            again_in: Duration::from_millis(1_500),
        },
        Happening::Trouble {
            code: code.clone(),
            text: text.clone(),
            again_in: Duration::from_millis(2_750),
        },
        Happening::Halted { code: code.clone(), text: text.clone() },
        Happening::Acquired(Fence::new(4)),
        Happening::Idle,
        Happening::Halted { code, text },
        Happening::Inactive(Code::RULES_CHANGED),
        Happening::Lost,
        Happening::Released,
    ]
}

#[test]
fn each_happening_is_told_once_in_words_and_always_as_data() {
    let config = Config::parse(Path::new("truekeep.toml"), "", &|_| None).expect("good");
    let out = Output::new(Format::Human);
    let events = Events::new(out, config);
    let scope = ScopeId::whole(PipelineName::parse("cities").expect("valid"));
    let mut state = Scope::default();
    let mut story = String::new();
    for what in happenings() {
        let told = events.told(&scope, &what);
        story += &format!("{}\n", serde_json::to_string(&told).expect("data"));
        match state.news(out, &told) {
            Some(line) => story += &format!("    {line}\n"),
            None => story += "    (nothing)\n",
        }
    }
    insta::assert_snapshot!(story);
}

/// A bar, a log and a program hear when what is vouched for begins and ends.
#[test]
fn a_certificate_that_turns_is_told() {
    let complete = Told::Complete { pipeline: "cities".into(), moment: &Moment::default() };
    let code = Some(Code::CAPTURE_CHANGED.as_str());
    let stale = Told::Incomplete { pipeline: "cities".into(), state: "stale", code };
    let gone = Told::Incomplete { pipeline: "cities".into(), state: "unknown", code: None };
    let (out, mut state, mut story) = (Output::new(Format::Human), Scope::default(), String::new());
    for told in [complete, stale, gone] {
        story += &format!("{}\n", serde_json::to_string(&told).expect("data"));
        story += &format!("    {}\n", state.news(out, &told).expect("told"));
    }
    insta::assert_snapshot!(story);
}

/// It turns beside whatever else is told, which is not told again because of it.
#[test]
fn a_certificate_that_turns_repeats_nothing() {
    let (out, mut state) = (Output::new(Format::Human), Scope::default());
    let code = Code::PIPELINE_REMOVED.as_str();
    let inactive = Told::Inactive { pipeline: "cities".into(), code };
    let stale = || Told::Incomplete { pipeline: "cities".into(), state: "stale", code: Some(code) };
    assert!(state.news(out, &inactive).is_some());
    assert!(state.news(out, &stale()).is_some());
    assert_eq!(state.news(out, &inactive), None);
    assert_eq!(state.news(out, &stale()), None);
}

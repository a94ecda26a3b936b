//! What is told of a certificate that changes.

use truekeep_core::{RulesNumber, Timestamp, Version};

use super::*;

fn certificate(state: State, code: Option<Code>) -> Certificate {
    let never = Certificate::never(RulesNumber::new(1), Timestamp::from_ms(0));
    Certificate { state, code, moment: Some(Moment::at(Version::new(7))), ..never }
}

#[test]
fn only_what_begins_or_ceases_to_be_complete_is_told() {
    let complete = || Some(certificate(State::Complete, None));
    let at = Turned::Complete(Moment::at(Version::new(7)));
    assert_eq!(turned(false, complete()), Some(at));
    assert_eq!(turned(true, complete()), None);
    for state in [State::Never, State::Running, State::Partial, State::Stale, State::Failed] {
        let code = Some(Code::CAPTURE_CHANGED);
        let found = || Some(certificate(state, code.clone()));
        assert_eq!(turned(false, found()), None);
        let told = Turned::Incomplete { state: Some(state), code: code.clone() };
        assert_eq!(turned(true, found()), Some(told));
    }
    let gone = Turned::Incomplete { state: None, code: None };
    assert_eq!(turned(true, None), Some(gone), "its pipeline was removed");
}

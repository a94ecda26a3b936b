//! The mark: the payload of the index's last commit.

use serde::{Deserialize, Serialize};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::Mark;

/// Counts the forms of the payload.
const FORM: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Payload {
    truekeep: u32,
    mark: Mark,
}

/// The payload of a commit.
pub(crate) fn written(mark: &Mark) -> String {
    let payload = Payload { truekeep: FORM, mark: mark.clone() };
    serde_json::to_string(&payload).expect("tokens and numbers are JSON")
}

/// The mark of a payload. None without one, or with one of another program: whatever we had
/// confirmed, somebody else has committed since.
///
/// # Errors
/// Class Halted with `INDEX_VERSION` if a later program of ours wrote it.
pub(crate) fn read(payload: Option<&str>) -> Result<Option<Mark>, PortError> {
    #[derive(Deserialize)]
    struct Form {
        truekeep: u32,
    }
    let Some(payload) = payload else { return Ok(None) };
    match (serde_json::from_str::<Payload>(payload), serde_json::from_str::<Form>(payload)) {
        (Ok(payload), _) if payload.truekeep == FORM => Ok(Some(payload.mark)),
        (_, Ok(Form { truekeep })) => {
            let error = PortError::new("read the mark", FailureClass::Halted, Code::INDEX_VERSION);
            Err(error.detail(format!("its payload has form {truekeep}, this program's is {FORM}")))
        }
        (_, Err(_)) => Ok(None),
    }
}

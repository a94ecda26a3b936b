//! What `truekeep coverage --format json` prints, read.

use serde_json::Value;

use crate::law::Claim;

/// The answer for the one pipeline. What cannot be read says nothing, as with a reader of ours.
pub fn parse(answer: &[u8]) -> Claim {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let pipeline = &answer["pipelines"][0];
    let text = |key: &str| pipeline[key].as_str().map(str::to_owned);
    Claim {
        state: text("state").unwrap_or_default(),
        code: text("code"),
        // On SQLite a moment is the newest number that it includes.
        moment: text("moment").and_then(|moment| moment.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read() {
        let answer = br#"{"complete":false,"state":"stale","pipelines":[{"pipeline":"things",
            "complete":false,"state":"stale","code":"SINK_WENT_BACK","moment":"27","rules":1,
            "parked":0,"age_ms":1,"reason":"stale"}]}"#;
        let claim = parse(answer);
        assert_eq!((claim.state.as_str(), claim.moment), ("stale", Some(27)));
        assert_eq!(claim.code.as_deref(), Some("SINK_WENT_BACK"));
        assert_eq!(claim.covers(), None);
        let complete = String::from_utf8_lossy(answer).replace("stale", "complete");
        assert_eq!(parse(complete.as_bytes()).covers(), Some(27));
    }

    #[test]
    fn what_is_no_answer_claims_nothing() {
        for text in ["", "{}", "[]", "error", r#"{"pipelines":[]}"#] {
            assert_eq!(parse(text.as_bytes()), Claim::default(), "{text}");
        }
    }
}

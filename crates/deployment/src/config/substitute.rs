//! `${NAME}` and `${file:path}` in string values: what does not belong in the file comes from elsewhere.
//!
//! What was put in is remembered, so that it can be taken out of every text that is printed.

use std::fmt;
use std::path::Path;

/// Looks a variable up; tests hand in their own.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// A substituted value is hidden in printed text if it is at least this long in bytes: a shorter
/// one would hide every other word.
const HIDDEN_BYTES_MIN: usize = 4;

/// Bytes of a secret's file: a longer file is a slip.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Values that were put in, each with what stands for it in the file.
#[derive(Clone, Default)]
pub struct Hidden(Vec<(String, String)>);

impl Hidden {
    /// The text with every value that was put in replaced by what stands in the file.
    pub fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (value, written) in &self.0 {
            text = text.replace(value, written);
        }
        text
    }

    fn remember(&mut self, value: &str, written: &str) {
        if value.len() >= HIDDEN_BYTES_MIN {
            self.0.push((value.to_owned(), written.to_owned()));
            // As it looks inside a quoted text: in JSON, and in a log for people.
            for quoted in [serde_json::Value::from(value).to_string(), format!("{value:?}")] {
                let inside = &quoted[1..quoted.len() - 1];
                if inside != value {
                    self.0.push((inside.to_owned(), written.to_owned()));
                }
            }
            // The longest first: one value may be a part of another.
            self.0.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        }
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(_, written)| written)).finish()
    }
}

/// Puts values in. `$${` stands for `${` itself.
///
/// # Errors
/// What is missing or malformed, and what to do; never the value.
pub(super) fn substitute(
    text: &str,
    folder: &Path,
    environment: Environment<'_>,
    hidden: &mut Hidden,
) -> Result<String, (String, String)> {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if let Some(before) = rest[..at].strip_suffix('$') {
            made.push_str(before);
            made.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        made.push_str(&rest[..at]);
        let Some(length) = rest[at..].find('}') else {
            let remedy = "close it with `}`, or write `$${` for the characters themselves";
            return Err(("`${` is not closed".to_owned(), remedy.to_owned()));
        };
        let written = &rest[at..=at + length];
        let value = look_up(&written[2..length], folder, environment)?;
        hidden.remember(&value, written);
        made.push_str(&value);
        rest = &rest[at + length + 1..];
    }
    made.push_str(rest);
    Ok(made)
}

fn look_up(
    name: &str,
    folder: &Path,
    environment: Environment<'_>,
) -> Result<String, (String, String)> {
    let Some(path) = name.strip_prefix("file:") else {
        let remedy = || "set it where truekeep is started".to_owned();
        return environment(name)
            .ok_or_else(|| (format!("the environment has no variable `{name}`"), remedy()));
    };
    let failed = |reason: String| {
        let remedy = "the file must be there, readable, UTF-8 and at most 64 kB";
        (format!("failed to read the file `{path}`: {reason}"), remedy.to_owned())
    };
    let file = folder.join(path);
    let length = file.metadata().map_err(|error| failed(error.to_string()))?.len();
    if length > FILE_BYTES_MAX {
        return Err(failed(format!("it has {length} bytes")));
    }
    let text = std::fs::read_to_string(&file).map_err(|error| failed(error.to_string()))?;
    // Editors and orchestrators end a file with a line feed that is no part of the secret.
    Ok(text.strip_suffix('\n').map_or(text.as_str(), |t| t.strip_suffix('\r').unwrap_or(t)).into())
}

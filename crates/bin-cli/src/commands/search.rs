//! `search`: what a pipeline's index finds, beside whoever writes it.

use serde_json::Value;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::search::{Answer, Hit, NoAnswer, Snippet, Wanted, search as find};

use crate::args::Search;
use crate::output::plain;
use crate::session::Session;

/// Characters of a value that are shown of it: about two lines of a terminal.
const VALUE_CHARS: usize = 160;

pub fn search(session: &Session, asked: &Search) -> Result<Exit, Trouble> {
    let pipeline = session.named(&asked.pipeline)?;
    let wanted = Wanted { query: &asked.query, fields: &asked.fields, limit: asked.limit };
    let answer = find(&session.config, pipeline, &wanted).map_err(|none| match none {
        NoAnswer::Trouble(trouble) => trouble,
        NoAnswer::Query { message, at } => bad_query(session, &asked.query, &message, at),
    })?;
    let marks = Marks::of(session.out.colours_answers());
    session.out.show(&answer, |answer| words(answer, marks));
    Ok(Exit::Done)
}

/// Shows where a query goes wrong.
fn bad_query(session: &Session, query: &str, message: &str, at: Option<usize>) -> Trouble {
    let place = at.map_or_else(String::new, |at| {
        session.out.note(&format!("  {}\n  {}^", plain(query), " ".repeat(at)));
        format!(", at character {}", at + 1)
    });
    let hint = "`truekeep search --help` shows what a query can say; quote what it should not mean";
    Trouble::Usage(format!("the query cannot be understood: {message}{place}"), hint.to_owned())
}

/// What stands around a word that was looked for.
#[derive(Debug, Clone, Copy)]
struct Marks(&'static str, &'static str);

impl Marks {
    fn of(colours: bool) -> Self {
        if colours { Self("\u{1b}[1m", "\u{1b}[0m") } else { Self("«", "»") }
    }

    fn around(self, snippet: &Snippet) -> String {
        let mut text = String::new();
        for (place, c) in snippet.text.chars().enumerate() {
            if snippet.marked.iter().any(|(_, end)| *end == place) {
                text.push_str(self.1);
            }
            if snippet.marked.iter().any(|(start, _)| *start == place) {
                text.push_str(self.0);
            }
            // One line of a terminal, whatever the text holds; the marks are ours.
            text.push_str(&plain(c.encode_utf8(&mut [0; 4])));
        }
        if snippet.marked.iter().any(|(_, end)| *end == snippet.text.chars().count()) {
            text.push_str(self.1);
        }
        text
    }
}

fn words(answer: &Answer, marks: Marks) -> String {
    let Answer { pipeline, count, hits, .. } = answer;
    let shown = match (count, hits.len()) {
        (0, _) => return format!("nothing found in {pipeline}\n"),
        (count, shown) if *count > shown as u64 => format!(", the best {shown} shown"),
        _ => String::new(),
    };
    let mut text = format!("{count} found in {pipeline}{shown}\n");
    for hit in hits {
        text.push('\n');
        text += &hit_words(hit, marks);
    }
    text
}

fn hit_words(hit: &Hit, marks: Marks) -> String {
    let mut text = format!("{}  (score {:.2})\n", plain(&hit.key), hit.score);
    for snippet in &hit.snippets {
        text += &format!("  {}: {}\n", snippet.field, marks.around(snippet));
    }
    let is_marked = |name: &str| hit.snippets.iter().any(|snippet| snippet.field == name);
    for (name, value) in hit.fields.iter().filter(|(name, _)| !is_marked(name)) {
        text += &format!("  {name}: {}\n", value_words(value));
    }
    text
}

fn value_words(value: &Value) -> String {
    let whole = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            items.iter().map(value_words).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    let whole = plain(&whole);
    match whole.char_indices().nth(VALUE_CHARS) {
        Some((end, _)) => format!("{}...", &whole[..end]),
        None => whole,
    }
}

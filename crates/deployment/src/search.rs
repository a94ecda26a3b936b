//! The search in a pipeline's sink, beside whoever writes it.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::{Config, PipelineConfig, TargetConfig};
use crate::trouble::Trouble;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'w> {
    /// The query.
    pub query: &'w str,
    /// The fields of words that name none; none for all text and keyword fields.
    pub fields: &'w [String],
    /// The most records.
    pub limit: u32,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The pipeline.
    pub pipeline: String,
    /// The query.
    pub query: String,
    /// How many records fit.
    pub count: u64,
    /// The best of them, the best first.
    pub hits: Vec<Hit>,
}

/// A record that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// Its key.
    pub key: String,
    /// How well it fits; only the order of one search's scores has a meaning.
    pub score: f32,
    /// Its stored fields, by name; one with several values is a list.
    pub fields: Map<String, Value>,
    /// Where the words of the query stand.
    pub snippets: Vec<Snippet>,
}

/// A piece of a field's text with the words that were looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The field.
    pub field: String,
    /// The piece.
    pub text: String,
    /// The words: in characters of the text, each begins at the first number and ends before the
    /// second.
    pub marked: Vec<(usize, usize)>,
}

/// Why a search has no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// The query cannot be understood.
    Query {
        /// What is wrong.
        message: String,
        /// Where, in characters of the query.
        at: Option<usize>,
    },
    /// It cannot be asked.
    Trouble(Trouble),
}

/// Searches what is committed in a pipeline's sink.
///
/// # Errors
/// [`NoAnswer`]; also if the sink cannot be searched, or is not there yet.
pub fn search(
    config: &Config,
    pipeline: &PipelineConfig,
    wanted: &Wanted<'_>,
) -> Result<Answer, NoAnswer> {
    let usage = |message: String, hint: String| NoAnswer::Trouble(Trouble::Usage(message, hint));
    match &config.sink_of(pipeline).target {
        #[cfg(feature = "tantivy")]
        TargetConfig::Index(index) => tantivy::search(index, pipeline, wanted),
        _ => {
            let message =
                format!("pipeline `{}` fills a mirror, which cannot be searched", pipeline.name);
            let searchable: Vec<&str> = config
                .pipelines
                .iter()
                .filter(|other| !config.sink_of(other).target.is_mirror())
                .map(|other| other.name.as_str())
                .collect();
            Err(usage(
                message,
                match searchable.as_slice() {
                    [] => "give a pipeline a sink of `kind = \"tantivy\"`".to_owned(),
                    names => format!("these can be: {}", names.join(", ")),
                },
            ))
        }
    }
}

#[cfg(feature = "tantivy")]
mod tantivy {
    //! From the index's answer to ours: ranges of bytes become ranges of characters.

    use truekeep_sink_tantivy::{BadQuery, SearchError, SearchIndex, SearchRequest};

    use super::{Answer, Hit, NoAnswer, Snippet, Wanted};
    use crate::config::{IndexConfig, PipelineConfig};
    use crate::trouble::Trouble;

    pub(super) fn search(
        index: &IndexConfig,
        pipeline: &PipelineConfig,
        wanted: &Wanted<'_>,
    ) -> Result<Answer, NoAnswer> {
        let trouble = |error| NoAnswer::Trouble(Trouble::Port(error));
        let Some(open) = SearchIndex::open(index.location.path()).map_err(trouble)? else {
            let message = format!("{} has no index yet", index.location);
            let hint = "the first delivery makes it: `truekeep run`".to_owned();
            return Err(NoAnswer::Trouble(Trouble::Usage(message, hint)));
        };
        let Wanted { query, fields, limit } = *wanted;
        let found = open.search(&SearchRequest { query, fields, limit });
        let found = found.map_err(|error| match error {
            SearchError::Index(error) => trouble(error),
            SearchError::Query(BadQuery { message, at }) => {
                NoAnswer::Query { message, at: at.map(|at| characters(query, at)) }
            }
        })?;
        let hits = found.hits.into_iter().map(|hit| Hit {
            key: hit.key.to_string(),
            score: hit.score,
            fields: hit.fields,
            snippets: hit.snippets.into_iter().map(snippet).collect(),
        });
        let (pipeline, query) = (pipeline.name.to_string(), query.to_owned());
        Ok(Answer { pipeline, query, count: found.count, hits: hits.collect() })
    }

    fn snippet(found: truekeep_sink_tantivy::Snippet) -> Snippet {
        let truekeep_sink_tantivy::Snippet { field, text, marked } = found;
        let marked = marked
            .iter()
            .map(|range| (characters(&text, range.start), characters(&text, range.end)))
            .collect();
        Snippet { field, text, marked }
    }

    /// How many characters of a text end at a byte or before it.
    fn characters(text: &str, byte: usize) -> usize {
        text.char_indices().take_while(|(at, _)| *at < byte).count()
    }
}

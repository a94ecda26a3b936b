//! The search: reads an index beside whoever writes it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::collector::{Count, TopDocs};
use tantivy::query::{BooleanQuery, Occur, Query, QueryParser, QueryParserError, TermQuery};
use tantivy::query_grammar::parse_query_lenient;
use tantivy::schema::{Field, FieldType, IndexRecordOption, Schema};
use tantivy::snippet::SnippetGenerator;
use tantivy::{Index, IndexReader, Searcher, TantivyDocument, Term};
use truekeep_core::Generation;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};

use crate::directory::{IndexDirectory, MetaIdentity};
use crate::failure::Failure;
use crate::generations::{folder_of, served};
use crate::hit::{Hit, Snippet, shown};
use crate::index::{raw, reader, reload};
use crate::schema::{KEY, TOMBSTONE};

/// Bytes of a query: a longer one is no query of a person, and its parts are parsed one in another.
const QUERY_BYTES_MAX: usize = 10_000;
/// How deep a query's brackets nest.
const QUERY_DEPTH_MAX: usize = 50;
/// Characters of a snippet: about two lines of a terminal.
const SNIPPET_CHARS: usize = 150;

const OPERATION: &str = "search the index";

/// Swaps that may come between two looks of one search: they are minutes apart.
const SWAPS_MAX: usize = 8;

/// An index that is open for searching. It follows what readers are to see from one generation to
/// the next.
pub struct SearchIndex {
    folder: PathBuf,
    open: Mutex<Arc<Opened>>,
}

/// A generation that is open for searching.
struct Opened {
    generation: Generation,
    directory: IndexDirectory,
    index: Index,
    reader: IndexReader,
    read: Mutex<Option<MetaIdentity>>,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest<'q> {
    /// The query, in tantivy's language.
    pub query: &'q str,
    /// The fields of words without one; none for all text and keyword fields.
    pub fields: &'q [String],
    /// The most records.
    pub limit: u32,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// How many records fit.
    pub count: u64,
    /// The best of them, the best first.
    pub hits: Vec<Hit>,
}

/// A query that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadQuery {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes of the query.
    pub at: Option<usize>,
}

/// Why a search has no answer.
#[derive(Debug)]
pub enum SearchError {
    /// Because of the query.
    Query(BadQuery),
    /// Because of the index.
    Index(PortError),
}

impl fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchIndex").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl SearchIndex {
    /// Opens the index of a folder; none if there is none. Reads only.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn open(folder: &Path) -> Result<Option<Self>, PortError> {
        let opened = following(folder, |generation| Opened::at(folder, generation));
        let opened = opened.map_err(|failure| failure.classify(OPERATION, folder))?;
        let open = |opened| Self { folder: folder.into(), open: Mutex::new(Arc::new(opened)) };
        Ok(opened.map(open))
    }

    /// Searches in what is committed now.
    ///
    /// # Errors
    /// [`SearchError`].
    pub fn search(&self, request: &SearchRequest<'_>) -> Result<Found, SearchError> {
        let trouble =
            |failure: Failure| SearchError::Index(failure.classify(OPERATION, &self.folder));
        let open = self.current().map_err(trouble)?;
        let schema = open.index.schema();
        let query = open.query(request, &schema).map_err(SearchError::Query)?;
        open.run(&*query, request, &schema).map_err(|error| trouble(error.into()))
    }

    /// What readers see now, as it is now.
    fn current(&self) -> Result<Arc<Opened>, Failure> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        following(&self.folder, |generation| {
            if open.generation == generation {
                open.read_anew()?;
                return Ok(Some(()));
            }
            let next = Opened::at(&self.folder, generation)?;
            Ok(next.map(|next| *open = Arc::new(next)))
        })?
        .ok_or_else(|| {
            let error = PortError::new(OPERATION, FailureClass::Halted, Code::INDEX_CORRUPT);
            error.detail(format!(
                "{} has lost the generation that readers see",
                self.folder.display()
            ))
        })?;
        Ok(Arc::clone(&open))
    }
}

/// What a look at the generation that readers see finds. One that was swapped out and removed
/// meanwhile has nothing to find or is half there: then the next one is looked at.
fn following<T>(
    folder: &Path,
    mut look: impl FnMut(Generation) -> Result<Option<T>, Failure>,
) -> Result<Option<T>, Failure> {
    let mut seen = served(folder)?;
    for _ in 0..SWAPS_MAX {
        let found = look(seen.generation);
        if matches!(found, Ok(Some(_))) {
            return found;
        }
        let now = served(folder)?;
        if now == seen {
            return found;
        }
        seen = now;
    }
    look(seen.generation)
}

impl Opened {
    fn at(folder: &Path, generation: Generation) -> Result<Option<Self>, Failure> {
        let Some((directory, index)) = raw(&folder_of(folder, generation))? else {
            return Ok(None);
        };
        if index.schema().get_field(KEY).is_err() {
            let error = PortError::new(OPERATION, FailureClass::Halted, Code::INDEX_MISMATCH);
            return Err(error.detail("the index was made by another program").into());
        }
        let read = Mutex::new(directory.meta());
        let reader = reader(&index)?;
        Ok(Some(Self { generation, directory, index, reader, read }))
    }

    fn read_anew(&self) -> Result<(), Failure> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // Before: should it change meanwhile, the next search sees it.
        let meta = self.directory.meta();
        if *read != meta {
            reload(&self.reader)?;
            *read = meta;
        }
        Ok(())
    }

    fn query(
        &self,
        request: &SearchRequest<'_>,
        schema: &Schema,
    ) -> Result<Box<dyn Query>, BadQuery> {
        let fields = searched(request.fields, schema)?;
        bounded(request.query)?;
        let mut parser = QueryParser::for_index(&self.index, fields);
        parser.set_conjunction_by_default();
        let (parsed, errors) = parse_query_lenient(request.query);
        if let Some(error) = errors.into_iter().next() {
            return Err(BadQuery { message: error.message, at: Some(error.pos) });
        }
        parser.build_query_from_user_input_ast(parsed).map_err(|error| told(&error, request.query))
    }

    fn run(
        &self,
        query: &dyn Query,
        request: &SearchRequest<'_>,
        schema: &Schema,
    ) -> tantivy::Result<Found> {
        let searcher = self.reader.searcher();
        let live = live(query, schema)?;
        let best = TopDocs::with_limit((request.limit as usize).max(1)).order_by_score();
        let (count, best) = searcher.search(&live, &(Count, best))?;
        let snippets = generators(&searcher, query, schema)?;
        let mut hits = Vec::new();
        for (score, address) in best.into_iter().take(request.limit as usize) {
            let document: TantivyDocument = searcher.doc(address)?;
            let Some((key, fields)) = shown(&document, schema) else { continue };
            let snippets = snippets.iter().filter_map(|(field, generator)| {
                let snippet = generator.snippet_from_doc(&document);
                let marked = snippet.highlighted().to_vec();
                (!marked.is_empty()).then(|| Snippet {
                    field: schema.get_field_name(*field).to_owned(),
                    text: snippet.fragment().to_owned(),
                    marked,
                })
            });
            hits.push(Hit { key, score, fields, snippets: snippets.collect() });
        }
        Ok(Found { count: count as u64, hits })
    }
}

/// A query without the tombstones.
fn live(query: &dyn Query, schema: &Schema) -> tantivy::Result<BooleanQuery> {
    let tombstone = Term::from_field_bool(schema.get_field(TOMBSTONE)?, true);
    let tombstones = TermQuery::new(tombstone, IndexRecordOption::Basic);
    Ok(BooleanQuery::new(vec![
        (Occur::Must, query.box_clone()),
        (Occur::MustNot, Box::new(tombstones)),
    ]))
}

/// The fields of words that name none.
fn searched(names: &[String], schema: &Schema) -> Result<Vec<Field>, BadQuery> {
    if names.is_empty() {
        let textual = schema.fields().filter(|(_, entry)| {
            let is_text = matches!(entry.field_type(), FieldType::Str(_));
            is_text && entry.is_indexed() && !entry.name().starts_with('_')
        });
        return Ok(textual.map(|(field, _)| field).collect());
    }
    let field = |name: &String| {
        let bad = |message| BadQuery { message, at: None };
        let field = schema.get_field(name);
        let field = field.map_err(|_| bad(format!("the index has no field `{name}`")))?;
        if !schema.get_field_entry(field).is_indexed() {
            return Err(bad(format!("field `{name}` cannot be searched")));
        }
        Ok(field)
    };
    names.iter().map(field).collect()
}

/// Refuses what would be parsed for long.
fn bounded(query: &str) -> Result<(), BadQuery> {
    let bad = |message: String, at| Err(BadQuery { message, at: Some(at) });
    if query.trim().is_empty() {
        return bad("the query is empty".into(), 0);
    }
    if query.len() > QUERY_BYTES_MAX {
        return bad(format!("a query has at most {QUERY_BYTES_MAX} bytes"), QUERY_BYTES_MAX);
    }
    let mut depth = 0usize;
    for (place, c) in query.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > QUERY_DEPTH_MAX {
            return bad(format!("brackets nest deeper than {QUERY_DEPTH_MAX}"), place);
        }
    }
    Ok(())
}

/// What the parser says, and where the word stands that it speaks of.
fn told(error: &QueryParserError, query: &str) -> BadQuery {
    let (message, word) = match error {
        QueryParserError::FieldDoesNotExist(name) => {
            (format!("the index has no field `{name}`"), Some(name))
        }
        QueryParserError::FieldNotIndexed(name) => {
            (format!("field `{name}` cannot be searched"), Some(name))
        }
        QueryParserError::ExpectedFloat(_) => ("a number is expected".to_owned(), None),
        other => (other.to_string().replace('\n', " "), None),
    };
    let at = word.and_then(|word| query.find(word.as_str()));
    BadQuery { message, at }
}

/// What finds the words of a query in each stored text field.
fn generators(
    searcher: &Searcher,
    query: &dyn Query,
    schema: &Schema,
) -> tantivy::Result<Vec<(Field, SnippetGenerator)>> {
    let mut generators = Vec::new();
    for (field, entry) in schema.fields() {
        let FieldType::Str(options) = entry.field_type() else { continue };
        let is_text = options.get_indexing_options().is_some_and(|text| text.fieldnorms());
        if !is_text || !entry.is_stored() {
            continue;
        }
        let mut generator = SnippetGenerator::create(searcher, query, field)?;
        generator.set_max_num_chars(SNIPPET_CHARS);
        generators.push((field, generator));
    }
    Ok(generators)
}

#[cfg(test)]
mod tests;

//! Reads tables of the file key by key, and goes on after a problem so that all are told at once.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::Problem;
use super::substitute::{Environment, Hidden, substitute};

/// A value with the place it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found<T> {
    pub value: T,
    pub span: Range<usize>,
}

/// What is gathered while a file is read.
pub(super) struct Gather<'f> {
    pub folder: &'f Path,
    environment: Environment<'f>,
    problems: RefCell<Vec<Problem>>,
    hidden: RefCell<Hidden>,
}

impl<'f> Gather<'f> {
    pub fn new(folder: &'f Path, environment: Environment<'f>) -> Self {
        Self { folder, environment, problems: RefCell::default(), hidden: RefCell::default() }
    }

    pub fn problem(
        &self,
        span: &Range<usize>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (message, remedy) = (message.into(), remedy.into());
        self.problems.borrow_mut().push(Problem { span: Some(span.clone()), message, remedy });
    }

    pub fn into_parts(self) -> (Vec<Problem>, Hidden) {
        let hidden = self.hidden.into_inner();
        let mut problems = self.problems.into_inner();
        for problem in &mut problems {
            problem.message = hidden.redact(&problem.message);
            problem.remedy = hidden.redact(&problem.remedy);
        }
        (problems, hidden)
    }

    /// A string with its substitutions.
    pub fn text(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Option<Found<String>> {
        let Some(text) = value.get_ref().as_str() else {
            self.mistyped(name, value, "a string");
            return None;
        };
        let made = substitute(text, self.folder, self.environment, &mut self.hidden.borrow_mut());
        match made {
            Ok(value_made) => Some(Found { value: value_made, span: value.span() }),
            Err((message, remedy)) => {
                self.problem(&value.span(), format!("`{name}`: {message}"), remedy);
                None
            }
        }
    }

    pub fn mistyped(&self, name: &str, value: &Spanned<DeValue<'_>>, wanted: &str) {
        let found = value.get_ref().type_str();
        let message = format!("`{name}` has the type {found}");
        self.problem(&value.span(), message, format!("write {wanted}"));
    }
}

/// One table of the file.
pub(super) struct Reader<'t> {
    pub name: String,
    pub span: Range<usize>,
    pub gather: &'t Gather<'t>,
    table: &'t DeTable<'t>,
    known: &'static [&'static str],
}

impl<'t> Reader<'t> {
    /// Reads a table, and names every key in it that is not `known`.
    pub fn new(
        gather: &'t Gather<'t>,
        name: impl Into<String>,
        span: Range<usize>,
        table: &'t DeTable<'t>,
        known: &'static [&'static str],
    ) -> Self {
        let name = name.into();
        for key in table.keys() {
            let written: &str = key.get_ref();
            if !known.contains(&written) {
                let place = if name.is_empty() { "the file" } else { &name };
                let message = format!("unknown key `{written}` in {place}");
                gather.problem(&key.span(), message, nearest(written, known.iter().copied()));
            }
        }
        Self { name, span, gather, table, known }
    }

    /// Names the keys that are of another kind.
    pub fn only(&self, kind: &str, keys: &'static [&'static str]) {
        for key in self.table.keys() {
            let written: &str = key.get_ref();
            if self.known.contains(&written) && !keys.contains(&written) {
                let message = format!("`{written}` is not of {kind}");
                self.gather.problem(&key.span(), message, nearest(written, keys.iter().copied()));
            }
        }
    }

    /// The entries of a table whose keys a user names: `fields = { title = "text" }`.
    #[cfg(feature = "tantivy")]
    pub fn entries(
        &self,
        key: &'static str,
    ) -> Option<Vec<(Found<String>, &'t Spanned<DeValue<'t>>)>> {
        let value = self.value(key)?;
        let Some(table) = value.get_ref().as_table() else {
            self.gather.mistyped(key, value, "a table: { NAME = .. }");
            return None;
        };
        let found = |name: &Spanned<std::borrow::Cow<'_, str>>| Found {
            value: name.get_ref().to_string(),
            span: name.span(),
        };
        Some(table.iter().map(|(name, value)| (found(name), value)).collect())
    }

    pub fn value(&self, key: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        debug_assert!(self.known.contains(&key), "{key} is not in the schema");
        self.table.get(key)
    }

    pub fn text(&self, key: &'static str) -> Option<Found<String>> {
        self.gather.text(key, self.value(key)?)
    }

    pub fn required(&self, key: &'static str, remedy: &str) -> Option<Found<String>> {
        if self.value(key).is_none() {
            self.missing(key, remedy);
        }
        self.text(key)
    }

    pub fn missing(&self, key: &str, remedy: &str) {
        self.gather.problem(&self.span, format!("`{}` has no `{key}`", self.name), remedy);
    }

    /// One name, or a list of names: at least one, each once.
    pub fn names(&self, key: &'static str) -> Option<Found<Vec<String>>> {
        let value = self.value(key)?;
        let names = match value.get_ref() {
            DeValue::Array(list) => {
                list.iter().map(|name| self.gather.text(key, name)).collect::<Option<Vec<_>>>()?
            }
            DeValue::String(_) => vec![self.gather.text(key, value)?],
            _ => {
                self.gather.mistyped(key, value, "a string or a list of strings");
                return None;
            }
        };
        let mut seen = BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(&name.value)) {
            let message = format!("`{key}` names `{}` twice", twice.value);
            self.gather.problem(&twice.span, message, "name each column once");
            return None;
        }
        if names.is_empty() || names.iter().any(|name| name.value.is_empty()) {
            self.gather.problem(&value.span(), format!("`{key}` is empty"), "name a column");
            return None;
        }
        let names = names.into_iter().map(|name| name.value).collect();
        Some(Found { value: names, span: value.span() })
    }

    /// A text that is parsed into something else.
    pub fn parsed<T>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(key)?;
        match parse(&text.value) {
            Ok(value) => Some(value),
            Err(remedy) => {
                let message = format!("`{key}` cannot be `{}`", text.value);
                self.gather.problem(&text.span, message, remedy);
                None
            }
        }
    }

    pub fn boolean(&self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        let found = value.get_ref().as_bool();
        if found.is_none() {
            self.gather.mistyped(key, value, "true or false");
        }
        found
    }

    pub fn integer(&self, key: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        let value = self.value(key)?;
        let Some(integer) = value.get_ref().as_integer() else {
            self.gather.mistyped(key, value, "a whole number");
            return None;
        };
        let number = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        let fits = number.filter(|number| range.contains(number));
        if fits.is_none() {
            let message = format!("`{key}` cannot be {}", integer.as_str());
            let remedy = format!("write a number from {} to {}", range.start(), range.end());
            self.gather.problem(&value.span(), message, remedy);
        }
        fits
    }

    /// A table inside this one.
    pub fn table(&self, key: &'static str, known: &'static [&'static str]) -> Option<Reader<'t>> {
        let value = self.value(key)?;
        let name = if self.name.is_empty() { key.into() } else { format!("{}.{key}", self.name) };
        self.inner(name, value, known)
    }

    /// The tables that a user names: `[source.shop]`.
    pub fn named(
        &self,
        key: &'static str,
        known: &'static [&'static str],
    ) -> Vec<(Found<String>, Reader<'t>)> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(table) = value.get_ref().as_table() else {
            self.gather.mistyped(key, value, &format!("a table with a name: [{key}.NAME]"));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (name, value) in table {
            let written: &str = name.get_ref();
            if let Some(reader) = self.inner(format!("{key}.{written}"), value, known) {
                tables.push((Found { value: written.to_owned(), span: name.span() }, reader));
            }
        }
        tables
    }

    /// The tables of a list: `watch = [{ .. }, { .. }]`.
    pub fn list(&self, key: &'static str, known: &'static [&'static str]) -> Vec<Reader<'t>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(list) = value.get_ref().as_array() else {
            self.gather.mistyped(key, value, "a list of tables");
            return Vec::new();
        };
        let name = |index: usize| format!("{}.{key}[{index}]", self.name);
        let inner = |(index, value)| self.inner(name(index), value, known);
        list.iter().enumerate().filter_map(inner).collect()
    }

    pub fn inner(
        &self,
        name: String,
        value: &'t Spanned<DeValue<'t>>,
        known: &'static [&'static str],
    ) -> Option<Reader<'t>> {
        match value.get_ref().as_table() {
            Some(table) => Some(Reader::new(self.gather, name, value.span(), table, known)),
            None => {
                self.gather.mistyped(&name, value, "a table");
                None
            }
        }
    }
}

/// "did you mean": the nearest of the known names, or all of them.
pub fn nearest<'n>(written: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    let distance = |name: &str| strsim::damerau_levenshtein(written, name);
    let near = known.clone().min_by_key(|name| distance(name));
    match near.filter(|name| distance(name) <= written.len().div_ceil(3)) {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            let known: Vec<_> = known.collect();
            if known.is_empty() {
                return "there is none: add it".to_owned();
            }
            format!("known here: {}", known.join(", "))
        }
    }
}

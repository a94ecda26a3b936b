//! How text is cut into words.
//!
//! An analysis is named by what it does, and the name stands in the index: whoever reads the index
//! makes the same words, whatever the configuration says by then.

use tantivy::tokenizer::{
    AsciiFoldingFilter, LowerCaser, NgramTokenizer, RemoveLongFilter, SimpleTokenizer, Stemmer,
    TextAnalyzer, TokenizerManager, WhitespaceTokenizer,
};

/// Counts the meanings of the names: words made otherwise are another index.
const FORM: &str = "truekeep1";

/// Bytes of a word: longer ones are no words that anybody types, and are not indexed.
const WORD_BYTES_MAX: usize = 255;

/// Characters of the shortest and the longest gram: two find most words of scripts without spaces,
/// three keep the others apart.
const GRAM_CHARS: (usize, usize) = (2, 3);

/// How text is cut into words. All of them are made lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Analysis {
    /// Where words begin and end.
    pub split: Split,
    /// Whether accents are taken off Latin letters.
    pub fold: bool,
    /// Whose endings are taken off.
    pub language: Option<Language>,
}

/// Where words begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// At whatever is no letter and no digit.
    Words,
    /// At white space only.
    Whitespace,
    /// Every run of two and of three characters is a word: for scripts without spaces, and for
    /// parts of words.
    Grams,
}

/// A language whose endings can be taken off.
pub type Language = tantivy::tokenizer::Language;

/// The languages by name, in alphabetical order.
pub const LANGUAGES: &[(&str, Language)] = &[
    ("arabic", Language::Arabic),
    ("danish", Language::Danish),
    ("dutch", Language::Dutch),
    ("english", Language::English),
    ("finnish", Language::Finnish),
    ("french", Language::French),
    ("german", Language::German),
    ("greek", Language::Greek),
    ("hungarian", Language::Hungarian),
    ("italian", Language::Italian),
    ("norwegian", Language::Norwegian),
    ("portuguese", Language::Portuguese),
    ("romanian", Language::Romanian),
    ("russian", Language::Russian),
    ("spanish", Language::Spanish),
    ("swedish", Language::Swedish),
    ("tamil", Language::Tamil),
    ("turkish", Language::Turkish),
];

const SPLITS: &[(&str, Split)] =
    &[("words", Split::Words), ("whitespace", Split::Whitespace), ("grams", Split::Grams)];

impl Analysis {
    /// The name under which an index knows it: "truekeep1:words:fold:english".
    pub(crate) fn name(self) -> String {
        let named = |parts: &[(&'static str, Split)]| {
            parts.iter().find(|(_, split)| *split == self.split).map_or("", |(name, _)| name)
        };
        let mut name = format!("{FORM}:{}", named(SPLITS));
        if self.fold {
            name.push_str(":fold");
        }
        let of_language = |language| LANGUAGES.iter().find(|(_, known)| *known == language);
        if let Some((language, _)) = self.language.and_then(of_language) {
            name.push(':');
            name.push_str(language);
        }
        name
    }

    /// The analysis of a name; none if it is not one of ours.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split(':').peekable();
        if parts.next() != Some(FORM) {
            return None;
        }
        let split = parts.next()?;
        let (_, split) = *SPLITS.iter().find(|(known, _)| *known == split)?;
        let fold = parts.next_if_eq(&"fold").is_some();
        let language = match parts.next() {
            None => None,
            Some(name) => Some(LANGUAGES.iter().find(|(known, _)| *known == name)?.1),
        };
        parts.next().is_none().then_some(Self { split, fold, language })
    }

    fn analyzer(self) -> TextAnalyzer {
        let split = match self.split {
            Split::Words => TextAnalyzer::builder(SimpleTokenizer::default()).dynamic(),
            Split::Whitespace => TextAnalyzer::builder(WhitespaceTokenizer::default()).dynamic(),
            Split::Grams => {
                let (shortest, longest) = GRAM_CHARS;
                let grams = NgramTokenizer::all_ngrams(shortest, longest);
                TextAnalyzer::builder(grams.expect("the bounds are in order")).dynamic()
            }
        };
        let words = split.filter_dynamic(RemoveLongFilter::limit(WORD_BYTES_MAX + 1));
        let words = words.filter_dynamic(LowerCaser);
        let words = if self.fold { words.filter_dynamic(AsciiFoldingFilter) } else { words };
        match self.language {
            Some(language) => words.filter_dynamic(Stemmer::new(language)).build(),
            None => words.build(),
        }
    }
}

/// Makes the analyses of these names known to an index; names that are not ours are left alone.
pub(crate) fn register<'n>(names: impl Iterator<Item = &'n str>) -> TokenizerManager {
    let manager = TokenizerManager::default();
    for name in names {
        if let Some(analysis) = Analysis::parse(name) {
            manager.register(name, analysis.analyzer());
        }
    }
    manager
}

#[cfg(test)]
mod tests;

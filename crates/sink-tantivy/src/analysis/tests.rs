//! Words are cut, folded and stemmed as each language needs.

use super::*;

fn words(analysis: Analysis, text: &str) -> Vec<String> {
    let mut analyzer = analysis.analyzer();
    let mut stream = analyzer.token_stream(text);
    let mut words = Vec::new();
    stream.process(&mut |token| words.push(token.text.clone()));
    words
}

const PLAIN: Analysis = Analysis { split: Split::Words, fold: false, language: None };

#[test]
fn name_tells_the_whole_analysis() {
    let all = LANGUAGES.iter().map(|(_, language)| Some(*language)).chain([None]);
    let mut names = std::collections::BTreeSet::new();
    for language in all {
        for fold in [false, true] {
            for (_, split) in SPLITS {
                let analysis = Analysis { split: *split, fold, language };
                assert_eq!(Analysis::parse(&analysis.name()), Some(analysis));
                names.insert(analysis.name());
            }
        }
    }
    assert_eq!(names.len(), (LANGUAGES.len() + 1) * 2 * SPLITS.len());
    let strange =
        ["", "default", "truekeep1", "truekeep1:x", "truekeep2:words", "truekeep1:words:klingon"];
    for name in strange {
        assert_eq!(Analysis::parse(name), None, "{name}");
    }
}

#[test]
fn languages_are_named_in_order() {
    assert!(LANGUAGES.is_sorted_by_key(|(name, _)| name));
}

#[test]
fn words_are_letters_and_digits_in_lower_case() {
    assert_eq!(words(PLAIN, "Saint-Étienne, 42!"), ["saint", "étienne", "42"]);
    let by_space = Analysis { split: Split::Whitespace, ..PLAIN };
    assert_eq!(words(by_space, "C++ a-b"), ["c++", "a-b"]);
}

#[test]
fn accents_are_taken_off_only_where_asked() {
    let folded = Analysis { fold: true, ..PLAIN };
    assert_eq!(words(folded, "Ærøskøbing São"), ["aeroskobing", "sao"]);
}

#[test]
fn each_language_takes_its_own_endings_off() {
    for (language, one, other) in [
        (Language::English, "running", "runs"),
        (Language::German, "häuser", "haus"),
        (Language::French, "chevaux", "cheval"),
        (Language::Russian, "города", "город"),
    ] {
        let stemmed = Analysis { language: Some(language), ..PLAIN };
        assert_eq!(words(stemmed, one), words(stemmed, other), "{language:?}");
        assert_ne!(words(PLAIN, one), words(PLAIN, other));
    }
}

#[test]
fn every_language_takes_any_text() {
    let texts = ["", "αντιθετε", "東京都", "مرحبا", "🏳\u{fe0f}\u{200d}🌈", "a\0b", "é\u{301}ß"];
    for (_, language) in LANGUAGES {
        for text in texts {
            words(Analysis { language: Some(*language), ..PLAIN }, text);
        }
    }
}

#[test]
fn grams_find_parts_of_text_without_spaces() {
    let grams = Analysis { split: Split::Grams, ..PLAIN };
    assert_eq!(words(grams, "東京都"), ["東京", "東京都", "京都"]);
}

#[test]
fn word_that_nobody_types_is_left_out() {
    let long = "x".repeat(WORD_BYTES_MAX);
    assert_eq!(words(PLAIN, &format!("a {long} {long}x b")), ["a", &long, "b"]);
}

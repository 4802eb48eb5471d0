//! The output's text.

use crate::{attempt_with, expect_all, expect_error, expect_inconclusive, result};

#[test]
fn equality_and_occurrence_are_tested() {
    expect_all(&[
        ("kind = 'equals'\nvalue = 'Paris'", " Paris\n", true),
        ("kind = 'equals'\nvalue = 'Paris'", "Paris.", false),
        ("kind = 'equals'\nvalue = ' ÉTÉ '\nignore_case = true", "été", true),
        ("kind = 'equals'\nvalue = ''", " \n", true),
        ("kind = 'contains'\nvalue = 'Paris'", "It is Paris.", true),
        ("kind = 'contains'\nvalue = 'paris'", "It is Paris.", false),
        ("kind = 'contains'\nvalue = 'pArIs'\nignore_case = true", "It is Paris.", true),
        ("kind = 'contains'\nvalue = '日本'", "今日本人", true),
        ("kind = 'contains_any'\nvalues = ['a', 'b']", "xbx", true),
        ("kind = 'contains_any'\nvalues = ['a', 'b']", "xyz", false),
        ("kind = 'contains_any'\nvalues = ['A']\nignore_case = true", "a", true),
        ("kind = 'contains_all'\nvalues = ['a', 'b']", "b and a", true),
        ("kind = 'contains_all'\nvalues = ['a', 'b']", "a alone", false),
        ("kind = 'contains_all'\nvalues = ['Ä', 'B']\nignore_case = true", "bä", true),
        ("kind = 'regex'\nvalue = '\\bp\\w+s\\b'", "in paris now", true),
        ("kind = 'regex'\nvalue = '^x$'", "X", false),
        ("kind = 'regex'\nvalue = '^x$'\nignore_case = true", "X", true),
        ("kind = 'regex'\nvalue = '^\\p{Cyrillic}+$'", "Привет", true),
        ("kind = 'starts_with'\nvalue = 'It '", "  It is", true),
        ("kind = 'starts_with'\nvalue = 'is'", "It is", false),
        ("kind = 'starts_with'\nvalue = 'IT'\nignore_case = true", "it is", true),
        ("kind = 'ends_with'\nvalue = 'end.'", "the end.\n\n", true),
        ("kind = 'ends_with'\nvalue = 'end'", "the end.", false),
        ("kind = 'ends_with'\nvalue = 'ENDE'\nignore_case = true", "das Ende", true),
    ]);
    let missing = result("kind = 'contains_all'\nvalues = ['a', 'b', 'c']", &attempt_with("a"));
    assert_eq!(missing.message, r#"no "b" and no "c" in "a""#);
}

#[test]
fn characters_and_words_are_counted() {
    expect_all(&[
        ("kind = 'length'\nmax = 3", "日本語", true),
        ("kind = 'length'\nmax = 2", "日本語", false),
        ("kind = 'length'\nmin = 1", "", false),
        ("kind = 'length'\nmin = 2\nmax = 2", "ab", true),
        ("kind = 'word_count'\nmin = 2\nmax = 2", " two\n words ", true),
        ("kind = 'word_count'\nmax = 1", "two words", false),
        ("kind = 'word_count'\nmin = 1", " \n", false),
    ]);
    let long = result("kind = 'length'\nmin = 1\nmax = 2", &attempt_with("abc"));
    assert_eq!(long.message, "3 characters, expected 1 to 2");
}

#[test]
fn similarity_is_measured() {
    expect_all(&[
        ("kind = 'levenshtein'\nvalue = 'Paris'\nmax = 1", " Pariss ", true),
        ("kind = 'levenshtein'\nvalue = 'Paris'\nmax = 1", "Parisss", false),
        ("kind = 'levenshtein'\nvalue = 'PARIS'\nmax = 0\nignore_case = true", "paris", true),
        ("kind = 'levenshtein'\nvalue = 'é'\nmax = 1", "e", true),
        (
            "kind = 'similarity'\nmetric = 'token_f1'\nvalue = 'the cat sat on the mat'\nmin = 0.75",
            "the cat is on the mat",
            true,
        ),
        (
            "kind = 'similarity'\nmetric = 'token_f1'\nvalue = 'the cat sat on the mat'\nmin = 0.76",
            "the cat is on the mat",
            false,
        ),
        (
            "kind = 'similarity'\nmetric = 'bleu'\nvalue = 'the cat sat on the mat'\nmin = 0.48",
            "the cat is on the mat",
            true,
        ),
        (
            "kind = 'similarity'\nmetric = 'bleu'\nvalue = 'the cat sat on the mat'\nmin = 0.49",
            "the cat is on the mat",
            false,
        ),
        (
            "kind = 'similarity'\nmetric = 'rouge_l'\nvalue = 'the cat sat on the mat'\nmin = 0.83",
            "the cat is on the mat",
            true,
        ),
        (
            "kind = 'similarity'\nmetric = 'rouge_l'\nvalue = 'the cat sat on the mat'\nmin = 0.84",
            "the cat is on the mat",
            false,
        ),
    ]);
    let long = "word ".repeat(20_001);
    for metric in ["bleu", "rouge_l"] {
        let lines = format!("kind = 'similarity'\nmetric = '{metric}'\nvalue = 'x'\nmin = 0.5");
        expect_inconclusive(&lines, &attempt_with(&long), "at most 20000 words");
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    expect_error("kind = 'contains'\nvalue = ''", "value", "empty");
    expect_error("kind = 'contains_any'\nvalues = []", "values", "empty");
    expect_error("kind = 'contains_all'\nvalues = ['a', '']", "values", "empty");
    expect_error("kind = 'starts_with'\nvalue = ' '", "value", "empty");
    expect_error("kind = 'regex'\nvalue = '('", "value", "not a regular expression");
    expect_error("kind = 'length'", "kind", "needs `min` or `max`");
    expect_error("kind = 'word_count'\nmin = 3\nmax = 2", "min", "greater than `max`");
    expect_error(
        "kind = 'similarity'\nvalue = 'a'\nmetric = 'other'\nmin = 1",
        "metric",
        "wrong type",
    );
}

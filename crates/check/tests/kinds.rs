//! Every kind of check, passing, failing and negated.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_check::{Check, KINDS, Kind, judge};
use bakeoff_core::{Attempt, Status};

fn check(kind: Kind, negate: bool) -> Check {
    Check { id: "the check".to_owned(), kind, negate, required: true, weight: 1.0 }
}

fn attempt(output: &str, exit_code: Option<i32>) -> Attempt {
    Attempt { output: output.to_owned(), exit_code, ..Attempt::default() }
}

fn contains(value: &str, ignore_case: bool) -> Kind {
    Kind::Contains { value: value.to_owned(), ignore_case }
}

fn equals(value: &str, ignore_case: bool) -> Kind {
    Kind::Equals { value: value.to_owned(), ignore_case }
}

#[test]
fn each_kind_tells_right_from_wrong() {
    let table: Vec<(Kind, &str, Option<i32>, bool)> = vec![
        (contains("Paris", false), "It is Paris.", None, true),
        (contains("paris", false), "It is Paris.", None, false),
        (contains("pArIs", true), "It is Paris.", None, true),
        (equals("Paris", false), " Paris\n", None, true),
        (equals("Paris", false), "Paris.", None, false),
        (equals("ÉTÉ", true), "été", None, true),
        (Kind::regex(r"\bp\w+s\b", false).unwrap(), "in paris now", None, true),
        (Kind::regex("^x$", false).unwrap(), "X", None, false),
        (Kind::regex("^x$", true).unwrap(), "X", None, true),
        (Kind::IsJson, " {\"a\": [1, null]} ", None, true),
        (Kind::IsJson, "{\"a\": 1} and more", None, false),
        (Kind::IsJson, "", None, false),
        (Kind::ExitCode { code: 0 }, "", Some(0), true),
        (Kind::ExitCode { code: 0 }, "", Some(3), false),
        (Kind::ExitCode { code: 3 }, "", Some(3), true),
        (Kind::ExitCode { code: 0 }, "", None, false),
    ];
    for (kind, output, exit_code, expected) in table {
        let attempt = attempt(output, exit_code);
        let plain = check(kind.clone(), false).run(&attempt);
        let negated = check(kind.clone(), true).run(&attempt);
        assert_eq!(plain.passed, expected, "{kind:?} on {output:?}");
        assert_eq!(negated.passed, !expected, "not {kind:?} on {output:?}");
        assert_eq!(plain.message.is_empty(), expected, "a failure says why");
        assert_eq!(negated.message.is_empty(), !expected, "a failure says why");
    }
}

#[test]
fn results_name_the_check_and_say_what_was_found() {
    let result = check(contains("Paris", false), false).run(&attempt("It is\nRome.", None));
    assert_eq!(result.check, "the check");
    assert_eq!(result.message, r#"no "Paris" in "It is\nRome.""#);
}

#[test]
fn only_required_checks_decide_and_weights_make_the_score() {
    let pass = check(contains("a", false), false).run(&attempt("a", None));
    let fail = check(contains("b", false), false).run(&attempt("a", None));
    let optional = bakeoff_core::CheckResult { required: false, weight: 3.0, ..fail.clone() };
    assert_eq!(judge(&[pass.clone(), optional.clone()]).status, Status::Passed);
    assert_eq!(judge(&[pass.clone(), optional]).score, 0.25);
    assert_eq!(judge(&[pass, fail]).status, Status::Failed);
    assert_eq!(judge(&[]).score, 1.0);
}

#[test]
fn a_bad_pattern_is_an_error() {
    assert!(Kind::regex("(", false).unwrap_err().to_string().contains("regular expression"));
}

#[test]
fn kinds_are_sorted_and_described() {
    assert!(KINDS.is_sorted_by_key(|kind| kind.name));
    assert!(KINDS.iter().all(|kind| kind.about.ends_with('.')));
}

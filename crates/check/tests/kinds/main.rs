//! Every kind of check: passing, failing, negated and inconclusive.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod behaviour;
mod hostile;
mod incomplete;
mod judging;
mod processes;
mod structure;
mod text;

use bakeoff_check::{Check, CheckKind, Error, KINDS, KindInfo, combine_results};
use bakeoff_core::{Attempt, CheckResult, Status, ToolUse};
use serde_json::{Map, Value};

/// Builds the kind that these lines of TOML describe.
fn build_kind(lines: &str) -> Result<CheckKind, Error> {
    let table: toml::Table = lines.parse().unwrap_or_else(|error| panic!("{lines}: {error}"));
    let Value::Object(mut parameters) = serde_json::to_value(table).unwrap() else { panic!() };
    let name = parameters["kind"].as_str().unwrap().to_owned();
    let info = KindInfo::find(&name).unwrap_or_else(|| panic!("no kind {name}"));
    parameters.retain(|key, _| key != "kind" && key != "negate");
    for key in parameters.keys() {
        assert!(info.all_parameters().any(|known| known.name == key), "{name} has no {key}");
    }
    CheckKind::build(&name, &parameters)
}

fn check(lines: &str, negate: bool) -> Check {
    let kind = build_kind(lines).unwrap_or_else(|error| panic!("{lines}: {error}"));
    Check { id: "the check".to_owned(), kind, negate, required: true, weight: 1.0, min_score: None }
}

fn attempt_with(output: &str) -> Attempt {
    Attempt { output: output.to_owned(), ..Attempt::default() }
}

fn result(lines: &str, attempt: &Attempt) -> CheckResult {
    check(lines, false).run(attempt).unwrap_or_else(|error| panic!("{lines}: {error}"))
}

/// Returns an attempt with these tool calls.
fn with_tool_calls(calls: &[(&str, Value)]) -> Attempt {
    let tool_uses =
        calls.iter().map(|(name, arguments)| ToolUse::new(*name, arguments.clone())).collect();
    Attempt { tool_uses, ..Attempt::default() }
}

/// Asserts that the check passes or fails as expected, the reverse when negated, and that a failure has a
/// message.
#[track_caller]
fn expect(lines: &str, attempt: &Attempt, expected: bool) {
    for negate in [false, true] {
        let result = check(lines, negate).run(attempt);
        let result = result.unwrap_or_else(|error| panic!("{lines}: {error}"));
        assert_eq!(result.passed, expected != negate, "negate {negate}: {lines}\n{attempt:?}");
        assert_eq!(result.message.is_empty(), result.passed, "{lines}\n{}", result.message);
    }
}

#[track_caller]
fn expect_all(rows: &[(&str, &str, bool)]) {
    for (lines, output, expected) in rows {
        expect(lines, &attempt_with(output), *expected);
    }
}

/// Asserts that the check is inconclusive, negated or not.
#[track_caller]
fn expect_inconclusive(lines: &str, attempt: &Attempt, reason: &str) {
    for negate in [false, true] {
        let error = check(lines, negate).run(attempt).expect_err(lines);
        assert!(error.to_string().contains(reason), "{lines}: {error}");
    }
}

/// Asserts that the check cannot be built, and which parameter is at fault.
#[track_caller]
fn expect_error(lines: &str, parameter: &str, reason: &str) {
    let error = build_kind(lines).expect_err(lines);
    assert_eq!(error.parameter, parameter, "{lines}: {error}");
    assert!(error.message.contains(reason), "{lines}: {error}");
}

#[test]
fn result_has_the_check_id_and_the_finding() {
    let lines = "kind = 'contains'\nvalue = 'Paris'";
    let found = result(lines, &attempt_with("It is\nRome."));
    assert_eq!(found.check, "the check");
    assert_eq!(found.message, r#"no "Paris" in "It is\nRome.""#);
    let negated = check(lines, true).run(&attempt_with("Paris")).unwrap();
    assert_eq!(negated.message, r#"unexpected: "Paris" is in "Paris""#);
}

#[test]
fn required_checks_decide_status_and_weights_the_score() {
    let pass = result("kind = 'contains'\nvalue = 'a'", &attempt_with("a"));
    let fail = result("kind = 'contains'\nvalue = 'b'", &attempt_with("a"));
    let optional = CheckResult { required: false, weight: 3.0, ..fail.clone() };
    assert_eq!(combine_results(&[pass.clone(), optional.clone()]).status, Status::Passed);
    assert_eq!(combine_results(&[pass.clone(), optional]).score, 0.25);
    assert_eq!(combine_results(&[pass, fail]).status, Status::Failed);
    assert_eq!(combine_results(&[]).score, 1.0);
}

#[test]
fn score_is_the_weighted_mean_of_the_scores_of_checks() {
    let pass = result("kind = 'contains'\nvalue = 'a'", &attempt_with("a"));
    let graded = |score, weight| CheckResult { score, weight, graded: true, ..pass.clone() };
    let combined = combine_results(&[pass.clone(), graded(0.2, 1.0), graded(0.9, 2.0)]);
    assert_eq!((combined.status, combined.score), (Status::Passed, 0.75));
}

#[test]
fn group_passes_if_one_of_its_checks_does() {
    let group = "kind = 'any'\nchecks = [{kind = 'contains', value = 'Paris'}, {kind = 'is_json', negate = true, id = 'prose'}, {kind = 'similarity', metric = 'token_f1', value = 'b c', min_score = 0.9}]";
    expect_all(&[(group, "Paris", true), (group, "It is Rome.", true), (group, "{}", false)]);
    let failed = result(group, &attempt_with(r#"{"b": 1}"#));
    assert!(failed.message.starts_with("contains: no \"Paris\" in "), "{}", failed.message);
    assert!(failed.message.contains("; prose: unexpected: "), "{}", failed.message);
    assert_eq!((failed.graded, failed.score), (true, 0.5));
    let nested =
        "kind = 'any'\nchecks = [{kind = 'any', checks = [{kind = 'contains', value = 'a'}]}]";
    expect_all(&[(nested, "a", true), (nested, "b", false)]);
}

#[test]
fn group_is_inconclusive_if_a_check_without_a_result_could_pass() {
    let group = "kind = 'any'\nchecks = [{kind = 'finish_reason', value = 'stop'}, {kind = 'contains', value = 'a'}]";
    expect(group, &attempt_with("a"), true);
    expect_inconclusive(group, &attempt_with("b"), "finish reason unknown");
}

#[test]
fn invalid_groups_are_rejected() {
    expect_error("kind = 'any'\nchecks = []", "checks", "missing");
    expect_error("kind = 'any'\nchecks = [{kind = 'x'}]", "checks", "no known `kind`");
    let pattern = "kind = 'any'\nchecks = [{kind = 'regex', value = '('}]";
    expect_error(pattern, "checks", "`regex`: not a regular expression");
}

#[test]
fn kinds_are_sorted_and_described() {
    assert!(KINDS.is_sorted_by_key(|kind| kind.name));
    for kind in KINDS {
        assert!(kind.about.ends_with('.'), "{}", kind.name);
        for parameter in kind.all_parameters() {
            assert!(parameter.about.ends_with('.'), "{} {}", kind.name, parameter.name);
        }
    }
}

#[test]
fn examples_build_after_rendering() {
    for kind in KINDS {
        let lines = kind.example.replace("{{ expected }}", "Paris");
        let lines = lines.replace("{{ country }}", "France");
        assert!(lines.starts_with(&format!("kind = \"{}\"", kind.name)), "{}", kind.name);
        build_kind(&lines).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
    }
}

#[test]
fn parameters_of_wrong_type_do_not_panic() {
    for kind in KINDS {
        for value in [Value::Null, Value::from(-1), Value::from(vec![1]), Value::from("")] {
            let all = kind.all_parameters().map(|known| (known.name.to_owned(), value.clone()));
            let parameters: Map<String, Value> = all.collect();
            let _ = CheckKind::build(kind.name, &parameters);
        }
        let _ = CheckKind::build(kind.name, &Map::new());
    }
    expect_error("kind = 'contains'", "value", "missing");
}

//! Every kind of check: passing, failing, negated, and unable to say.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod behaviour;
mod hostile;
mod incomplete;
mod judged;
mod processes;
mod structure;
mod text;

use bakeoff_check::{Check, Error, KINDS, Kind, KindInfo, judge};
use bakeoff_core::{Attempt, CheckResult, Status, ToolUse};
use serde_json::{Map, Value};

/// The kind that these lines of TOML describe.
fn built(lines: &str) -> Result<Kind, Error> {
    let table: toml::Table = lines.parse().unwrap_or_else(|error| panic!("{lines}: {error}"));
    let Value::Object(mut parameters) = serde_json::to_value(table).unwrap() else { panic!() };
    let name = parameters["kind"].as_str().unwrap().to_owned();
    let info = KindInfo::find(&name).unwrap_or_else(|| panic!("no kind {name}"));
    parameters.retain(|key, _| key != "kind" && key != "negate");
    for key in parameters.keys() {
        assert!(info.all_parameters().any(|known| known.name == key), "{name} has no {key}");
    }
    Kind::build(&name, &parameters)
}

fn check(lines: &str, negate: bool) -> Check {
    let kind = built(lines).unwrap_or_else(|error| panic!("{lines}: {error}"));
    Check { id: "the check".to_owned(), kind, negate, required: true, weight: 1.0 }
}

fn said(output: &str) -> Attempt {
    Attempt { output: output.to_owned(), ..Attempt::default() }
}

fn result(lines: &str, attempt: &Attempt) -> CheckResult {
    check(lines, false).run(attempt).unwrap_or_else(|error| panic!("{lines}: {error}"))
}

/// An attempt that used these tools.
fn used(uses: &[(&str, Value)]) -> Attempt {
    let tool_uses = uses
        .iter()
        .map(|(name, arguments)| ToolUse { name: (*name).to_owned(), arguments: arguments.clone() })
        .collect();
    Attempt { tool_uses, ..Attempt::default() }
}

/// Passes or fails as expected, and the other way round when negated; a failure says why.
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
fn table(rows: &[(&str, &str, bool)]) {
    for (lines, output, expected) in rows {
        expect(lines, &said(output), *expected);
    }
}

/// Cannot say, negated or not.
#[track_caller]
fn unable(lines: &str, attempt: &Attempt, reason: &str) {
    for negate in [false, true] {
        let error = check(lines, negate).run(attempt).expect_err(lines);
        assert!(error.to_string().contains(reason), "{lines}: {error}");
    }
}

/// Cannot be made, and which parameter is to blame.
#[track_caller]
fn refused(lines: &str, parameter: &str, reason: &str) {
    let error = built(lines).expect_err(lines);
    assert_eq!(error.parameter, parameter, "{lines}: {error}");
    assert!(error.message.contains(reason), "{lines}: {error}");
}

#[test]
fn results_name_the_check_and_say_what_was_found() {
    let lines = "kind = 'contains'\nvalue = 'Paris'";
    let found = result(lines, &said("It is\nRome."));
    assert_eq!(found.check, "the check");
    assert_eq!(found.message, r#"no "Paris" in "It is\nRome.""#);
    let unwanted = check(lines, true).run(&said("Paris")).unwrap();
    assert_eq!(unwanted.message, r#"not wanted: "Paris" is in "Paris""#);
}

#[test]
fn only_required_checks_decide_and_weights_make_the_score() {
    let pass = result("kind = 'contains'\nvalue = 'a'", &said("a"));
    let fail = result("kind = 'contains'\nvalue = 'b'", &said("a"));
    let optional = CheckResult { required: false, weight: 3.0, ..fail.clone() };
    assert_eq!(judge(&[pass.clone(), optional.clone()]).status, Status::Passed);
    assert_eq!(judge(&[pass.clone(), optional]).score, 0.25);
    assert_eq!(judge(&[pass, fail]).status, Status::Failed);
    assert_eq!(judge(&[]).score, 1.0);
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
fn every_example_can_be_made_once_its_templates_are_filled_in() {
    for kind in KINDS {
        let lines = kind.example.replace("{{ expected }}", "Paris");
        let lines = lines.replace("{{ country }}", "France");
        assert!(lines.starts_with(&format!("kind = \"{}\"", kind.name)), "{}", kind.name);
        built(&lines).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
    }
}

#[test]
fn what_has_not_the_type_that_it_should_have_is_an_error_and_no_panic() {
    for kind in KINDS {
        for value in [Value::Null, Value::from(-1), Value::from(vec![1]), Value::from("")] {
            let all = kind.all_parameters().map(|known| (known.name.to_owned(), value.clone()));
            let parameters: Map<String, Value> = all.collect();
            let _ = Kind::build(kind.name, &parameters);
        }
        let _ = Kind::build(kind.name, &Map::new());
    }
    refused("kind = 'contains'", "value", "missing");
}

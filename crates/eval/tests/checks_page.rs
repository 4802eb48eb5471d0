//! The examples in `docs/checks.md`, loaded as suites and checked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_check::KINDS;
use bakeoff_core::{Attempt, Redactor, Status, TrialKey};
use bakeoff_eval::{CheckRunner, PythonWorkers};
use bakeoff_llm::{Client, ClientConfig};
use bakeoff_suite::Suite;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checks.md");
    std::fs::read_to_string(path).unwrap()
}

/// A fenced block: its info string and its text.
struct Block {
    info: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, Some(info)) => {
                open = Some(Block { info: info.to_owned(), text: String::new() });
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Returns a suite with the case of the page and a target that fits the check.
fn suite_of(check: &str) -> String {
    let for_programs = KINDS
        .iter()
        .any(|kind| kind.for_programs && check.contains(&format!("kind = \"{}\"\n", kind.name)));
    let target = if for_programs { "command = [\"true\"]" } else { "model = \"sim/echo\"" };
    format!(
        "[[target]]\nname = \"one\"\nprompt = \"x\"\n{target}\n[[cases.inline]]\nid = \"fr\"\n\
         country = \"France\"\nexpected = \"Paris\"\ntags = [\"europe\"]\n{check}"
    )
}

/// Returns an attempt with the fields that the page shows.
fn attempt(shown: &str) -> Attempt {
    let mut whole = serde_json::to_value(Attempt::default()).unwrap();
    let Ok(Value::Object(parts)) = serde_json::from_str(shown) else { panic!("{shown}") };
    for (key, value) in parts {
        whole[key] = value;
    }
    serde_json::from_value(whole).unwrap_or_else(|error| panic!("{shown}: {error}"))
}

fn load(folder: &Path, suite: &str) -> Suite {
    std::fs::write(folder.join("bakeoff.toml"), suite).unwrap();
    let environment = |name: &str| std::env::var(name).ok();
    Suite::load(folder, &environment).unwrap_or_else(|error| panic!("{suite}\n{error}"))
}

async fn status(suite: &Suite, attempt: Attempt) -> (Status, Value) {
    let client = Client::new(
        ClientConfig::default().simulated_models([bakeoff_check::judge::simulated_judge()]),
    );
    let python = PythonWorkers::new(suite);
    let redactor = Redactor::default();
    let runner = CheckRunner::new(suite, &client, &python, &redactor);
    let case = suite.cases.iter().next().unwrap().unwrap();
    let target = &suite.targets[0];
    let key = TrialKey { target: target.name.clone(), case: case.id.clone(), trial: 1 };
    let result = runner.run_checks(target, &case, key, attempt).await;
    (result.status, json!([result.checks, result.attempt.error]))
}

#[tokio::test]
async fn examples_pass_and_fail_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&page());
    for block in &blocks {
        if let Some(name) = block.info.strip_prefix("python ") {
            std::fs::write(folder.path().join(name), &block.text).unwrap();
        }
    }
    let mut suite = None;
    let mut shown = BTreeSet::new();
    for block in &blocks {
        let expected = match block.info.as_str() {
            "toml" if block.text.contains("[[target]]") => {
                load(folder.path(), &block.text);
                continue;
            }
            "toml" => {
                suite = Some((load(folder.path(), &suite_of(&block.text)), &block.text));
                continue;
            }
            "json passes" => Status::Passed,
            "json fails" => Status::Failed,
            _ => continue,
        };
        let (suite, check) = suite.as_ref().unwrap();
        let (found, why) = status(suite, attempt(&block.text)).await;
        assert_eq!(found, expected, "{check}\n{}\n{why}", block.text);
        shown.insert((check.as_str(), block.info.as_str()));
    }
    for kind in KINDS {
        let check = format!("[[check]]\n{}\n", kind.example);
        for info in ["json passes", "json fails"] {
            assert!(shown.contains(&(check.as_str(), info)), "{} {info} is not shown", kind.name);
        }
    }
}

#[test]
fn all_kinds_and_parameters_are_documented() {
    let page = page();
    for kind in KINDS {
        let heading = format!("\n### `{}`\n", kind.name);
        let section = page.split(&heading).nth(1).unwrap_or_else(|| panic!("no {}", kind.name));
        let section = section.split("\n### ").next().unwrap().split_whitespace();
        let section = section.collect::<Vec<_>>().join(" ");
        assert!(section.contains(kind.about), "{}: {section}", kind.name);
        for parameter in kind.parameters {
            let about = parameter.about.trim_end_matches('.');
            let row = format!("| `{}`", parameter.name);
            assert!(section.contains(&row), "{} {}", kind.name, parameter.name);
            assert!(section.contains(about), "{} {}", kind.name, parameter.name);
        }
    }
    let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in bakeoff_check::REFUSALS {
        assert!(flat.contains(&format!("*{words}*")), "{words}");
    }
}

//! Incomplete evidence: only findings that the missing part cannot change are conclusive.

use crate::{expect, expect_inconclusive, with_tool_calls};
use bakeoff_core::{Attempt, FinishReason, WorkspaceFile};
use serde_json::{Value, json};

fn truncated(output: &str) -> Attempt {
    Attempt { output: output.to_owned(), dropped_output_bytes: 100, ..Attempt::default() }
}

#[test]
fn finding_that_the_missing_output_could_change_is_inconclusive() {
    let attempt = truncated("It is Paris");
    let reason = "only the first 11 of 111 bytes of output were kept";
    for lines in [
        "kind = 'contains'\nvalue = 'Rome'",
        "kind = 'contains_all'\nvalues = ['Paris', 'Rome']",
        "kind = 'contains_any'\nvalues = ['Oslo', 'Rome']",
        "kind = 'equals'\nvalue = 'It is Paris'",
        "kind = 'equals'\nvalue = 'Rome'",
        "kind = 'regex'\nvalue = 'Rome'",
        "kind = 'regex'\nvalue = 'Paris$'",
        "kind = 'regex'\nvalue = 'Paris\\b'",
        "kind = 'starts_with'\nvalue = 'It is Paris, I think'",
        "kind = 'ends_with'\nvalue = 'Paris'",
        "kind = 'length'\nmax = 20",
        "kind = 'word_count'\nmin = 2",
        "kind = 'levenshtein'\nvalue = 'It is Paris'\nmax = 1",
        "kind = 'similarity'\nvalue = 'It is Paris'\nmetric = 'token_f1'\nmin = 0.5",
        "kind = 'is_json'",
        "kind = 'is_xml'",
        "kind = 'is_yaml'",
        "kind = 'json_schema'\nschema = {}",
        "kind = 'json_path'\npath = '$'",
        "kind = 'contains_json'",
        "kind = 'is_refusal'",
        "kind = 'contains'\nvalue = 'x'\nextract = 'code_block'",
        "kind = 'contains'\nvalue = 'x'\nextract = 'json'",
        "kind = 'trigger_expectation'\npattern = 'Rome'",
        "kind = 'trigger_expectation'\npattern = 'Rome'\nexpected = false",
    ] {
        expect_inconclusive(lines, &attempt, reason);
    }
    // A number or a list may continue.
    expect_inconclusive("kind = 'is_json'", &truncated("12"), "only the first 2 of");
    expect_inconclusive("kind = 'is_yaml'", &truncated("- a"), "only the first 3 of");
    let block = "kind = 'contains'\nvalue = 'x'\nextract = 'code_block'";
    expect_inconclusive(block, &truncated("```\nx"), "only the first");
    let json = "kind = 'contains'\nvalue = '1'\nextract = 'json'";
    expect_inconclusive(json, &truncated("[{\"a\": 1}"), "only the first");
    expect_inconclusive("kind = 'contains_json'", &truncated("[{\"a\": 1}"), "only the first");
}

#[test]
fn finding_that_the_missing_output_cannot_change_is_conclusive() {
    let attempt = truncated("It is Paris.");
    for (lines, expected) in [
        ("kind = 'contains'\nvalue = 'Paris'", true),
        ("kind = 'contains_any'\nvalues = ['Rome', 'Paris']", true),
        ("kind = 'contains_all'\nvalues = ['It', 'Paris']", true),
        ("kind = 'regex'\nvalue = 'Par.s'", true),
        ("kind = 'regex'\nvalue = 'It.*'", true),
        ("kind = 'starts_with'\nvalue = 'It is'", true),
        ("kind = 'starts_with'\nvalue = 'Rome'", false),
        ("kind = 'trigger_expectation'\npattern = 'Paris'", true),
        ("kind = 'trigger_expectation'\npattern = 'Paris'\nexpected = false", false),
        ("kind = 'exit_code'", false),
        ("kind = 'latency'\nmax_ms = 5", true),
    ] {
        expect(lines, &attempt, expected);
    }
    let block = "kind = 'equals'\nvalue = 'x'\nextract = 'code_block'";
    expect(block, &truncated("```\nx\n```\nand"), true);
    expect(block, &truncated("```\ny\n```\nand"), false);
    let json = "kind = 'json_path'\npath = '$.a'\nequals = 1\nextract = 'json'";
    expect(json, &truncated("{so} {\"a\": 1} and"), true);
    expect(json, &truncated("{\"a\": 2} and"), false);
    expect("kind = 'contains_json'", &truncated("{so} {\"a\": 1} and"), true);
    expect("kind = 'is_refusal'", &truncated(&format!("I can't help. {}", "x".repeat(400))), true);
    expect("kind = 'is_refusal'", &truncated(&"x".repeat(400)), false);
    let filtered = Attempt { finish: Some(FinishReason::ContentFilter), ..truncated("") };
    expect("kind = 'is_refusal'", &filtered, true);
}

#[test]
fn unlisted_files_make_absence_inconclusive() {
    let file = WorkspaceFile { bytes: 1, text: Some("x".to_owned()) };
    let files = Some([("a.txt".to_owned(), file)].into());
    let attempt = Attempt { files, unlisted_files: 3, ..Attempt::default() };
    expect("kind = 'file_exists'\npath = 'a.txt'", &attempt, true);
    expect("kind = 'file_contains'\npath = 'a.txt'\nvalue = 'x'", &attempt, true);
    expect("kind = 'file_contains'\npath = 'a.txt'\nvalue = 'y'", &attempt, false);
    let reason = "only 1 of 4 files are listed";
    expect_inconclusive("kind = 'file_exists'\npath = 'b.txt'", &attempt, reason);
    expect_inconclusive("kind = 'file_contains'\npath = 'b.txt'\nvalue = 'x'", &attempt, reason);
}

#[test]
fn dropped_tool_calls_make_absence_inconclusive() {
    let attempt = Attempt {
        dropped_tool_uses: 2,
        ..with_tool_calls(&[("bash", json!({"command": "make"})), ("read", json!({"path": "a"}))])
    };
    for (lines, expected) in [
        ("kind = 'command_contains'\nvalue = 'make'", true),
        ("kind = 'max_command_count'\nlimit = 0", false),
        ("kind = 'trigger_expectation'\npattern = 'make'", true),
        ("kind = 'tool_called'\nname = 'read'", true),
        ("kind = 'tool_order'\nnames = ['bash', 'read']", true),
    ] {
        expect(lines, &attempt, expected);
    }
    for lines in [
        "kind = 'command_contains'\nvalue = 'cargo'",
        "kind = 'max_command_count'\nlimit = 1",
        "kind = 'trigger_expectation'\npattern = 'cargo'",
        "kind = 'trigger_expectation'\npattern = 'cargo'\nexpected = false",
        "kind = 'tool_called'\nname = 'write'",
        "kind = 'tool_called'\nname = 'read'\nargs = { path = 'b' }",
        "kind = 'tool_order'\nnames = ['read', 'bash']",
    ] {
        expect_inconclusive(lines, &attempt, "2 tool calls were not kept");
    }
}

#[test]
fn dropped_arguments_make_absence_inconclusive() {
    let attempt = Attempt {
        dropped_tool_arguments: 1,
        ..with_tool_calls(&[
            ("bash", json!({"command": "make"})),
            ("bash", Value::Null),
            ("read", json!({})),
        ])
    };
    for (lines, expected) in [
        ("kind = 'command_contains'\nvalue = 'make'", true),
        ("kind = 'max_command_count'\nlimit = 2", true),
        ("kind = 'max_command_count'\nlimit = 1", false),
        ("kind = 'tool_called'\nname = 'bash'", true),
        ("kind = 'tool_called'\nname = 'write'", false),
        ("kind = 'tool_called'\nname = 'read'\nargs = { path = 'b' }", false),
        ("kind = 'tool_order'\nnames = ['read', 'bash']", false),
    ] {
        expect(lines, &attempt, expected);
    }
    for lines in [
        "kind = 'command_contains'\nvalue = 'null'",
        "kind = 'trigger_expectation'\npattern = 'null'",
        "kind = 'tool_called'\nname = 'bash'\nargs = { command = 'cargo' }",
    ] {
        expect_inconclusive(lines, &attempt, "the arguments of 1 tool calls were not kept");
    }
}

#[test]
fn truncated_transcript_makes_absence_inconclusive() {
    let transcript = Some("make".to_owned());
    let attempt = Attempt { transcript, dropped_transcript_bytes: 6, ..Attempt::default() };
    expect("kind = 'trigger_expectation'\npattern = 'make'", &attempt, true);
    let reason = "only the first 4 of 10 bytes of transcript were kept";
    expect_inconclusive(
        "kind = 'trigger_expectation'\npattern = 'cargo'\nexpected = false",
        &attempt,
        reason,
    );
    // The answer itself is complete.
    expect("kind = 'equals'\nvalue = 'x'", &attempt, false);
}

//! Evidence of which a part is missing: what it cannot change is said, the rest is not.

use crate::{expect, unable, used};
use bakeoff_core::{Attempt, FinishReason, LeftFile};
use serde_json::{Value, json};

fn cut(output: &str) -> Attempt {
    Attempt { output: output.to_owned(), dropped_output_bytes: 100, ..Attempt::default() }
}

#[test]
fn what_the_rest_of_an_output_could_change_is_not_said() {
    let attempt = cut("It is Paris");
    let reason = "of 111 bytes of output only the first 11 were kept";
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
        unable(lines, &attempt, reason);
    }
    // A number or a list may go on.
    unable("kind = 'is_json'", &cut("12"), "only the first 2 were kept");
    unable("kind = 'is_yaml'", &cut("- a"), "only the first 3 were kept");
    let block = "kind = 'contains'\nvalue = 'x'\nextract = 'code_block'";
    unable(block, &cut("```\nx"), "only the first");
    let json = "kind = 'contains'\nvalue = '1'\nextract = 'json'";
    unable(json, &cut("[{\"a\": 1}"), "only the first");
    unable("kind = 'contains_json'", &cut("[{\"a\": 1}"), "only the first");
}

#[test]
fn what_the_rest_of_an_output_cannot_change_is_said() {
    let attempt = cut("It is Paris.");
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
    expect(block, &cut("```\nx\n```\nand"), true);
    expect(block, &cut("```\ny\n```\nand"), false);
    let json = "kind = 'json_path'\npath = '$.a'\nequals = 1\nextract = 'json'";
    expect(json, &cut("{so} {\"a\": 1} and"), true);
    expect(json, &cut("{\"a\": 2} and"), false);
    expect("kind = 'contains_json'", &cut("{so} {\"a\": 1} and"), true);
    expect("kind = 'is_refusal'", &cut(&format!("I can't help. {}", "x".repeat(400))), true);
    expect("kind = 'is_refusal'", &cut(&"x".repeat(400)), false);
    let filtered = Attempt { finish: Some(FinishReason::ContentFilter), ..cut("") };
    expect("kind = 'is_refusal'", &filtered, true);
}

#[test]
fn files_that_are_not_listed() {
    let file = LeftFile { bytes: 1, text: Some("x".to_owned()) };
    let files = Some([("a.txt".to_owned(), file)].into());
    let attempt = Attempt { files, unlisted_files: 3, ..Attempt::default() };
    expect("kind = 'file_exists'\npath = 'a.txt'", &attempt, true);
    expect("kind = 'file_contains'\npath = 'a.txt'\nvalue = 'x'", &attempt, true);
    expect("kind = 'file_contains'\npath = 'a.txt'\nvalue = 'y'", &attempt, false);
    let reason = "of 4 files only 1 are listed";
    unable("kind = 'file_exists'\npath = 'b.txt'", &attempt, reason);
    unable("kind = 'file_contains'\npath = 'b.txt'\nvalue = 'x'", &attempt, reason);
}

#[test]
fn tools_that_are_not_listed() {
    let attempt = Attempt {
        dropped_tool_uses: 2,
        ..used(&[("bash", json!({"command": "make"})), ("read", json!({"path": "a"}))])
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
        unable(lines, &attempt, "2 uses of tools were not kept");
    }
}

#[test]
fn arguments_that_were_not_kept() {
    let attempt = Attempt {
        dropped_tool_arguments: 1,
        ..used(&[("bash", json!({"command": "make"})), ("bash", Value::Null), ("read", json!({}))])
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
        unable(lines, &attempt, "what 1 of the tools were given was not kept");
    }
}

#[test]
fn a_transcript_of_which_a_part_is_missing() {
    let transcript = Some("make".to_owned());
    let attempt = Attempt { transcript, dropped_transcript_bytes: 6, ..Attempt::default() };
    expect("kind = 'trigger_expectation'\npattern = 'make'", &attempt, true);
    let reason = "of 10 bytes of transcript only the first 4 were kept";
    unable("kind = 'trigger_expectation'\npattern = 'cargo'\nexpected = false", &attempt, reason);
    // The answer itself is all there.
    expect("kind = 'equals'\nvalue = 'x'", &attempt, false);
}

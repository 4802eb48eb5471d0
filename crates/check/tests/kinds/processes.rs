//! Files, exit codes, commands and triggers.

use crate::{expect, expect_error, expect_inconclusive, with_tool_calls};
use bakeoff_core::{Attempt, WorkspaceFile};
use serde_json::json;

fn with_files(files: &[(&str, Option<&str>)]) -> Attempt {
    let file = |text: Option<&str>| WorkspaceFile { bytes: 7, text: text.map(str::to_owned) };
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), file(*text))).collect();
    Attempt { files: Some(files), ..Attempt::default() }
}

#[test]
fn file_checks_match_paths_and_contents() {
    let attempt =
        with_files(&[("out/a.txt", Some("It is Paris")), ("out.bin", None), ("é", Some(""))]);
    for (lines, expected) in [
        ("kind = 'file_exists'\npath = 'out/a.txt'", true),
        ("kind = 'file_exists'\npath = './out//a.txt'", true),
        ("kind = 'file_exists'\npath = 'out'", true),
        ("kind = 'file_exists'\npath = 'out/'", true),
        ("kind = 'file_exists'\npath = 'ou'", false),
        ("kind = 'file_exists'\npath = 'é'", true),
        ("kind = 'file_exists'\npath = 'zz'", false),
        ("kind = 'file_contains'\npath = 'out/a.txt'\nvalue = 'Paris'", true),
        ("kind = 'file_contains'\npath = 'out/a.txt'\nvalue = 'paris'", false),
        ("kind = 'file_contains'\npath = 'out/a.txt'\nvalue = 'paris'\nignore_case = true", true),
        ("kind = 'file_contains'\npath = 'gone.txt'\nvalue = 'x'", false),
    ] {
        expect(lines, &attempt, expected);
    }
    let dropped = "kind = 'file_contains'\npath = 'out.bin'\nvalue = 'x'";
    expect_inconclusive(dropped, &attempt, "the contents of out.bin were not kept");
    for lines in ["kind = 'file_exists'\npath = 'a'", dropped] {
        expect_inconclusive(lines, &Attempt::default(), "files of the workspace unknown");
    }
    for path in ["/etc/passwd", "../x", "a/../../x", "a/.."] {
        expect_error(&format!("kind = 'file_exists'\npath = '{path}'"), "path", "not within");
    }
    expect_error("kind = 'file_exists'\npath = './'", "path", "names no file");
}

#[test]
fn exit_code_is_compared() {
    let exited = |code| Attempt { exit_code: code, ..Attempt::default() };
    expect("kind = 'exit_code'", &exited(Some(0)), true);
    expect("kind = 'exit_code'", &exited(Some(3)), false);
    expect("kind = 'exit_code'\nvalue = 3", &exited(Some(3)), true);
    expect("kind = 'exit_code'\nvalue = -1", &exited(Some(-1)), true);
    expect("kind = 'exit_code'", &exited(None), false);
}

#[test]
fn commands_are_found_in_command_tools() {
    let attempt = with_tool_calls(&[
        ("Bash", json!({"command": "cargo test -p x"})),
        ("local_shell_call", json!({"command": ["bash", "-lc", "ls"]})),
        ("exec", json!({"cmd": "pwd"})),
        ("shell", json!({"script": "echo \"hi\""})),
        ("read_file", json!({"command": "rm -rf /"})),
    ]);
    for (value, expected) in [
        ("cargo test", true),
        ("bash -lc ls", true),
        ("pwd", true),
        ("script", true),
        ("rm -rf", false),
        ("CARGO", false),
    ] {
        expect(&format!("kind = 'command_contains'\nvalue = '{value}'"), &attempt, expected);
        expect(&format!("kind = 'command_contains'\npattern = '{value}'"), &attempt, expected);
    }
    expect("kind = 'max_command_count'\nlimit = 4", &attempt, true);
    expect("kind = 'max_command_count'\nlimit = 3", &attempt, false);
    expect("kind = 'max_command_count'\nlimit = 0", &Attempt::default(), true);
    expect_error("kind = 'command_contains'", "kind", "needs `value` or `pattern`");
    expect_error("kind = 'command_contains'\nvalue = 'a'\npattern = 'a'", "pattern", "not both");
}

#[test]
fn trigger_is_searched_after_the_preamble() {
    let attempt = Attempt {
        output: "I used the skill.".to_owned(),
        transcript: Some(
            "{\"type\": \"system\", \"skills\": [\"pdf\", \"unused\"]}\n\
             {\"type\":\"init\",\"tools\":\"unused too\"}\n\
             {\"type\":\"assistant\",\"text\":\"reading skills\"}\n\
             {\"type\":\"system\",\"text\":\"compacted\"}\n"
                .to_owned(),
        ),
        ..with_tool_calls(&[(
            "Skill",
            json!({"path": "a \"quoted\" path", "deep": [{"x": "line\nbreak"}]}),
        )])
    };
    for (pattern, occurs) in [
        ("the skill", true),
        ("Skill", true),
        ("a \\\"quoted\\\" path", true),
        ("line\\nbreak", true),
        ("reading skills", true),
        ("compacted", true),
        ("unused", false),
        ("pdf", false),
    ] {
        let lines = format!("kind = 'trigger_expectation'\npattern = \"{pattern}\"");
        expect(&lines, &attempt, occurs);
        expect(&format!("{lines}\nexpected = true"), &attempt, occurs);
        expect(&format!("{lines}\nexpected = false"), &attempt, !occurs);
    }
}

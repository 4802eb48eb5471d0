//! Files and commands.

use crate::{expect, refused, unable, used};
use bakeoff_core::{Attempt, LeftFile};
use serde_json::json;

fn left(files: &[(&str, Option<&str>)]) -> Attempt {
    let file = |text: Option<&str>| LeftFile { bytes: 7, text: text.map(str::to_owned) };
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), file(*text))).collect();
    Attempt { files: Some(files), ..Attempt::default() }
}

#[test]
fn files() {
    let work = left(&[("out/a.txt", Some("It is Paris")), ("out.bin", None), ("é", Some(""))]);
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
        expect(lines, &work, expected);
    }
    let unkept = "kind = 'file_contains'\npath = 'out.bin'\nvalue = 'x'";
    unable(unkept, &work, "the contents of out.bin were not kept");
    for lines in ["kind = 'file_exists'\npath = 'a'", unkept] {
        unable(lines, &Attempt::default(), "nobody has looked");
    }
    for path in ["/etc/passwd", "../x", "a/../../x", "a/.."] {
        refused(&format!("kind = 'file_exists'\npath = '{path}'"), "path", "not within");
    }
    refused("kind = 'file_exists'\npath = './'", "path", "names no file");
}

#[test]
fn exit_codes() {
    let ended = |code| Attempt { exit_code: code, ..Attempt::default() };
    expect("kind = 'exit_code'", &ended(Some(0)), true);
    expect("kind = 'exit_code'", &ended(Some(3)), false);
    expect("kind = 'exit_code'\nvalue = 3", &ended(Some(3)), true);
    expect("kind = 'exit_code'\nvalue = -1", &ended(Some(-1)), true);
    expect("kind = 'exit_code'", &ended(None), false);
}

#[test]
fn commands() {
    let work = used(&[
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
        expect(&format!("kind = 'command_contains'\nvalue = '{value}'"), &work, expected);
        expect(&format!("kind = 'command_contains'\npattern = '{value}'"), &work, expected);
    }
    expect("kind = 'max_command_count'\nlimit = 4", &work, true);
    expect("kind = 'max_command_count'\nlimit = 3", &work, false);
    expect("kind = 'max_command_count'\nlimit = 0", &Attempt::default(), true);
    refused("kind = 'command_contains'", "kind", "needs `value` or `pattern`");
    refused("kind = 'command_contains'\nvalue = 'a'\npattern = 'a'", "pattern", "not both");
}

#[test]
fn triggers() {
    let work = Attempt {
        output: "I used the skill.".to_owned(),
        transcript: Some(
            "{\"type\": \"system\", \"skills\": [\"pdf\", \"unused\"]}\n\
             {\"type\":\"init\",\"tools\":\"unused too\"}\n\
             {\"type\":\"assistant\",\"text\":\"reading skills\"}\n\
             {\"type\":\"system\",\"text\":\"compacted\"}\n"
                .to_owned(),
        ),
        ..used(&[("Skill", json!({"path": "a \"quoted\" path", "deep": [{"x": "line\nbreak"}]}))])
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
        expect(&lines, &work, occurs);
        expect(&format!("{lines}\nexpected = true"), &work, occurs);
        expect(&format!("{lines}\nexpected = false"), &work, !occurs);
    }
}

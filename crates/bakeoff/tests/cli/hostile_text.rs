//! Control characters and bidirectional marks from outside do not reach the reader.

use crate::support::{CommandOutput, TestDir};
use std::io::{Read, Write};
use std::net::TcpListener;

/// Sets the title of a terminal, clears it (C1), and reverses the text that follows.
const HOSTILE: &str = "\u{1b}]0;title\u{7}\u{9b}2J\u{202e}gpj.exe";

#[track_caller]
fn assert_printable(name: &str, text: &str) {
    let hostile = |letter: &char| {
        (letter.is_control() && !['\n', '\t'].contains(letter)) || *letter == '\u{202e}'
    };
    let found: Vec<char> = text.chars().filter(hostile).collect();
    assert!(found.is_empty(), "{name} contains {found:?}: {text:?}");
}

#[track_caller]
fn assert_output_printable(output: &CommandOutput) {
    assert_printable("standard output", &output.stdout);
    assert_printable("standard error", &output.stderr);
    assert!(output.transcript().contains("gpj.exe"), "{}", output.transcript());
}

/// Returns a suite with a case whose id and field have a hostile name.
fn dir(prompt: &str) -> TestDir {
    let suite = format!(
        "[suite]\nname = \"hostile\"\n[cases]\nfile = \"cases.jsonl\"\n[[check]]\nkind = \"equals\"\nvalue = \"no\"\n\
         [[target]]\nname = \"t\"\nmodel = \"sim/echo\"\nprompt = \"{prompt}\"\n"
    );
    let case = serde_json::json!({ "id": HOSTILE, HOSTILE: "x", "q": HOSTILE });
    TestDir::with_suite(&suite).write("cases.jsonl", format!("{case}\n"))
}

#[test]
fn errors_are_printable() {
    let dir = dir("{{ gone }}");
    let checked = dir.run(&["check"]);
    assert_eq!(checked.code, 2, "{}", checked.transcript());
    assert_output_printable(&checked);
    for words in [
        &["race", "Hi", "--model", "sim/a", "--judge", &format!("{HOSTILE}/a")][..],
        &["run", "--target", HOSTILE],
    ] {
        let output = dir.run(words);
        assert_ne!(output.code, 0, "{}", output.transcript());
        assert_output_printable(&output);
    }
}

#[test]
fn results_are_printable() {
    let dir = dir("{{ q }}");
    let run = dir.run(&["run", "--markdown", "page.md", "--junit", "junit.xml"]);
    assert_eq!(run.code, 1, "{}", run.transcript());
    assert_output_printable(&run);
    assert_output_printable(&dir.run(&["show", "last", HOSTILE]));
    for file in ["page.md", "junit.xml"] {
        let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
        assert!(text.contains("gpj.exe"), "{text}");
        assert_printable(file, &text);
    }
}

/// Starts a server that rejects each request with this message.
fn start_rejecting_server(message: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let body = serde_json::json!({ "error": { "message": message } }).to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // The head and the short body of a request fit into one read.
            let _ = stream.read(&mut [0; 65_536]);
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
                 connection: close\r\n\r\n{body}"
            );
        }
    });
    format!("http://{address}/v1")
}

#[test]
fn failure_of_a_race_is_printable() {
    let provider = start_rejecting_server(HOSTILE);
    let suite =
        format!("[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{provider}\"\n");
    let dir = TestDir::with_suite(&suite);
    let raced = dir.run(&["race", "Hi", "--model", "m", "--suite", ".", "--strategy", "first"]);
    assert_ne!(raced.code, 0, "{}", raced.transcript());
    assert_output_printable(&raced);
}

//! API keys never reach files, output or logs.

use crate::support::TestDir;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

const KEY: &str = "sk-marked-key-0123456789abcdef";
const TOKEN: &str = "team-token-marked-0123456789";
const LITERAL: &str = "literal-token-marked-0123456789";

/// Starts a server that repeats the keys of every request, in an error if the prompt asks for one, else in
/// the response.
fn start_echoing_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let _ = respond(stream.unwrap());
            });
        }
    });
    format!("http://{address}/v1")
}

fn respond(stream: TcpStream) -> std::io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        // The keys must have been sent.
        assert!(head.contains(KEY) && head.contains(TOKEN), "{head}");
        let wants_error = String::from_utf8_lossy(&body).contains("error please");
        let (status, json) = if wants_error {
            (
                "401 Unauthorized",
                serde_json::json!({"error": {"message": format!("Incorrect API key provided: {KEY}. {head}"), "code": "invalid_api_key"}}),
            )
        } else {
            (
                "200 OK",
                serde_json::json!({
                    "id": "x", "object": "chat.completion", "model": "m",
                    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": head}}],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1},
                }),
            )
        };
        let json = json.to_string();
        write!(
            writer,
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nx-echo: {KEY}\r\n\r\n{json}",
            json.len()
        )?;
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn no_output_or_file_contains_a_key() {
    let base_url = start_echoing_server();
    let dir = TestDir::with_suite(&format!(
        r#"
[models.m]
provider = "openai"
model = "m"
base_url = "{base_url}"
headers = {{ x-team = "$TEAM_TOKEN", x-access-token = "Bearer {LITERAL}" }}
query = {{ token = "$TEAM_TOKEN" }}
[[target]]
name = "model"
model = "m"
prompt = "{{{{ say }}}}"
[[target]]
name = "program"
command = ["sh", "-c", "env; env >&2"]
prompt = ""
[cases]
inline = [{{ id = "fine", say = "hello" }}, {{ id = "bad", say = "error please" }}]
[[check]]
kind = "contains"
value = "[redacted]"
"#
    ));
    let mut printed = Vec::new();
    for arguments in [&["run"][..], &["run", "--json"], &["check"], &["list"], &["cache", "stats"]]
    {
        let mut command = dir.command(arguments);
        let output = command.env("OPENAI_API_KEY", KEY).env("TEAM_TOKEN", TOKEN).output().unwrap();
        printed.extend(output.stdout);
        printed.extend(output.stderr);
    }
    let printed = String::from_utf8(printed).unwrap();
    assert!(printed.contains("[redacted]"), "the keys came back and were taken out:\n{printed}");
    for secret in [KEY, TOKEN, LITERAL] {
        assert!(!printed.contains(secret), "printed:\n{printed}");
        for path in files(dir.path()) {
            // The suite itself contains this one.
            if secret == LITERAL && path.ends_with("bakeoff.toml") {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds a key", path.display());
        }
    }
}

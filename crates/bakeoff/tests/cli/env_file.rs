//! The file `.env` next to the suite.

use crate::services::{Request, Server};
use crate::support::TestDir;
use serde_json::json;
use std::path::{Path, PathBuf};

const TASK: &str = "instructions = \"Classify.\"\n[output.label]\ntype = \"string\"\n";
const KEY: &str = "sk-key-of-the-file-0123456789";

/// Starts a server that repeats the key of each request.
fn start_server() -> Server {
    Server::start(|_, request| {
        let key = request.header("authorization").unwrap_or_default();
        let body = json!({
            "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": key}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        });
        (200, "content-type: application/json\r\n", body.to_string())
    })
}

fn suite(server: &Server) -> String {
    format!(
        r#"
[suite]
judge = "m"
[models.m]
provider = "openai"
model = "m"
base_url = "{}"
api_key_env = "MY_KEY"
headers = {{ x-team = "$TEAM" }}
[[target]]
name = "model"
model = "m"
prompt = "Hello"
[cases]
inline = [{{ id = "a" }}]
[[check]]
kind = "contains"
value = "[redacted]"
"#,
        server.origin()
    )
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn variables_of_the_file_are_sent_and_redacted() {
    let server = start_server();
    let dir = TestDir::with_suite(&suite(&server))
        .write(".env", format!("# keys\nexport MY_KEY=\"{KEY}\"\nTEAM=blue\n"));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let requests = server.requests();
    let header =
        |name: &str| requests.iter().map(|request| request.header(name)).collect::<Vec<_>>();
    assert_eq!(header("authorization"), [Some(format!("Bearer {KEY}").as_str())]);
    assert_eq!(header("x-team"), [Some("blue")]);
    assert!(!output.transcript().contains(KEY), "{}", output.transcript());
    for path in files(dir.path()).iter().filter(|path| !path.ends_with(".env")) {
        let bytes = std::fs::read(path).unwrap();
        let has_key = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!has_key, "{} has the key", path.display());
    }
}

#[test]
fn environment_replaces_variables_of_the_file() {
    let server = start_server();
    let dir = TestDir::with_suite(&suite(&server)).write(".env", "MY_KEY=of-the-file\nTEAM=blue\n");
    let output = dir.command(&["run"]).env("MY_KEY", "of-the-environment").output().unwrap();
    assert!(output.status.success());
    let sent: Vec<Request> = server.requests();
    assert_eq!(sent[0].header("authorization"), Some("Bearer of-the-environment"));
}

#[test]
fn all_commands_with_a_suite_use_the_file() {
    let server = start_server();
    let judged = "[[check]]\nkind = \"rubric\"\ncriteria = [{ id = \"c\", text = \"Fine.\" }]\n";
    let dir = TestDir::new()
        .with("project/bakeoff.toml", suite(&server))
        .with("project/.env", "MY_KEY=key-of-the-file\nTEAM=blue\n")
        .with("judged/bakeoff.toml", suite(&server) + judged)
        .with("judged/.env", "MY_KEY=key-of-the-file\nTEAM=blue\n")
        .write("rows.jsonl", "{\"text\": \"one\"}\n")
        .write("task.toml", TASK);
    let check = dir.run(&["check", "project"]);
    assert_eq!((check.code, check.stderr.as_str()), (0, ""));
    assert_eq!(dir.run(&["run", "project"]).code, 0);
    dir.run(&["score", "last", "--suite", "judged"]);
    let race = ["race", "Hi", "--suite", "project", "--model", "m", "--strategy", "verifier"];
    let verify = ["--verify", "test $MY_KEY = key-of-the-file"];
    let race = dir.run(&[&race[..], &verify].concat());
    assert_eq!(race.code, 0, "{}", race.transcript());
    let map = ["map", "rows.jsonl", "--task", "task.toml", "--model", "m", "--out", "out.jsonl"];
    let map = dir.run(&[&map[..], &["--suite", "project"]].concat());
    assert_eq!(map.code, 3, "{}", map.transcript());
    let requests = server.requests();
    assert!(requests.len() >= 4, "{requests:?}");
    for request in requests {
        assert_eq!(request.header("authorization"), Some("Bearer key-of-the-file"));
    }
}

#[test]
fn programs_and_checks_receive_the_variables() {
    let dir = TestDir::with_suite(
        r#"
[[target]]
name = "program"
command = ["sh", "-c", "test \"$TOKEN\" = 'two words' && echo $OTHER $TOKEN"]
prompt = ""
[[target]]
name = "worker"
protocol = "jsonl"
command = ["python3", "-c", "import json, os\nwhile True:\n id = json.loads(input())['id']\n print(json.dumps({'id': id, 'output': os.environ['OTHER'] + os.environ['TOKEN'][:0]}), flush=True)"]
prompt = ""
[cases]
inline = [{ id = "a" }]
[[check]]
kind = "contains"
value = "o"
[[check]]
kind = "python"
expression = "__import__('os').environ['TOKEN'] == 'two words'"
[[check]]
kind = "program"
command = ["sh", "-c", "test \"$TOKEN\" = 'two words' && echo '{\"passed\": true}'"]
"#,
    )
    .write(".env", "TOKEN='two words'\nOTHER=o\n");
    let output = dir.command(&["run"]).env("OTHER", "own").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let outputs: Vec<_> =
        dir.trials().iter().map(|trial| trial["attempt"]["output"].clone()).collect();
    assert_eq!(outputs, ["own [redacted]\n", "own"], "the environment has precedence");
}

#[test]
fn malformed_line_is_an_error_with_its_position() {
    let dir = TestDir::with_suite(
        "[[target]]\nname = \"t\"\nmodel = \"sim/echo\"\nprompt = \"p\"\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"contains\"\nvalue = \"p\"\n",
    )
    .write(".env", format!("A=1\n{KEY}\n"))
    .write("rows.jsonl", "{\"text\": \"one\"}\n")
    .write("task.toml", TASK);
    insta::assert_snapshot!(dir.run(&["run"]).transcript(), @r"
    exit 2
    --- stdout
    --- stderr
    error: no `=` after the name
    --> .env:2:1
     = help: write NAME=value
    error: 1 problem; nothing was called
    ");
    let map =
        ["map", "rows.jsonl", "--task", "task.toml", "--out", "o.jsonl", "--suite", "bakeoff.toml"];
    let commands: [&[&str]; 4] = [
        &["check"],
        &["select"],
        &["race", "Hi", "--suite", "bakeoff.toml", "--model", "sim/echo"],
        &[&map[..], &["--model", "sim/echo"]].concat(),
    ];
    for command in commands {
        let output = dir.run(command);
        assert_eq!(output.code, 2, "{}", output.transcript());
        assert!(output.stderr.contains(".env:2:1"), "{}", output.transcript());
        assert!(!output.stderr.contains(KEY), "{}", output.transcript());
    }
}

#[test]
fn variables_without_effect_are_reported() {
    let dir = TestDir::with_suite(
        "[[target]]\nname = \"t\"\nmodel = \"sim/echo\"\nprompt = \"p\"\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"contains\"\nvalue = \"p\"\n",
    )
    .write(".env", "HTTPS_PROXY=http://proxy:3128\n");
    let output = dir.run(&["check"]);
    let warning =
        "warning: Bakeoff does not use HTTPS_PROXY of the file .env; set it in the environment";
    assert!(output.stderr.contains(warning), "{}", output.transcript());
    assert_eq!(output.code, 0);
}

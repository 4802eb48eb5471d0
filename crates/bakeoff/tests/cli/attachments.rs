//! Attachments of cases.

use crate::services::Server;
use crate::support::{Provider, TestDir};
use serde_json::{Value, json};
use std::path::Path;

/// A PNG file with a size that is easy to recognise in base64.
fn png(filler: u8) -> Vec<u8> {
    [&b"\x89PNG\r\n\x1a\n"[..], &[filler; 6000]].concat()
}

const CHECK: &str = "[[check]]\nkind = \"contains\"\nvalue = \"a\"\n";

fn suite(target: &str, attachments: &str) -> String {
    format!("{target}\n[[cases.inline]]\nid = \"a\"\nattachments = {attachments}\n{CHECK}")
}

fn total_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let size = |path: std::path::PathBuf| match path.is_dir() {
        true => total_bytes(&path),
        false => path.metadata().unwrap().len(),
    };
    entries.map(size).sum()
}

#[test]
fn models_receive_files_before_the_prompt_and_traces_describe_them() {
    let server = Server::start(|_, _| {
        let reply = json!({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]});
        (200, "content-type: application/json\r\n", reply.to_string())
    });
    let targets = format!(
        r#"
[models.m]
provider = "openai"
model = "m"
base_url = "{}"
[target_defaults]
model = "m"
prompt = "What is {{{{ attachments | join(', ') }}}}?"
[[target]]
name = "plain"
[[target]]
name = "tools"
tools = ["read_file"]
"#,
        server.origin()
    );
    let dir = TestDir::with_suite(&suite(&targets, r#"["files/r.png", "i.pdf"]"#))
        .with("files/r.png", png(b'x'))
        .write("i.pdf", "%PDF-1.7");
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    for request in server.requests() {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let parts = body["messages"][0]["content"].as_array().unwrap();
        let url = parts[0]["image_url"]["url"].as_str().unwrap();
        assert!(url.starts_with("data:image/png;base64,iVBORw0KGgp4"), "{}", &url[..60]);
        assert_eq!(url.len(), 8034);
        assert_eq!(parts[1]["file"]["filename"], "i.pdf");
        assert_eq!(parts[2]["text"], "What is files/r.png, i.pdf?");
    }
    assert!(total_bytes(&dir.run_folder()) < 20_000, "the files are not stored");
    for target in ["plain", "tools"] {
        let shown = dir.run(&["show", "last", "a", "--target", target]).stdout;
        let prompt = "[files/r.png (image/png, 6008 bytes)]\n  [i.pdf (application/pdf, 8 bytes)]\n  What is";
        assert!(shown.contains(prompt), "{shown}");
    }
    let traces = traces(&dir.run_folder());
    assert_eq!(traces.matches("\"blake3\":\"").count(), 4, "{traces}");
}

/// Returns the text of all traces of a run.
fn traces(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: std::path::PathBuf| match path.is_dir() {
        true => traces(&path),
        false if path.ends_with("trace.jsonl") => std::fs::read_to_string(path).unwrap(),
        false => String::new(),
    };
    entries.map(text).collect()
}

const ECHO: &str = "[[target]]\nname = \"echo\"\nmodel = \"sim/echo\"\nprompt = \"What is it?\"\n";

#[test]
fn simulated_models_receive_files_in_process_and_over_http() {
    let provider = Provider::start(&[]);
    let http = format!(
        r#"
[models.http]
provider = "openai"
model = "sim/echo"
base_url = "{}"
{ECHO}
[[target]]
name = "http"
model = "http"
prompt = "What is it?"
"#,
        provider.base_url
    );
    let dir = TestDir::with_suite(&suite(&http, r#"["r.png", "a.wav", "i.pdf"]"#))
        .write("r.png", png(b'x'))
        .write("a.wav", "RIFF0000WAVE")
        .write("i.pdf", "%PDF-1.7");
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let expected =
        "What is it?\n[image/png, 6008 bytes]\n[audio/wav, 12 bytes]\n[application/pdf, 8 bytes]";
    for trial in dir.trials() {
        assert_eq!(trial["attempt"]["output"], expected);
        // 3 for the text, 1600 for the image, 1 for each of the others.
        assert_eq!(trial["attempt"]["usage"]["input"], 1605);
    }
    let check = dir.run(&["check"]).stdout;
    assert!(check.contains("about 1605 input"), "{check}");
}

#[test]
fn chains_pass_files_to_their_first_step() {
    let chain = "[[target]]\nname = \"chain\"\nchain = [{ name = \"look\", model = \"sim/echo\", prompt = \"Look.\" }, { name = \"tell\", model = \"sim/echo\", prompt = \"Tell {{ look }}\" }]\n";
    let dir = TestDir::with_suite(&suite(chain, r#"["r.png"]"#)).write("r.png", png(b'x'));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let trial = &dir.trials()[0];
    assert_eq!(trial["attempt"]["output"], "Tell Look.\n[image/png, 6008 bytes]");
}

#[test]
fn programs_find_the_files_in_their_workspace() {
    let targets = r#"
[[target]]
name = "program"
command = ["sh", "-c", "wc -c files/r.png"]
prompt = ""
[[target]]
name = "worker"
protocol = "jsonl"
command = ["python3", "-c", "import json, os\nwhile True:\n r = json.loads(input())\n print(json.dumps({'id': r['id'], 'output': 'a %d' % os.path.getsize(r['attachments'][0])}), flush=True)"]
prompt = ""
"#;
    let dir = TestDir::with_suite(
        &suite(targets, r#"["files/r.png"]"#).replace("value = \"a\"", "value = \"6008\""),
    )
    .with("files/r.png", png(b'x'));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn workspace_links_are_not_followed() {
    let target = "[[target]]\nname = \"program\"\ncommand = [\"cat\", \"r.png\"]\nprompt = \"\"\nworkspace = \"template\"\n";
    let dir = TestDir::with_suite(&suite(target, r#"["r.png"]"#))
        .write("r.png", b"\x89PNG\r\n\x1a\na")
        .write("precious.txt", "precious")
        .with("template/other.txt", "");
    std::os::unix::fs::symlink(dir.path().join("precious.txt"), dir.path().join("template/r.png"))
        .unwrap();
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(std::fs::read_to_string(dir.path().join("precious.txt")).unwrap(), "precious");
}

#[test]
fn csv_files_separate_paths_with_semicolons() {
    let dir = TestDir::with_suite(&format!("{ECHO}[cases]\nfile = \"data/cases.csv\"\n{CHECK}"))
        .with("data/cases.csv", "id,attachments\none,r.png; files/r.png\ntwo,\n")
        .write("r.png", png(b'x'))
        .with("files/r.png", png(b'y'));
    assert_eq!(dir.run(&["run"]).code, 0);
    let outputs: Vec<Value> =
        dir.trials().iter().map(|trial| trial["attempt"]["output"].clone()).collect();
    let line = "\n[image/png, 6008 bytes]";
    assert_eq!(outputs, [format!("What is it?{line}{line}"), "What is it?".to_owned()]);
}

#[test]
fn unusable_attachments_are_rejected_with_their_position() {
    let dir = TestDir::with_suite(&format!("{ECHO}[cases]\nfile = \"cases.jsonl\"\n{CHECK}"))
        .write(
            "cases.jsonl",
            "{\"attachments\": [\"r.png\"]}\n{\"attachments\": [\"gone.png\"]}\n{\"attachments\": [\"a.txt\"]}\n{\"attachments\": 1}\n",
        )
        .write("r.png", png(b'x'))
        .write("a.txt", "text");
    insta::assert_snapshot!(dir.run(&["check"]).transcript(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: attachment `gone.png`: no such file; paths are relative to the suite file
     --> cases.jsonl:2:1
      |
    2 | {"attachments": ["gone.png"]}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    error: attachment `a.txt`: unknown type; the supported ones are PNG, JPEG, GIF, WebP, HEIC, PDF, WAV, MP3, AIFF, AAC, Ogg and FLAC
     --> cases.jsonl:3:1
      |
    3 | {"attachments": ["a.txt"]}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^
    error: case `attachments` must be a list of paths such as ["receipt.png"]
     --> cases.jsonl:4:1
      |
    4 | {"attachments": 1}
      | ^^^^^^^^^^^^^^^^^^
    error: 3 problems; nothing was called
    "#);
    let models = r#"
[[target]]
name = "claude"
model = "anthropic/claude-haiku-4-5"
prompt = "p"
[[target]]
name = "gemini"
model = "gemini/gemini-3-flash"
prompt = "p"
"#;
    let dir = TestDir::with_suite(&suite(models, r#"["a.wav", "p.gif"]"#))
        .write("a.wav", "RIFF0000WAVE")
        .write("p.gif", "GIF89a");
    insta::assert_snapshot!(dir.run(&["check"]).transcript(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: Anthropic Messages does not accept audio/wav: `a.wav` of case `a` cannot be sent to anthropic/claude-haiku-4-5
     --> bakeoff.toml:4:9
      |
    4 | model = "anthropic/claude-haiku-4-5"
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: convert the file, or use a model that accepts it
    error: Gemini does not accept image/gif: `p.gif` of case `a` cannot be sent to gemini/gemini-3-flash
     --> bakeoff.toml:8:9
      |
    8 | model = "gemini/gemini-3-flash"
      |         ^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: convert the file, or use a model that accepts it
    error: 2 problems; nothing was called
    "#);
}

#[test]
fn changed_files_are_not_answered_from_the_cache_and_prevent_resuming() {
    let shared = format!("[suite]\ncache = \"shared\"\n{ECHO}");
    let dir = TestDir::with_suite(&suite(&shared, r#"["r.png"]"#)).write("r.png", png(b'x'));
    let is_cached = |dir: &TestDir| {
        assert_eq!(dir.run(&["run", "--json"]).code, 0);
        let shown = dir.run(&["show", "last", "a"]).stdout;
        shown.contains("cached")
    };
    assert!(!is_cached(&dir));
    assert!(is_cached(&dir), "the same content");
    let dir = dir.write("r.png", png(b'y'));
    let resumed = dir.run(&["run", "--resume", "last"]);
    assert_eq!(resumed.code, 2, "{}", resumed.transcript());
    assert!(!is_cached(&dir), "another content");
}

//! Models with tools as targets.

use crate::services::Server;
use crate::support::TestDir;
use serde_json::{Value, json};

/// Returns a suite with a model that makes these tool calls, and one case, `a`.
fn suite(calls: &str, target: &str, check: &str) -> String {
    format!(
        r#"[sim.worker]
calls = [{calls}]
[[target]]
name = "agent"
model = "sim/worker"
prompt = "Work on {{{{ id }}}}."
{target}
[[cases.inline]]
id = "a"
[[check]]
{check}
"#
    )
}

/// Check that every answer passes.
const ANY: &str = "kind = \"max_turns\"\nmax = 99";

/// MCP server with one tool, which writes a file.
const SERVER: &str = r#"
import json, sys

def answer(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    id, method = request.get("id"), request["method"]
    if method == "initialize":
        version = request["params"]["protocolVersion"]
        info = {"name": "notes", "version": "1"}
        answer(id, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        answer(id, {"tools": [{"name": n, "inputSchema": schema} for n in ["keep", "other"]]})
    elif method == "tools/call":
        text = request["params"]["arguments"]["text"]
        if text == "die":
            sys.exit("no more notes")
        open("kept.txt", "w").write(text)
        answer(id, {"content": [{"type": "text", "text": "kept " + text}]})
"#;

fn only_trial(dir: &TestDir) -> Value {
    let mut trials = dir.trials();
    assert_eq!(trials.len(), 1);
    trials.remove(0)
}

/// Returns the tool results that the model received.
fn tool_results(trial: &Value) -> Vec<String> {
    let transcript = trial["attempt"]["transcript"].as_str().unwrap();
    let messages = transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages
        .filter(|message| message["role"] == "tool")
        .map(|message| {
            let mark = if message["is_error"] == true { "error: " } else { "" };
            format!("{mark}{}", message["content"][0]["text"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn model_uses_tools_until_it_answers() {
    let calls = r#"
    { tool = "read_file", arguments = { path = "box.txt" } },
    { tool = "write_file", arguments = { path = "out/new.txt", content = "made\n" } },
    { tool = "run_command", arguments = { command = "cat out/new.txt; echo $BAKEOFF_TRIAL_ID; exit 3" } },
    { tool = "list_files" },
"#;
    let target = "workspace = \"box\"\nsystem = \"Be quick.\"\ntemperature = 0\ntools = [\"read_file\", \"write_file\", \"list_files\", \"run_command\"]";
    let checks = r#"kind = "tool_order"
names = ["read_file", "write_file", "run_command"]
[[check]]
kind = "file_contains"
path = "out/new.txt"
value = "made"
[[check]]
kind = "command_contains"
value = "cat out/new.txt"
[[check]]
kind = "max_turns"
max = 5
[[check]]
kind = "equals"
value = "box.txt\nout/\nout/new.txt""#;
    let dir = TestDir::with_suite(&suite(calls, target, checks)).with("box/box.txt", "in it\n");
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let trial = only_trial(&dir);
    assert_eq!(
        tool_results(&trial),
        [
            "in it\n",
            "5 bytes written to `out/new.txt`",
            "exit code 3\n--- stdout\nmade\nagent/a/1",
            "box.txt\nout/\nout/new.txt",
        ]
    );
    let attempt = &trial["attempt"];
    assert_eq!((&attempt["turns"], &attempt["finish"]), (&json!(5), &json!("stop")));
    assert_eq!(attempt["files"]["out/new.txt"]["text"], "made\n");
    assert_eq!(attempt["tool_uses"][0]["arguments"], json!({"path": "box.txt"}));
    assert!(attempt["usage"]["input"].as_u64().unwrap() > 0);
    // The original is unchanged and the copy is removed.
    assert!(!dir.path().join("box/out").exists());
    assert!(!dir.left_workspaces());
    let trace = std::fs::read_to_string(dir.run_folder().join("a/trial-1/trace.jsonl")).unwrap();
    let first: Value = serde_json::from_str(trace.lines().next().unwrap()).unwrap();
    assert_eq!(first["payload"]["text"], "Work on a.");
    assert_eq!(trace.matches("\"type\":\"tool_use\"").count(), 4);
}

#[test]
fn simulated_tool_model_calls_the_first_tool() {
    let suite = "[[target]]\nname = \"t\"\nmodel = \"sim/tool\"\nprompt = \"{{ id }}\"\ntools = [\"run_command\"]\n[[cases.inline]]\nid = \"pwd\"\n[[check]]\nkind = \"tool_called\"\nname = \"run_command\"\n[[check]]\nkind = \"contains\"\nvalue = \"exit code 0\"\n";
    let dir = TestDir::with_suite(suite);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn paths_outside_the_workspace_are_rejected_in_tool_results() {
    let calls = r#"
    { tool = "read_file", arguments = { path = "/etc/passwd" } },
    { tool = "read_file", arguments = { path = "../../run.json" } },
    { tool = "write_file", arguments = { path = "link/x", content = "y" } },
    { tool = "read_file", arguments = { file = "x" } },
    { tool = "delete_all" },
"#;
    let target = "workspace = \"box\"\ntools = [\"read_file\", \"write_file\"]";
    let dir = TestDir::with_suite(&suite(calls, target, ANY)).with("box/f", "");
    std::os::unix::fs::symlink(dir.path(), dir.path().join("box/link")).unwrap();
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    insta::assert_snapshot!(tool_results(&only_trial(&dir)).join("\n"), @r"
    error: `/etc/passwd` is refused: paths are relative to the workspace, such as `notes.txt`
    error: `../../run.json` is refused: a path must not contain `..`; it is relative to the workspace
    error: `link/x` leads out of the workspace
    error: the arguments do not fit: Additional properties are not allowed ('file' was unexpected)
    error: there is no tool `delete_all`; there are read_file, write_file
    ");
    assert!(!dir.path().join("x").exists());
}

#[test]
fn mcp_tools_are_prefixed_with_the_server_name() {
    let calls = r#"{ tool = "notes__keep", arguments = { text = "this" } },
    { tool = "notes__other", arguments = { text = "x" } }"#;
    let target =
        r#"mcp = [{ name = "notes", command = ["python3", "server.py"], tools = ["keep"] }]"#;
    let check = "kind = \"file_contains\"\npath = \"kept.txt\"\nvalue = \"this\"";
    let dir = TestDir::with_suite(&suite(calls, target, check)).write("server.py", SERVER);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(
        tool_results(&only_trial(&dir)),
        ["kept this", "error: there is no tool `notes__other`; there are notes__keep"]
    );
    // The source of the server is part of the digest.
    let dir = dir.write("server.py", format!("{SERVER}\n# changed\n"));
    let again = dir.run(&["run", "--resume", "last"]);
    assert_eq!(again.code, 2, "{}", again.transcript());
    assert!(again.stderr.contains("the plan has changed: target `agent`"), "{}", again.stderr);
}

#[test]
fn dead_mcp_server_is_a_tool_error_and_one_that_never_starts_fails_the_trial() {
    let target = |name: &str| format!("mcp = [{{ name = \"notes\", command = [\"{name}\"] }}]");
    let calls = r#"{ tool = "notes__keep", arguments = { text = "die" } }"#;
    let script = format!("#!/usr/bin/env python3\n{SERVER}");
    let dir =
        TestDir::with_suite(&suite(calls, &target("server"), ANY)).with_program("server", &script);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(
        tool_results(&only_trial(&dir))[0].trim_end(),
        "error: the MCP server `notes` has ended (exit code 1): no more notes"
    );
    let dir = TestDir::with_suite(&suite(calls, &target("broken"), ANY))
        .with_program("broken", "#!/bin/sh\necho no licence >&2\nexit 7\n");
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    let error = &only_trial(&dir)["attempt"]["error"];
    assert_eq!(error["kind"], "process");
    let message = error["message"].as_str().unwrap().trim_end();
    assert_eq!(message, "the MCP server `notes` has ended (exit code 7): no licence");
}

#[test]
fn http_fetch_is_limited_to_listed_hosts() {
    let server = Server::start(|_, _| (200, "", "a page".to_owned()));
    let host = server.url.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    let calls = format!(
        r#"{{ tool = "http_fetch", arguments = {{ url = "http://{host}/page" }} }},
    {{ tool = "http_fetch", arguments = {{ url = "http://example.invalid/" }} }}"#
    );
    let target = format!("tools = [\"http_fetch\"]\nfetch_hosts = [\"{host}\"]");
    let dir = TestDir::with_suite(&suite(&calls, &target, ANY));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let returned = tool_results(&only_trial(&dir));
    assert_eq!(returned[0], "status 200\ncontent-type: unknown\n\na page");
    let rejected = format!(
        "error: `http://example.invalid/` is refused: only these hosts are allowed: {host}"
    );
    assert_eq!(returned[1], rejected);
}

#[test]
fn model_at_its_turn_limit_is_still_checked() {
    let calls = r#"{ tool = "write_file", arguments = { path = "a", content = "1" } },
    { tool = "write_file", arguments = { path = "b", content = "2" } }"#;
    let check = "kind = \"file_exists\"\npath = \"a\"\n[[check]]\nid = \"b\"\nkind = \"file_exists\"\npath = \"b\"";
    let target = "tools = [\"write_file\"]\nmax_turns = 2";
    let dir = TestDir::with_suite(&suite(calls, target, check));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 1, "{}", output.transcript());
    let trial = only_trial(&dir);
    assert_eq!((&trial["status"], &trial["attempt"]["turns"]), (&json!("failed"), &json!(2)));
    assert_eq!(trial["checks"][0]["passed"], true);
    let stderr = trial["attempt"]["stderr"].as_str().unwrap();
    assert_eq!(stderr, "stopped after 2 turns (`max_turns`) before it was done\n");
    assert_eq!(trial["attempt"]["is_out_of_turns"], true);
    let line =
        output.stderr.lines().chain(output.stdout.lines()).find(|line| line.contains("failed  "));
    assert!(
        line.unwrap().contains("agent / a (trial 1): out of turns (2); b: "),
        "{}",
        output.transcript()
    );
}

/// A call of an unknown tool or with invalid arguments is not a call, and its result is in the trace.
#[test]
fn refused_calls_do_not_count_as_calls() {
    let calls =
        r#"{ tool = "read_file", arguments = { path = 7 } }, { tool = "gone", arguments = {} }"#;
    let check = "kind = \"tool_called\"\nname = \"read_file\"\n[[check]]\nid = \"gone\"\nkind = \"tool_called\"\nname = \"gone\"";
    let dir = TestDir::with_suite(&suite(calls, "tools = [\"read_file\"]", check));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 1, "{}", output.transcript());
    let trial = only_trial(&dir);
    let refused: Vec<&Value> = trial["attempt"]["tool_uses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["refused"])
        .collect();
    assert_eq!(refused, [true, true]);
    let message = trial["checks"][0]["message"].as_str().unwrap();
    let expected = r#"read_file was not run: the call was refused, with "{\"path\":7}""#;
    assert_eq!(message, expected);
    let trace = std::fs::read_to_string(dir.run_folder().join("a/trial-1/trace.jsonl")).unwrap();
    assert!(
        trace.contains("\"is_error\":true") && trace.contains("there is no tool `gone`"),
        "{trace}"
    );
}

/// A server over HTTP, which is reached with a key from the environment.
#[test]
fn mcp_server_over_http_provides_tools() {
    let server = Server::start(|_, request| {
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "shop", "version": "1" },
            }),
            "tools/list" => {
                json!({ "tools": [{ "name": "stock", "inputSchema": { "type": "object" } }] })
            }
            "tools/call" => {
                json!({ "content": [{ "type": "text", "text": "12 boxes for the-key-of-the-shop" }] })
            }
            _ => return (202, "", String::new()),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        (200, "content-type: application/json\r\n", answer.to_string())
    });
    let target = format!(
        "mcp = [{{ name = \"shop\", url = \"{}\", headers = {{ authorization = \"Bearer $SHOP_KEY\" }} }}]",
        server.url
    );
    let check = "kind = \"tool_called\"\nname = \"shop__stock\"";
    let calls = r#"{ tool = "shop__stock", arguments = {} }"#;
    let dir = TestDir::with_suite(&suite(calls, &target, check));
    let mut command = dir.command(&["run"]);
    let output = command.env("SHOP_KEY", "the-key-of-the-shop").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trial = only_trial(&dir).to_string();
    assert!(
        trial.contains("12 boxes for [redacted]") && !trial.contains("the-key-of-the-shop"),
        "{trial}"
    );
    let output = dir.run(&["check"]);
    assert!(output.stderr.contains("SHOP_KEY"), "{}", output.transcript());
}

#[test]
fn mcp_server_is_a_program_or_a_url() {
    for (server, expected) in [
        ("name = \"s\"", "the server has neither `command` nor `url`"),
        (
            "name = \"s\", command = [\"sh\"], url = \"http://a.example\"",
            "a server cannot have both `command` and `url`",
        ),
        (
            "name = \"s\", command = [\"sh\"], headers = { a = \"b\" }",
            "`headers` is for servers with `url`",
        ),
        (
            "name = \"s\", url = \"http://a.example\", env = { A = \"b\" }",
            "`env` is for servers with `command`",
        ),
        ("name = \"s\", url = \"a.example\"", "url"),
        ("name = \"s\", command = [\"sh\"], env = { A = \"$GONE\" }", "GONE"),
    ] {
        let dir = TestDir::with_suite(&suite("", &format!("mcp = [{{ {server} }}]"), ANY));
        let output = dir.run(&["run"]);
        assert_eq!(output.code, 2, "{}", output.transcript());
        assert!(output.stderr.contains(expected), "{expected}: {}", output.transcript());
    }
}

#[test]
fn model_timeout_is_an_error_and_ends_its_commands() {
    let calls = r#"{ tool = "run_command", arguments = { command = "echo $$ > HERE/id; setsid sh -c 'echo $$ > HERE/left; exec sleep 600' & sleep 600" } }"#;
    let dir = TestDir::new();
    let calls = calls.replace("HERE", dir.path().to_str().unwrap());
    let target = "tools = [\"run_command\"]\ntimeout_seconds = 10";
    let dir = dir.write("bakeoff.toml", suite(&calls, target, ANY));
    let output = dir.run(&["run", "--keep"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    let error = only_trial(&dir)["attempt"]["error"].clone();
    assert_eq!(error["kind"], "timeout");
    assert_eq!(error["message"], "still running after 10 s [EVAL_CASE_TIMEOUT]");
    for name in ["id", "left"] {
        let id = std::fs::read_to_string(dir.path().join(name)).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "{name}: {stat}");
    }
    assert!(dir.run_folder().join("a/trial-1/workspace").is_dir());
}

#[test]
fn command_timeout_is_a_tool_result() {
    let calls =
        r#"{ tool = "run_command", arguments = { command = "echo started; exec sleep 600" } }"#;
    let target = "tools = [\"run_command\"]\ntool_timeout_seconds = 5";
    let dir = TestDir::with_suite(&suite(calls, target, ANY));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(
        tool_results(&only_trial(&dir)),
        ["error: the command took longer than 5 s and was ended\n--- stdout\nstarted"]
    );
}

#[test]
fn long_conversation_is_compacted_to_the_context_window() {
    let calls = r#"{ tool = "read_file", arguments = { path = "long" } }"#;
    let tokens = |more: &str| {
        let target = format!("workspace = \"box\"\ntools = [\"read_file\"]\n{more}");
        let dir = TestDir::with_suite(&suite(calls, &target, ANY))
            .with("box/long", "a line of some length\n".repeat(1000));
        assert_eq!(dir.run(&["run"]).code, 0);
        only_trial(&dir)["attempt"]["usage"]["input"].as_u64().unwrap()
    };
    let (all, less) = (tokens(""), tokens("max_context_tokens = 2000"));
    assert!(all > 4000 && less < 2000, "{all} and {less}");
}

#[test]
fn permanent_call_failure_is_a_classified_error() {
    let suite = "[[target]]\nname = \"t\"\nmodel = \"sim/fault-401\"\nprompt = \"{{ id }}\"\ntools = [\"list_files\"]\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"contains\"\nvalue = \"x\"\n";
    let dir = TestDir::with_suite(suite);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert_eq!(only_trial(&dir)["attempt"]["error"]["kind"], "auth");
}

#[test]
fn secrets_in_tool_results_are_not_stored() {
    let calls = r#"{ tool = "run_command", arguments = { command = "echo $GROQ_API_KEY | tee found; echo sk-quite-secret-key" } }"#;
    let dir = TestDir::with_suite(&suite(calls, "tools = [\"run_command\"]", ANY));
    let output = dir.command(&["run"]).env("GROQ_API_KEY", "sk-quite-secret-key").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trial = only_trial(&dir);
    assert!(tool_results(&trial)[0].contains("exit code 0"), "{trial}");
    for entry in ["journal.jsonl", "a/trial-1/trace.jsonl", "a/trial-1/result.json"] {
        let text = std::fs::read_to_string(dir.run_folder().join(entry)).unwrap();
        assert!(!text.contains("sk-quite-secret-key"), "{entry}");
    }
}

#[test]
fn cached_responses_of_a_killed_run_are_reused_and_still_counted() {
    let calls = r#"{ tool = "write_file", arguments = { path = "a", content = "1" } }"#;
    let priced =
        "[models.m]\nprovider = \"sim\"\nmodel = \"worker\"\nprices = { input = 1, output = 1 }\n";
    let text = suite(calls, "tools = [\"write_file\"]", ANY)
        .replace("\"sim/worker\"", "\"m\"")
        .replace("[[target]]", &format!("{priced}[[target]]"));
    let dir = TestDir::with_suite(&text);
    assert_eq!(dir.run(&["run"]).code, 0);
    let first = only_trial(&dir);
    // The state after a kill just before the result was written.
    let journal = dir.run_folder().join("journal.jsonl");
    let lines = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, format!("{}\n", lines.lines().next().unwrap())).unwrap();
    let output = dir.run(&["run", "--resume", "last"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let second = only_trial(&dir);
    assert_eq!(second["attempt"]["cached"], true);
    assert!(first["attempt"]["cost"].as_u64().unwrap() > 0, "{first}");
    assert_eq!(second["attempt"]["cost"], first["attempt"]["cost"]);
    assert_eq!(second["attempt"]["transcript"], first["attempt"]["transcript"]);
}

#[test]
fn results_can_be_rescored_and_changed_tools_reject_resume() {
    let calls = r#"{ tool = "write_file", arguments = { path = "a", content = "1" } }"#;
    let check = "kind = \"file_exists\"\npath = \"a\"";
    let text = suite(calls, "tools = [\"write_file\"]", check);
    let dir = TestDir::with_suite(&text);
    assert_eq!(dir.run(&["run"]).code, 0);
    let dir = dir.write("bakeoff.toml", text.replace("path = \"a\"\n", "path = \"b\"\n"));
    let scored = dir.run(&["score", "last"]);
    assert_eq!(scored.code, 1, "{}", scored.transcript());
    let dir = dir.write("bakeoff.toml", text.replace("[\"write_file\"]", "[\"read_file\"]"));
    let output = dir.run(&["run", "--resume", "last"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(output.stderr.contains("target `agent`"), "{}", output.stderr);
}

#[test]
fn estimate_for_tools_is_a_lower_bound() {
    let dir = TestDir::with_suite(&suite("", "tools = [\"list_files\"]", ANY));
    let output = dir.run(&["check"]);
    let line = output.stdout.lines().find(|line| line.contains("agent (")).unwrap();
    insta::assert_snapshot!(line, @r"  agent (sim/worker with tools, at least one call each): 1 trial, about 3 input and 200 output tokens, about $0.00");
}

/// Returns the rendered problems of a target.
fn rejection(target: &str) -> String {
    let text = format!(
        "[[target]]\nname = \"t\"\nprompt = \"x\"\n{target}\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"contains\"\nvalue = \"x\"\n"
    );
    let dir = TestDir::with_suite(&text);
    let output = dir.run(&["run"]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.transcript());
    assert!(!dir.path().join("runs").exists());
    output.stderr
}

#[test]
fn unknown_tools_get_a_suggestion() {
    insta::assert_snapshot!(rejection("model = \"sim/tool\"\ntools = [\"read_fiel\", \"list_files\", \"list_files\", \"teleport\"]"), @r#"
    error: `tools` cannot have "read_fiel"
     --> bakeoff.toml:5:10
      |
    5 | tools = ["read_fiel", "list_files", "list_files", "teleport"]
      |          ^^^^^^^^^^^
      |
      = help: did you mean `read_file`?
    error: duplicate tool `list_files`
     --> bakeoff.toml:5:37
      |
    5 | tools = ["read_fiel", "list_files", "list_files", "teleport"]
      |                                     ^^^^^^^^^^^^
    error: `tools` cannot have "teleport"
     --> bakeoff.toml:5:51
      |
    5 | tools = ["read_fiel", "list_files", "list_files", "teleport"]
      |                                                   ^^^^^^^^^^
      |
      = help: expected one of: `read_file`, `write_file`, `list_files`, `run_command`, `http_fetch`
    error: 3 problems; nothing was called
    "#);
    insta::assert_snapshot!(rejection("model = \"sim/tool\"\ntools = \"read_file\""), @r#"
    error: `tools` must be a list of some of read_file, write_file, list_files, run_command, http_fetch, not the string "read_file"
     --> bakeoff.toml:5:9
      |
    5 | tools = "read_file"
      |         ^^^^^^^^^^^
      |
      = help: `tools`: for models: tools that the model may call until it responds without a tool call
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn http_fetch_and_fetch_hosts_require_each_other() {
    insta::assert_snapshot!(rejection("model = \"sim/tool\"\ntools = [\"http_fetch\"]"), @r#"
    error: `http_fetch` needs `fetch_hosts`
     --> bakeoff.toml:5:10
      |
    5 | tools = ["http_fetch"]
      |          ^^^^^^^^^^^^
      |
      = help: add the allowed hosts, such as `fetch_hosts = ["example.com"]`, or `["*"]` for all
    error: 1 problem; nothing was called
    "#);
    insta::assert_snapshot!(rejection("model = \"sim/tool\"\ntools = [\"http_fetch\"]\nfetch_hosts = [\"https://example.com/\", \"*.com\"]"), @r#"
    error: `https://example.com/` is not a host
     --> bakeoff.toml:6:16
      |
    6 | fetch_hosts = ["https://example.com/", "*.com"]
      |                ^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: for example `example.com`, `127.0.0.1:8080`, or `*` for all hosts
    error: `*.com` is not a host
     --> bakeoff.toml:6:40
      |
    6 | fetch_hosts = ["https://example.com/", "*.com"]
      |                                        ^^^^^^^
      |
      = help: for example `example.com`, `127.0.0.1:8080`, or `*` for all hosts
    error: 2 problems; nothing was called
    "#);
    insta::assert_snapshot!(rejection("model = \"sim/tool\"\ntools = []\nfetch_hosts = [\"a.com\"]"), @r#"
    error: `fetch_hosts` needs the tool `http_fetch`, which this target does not have
     --> bakeoff.toml:6:15
      |
    6 | fetch_hosts = ["a.com"]
      |               ^^^^^^^^^
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn tool_limits_are_range_checked() {
    insta::assert_snapshot!(rejection("model = \"sim/tool\"\nmax_turns = 0\ntool_timeout_seconds = 0\nmax_context_tokens = 10"), @"
    error: `max_turns` must be an integer from 1 to 10000, not 0
     --> bakeoff.toml:5:13
      |
    5 | max_turns = 0
      |             ^
      |
      = help: `max_turns`: for models with tools: maximum number of model calls in a trial [default: 50]
    error: `tool_timeout_seconds` must be a number from 0.001 to 1000000000, not 0
     --> bakeoff.toml:6:24
      |
    6 | tool_timeout_seconds = 0
      |                        ^
      |
      = help: `tool_timeout_seconds`: for models with tools: time limit in seconds of a tool call [default: 120]
    error: `max_context_tokens` must be an integer from 1000 to 100000000, not 10
     --> bakeoff.toml:7:22
      |
    7 | max_context_tokens = 10
      |                      ^^
      |
      = help: `max_context_tokens`: for models with tools: context window in tokens; longer conversations are shortened [default: unlimited]
    error: 3 problems; nothing was called
    ");
}

#[test]
fn tools_of_other_targets_are_rejected() {
    insta::assert_snapshot!(rejection("command = [\"cat\"]\ntools = [\"read_file\"]\nmax_turns = 3\nfetch_hosts = [\"a.com\"]"), @r#"
    error: `tools` is for models; this target is a program
     --> bakeoff.toml:5:9
      |
    5 | tools = ["read_file"]
      |         ^^^^^^^^^^^^^
    error: `max_turns` is for models; this target is a program
     --> bakeoff.toml:6:13
      |
    6 | max_turns = 3
      |             ^
    error: `fetch_hosts` is for models with tools; this target is a program
     --> bakeoff.toml:7:15
      |
    7 | fetch_hosts = ["a.com"]
      |               ^^^^^^^^^
    error: 3 problems; nothing was called
    "#);
    insta::assert_snapshot!(rejection("model = \"sim/tool\"\nworkspace = \".\"\ntool_timeout_seconds = 3"), @r#"
    error: `workspace` is for programs, agents and models with tools; this target is a model
     --> bakeoff.toml:5:13
      |
    5 | workspace = "."
      |             ^^^
    error: `tool_timeout_seconds` is for models with tools; this target is a model
     --> bakeoff.toml:6:24
      |
    6 | tool_timeout_seconds = 3
      |                        ^
    error: 2 problems; nothing was called
    "#);
}

#[test]
fn unstartable_mcp_servers_are_rejected_before_any_call() {
    insta::assert_snapshot!(rejection("model = \"sim/tool\"\nmcp = [{ name = \"fs\", command = [\"no-such-server\"] }, { name = \"fs\", command = [\"cat\"], tool = [\"x\"] }, { name = \"\", command = [] }]"), @r#"
    error: cannot run `no-such-server`: program not found
     --> bakeoff.toml:5:34
      |
    5 | mcp = [{ name = "fs", command = ["no-such-server"] }, { name = "fs", command = ["cat"], tool = ["x"] }, { name = "", command = [] }]
      |                                  ^^^^^^^^^^^^^^^^
      |
      = help: use a program on the PATH, or an executable file next to the suite file
    error: duplicate server name `fs`
     --> bakeoff.toml:5:64
      |
    5 | mcp = [{ name = "fs", command = ["no-such-server"] }, { name = "fs", command = ["cat"], tool = ["x"] }, { name = "", command = [] }]
      |                                                                ^^^^
    error: unknown key `tool` in [[mcp]]
     --> bakeoff.toml:5:89
      |
    5 | mcp = [{ name = "fs", command = ["no-such-server"] }, { name = "fs", command = ["cat"], tool = ["x"] }, { name = "", command = [] }]
      |                                                                                         ^^^^
      |
      = help: did you mean `tools`?
    error: empty server name
     --> bakeoff.toml:5:114
      |
    5 | mcp = [{ name = "fs", command = ["no-such-server"] }, { name = "fs", command = ["cat"], tool = ["x"] }, { name = "", command = [] }]
      |                                                                                                                  ^^
    error: `command` must be a non-empty list of strings, not an empty list
     --> bakeoff.toml:5:128
      |
    5 | mcp = [{ name = "fs", command = ["no-such-server"] }, { name = "fs", command = ["cat"], tool = ["x"] }, { name = "", command = [] }]
      |                                                                                                                                ^^
      |
      = help: `command`: program and its arguments; runs in the workspace of the trial
    error: 5 problems; nothing was called
    "#);
}

//! Coding agents by name, replaced by scripts that print the output of the real ones.

use crate::support::{CommandOutput, TestDir};
use serde_json::{Value, json};

/// Returns a suite with these agents.
fn suite(agents: &[&str], more: &str) -> String {
    let targets: String = agents
        .iter()
        .map(|agent| {
            format!("[[target]]\nname = \"{agent}\"\nagent = \"{agent}\"\nmodel = \"m1\"\nprompt = \"Fix {{{{ id }}}}\"\n{more}\n")
        })
        .collect();
    format!(
        "{targets}[[cases.inline]]\nid = \"it\"\n[[check]]\nkind = \"command_contains\"\nvalue = \"make\"\n[[check]]\nkind = \"contains\"\nvalue = \"fixed\"\n"
    )
}

/// Returns a script that writes its arguments and prompt to its workspace and prints these events.
fn agent(events: &[Value]) -> String {
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    format!("#!/bin/sh\necho \"$*\" > arguments\ncat > prompt\ncat <<'END'\n{lines}END\n")
}

fn claude(result: Value) -> String {
    agent(&[
        json!({"type": "system", "subtype": "init", "tools": ["Bash"]}),
        json!({"type": "assistant", "message": {"id": "m1", "content": [{"type": "tool_use", "name": "Bash", "input": {"command": "make test"}}], "usage": {"input_tokens": 1, "output_tokens": 2}}}),
        result,
    ])
}

fn good_claude() -> String {
    claude(
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "It is fixed.", "num_turns": 2, "total_cost_usd": 0.5, "usage": {"input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 40}}),
    )
}

#[test]
fn every_agent_runs_and_its_output_is_parsed() {
    let names = ["claude", "codex", "gemini", "opencode", "cursor-agent"];
    let dir = TestDir::with_suite(&suite(&names, ""))
        .with_program("claude", &good_claude())
        .with_program("codex", &agent(&[
            json!({"type": "item.completed", "item": {"id": "1", "type": "command_execution", "command": "make test"}}),
            json!({"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "fixed"}}),
            json!({"type": "turn.completed", "usage": {"input_tokens": 123, "cached_input_tokens": 100, "output_tokens": 40}}),
        ]))
        .with_program("gemini", &agent(&[
            json!({"type": "tool_use", "tool_name": "run_shell_command", "parameters": {"command": "make test"}}),
            json!({"type": "message", "role": "assistant", "content": "fixed", "delta": true}),
            json!({"type": "result", "status": "success", "stats": {"input_tokens": 123, "cached": 100, "output_tokens": 40}}),
        ]))
        .with_program("opencode", &agent(&[
            json!({"type": "tool_use", "part": {"tool": "bash", "state": {"input": {"command": "make test"}}}}),
            json!({"type": "step_finish", "part": {"cost": 0.25, "tokens": {"input": 20, "output": 30, "cache": {"read": 60, "write": 0}}}}),
            json!({"type": "text", "part": {"text": "fixed"}}),
            json!({"type": "step_finish", "part": {"cost": 0.25, "tokens": {"input": 3, "output": 10, "cache": {"read": 40, "write": 0}}}}),
        ]))
        .with_program("cursor-agent", &agent(&[
            json!({"type": "tool_call", "subtype": "started", "call_id": "1", "tool_call": {"shellToolCall": {"args": {"command": "make test"}}}}),
            json!({"type": "result", "is_error": false, "result": "fixed", "usage": {"inputTokens": 23, "outputTokens": 40, "cacheReadTokens": 100, "cacheWriteTokens": 0}}),
        ]));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let printed: Vec<String> = dir
        .trials()
        .iter()
        .map(|trial| {
            let attempt = &trial["attempt"];
            let files = &attempt["files"];
            assert_eq!(files["prompt"]["text"], "Fix it");
            assert!(attempt["transcript"].as_str().unwrap().lines().count() >= 2);
            format!(
                "{}: {} | {} | {} | {}",
                trial["key"]["target"].as_str().unwrap(),
                files["arguments"]["text"].as_str().unwrap().trim(),
                attempt["output"].as_str().unwrap(),
                attempt["usage"],
                attempt["cost"],
            )
        })
        .collect();
    insta::assert_snapshot!(printed.join("\n"), @r#"
    claude: -p - --dangerously-skip-permissions --model m1 --output-format stream-json --verbose | It is fixed. | {"cache_read":100,"cache_write":20,"input":3,"output":40} | 500000000
    codex: exec -m m1 --yolo --json --skip-git-repo-check -- - | fixed | {"cache_read":100,"input":23,"output":40} | null
    cursor-agent: --print --output-format stream-json --model m1 --force | fixed | {"cache_read":100,"input":23,"output":40} | null
    gemini: --prompt - --output-format stream-json --yolo --model m1 | fixed | {"cache_read":100,"input":23,"output":40} | null
    opencode: -m m1 run --dangerously-skip-permissions --format json - | fixed | {"cache_read":100,"input":23,"output":40} | 500000000
    "#);
    // Its output is stored beside the results.
    let stdout = dir.run_folder().join("claude/it/trial-1/stdout.txt");
    assert_eq!(std::fs::read_to_string(stdout).unwrap().lines().count(), 3);
}

#[test]
fn agent_rejected_by_its_provider_is_an_error() {
    let limit = claude(
        json!({"type": "result", "is_error": true, "result": "Claude AI usage limit reached|1760000000"}),
    );
    let throttled = agent(&[
        json!({"type": "turn.failed", "error": {"message": "exceeded retry limit, last status: 429 Too Many Requests"}}),
    ]);
    let dir = TestDir::with_suite(&suite(&["claude", "codex", "gemini", "opencode"], ""))
        .with_program("claude", &limit)
        .with_program("codex", &throttled)
        .with_program(
            "gemini",
            "#!/bin/sh\necho 'Please set an API key: 401 Unauthorized' >&2\nexit 41\n",
        )
        // The text of the answer does not matter.
        .with_program(
            "opencode",
            &agent(&[
                json!({"type": "text", "part": {"text": "The server says 429 Too Many Requests."}}),
            ]),
        );
    let output = dir.run(&["run", "--max-retries", "0"]);
    assert_eq!(output.code, 1, "{}", output.transcript());
    let printed: Vec<String> = dir
        .trials()
        .iter()
        .map(|trial| {
            let (error, status) = (&trial["attempt"]["error"], &trial["status"]);
            format!("{} {status} {} {}", trial["key"]["target"], error["kind"], error["message"])
        })
        .collect();
    insta::assert_snapshot!(printed.join("\n"), @r#"
    "claude" "error" "quota" "the agent stopped: Claude AI usage limit reached|1760000000"
    "codex" "error" "rate_limit" "the agent stopped: exceeded retry limit, last status: 429 Too Many Requests"
    "gemini" "error" "auth" "the agent exited with code 41 and without an answer: Please set an API key: 401 Unauthorized"
    "opencode" "failed" null null
    "#);
}

#[test]
fn agent_without_an_answer_is_an_error() {
    let suite = "[[target]]\nname = \"claude\"\nagent = \"claude\"\nprompt = \"x\"\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"contains\"\nvalue = \"bad\"\nnegate = true\n";
    let dir = TestDir::with_suite(suite)
        .with_program("claude", "#!/bin/sh\necho 'cannot find module' >&2\nexit 1\n");
    // An empty answer passes a negated check, but must not pass the trial.
    assert_eq!(dir.run(&["run"]).code, 3);
    let error = dir.trials()[0]["attempt"]["error"].clone();
    assert_eq!(
        error["message"],
        "the agent exited with code 1 and without an answer: cannot find module"
    );
}

#[test]
fn end_of_a_long_stream_is_parsed() {
    let filler = json!({"type": "user", "message": {"content": "x".repeat(1000)}}).to_string();
    let result = json!({"type": "result", "is_error": false, "result": "fixed", "usage": {"input_tokens": 1, "output_tokens": 2}});
    let tool = json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": "make"}}]}});
    let script = format!(
        "#!/bin/sh\ncat > /dev/null\nyes '{filler}' | head -n 2000\necho '{tool}'\necho '{result}'\n"
    );
    let dir = TestDir::with_suite(&suite(&["claude"], "")).with_program("claude", &script);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let attempt = &dir.trials()[0]["attempt"];
    assert_eq!(attempt["output"], "fixed");
    assert!(attempt["dropped_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn missing_agent_is_reported_before_the_run() {
    let dir = TestDir::with_suite(&suite(&["claude", "cursor-agent"], ""));
    let nothing = dir.path().join("bin");
    for command in ["check", "run"] {
        let output =
            CommandOutput::from(dir.command(&[command]).env("PATH", &nothing).output().unwrap());
        assert_eq!(output.code, 2, "{}", output.transcript());
        insta::allow_duplicates! {
            insta::assert_snapshot!(output.stderr, @r#"
            error[EVAL_AGENT_UNAVAILABLE]: agent claude is not installed: no `claude` on the PATH
             --> bakeoff.toml:3:9
              |
            3 | agent = "claude"
              |         ^^^^^^^^
              |
              = help: install it, or add its folder to the PATH
            error[EVAL_AGENT_UNAVAILABLE]: agent cursor-agent is not installed: no `cursor-agent` or `agent` on the PATH
             --> bakeoff.toml:9:9
              |
            9 | agent = "cursor-agent"
              |         ^^^^^^^^^^^^^^
              |
              = help: install it, or add its folder to the PATH
            error: 2 problems; nothing was called
            "#);
        }
    }
    assert!(!dir.path().join("runs").exists());
}

#[test]
fn extra_arguments_and_older_name_of_cursor_agent_are_accepted() {
    let result = json!({"type": "result", "is_error": false, "result": "fixed"});
    let tool = json!({"type": "tool_call", "call_id": "1", "tool_call": {"shellToolCall": {"args": {"command": "make"}}}});
    let dir = TestDir::with_suite(
        &suite(&["cursor-agent"], "args = [\"--x\", \"y z\"]").replace("model = \"m1\"\n", ""),
    )
    .with_program("agent", &agent(&[tool, result]));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let files = &dir.trials()[0]["attempt"]["files"];
    assert_eq!(files["arguments"]["text"], "--print --output-format stream-json --force --x y z\n");
}

//! An unchanged FastSkill project with two agents: every file in its place, with FastSkill's fields.

use crate::support::{CommandOutput, TestDir};
use serde_json::{Value, json};
use std::path::Path;

/// Agent that reads the skill, runs a command and writes the file, for prompts with "release notes".
fn claude() -> String {
    let message = |content: Value| json!({"type": "assistant", "message": {"id": "m", "content": [content], "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let events = [
        message(
            json!({"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": ".claude/skills/release-notes/SKILL.md"}}),
        ),
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "the skill"}]}}),
        message(
            json!({"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "git log --oneline"}}),
        ),
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t2", "content": "no repository", "is_error": true}]}}),
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "Done.", "num_turns": 2, "usage": {"input_tokens": 5, "output_tokens": 7}}),
    ];
    let lines = events.map(|event| format!("  echo '{event}'\n")).concat();
    format!(
        "#!/bin/sh\nif test \"$1\" = --version; then echo 1.0; exit; fi\n\
         if grep -q 'release notes'; then\n  echo notes > NOTES.md\n{lines}else\n  echo '{}'\nfi\n",
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "No.", "usage": {"input_tokens": 2, "output_tokens": 1}})
    )
}

/// Agent that answers without the skill and exits when its input is closed, as it does after it has settled.
fn pi() -> String {
    let events = [
        json!({"type": "response", "command": "prompt", "success": true}),
        json!({"type": "tool_execution_start", "toolCallId": "c1", "toolName": "bash", "args": {"command": "ls"}}),
        json!({"type": "tool_execution_end", "toolCallId": "c1", "toolName": "bash", "result": {"content": [{"type": "text", "text": "evals"}]}, "isError": false}),
        json!({"type": "turn_end", "message": {"role": "assistant", "content": [{"type": "text", "text": "Hello."}], "usage": {"input": 3, "output": 4}}}),
        json!({"type": "agent_settled"}),
    ];
    let lines = events.map(|event| format!("echo '{event}'\n")).concat();
    format!(
        "#!/bin/sh\ntest \"$*\" = '--mode rpc' || exit 9\nread -r command\n\
         case $command in *'\"type\":\"prompt\"'*) ;; *) exit 8 ;; esac\n{lines}cat > /dev/null\n"
    )
}

fn project() -> TestDir {
    TestDir::new()
        .with(
            "skill-project.toml",
            "[metadata]\nid = \"release-notes\"\n\n[tool.fastskill.eval]\nprompts = \"evals/prompts.csv\"\n\
             checks = \"evals/checks.toml\"\ntimeout_seconds = 300\ntrials_per_case = 2\nparallel = 2\n\
             pass_threshold = 0.5\nfail_on_missing_agent = true\n",
        )
        .with(
            "evals/prompts.csv",
            "id,prompt,should_trigger,tags\nnotes,\"Write release notes, please\",true,basic\n\
             sum,What is 2 + 2?,false,\n",
        )
        .with(
            "evals/checks.toml",
            "[[check]]\nname = \"trigger_expectation\"\npattern = \"release-notes/SKILL.md\"\nexpected = true\n\n\
             [[check]]\nname = \"file_exists\"\npath = \"NOTES.md\"\n\n\
             [[check]]\nname = \"max_command_count\"\nlimit = 3\n",
        )
        .with("docs/guide/a.md", "a")
        .with_program("claude", &claude())
        .with_program("pi", &pi())
}

/// Runs with the programs of the test only, and the shell's.
fn run(dir: &TestDir, folder: &str, words: &[&str]) -> CommandOutput {
    let mut command = dir.command(words);
    let folders = [&dir.path().join("bin"), Path::new("/usr/bin"), Path::new("/bin")];
    command.env("PATH", std::env::join_paths(folders).unwrap());
    CommandOutput::from(command.current_dir(dir.path().join(folder)).output().unwrap())
}

/// Returns the relative paths of all files below a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        match path.is_dir() {
            true => found.extend(files(&path).iter().map(|inner| format!("{name}/{inner}"))),
            false => found.push(name),
        }
    }
    found.sort();
    found
}

/// Reads a JSON file without the fields that Bakeoff adds.
fn read(path: &Path, fields: &[&str]) -> Value {
    let mut value: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    retain(&mut value, fields);
    value
}

fn retain(value: &mut Value, fields: &[&str]) {
    match value {
        Value::Object(entries) => {
            entries.retain(|name, _| fields.contains(&name.as_str()));
            entries.values_mut().for_each(|value| retain(value, fields));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| retain(item, fields)),
        _ => {}
    }
}

const CHECK: [&str; 4] = ["check_name", "passed", "required", "message"];
const TRIAL: [&str; 7] = [
    "trial_id",
    "status",
    "command_count",
    "input_tokens",
    "output_tokens",
    "check_results",
    "error_message",
];
const CASE: [&str; 6] =
    ["id", "trials", "aggregated_status", "pass_count", "total_trials", "pass_rate"];
const SUMMARY: [&str; 14] = [
    "suite_pass",
    "suite_pass_rate",
    "agent",
    "model",
    "total_cases",
    "passed",
    "failed",
    "trials_per_case",
    "parallel",
    "pass_threshold",
    "run_dir",
    "checks_path",
    "skill_project_root",
    "cases",
];

#[test]
fn unchanged_project_with_two_agents() {
    let dir = project();
    // The project is found from a folder within it.
    let output = run(&dir, "docs/guide", &["run", "--all", "--output-dir", "../../out"]);
    assert_eq!(output.code, 1, "{}", output.transcript());
    let out = dir.path().join("out");
    let entries = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    let run_dir = entries.into_iter().find(|path| path.is_dir()).unwrap();
    let own = ["cases.jsonl", "http.jsonl", "journal.jsonl", "limits.jsonl", "run.json"];
    let listed: Vec<String> =
        files(&run_dir).into_iter().filter(|name| !own.contains(&name.as_str())).collect();
    let of_case = |agent: &str, case: &str| {
        let trial = |number: u32| {
            ["result.json", "stderr.txt", "stdout.txt", "trace.jsonl"]
                .map(|name| format!("{agent}/{case}/trial-{number}/{name}"))
        };
        let aggregated = format!("{agent}/{case}/aggregated.json");
        [vec![aggregated], trial(1).to_vec(), trial(2).to_vec()].concat()
    };
    let of_agent = |agent: &str| {
        [of_case(agent, "notes"), of_case(agent, "sum"), vec![format!("{agent}/summary.json")]]
            .concat()
    };
    let expected = [of_agent("claude"), of_agent("pi"), vec!["summary.json".to_owned()]].concat();
    assert_eq!(listed, expected);

    let check = |name: &str, passed: bool, message: Value| json!({"check_name": name, "passed": passed, "required": true, "message": message});
    let trial = |id: u32| {
        json!({
            "trial_id": id, "status": "passed", "command_count": 1, "input_tokens": 5, "output_tokens": 7,
            "check_results": [
                check("trigger_expectation", true, Value::Null),
                check("file_exists", true, Value::Null),
                check("max_command_count", true, Value::Null),
            ],
            "error_message": null,
        })
    };
    let trial_fields = [TRIAL.as_slice(), &CHECK].concat();
    assert_eq!(read(&run_dir.join("claude/notes/trial-2/result.json"), &trial_fields), trial(2));
    let case_fields = [trial_fields.as_slice(), &CASE].concat();
    let aggregated = json!({
        "id": "notes", "trials": [trial(1), trial(2)], "aggregated_status": "passed", "pass_count": 2,
        "total_trials": 2, "pass_rate": 1.0,
    });
    assert_eq!(read(&run_dir.join("claude/notes/aggregated.json"), &case_fields), aggregated);

    let summary_fields = [case_fields.as_slice(), &SUMMARY].concat();
    let claude = read(&run_dir.join("claude/summary.json"), &summary_fields);
    let root = dir.path().display().to_string();
    let mut notes = aggregated;
    let fields = notes.as_object_mut().unwrap();
    fields.remove("aggregated_status");
    let totals =
        json!({"status": "passed", "command_count": 2, "input_tokens": 10, "output_tokens": 14});
    fields.extend(totals.as_object().unwrap().clone());
    let mut without_cases = claude.clone();
    let cases = without_cases.as_object_mut().unwrap().remove("cases").unwrap();
    assert_eq!(cases[0], notes);
    assert_eq!(cases[1]["id"], "sum");
    assert_eq!(
        without_cases,
        json!({
            "suite_pass": true, "suite_pass_rate": 1.0, "agent": "claude", "model": null,
            "total_cases": 2, "passed": 2, "failed": 0, "trials_per_case": 2, "parallel": 2,
            "pass_threshold": 0.5, "run_dir": run_dir.join("claude").canonicalize().unwrap(),
            "checks_path": format!("{root}/evals/checks.toml"), "skill_project_root": root,
        })
    );
    let pi = read(&run_dir.join("pi/summary.json"), &summary_fields);
    assert_eq!((&pi["agent"], &pi["passed"], &pi["failed"]), (&json!("pi"), &json!(1), &json!(1)));
    let whole = read(&run_dir.join("summary.json"), &summary_fields);
    let numbers = ["suite_pass", "suite_pass_rate", "agent", "total_cases", "passed", "failed"];
    assert_eq!(
        numbers.map(|name| whole[name].clone()),
        [json!(false), json!(0.75), json!("claude, pi"), json!(4), json!(3), json!(1)]
    );
    assert_eq!(whole["cases"].as_array().unwrap().len(), 4);

    let trace = |path: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(run_dir.join(path)).unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect()
    };
    let events = trace("claude/notes/trial-1/trace.jsonl");
    let payloads: Vec<&Value> = events.iter().map(|event| &event["payload"]).collect();
    assert_eq!(
        payloads[..5],
        [
            &json!({"type": "message", "role": "user", "text": "Write release notes, please"}),
            &json!({"type": "tool_use", "call_id": "t1", "tool_name": "Read", "input": {"file_path": ".claude/skills/release-notes/SKILL.md"}}),
            &json!({"type": "tool_result", "call_id": "t1", "output": "the skill", "is_error": false}),
            &json!({"type": "tool_use", "call_id": "t2", "tool_name": "Bash", "input": {"command": "git log --oneline"}}),
            &json!({"type": "tool_result", "call_id": "t2", "output": "no repository", "is_error": true}),
        ]
    );
    assert!(events.iter().enumerate().all(|(seq, event)| event["seq"] == seq));
    let results = trace("pi/sum/trial-1/trace.jsonl");
    let result = results.iter().find(|event| event["payload"]["type"] == "tool_result").unwrap();
    assert_eq!(result["payload"]["output"], "evals");
    // The project is unchanged.
    assert!(!dir.path().join("NOTES.md").exists());
    // Resuming needs no selection of agents.
    let resumed = run(&dir, "", &["run", "--resume", "last", "--out", "out"]);
    assert_eq!(resumed.code, 1, "{}", resumed.transcript());
}

#[test]
fn one_agent_has_the_summary_in_the_folder_of_the_run() {
    let dir = project();
    let output = run(&dir, "", &["run", "--agent", "claude"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let folder = dir.run_folder();
    let summary = read(&folder.join("summary.json"), &SUMMARY);
    assert_eq!(summary["agent"], "claude");
    assert_eq!(summary["run_dir"], folder.canonicalize().unwrap().display().to_string());
    assert!(folder.join("notes/trial-1/result.json").is_file());
}

#[test]
fn check_prints_fastskill_settings_as_json() {
    let dir = project();
    let output = run(&dir, "docs", &["validate", "--json", "--all"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(output.stdout.lines().count(), 1);
    let mut done = output.done();
    let fields = [
        "valid",
        "prompts_path",
        "checks_path",
        "timeout_seconds",
        "trials_per_case",
        "parallel",
        "pass_threshold",
        "fail_on_missing_agent",
        "project_root",
        "case_count",
        "check_count",
        "targets",
    ];
    retain(&mut done, &fields);
    let root = dir.path().display().to_string();
    assert_eq!(
        done,
        json!({
            "valid": true, "prompts_path": format!("{root}/evals/prompts.csv"),
            "checks_path": format!("{root}/evals/checks.toml"), "timeout_seconds": 300,
            "trials_per_case": 2, "parallel": 2, "pass_threshold": 0.5,
            "fail_on_missing_agent": true, "project_root": root, "case_count": 2, "check_count": 3,
            "targets": ["claude", "pi"],
        })
    );
    let conflict = run(&dir, "", &["validate", "--all", "--agent", "pi"]);
    assert_eq!(conflict.code, 2, "{}", conflict.transcript());
}

#[test]
fn exhausted_processes_are_errors_of_their_trials() {
    let dir = project();
    let inner = dir.command(&["run", ".", "-a", "claude", "--no-memory"]);
    let run_with_limit = |files: u32| {
        let mut limited = std::process::Command::new("sh");
        limited.arg("-c").arg(format!("ulimit -n {files}; exec \"$0\" \"$@\""));
        limited.arg(inner.get_program()).args(inner.get_args()).current_dir(dir.path()).env_clear();
        for (name, value) in inner.get_envs() {
            limited.env(name, value.unwrap());
        }
        CommandOutput::from(limited.output().unwrap())
    };
    // Each running program needs several files. How many are open before depends on what the test inherits.
    let outputs = (12..64).map(run_with_limit);
    let mut exhausted =
        outputs.filter(|output| output.transcript().contains("[EVAL_PARALLEL_EXHAUSTION]"));
    let output =
        exhausted.next().expect("no limit lets the run start, but not all of its programs");
    assert_eq!(output.code, 3, "{}", output.transcript());
}

#[test]
fn files_that_cannot_be_written_end_the_run() {
    let dir = project();
    let inner = dir.command(&["run", ".", "-a", "claude"]);
    let script = "trap '' XFSZ; ulimit -f 4; exec \"$0\" \"$@\"";
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", script]).arg(inner.get_program()).args(inner.get_args());
    limited.current_dir(dir.path()).env_clear();
    for (name, value) in inner.get_envs() {
        limited.env(name, value.unwrap());
    }
    let output = CommandOutput::from(limited.output().unwrap());
    assert_eq!(output.code, 4, "{}", output.transcript());
    assert!(output.stderr.contains("[EVAL_TRIAL_ARTIFACTS_CORRUPT]"), "{}", output.stderr);
    assert!(output.stderr.contains("hint: "), "{}", output.stderr);
}

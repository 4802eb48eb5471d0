//! FastSkill projects run unchanged.

use crate::support::{CommandOutput, TestDir};
use serde_json::{Value, json};
use std::path::Path;

/// Copies the fixture to a test directory.
fn project() -> TestDir {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fastskill");
    let files =
        ["skill-project.toml", "evals/prompts.csv", "evals/checks.toml", "packages/web/CHANGES"];
    files.iter().fold(TestDir::new(), |dir, name| {
        dir.with(name, std::fs::read(fixture.join(name)).unwrap())
    })
}

/// Replaces text in a file.
fn with_replacement(dir: TestDir, name: &str, from: &str, to: &str) -> TestDir {
    let text = std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(text.contains(from), "{text}");
    dir.with(name, text.replace(from, to))
}

/// Returns an agent that uses the skill for prompts about release notes.
fn claude() -> String {
    let event = |content: Value| json!({"type": "assistant", "message": {"id": "m", "content": [content], "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let bash = |command: &str| {
        event(json!({"type": "tool_use", "name": "Bash", "input": {"command": command}}))
    };
    let init = json!({"type": "system", "subtype": "init", "skills": ["release-notes/SKILL.md"]});
    let skill = event(
        json!({"type": "tool_use", "name": "Read", "input": {"file_path": ".claude/skills/release-notes/SKILL.md"}}),
    );
    let result = |text: &str| json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "num_turns": 2, "total_cost_usd": 0.01, "usage": {"input_tokens": 5, "output_tokens": 7}});
    format!(
        "#!/bin/sh\nif test \"$1\" = --version; then echo 1.0; exit; fi\ncat > prompt.txt\necho '{init}'\nif grep -q 'release notes' prompt.txt; then\n  ls CHANGES 2> /dev/null > seen.txt\n  echo '{skill}'\n  echo '{}'\n  echo notes > NOTES.md\n  echo '{}'\nelse\n  echo '{}'\nfi\n",
        bash("git log --oneline"),
        result("The notes are in NOTES.md."),
        result("I do not know."),
    )
}

fn statuses(dir: &TestDir) -> Vec<String> {
    let status = |trial: &Value| {
        format!("{} {}", trial["key"]["case"].as_str().unwrap(), trial["status"].as_str().unwrap())
    };
    let mut all: Vec<String> = dir.trials().iter().map(status).collect();
    all.dedup();
    all
}

#[test]
fn pass_rate_of_a_project_is_over_the_planned_trials() {
    let crash = "#!/bin/sh\ncase \"$BAKEOFF_TRIAL_ID\" in */2) exit 3;; esac";
    let agent = claude().replacen("#!/bin/sh", crash, 1);
    let dir = project().with_program("claude", &agent);
    let words = ["run", "skill-project.toml", "--agent", "claude", "--case", "sum"];
    let output = dir.run(&[&words[..], &["--trials", "5", "--threshold", "0.6"]].concat());
    assert_eq!(output.code, 0, "{}", output.transcript());
    let case = &dir.summary()["targets"][0]["cases"][0];
    assert_eq!(
        (&case["pass_count"], &case["counted"], &case["errors"]),
        (&json!(4), &json!(4), &json!(1))
    );
    assert_eq!(case["pass_rate"], 0.8);
    // A report of the journal has the same definition.
    std::fs::remove_file(dir.run_folder().join("summary.json")).unwrap();
    let report = dir.run(&["report", "--json"]).done();
    assert_eq!(report["summary"]["targets"][0]["cases"][0]["pass_rate"], 0.8);
}

#[test]
fn project_runs_unchanged() {
    let dir = project().with_program("claude", &claude());
    let words = ["run", "skill-project.toml", "--trials", "5", "--ci", "--threshold", "0.8"];
    let mut command = dir.command(&words);
    // No other agent is installed.
    let folders = [&dir.path().join("bin"), std::path::Path::new("/usr/bin"), "/bin".as_ref()];
    let output = CommandOutput::from(
        command.env("PATH", std::env::join_paths(folders).unwrap()).output().unwrap(),
    );
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(
        statuses(&dir),
        ["nested passed", "plain passed", "quoted passed", "sum passed", "weather passed"]
    );
    let trials = dir.trials();
    assert_eq!(trials.len(), 25);
    // Prompts are passed verbatim, including line breaks, quotation marks and braces.
    let quoted = trials.iter().find(|trial| trial["key"]["case"] == "quoted").unwrap();
    assert_eq!(
        quoted["attempt"]["files"]["prompt.txt"]["text"],
        "Write release notes, please:\nfirst \"feature\",\nthen {{ fixes }}"
    );
    let summary = dir.summary();
    assert_eq!(summary["suite_pass"], true);
    assert_eq!((&summary["trials_per_case"], &summary["pass_threshold"]), (&json!(5), &json!(0.8)));
    let nested = trials.iter().find(|trial| trial["key"]["case"] == "nested").unwrap();
    assert_eq!(nested["attempt"]["files"]["seen.txt"]["text"], "CHANGES\n");
    // The optional check failed, and is distinct from the check of the same kind.
    let checks: Vec<String> = nested["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| format!("{} {} {}", check["check"], check["passed"], check["required"]))
        .collect();
    assert_eq!(
        checks,
        [
            r#""trigger_expectation" true true"#,
            r#""command_contains" true true"#,
            r#""file_exists" true true"#,
            r#""max_command_count" true true"#,
            r#""command_contains-2" false false"#,
        ]
    );
    let weather = trials.iter().find(|trial| trial["key"]["case"] == "weather").unwrap();
    assert_eq!(weather["checks"].as_array().unwrap().len(), 2);
    let folder = dir.run_folder();
    for name in ["plain/aggregated.json", "plain/trial-5/result.json", "plain/trial-5/stdout.txt"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    let trace = std::fs::read_to_string(folder.join("plain/trial-1/trace.jsonl")).unwrap();
    let trace: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> =
        trace.iter().map(|line| line["payload"]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "tool_use", "tool_use", "message", "token_usage_line"]);
    let run: Value =
        serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap();
    assert_eq!(run["suite"]["parallel"], 1);
    // The user's directory is unchanged.
    assert!(!dir.path().join("NOTES.md").exists() && !dir.path().join("prompt.txt").exists());
}

#[test]
fn run_of_a_project_can_be_rescored() {
    let dir = project().with_program("claude", &claude());
    assert_eq!(dir.run(&["run", ".", "-a", "claude", "--quiet", "--out", "first"]).code, 0);
    let dir =
        with_replacement(dir, "evals/checks.toml", "path = \"NOTES.md\"", "path = \"gone.md\"");
    let output = dir.run(&["score", "--out", "first"]);
    assert_eq!(output.code, 1, "{}", output.transcript());
    assert!(output.stdout.contains("gone.md does not exist"), "{}", output.stdout);
}

#[test]
fn skill_that_triggers_wrongly_fails() {
    let dir = project().with_program("claude", &claude());
    let dir =
        with_replacement(dir, "evals/prompts.csv", "What is the weather like?", "release notes?");
    let output = dir.run(&["run", "skill-project.toml", "--agent", "claude"]);
    assert_eq!(output.code, 1, "{}", output.transcript());
    assert!(statuses(&dir).contains(&"weather failed".to_owned()));
    assert!(statuses(&dir).contains(&"sum passed".to_owned()));
}

#[test]
fn expected_false_rejects_triggers_in_every_case() {
    let dir = project().with_program("claude", &claude());
    let dir = with_replacement(dir, "evals/checks.toml", "expected = true", "expected = false");
    assert_eq!(dir.run(&["run", ".", "-a", "claude"]).code, 1);
    assert_eq!(
        statuses(&dir),
        ["nested failed", "plain failed", "quoted failed", "sum passed", "weather passed"]
    );
}

#[test]
fn without_a_trigger_check_all_checks_apply_to_every_case() {
    let dir = project().with_program("claude", &claude());
    let dir =
        dir.with("evals/checks.toml", "[[check]]\nname = \"file_exists\"\npath = \"NOTES.md\"\n");
    assert_eq!(dir.run(&["run", ".", "-a", "claude"]).code, 1);
    assert!(statuses(&dir).contains(&"weather failed".to_owned()));
}

#[test]
fn without_checks_the_exit_code_decides() {
    let dir = project().with_program("claude", &claude());
    let dir = with_replacement(dir, "skill-project.toml", "checks = \"evals/checks.toml\"\n", "");
    let output = dir.run(&["run", ".", "-a", "claude"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn missing_settings_have_fastskill_defaults() {
    let dir = project().with_program("claude", &claude()).with(
        "skill-project.toml",
        "[tool.fastskill.eval]\nprompts = \"evals/prompts.csv\"\nchecks = \"evals/checks.toml\"\n",
    );
    assert_eq!(dir.run(&["run", ".", "-a", "claude"]).code, 0);
    let bytes = std::fs::read(dir.run_folder().join("run.json")).unwrap();
    let suite = &serde_json::from_slice::<Value>(&bytes).unwrap()["suite"];
    let settings =
        ["timeout_seconds", "trials", "threshold", "parallel"].map(|key| suite[key].clone());
    assert_eq!(settings, [json!(900.0), json!(1), json!(1.0), Value::Null]);
}

#[test]
fn patterns_are_not_rendered_as_templates() {
    let script = claude().replace("I do not know.", "{{ x }} {% y %} \\\\\"z\\\\\"");
    let dir = project().with_program("claude", &script);
    let check = "[[check]]\nname = \"trigger_expectation\"\npattern = '{{ x }} {% y %} \"z\"'\n";
    let dir = dir.with("evals/checks.toml", check);
    let dir = dir.with("evals/prompts.csv", "id,prompt,should_trigger\na,hello,true\n");
    let output = dir.run(&["run", ".", "-a", "claude"]);
    assert_eq!(output.code, 0, "{}\n{:?}", output.transcript(), dir.trials());
}

#[test]
fn project_can_be_checked_with_and_without_an_agent() {
    let dir = project();
    let run_isolated = |dir: &TestDir, words: &[&str]| {
        // Independent of the agents on this machine.
        CommandOutput::from(
            dir.command(words).env("PATH", dir.path().join("bin")).output().unwrap(),
        )
    };
    insta::assert_snapshot!(run_isolated(&dir, &["check", "skill-project.toml"]).transcript(), @r#"
    exit 0
    --- stdout
    release-notes: skill-project.toml is valid
    5 cases × 0 targets × 1 trial = 0 trials
    note: no targets, so there is nothing to run; select agents with `--agent NAME`
    estimated cost: $0.00
    --- stderr
    "#);
    // The only installed agent is the default.
    let dir = dir.with_program("claude", &claude());
    let checked = run_isolated(&dir, &["check", "skill-project.toml"]);
    assert!(checked.stdout.contains("5 cases × 1 target"), "{}", checked.transcript());
    let dir = dir.with_program("codex", &claude());
    let several = run_isolated(&dir, &["run", "skill-project.toml"]);
    assert_eq!(several.code, 2, "{}", several.transcript());
    assert!(several.stderr.contains("several agents installed"), "{}", several.stderr);
    assert!(several.stderr.contains("`--agent NAME`: claude, codex"), "{}", several.stderr);
    let checked = dir.run(&["validate", "--agent", "claude", "--model", "opus"]);
    insta::assert_snapshot!(checked.transcript(), @r#"
    exit 0
    --- stdout
    release-notes: skill-project.toml is valid
    5 cases × 1 target × 1 trial = 5 trials
      claude (claude -p - --dangerously-skip-permissions --model opus --output-format stream-json --verbose): 5 trials
    estimated cost: $0.00
    --- stderr
    "#);
}

#[test]
fn other_columns_have_no_meaning() {
    let columns = "id,prompt,should_trigger,checks,messages,threshold,trials,workspace,attachments";
    let prompts = format!("{columns}\na,release notes,true,c,m,high,many,w,none.png\n");
    let dir = project().with_program("claude", &claude()).with("evals/prompts.csv", prompts);
    let output = dir.run(&["check", ".", "--agent", "claude"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(output.stdout.contains("1 case × 1 target × 1 trial = 1 trial"), "{}", output.stdout);
}

#[test]
fn cases_can_be_selected_by_id_and_tag() {
    let dir = project().with_program("claude", &claude());
    assert_eq!(dir.run(&["run", ".", "-a", "claude", "--tag", "basic"]).code, 0);
    assert_eq!(statuses(&dir), ["plain passed"]);
}

#[test]
fn several_agents_become_several_targets() {
    let dir =
        project().with_program("claude", &claude()).with_program("gemini", "#!/bin/sh\ncat\n");
    let output =
        dir.run(&["run", ".", "-a", "claude", "-a", "gemini", "-a", "claude", "--case", "sum"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let targets: Vec<Value> =
        dir.trials().iter().map(|trial| trial["key"]["target"].clone()).collect();
    assert_eq!(targets, ["claude", "gemini"]);
    assert!(dir.run_folder().join("gemini/sum/trial-1/result.json").is_file());
}

#[test]
fn run_of_a_project_can_be_resumed() {
    let dir = project().with_program("claude", &claude());
    let output = dir.run(&["run", ".", "-a", "claude", "--model", "opus", "--trials", "2"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let summary = dir.summary();
    let output = dir.run(&["run", "--resume", "last"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(dir.trials().len(), 10);
    assert_eq!(dir.summary()["targets"], summary["targets"]);
    let output = dir.run(&["run", "--resume", "last", "--model", "haiku"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(output.stderr.contains("target `claude` has changed"), "{}", output.stderr);
}

/// Returns the message about an invalid project.
fn rejection(dir: &TestDir, arguments: &[&str]) -> String {
    let output = dir.run(&[&["run", "skill-project.toml"], arguments].concat());
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.transcript());
    assert!(!dir.path().join("runs").exists());
    output.stderr
}

#[test]
fn every_error_has_its_code() {
    let with = |name: &str, from: &str, to: &str| {
        with_replacement(project().with_program("claude", &claude()), name, from, to)
    };
    let toml = "skill-project.toml";
    for (dir, code, words) in [
        (
            with(toml, "[tool.fastskill.eval]", "[tool.fastskill.other]"),
            "EVAL_CONFIG_MISSING",
            "missing table [tool.fastskill.eval]",
        ),
        (
            with(toml, "evals/prompts.csv", "gone.csv"),
            "EVAL_PROMPTS_NOT_FOUND",
            "gone.csv: cannot read the prompts",
        ),
        (
            with(toml, "evals/checks.toml", "gone.toml"),
            "EVAL_CHECKS_INVALID",
            "gone.toml: cannot read the checks",
        ),
        (
            with(toml, "trials_per_case = 1", "trials_per_case = 1001"),
            "EVAL_INVALID_TRIALS_CONFIG",
            "from 1 to 1000, not 1001",
        ),
        (
            with(toml, "pass_threshold = 1.0", "pass_threshold = 1.5"),
            "EVAL_INVALID_THRESHOLD",
            "from 0 to 1, not 1.5",
        ),
        (
            with(toml, "pass_threshold = 1.0", "pass_threshold = nan"),
            "EVAL_INVALID_THRESHOLD",
            "not nan",
        ),
        (
            with("evals/prompts.csv", "should_trigger", "trigger"),
            "EVAL_INVALID_CSV",
            "missing column `should_trigger`",
        ),
        (
            with("evals/prompts.csv", "sum,", "plain,"),
            "EVAL_INVALID_CSV",
            "duplicate case id `plain`",
        ),
        (
            with("evals/prompts.csv", ",0,,", ",perhaps,,"),
            "EVAL_INVALID_CSV",
            "`should_trigger` cannot be \"perhaps\"",
        ),
        (
            with("evals/prompts.csv", ",0,,", ",0,,,more"),
            "EVAL_INVALID_CSV",
            "6 fields, but 5 columns",
        ),
        (
            with("evals/prompts.csv", "packages/web", "packages/gone"),
            "EVAL_INVALID_CSV",
            "not found: packages/gone",
        ),
        (
            with("evals/prompts.csv", "packages/web", "../web"),
            "EVAL_INVALID_CSV",
            "must stay within",
        ),
        (
            with("evals/checks.toml", "limit = 3", "limit = -1"),
            "EVAL_CHECKS_INVALID",
            "`limit` must be an integer",
        ),
        (
            with("evals/checks.toml", "limit = 3", "limti = 3"),
            "EVAL_CHECKS_INVALID",
            "did you mean `limit`?",
        ),
        (
            with("evals/checks.toml", "path = \"NOTES.md\"", ""),
            "EVAL_CHECKS_INVALID",
            "has no `path`",
        ),
        (
            with("evals/checks.toml", "name = \"file_exists\"", "name = \"file_exist\""),
            "EVAL_CHECKS_INVALID",
            "did you mean `file_exists`?",
        ),
        (
            with("evals/checks.toml", "[[check]]", "[[chek]]"),
            "EVAL_CHECKS_INVALID",
            "`chek` is not a list of checks",
        ),
        (with("evals/checks.toml", "limit = 3", "limit = "), "EVAL_CHECKS_INVALID", "not TOML"),
    ] {
        let message = rejection(&dir, &["--agent", "claude"]);
        assert!(
            message.contains(&format!("error[{code}]")) && message.contains(words),
            "{code} {words}\n{message}"
        );
    }
}

#[test]
fn missing_and_empty_files_are_rejected() {
    let output = TestDir::new().run(&["run", "skill-project.toml", "--agent", "claude"]);
    assert!(output.code == 2 && output.stderr.contains("EVAL_CONFIG_MISSING"), "{}", output.stderr);
    let dir = project().with_program("claude", &claude());
    let dir = dir.with("evals/prompts.csv", "id,prompt,should_trigger\n");
    assert!(rejection(&dir, &["--agent", "claude"]).contains("prompts.csv: no prompts"));
    let empty = dir.with("evals/prompts.csv", "");
    assert!(rejection(&empty, &["--agent", "claude"]).contains("EVAL_INVALID_CSV"));
}

#[test]
fn missing_agents_are_rejected() {
    let dir = project();
    let run = |dir: &TestDir, arguments: &[&str]| {
        let mut command = dir.command(&[&["run", "skill-project.toml"], arguments].concat());
        // Only programs of this test.
        CommandOutput::from(command.env("PATH", dir.path().join("bin")).output().unwrap())
    };
    let output = run(&dir, &["--agent", "claude"]);
    assert!(
        output.code == 2 && output.stderr.contains("error[EVAL_AGENT_UNAVAILABLE]"),
        "{}",
        output.transcript()
    );
    let output = run(&dir, &["--agent", "cloude"]);
    assert!(output.stderr.contains("there is no agent `cloude`"), "{}", output.stderr);
    assert!(output.stderr.contains("did you mean `claude`?"), "{}", output.stderr);
    let output = run(&dir, &[]);
    assert!(
        output.code == 2 && output.stderr.contains("no agent installed"),
        "{}",
        output.transcript()
    );
    // A missing agent is skipped, but one must be left.
    let dir = with_replacement(dir, "skill-project.toml", "agent = true", "agent = false");
    let output = run(&dir, &["--agent", "claude"]);
    assert!(
        output.code == 2 && output.stderr.contains("EVAL_AGENT_UNAVAILABLE"),
        "{}",
        output.transcript()
    );
    let script = claude().replace("#!/bin/sh\n", "#!/bin/sh\nPATH=/usr/bin:/bin\n");
    let dir = dir.with_program("claude", &script);
    let output = run(&dir, &["--agent", "claude", "--agent", "codex", "--case", "sum"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let warning =
        "agent codex is not installed: no `codex` on the PATH; skipped [EVAL_AGENT_UNAVAILABLE]";
    assert!(output.stderr.contains(warning), "{}", output.stderr);
}

#[test]
fn agent_timeout_is_an_error() {
    let dir = project().with_program("claude", "#!/bin/sh\nexec sleep 600\n");
    let dir =
        with_replacement(dir, "skill-project.toml", "timeout_seconds = 60", "timeout_seconds = 1");
    let output = dir.run(&["run", ".", "-a", "claude", "--case", "sum"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert!(output.stdout.contains("EVAL_CASE_TIMEOUT"), "{}", output.stdout);
}

#[test]
fn unknown_keys_print_a_warning() {
    let dir = project().with_program("claude", &claude());
    let dir = with_replacement(dir, "skill-project.toml", "parallel = 0", "paralel = 2");
    let output = dir.run(&["check", ".", "-a", "claude"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(output.stderr.contains("unknown key `paralel`"), "{}", output.stderr);
    assert!(output.stderr.contains("did you mean `parallel`?"), "{}", output.stderr);
}

#[test]
fn agent_arguments_of_a_suite_are_rejected() {
    let dir = TestDir::with_suite(
        "[[target]]\nname = \"a\"\ncommand = [\"true\"]\nprompt = \"\"\n[[cases.inline]]\nid = \"a\"\n",
    );
    for arguments in
        [["run", "--agent", "claude"], ["run", "--model", "x"], ["check", "--agent", "a"]]
    {
        let output = dir.run(&arguments);
        assert_eq!(output.code, 2, "{}", output.transcript());
        assert!(output.stderr.contains("is for FastSkill projects"), "{}", output.stderr);
    }
}

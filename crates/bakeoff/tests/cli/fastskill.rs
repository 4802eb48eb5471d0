//! FastSkill projects, as they are.

use crate::support::{Ran, Workplace};
use serde_json::{Value, json};
use std::path::Path;

/// The fixture, in a place of its own.
fn project() -> Workplace {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fastskill");
    let files =
        ["skill-project.toml", "evals/prompts.csv", "evals/checks.toml", "packages/web/CHANGES"];
    files.iter().fold(Workplace::new(), |place, name| {
        place.with(name, std::fs::read(fixture.join(name)).unwrap())
    })
}

/// The file with something replaced.
fn changed(place: Workplace, name: &str, from: &str, to: &str) -> Workplace {
    let text = std::fs::read_to_string(place.path().join(name)).unwrap();
    assert!(text.contains(from), "{text}");
    place.with(name, text.replace(from, to))
}

/// An agent that uses the skill when it is asked for release notes.
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

fn statuses(place: &Workplace) -> Vec<String> {
    let status = |trial: &Value| {
        format!("{} {}", trial["key"]["case"].as_str().unwrap(), trial["status"].as_str().unwrap())
    };
    let mut all: Vec<String> = place.trials().iter().map(status).collect();
    all.dedup();
    all
}

#[test]
fn a_project_runs_unchanged() {
    let place = project().with_program("claude", &claude());
    let words = ["run", "skill-project.toml", "--trials", "5", "--ci", "--threshold", "0.8"];
    let mut command = place.command(&words);
    // No other agent than that one is installed.
    let folders = [&place.path().join("bin"), std::path::Path::new("/usr/bin"), "/bin".as_ref()];
    let ran =
        Ran::from(command.env("PATH", std::env::join_paths(folders).unwrap()).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert_eq!(
        statuses(&place),
        ["nested passed", "plain passed", "quoted passed", "sum passed", "weather passed"]
    );
    let trials = place.trials();
    assert_eq!(trials.len(), 25);
    // A prompt is what stands in the file, line breaks, quotation marks and braces included.
    let quoted = trials.iter().find(|trial| trial["key"]["case"] == "quoted").unwrap();
    assert_eq!(
        quoted["attempt"]["files"]["prompt.txt"]["text"],
        "Write release notes, please:\nfirst \"feature\",\nthen {{ fixes }}"
    );
    let summary = place.summary();
    assert_eq!(summary["suite_pass"], true);
    assert_eq!((&summary["trials_per_case"], &summary["pass_threshold"]), (&json!(5), &json!(0.8)));
    let nested = trials.iter().find(|trial| trial["key"]["case"] == "nested").unwrap();
    assert_eq!(nested["attempt"]["files"]["seen.txt"]["text"], "CHANGES\n");
    // What was not required failed, and is told apart from the check of the same kind.
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
    let folder = place.run_folder();
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
    // The user's folder is as it was.
    assert!(!place.path().join("NOTES.md").exists() && !place.path().join("prompt.txt").exists());
}

#[test]
fn a_run_of_a_project_can_be_judged_again() {
    let place = project().with_program("claude", &claude());
    assert_eq!(place.run(&["run", ".", "-a", "claude", "--quiet", "--out", "first"]).code, 0);
    let place = changed(place, "evals/checks.toml", "path = \"NOTES.md\"", "path = \"gone.md\"");
    let ran = place.run(&["score", "--out", "first"]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    assert!(ran.stdout.contains("gone.md does not exist"), "{}", ran.stdout);
}

#[test]
fn a_skill_that_triggers_when_it_should_not_fails() {
    let place = project().with_program("claude", &claude());
    let place = changed(place, "evals/prompts.csv", "What is the weather like?", "release notes?");
    let ran = place.run(&["run", "skill-project.toml", "--agent", "claude"]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    assert!(statuses(&place).contains(&"weather failed".to_owned()));
    assert!(statuses(&place).contains(&"sum passed".to_owned()));
}

#[test]
fn expected_false_means_in_no_case() {
    let place = project().with_program("claude", &claude());
    let place = changed(place, "evals/checks.toml", "expected = true", "expected = false");
    assert_eq!(place.run(&["run", ".", "-a", "claude"]).code, 1);
    assert_eq!(
        statuses(&place),
        ["nested failed", "plain failed", "quoted failed", "sum passed", "weather passed"]
    );
}

#[test]
fn without_a_check_of_the_trigger_every_case_is_asked_for_everything() {
    let place = project().with_program("claude", &claude());
    let place =
        place.with("evals/checks.toml", "[[check]]\nname = \"file_exists\"\npath = \"NOTES.md\"\n");
    assert_eq!(place.run(&["run", ".", "-a", "claude"]).code, 1);
    assert!(statuses(&place).contains(&"weather failed".to_owned()));
}

#[test]
fn without_checks_the_exit_code_decides() {
    let place = project().with_program("claude", &claude());
    let place = changed(place, "skill-project.toml", "checks = \"evals/checks.toml\"\n", "");
    let ran = place.run(&["run", ".", "-a", "claude"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
}

#[test]
fn settings_that_are_absent_are_fastskills() {
    let place = project().with_program("claude", &claude()).with(
        "skill-project.toml",
        "[tool.fastskill.eval]\nprompts = \"evals/prompts.csv\"\nchecks = \"evals/checks.toml\"\n",
    );
    assert_eq!(place.run(&["run", ".", "-a", "claude"]).code, 0);
    let bytes = std::fs::read(place.run_folder().join("run.json")).unwrap();
    let suite = &serde_json::from_slice::<Value>(&bytes).unwrap()["suite"];
    let settings =
        ["timeout_seconds", "trials", "threshold", "parallel"].map(|key| suite[key].clone());
    assert_eq!(settings, [json!(900.0), json!(1), json!(1.0), Value::Null]);
}

#[test]
fn patterns_are_no_templates() {
    let script = claude().replace("I do not know.", "{{ x }} {% y %} \\\\\"z\\\\\"");
    let place = project().with_program("claude", &script);
    let check = "[[check]]\nname = \"trigger_expectation\"\npattern = '{{ x }} {% y %} \"z\"'\n";
    let place = place.with("evals/checks.toml", check);
    let place = place.with("evals/prompts.csv", "id,prompt,should_trigger\na,hello,true\n");
    let ran = place.run(&["run", ".", "-a", "claude"]);
    assert_eq!(ran.code, 0, "{}\n{:?}", ran.shown(), place.trials());
}

#[test]
fn a_project_can_be_checked_with_and_without_an_agent() {
    let place = project();
    let alone = |place: &Workplace, words: &[&str]| {
        // Whatever is installed on this machine.
        Ran::from(place.command(words).env("PATH", place.path().join("bin")).output().unwrap())
    };
    insta::assert_snapshot!(alone(&place, &["check", "skill-project.toml"]).shown(), @r#"
    exit 0
    --- stdout
    release-notes: nothing is wrong with skill-project.toml
    5 cases × 0 targets × 1 trial = 0 trials
    estimated cost: $0.00
    --- stderr
    "#);
    // The only one that is installed is the one that is meant.
    let place = place.with_program("claude", &claude());
    let checked = alone(&place, &["check", "skill-project.toml"]);
    assert!(checked.stdout.contains("5 cases × 1 target"), "{}", checked.shown());
    let place = place.with_program("codex", &claude());
    let several = alone(&place, &["run", "skill-project.toml"]);
    assert_eq!(several.code, 2, "{}", several.shown());
    assert!(several.stderr.contains("several agents are installed"), "{}", several.stderr);
    assert!(several.stderr.contains("one of claude, codex"), "{}", several.stderr);
    let checked = place.run(&["validate", "--agent", "claude", "--model", "opus"]);
    insta::assert_snapshot!(checked.shown(), @r#"
    exit 0
    --- stdout
    release-notes: nothing is wrong with skill-project.toml
    5 cases × 1 target × 1 trial = 5 trials
      claude (claude -p - --dangerously-skip-permissions --model opus --output-format stream-json --verbose): 5 trials
    estimated cost: $0.00
    --- stderr
    "#);
}

#[test]
fn tags_and_cases_are_chosen_as_ever() {
    let place = project().with_program("claude", &claude());
    assert_eq!(place.run(&["run", ".", "-a", "claude", "--tag", "basic"]).code, 0);
    assert_eq!(statuses(&place), ["plain passed"]);
}

#[test]
fn several_agents_are_several_targets() {
    let place =
        project().with_program("claude", &claude()).with_program("gemini", "#!/bin/sh\ncat\n");
    let ran =
        place.run(&["run", ".", "-a", "claude", "-a", "gemini", "-a", "claude", "--case", "sum"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let targets: Vec<Value> =
        place.trials().iter().map(|trial| trial["key"]["target"].clone()).collect();
    assert_eq!(targets, ["claude", "gemini"]);
    assert!(place.run_folder().join("gemini/sum/trial-1/result.json").is_file());
}

#[test]
fn a_run_of_a_project_can_go_on() {
    let place = project().with_program("claude", &claude());
    let ran = place.run(&["run", ".", "-a", "claude", "--model", "opus", "--trials", "2"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let summary = place.summary();
    let ran = place.run(&["run", "--resume", "last"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert_eq!(place.trials().len(), 10);
    assert_eq!(place.summary()["targets"], summary["targets"]);
    let ran = place.run(&["run", "--resume", "last", "--model", "haiku"]);
    assert_eq!(ran.code, 2, "{}", ran.shown());
    assert!(ran.stderr.contains("target `claude` has changed"), "{}", ran.stderr);
}

/// What is said about a project with something wrong.
fn refused(place: &Workplace, arguments: &[&str]) -> String {
    let ran = place.run(&[&["run", "skill-project.toml"], arguments].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.shown());
    assert!(!place.path().join("runs").exists());
    ran.stderr
}

#[test]
fn every_error_has_its_code() {
    let with = |name: &str, from: &str, to: &str| {
        changed(project().with_program("claude", &claude()), name, from, to)
    };
    let toml = "skill-project.toml";
    for (place, code, words) in [
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
            "is not there: packages/gone",
        ),
        (
            with("evals/prompts.csv", "packages/web", "../web"),
            "EVAL_INVALID_CSV",
            "must not lead out of",
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
        let said = refused(&place, &["--agent", "claude"]);
        assert!(
            said.contains(&format!("error[{code}]")) && said.contains(words),
            "{code} {words}\n{said}"
        );
    }
}

#[test]
fn errors_about_files_that_are_not_there_or_empty() {
    let ran = Workplace::new().run(&["run", "skill-project.toml", "--agent", "claude"]);
    assert!(ran.code == 2 && ran.stderr.contains("EVAL_CONFIG_MISSING"), "{}", ran.stderr);
    let place = project().with_program("claude", &claude());
    let place = place.with("evals/prompts.csv", "id,prompt,should_trigger\n");
    assert!(refused(&place, &["--agent", "claude"]).contains("there are no prompts"));
    let empty = place.with("evals/prompts.csv", "");
    assert!(refused(&empty, &["--agent", "claude"]).contains("EVAL_INVALID_CSV"));
}

#[test]
fn agents_that_are_not_there() {
    let place = project();
    let run = |place: &Workplace, arguments: &[&str]| {
        let mut command = place.command(&[&["run", "skill-project.toml"], arguments].concat());
        // Nothing but what this test has put there.
        Ran::from(command.env("PATH", place.path().join("bin")).output().unwrap())
    };
    let ran = run(&place, &["--agent", "claude"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("error[EVAL_AGENT_UNAVAILABLE]"),
        "{}",
        ran.shown()
    );
    let ran = run(&place, &["--agent", "cloude"]);
    assert!(ran.stderr.contains("there is no agent `cloude`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("did you mean `claude`?"), "{}", ran.stderr);
    let ran = run(&place, &[]);
    assert!(ran.code == 2 && ran.stderr.contains("no agent installed"), "{}", ran.shown());
    // Not everything that is missing is an error, but something must be left.
    let place = changed(place, "skill-project.toml", "agent = true", "agent = false");
    let ran = run(&place, &["--agent", "claude"]);
    assert!(ran.code == 2 && ran.stderr.contains("EVAL_AGENT_UNAVAILABLE"), "{}", ran.shown());
    let script = claude().replace("#!/bin/sh\n", "#!/bin/sh\nPATH=/usr/bin:/bin\n");
    let place = place.with_program("claude", &script);
    let ran = run(&place, &["--agent", "claude", "--agent", "codex", "--case", "sum"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let warning = "agent codex is not installed: no `codex` on the PATH; skipped [EVAL_AGENT_UNAVAILABLE]";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
}

#[test]
fn an_agent_that_takes_too_long() {
    let place = project().with_program("claude", "#!/bin/sh\nexec sleep 600\n");
    let place = changed(place, "skill-project.toml", "timeout_seconds = 60", "timeout_seconds = 1");
    let ran = place.run(&["run", ".", "-a", "claude", "--case", "sum"]);
    assert_eq!(ran.code, 3, "{}", ran.shown());
    assert!(ran.stdout.contains("EVAL_CASE_TIMEOUT"), "{}", ran.stdout);
}

#[test]
fn keys_that_nobody_knows_are_told() {
    let place = project().with_program("claude", &claude());
    let place = changed(place, "skill-project.toml", "parallel = 0", "paralel = 2");
    let ran = place.run(&["check", ".", "-a", "claude"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stderr.contains("unknown key `paralel`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("did you mean `parallel`?"), "{}", ran.stderr);
}

#[test]
fn agents_are_for_projects() {
    let place = Workplace::with_suite(
        "[[target]]\nname = \"a\"\ncommand = [\"true\"]\nprompt = \"\"\n[[cases.inline]]\nid = \"a\"\n",
    );
    for arguments in
        [["run", "--agent", "claude"], ["run", "--model", "x"], ["check", "--agent", "a"]]
    {
        let ran = place.run(&arguments);
        assert_eq!(ran.code, 2, "{}", ran.shown());
        assert!(ran.stderr.contains("does not go with a suite"), "{}", ran.stderr);
    }
}

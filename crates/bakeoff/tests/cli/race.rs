//! `bakeoff race`: winners and reasons, sessions, and rejected input.

use crate::support::{CommandOutput, TestDir};
use serde_json::Value;
use std::process::Stdio;

const JUDGED: [&str; 8] =
    ["race", "Explain entropy.", "-m", "sim/a", "-m", "sim/b", "--judge", "sim/judge"];

/// Returns the output with branches in order and without times.
fn render(output: &CommandOutput) -> String {
    let clock = without_times(&output.stderr);
    let (mut done, rest): (Vec<&str>, Vec<&str>) =
        clock.lines().partition(|line| !line.starts_with(' ') && line.contains(" s · "));
    done.sort_unstable();
    format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        output.code,
        output.stdout,
        done.into_iter().chain(rest).map(|line| format!("{line}\n")).collect::<String>()
    )
}

/// Replaces seconds by `T`.
fn without_times(text: &str) -> String {
    let line = |line: &str| -> String {
        let words = line.split(" · ").map(|word| match word.trim().strip_suffix(" s") {
            Some(number) if number.parse::<f64>().is_ok() => {
                word.replace(&format!("{number} s"), "T s")
            }
            _ => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" · ")
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

fn lines(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn judged_race_prints_branches_winner_and_reasons() {
    let output = TestDir::new().run(&JUDGED);
    insta::assert_snapshot!(render(&output), @r#"
    exit 0
    --- stdout
    This recipe improves good flour. This recipe forgives a steady hand. [quality 0.98]
    --- stderr
    sim/a: done · T s · 26 tokens · $0.00
    sim/b: done · T s · 25 tokens · $0.00
    judge sim/judge: round 1 of 3
    winner: sim/b (judge: decided)
      reason: the judge prefers sim/b in both orders
      reason: the judge: sim/b answers the query best, with a quality of 0.98.
      T s · 25 tokens · $0.00 · total 611 tokens, $0.00
    "#);
}

#[test]
fn show_all_prints_all_answers() {
    let dir = TestDir::new();
    let output = dir.run(&[
        "race",
        "hello",
        "-m",
        "sim/echo",
        "-m",
        "sim/fault-400",
        "-m",
        "sim/a",
        "--strategy",
        "token-efficient",
        "--show",
        "all",
    ]);
    insta::assert_snapshot!(render(&output), @r#"
    exit 0
    --- stdout
    --- sim/echo (winner)
    hello
    --- sim/fault-400
    (400: The request is not valid.)
    --- sim/a
    A pinch of salt rests on a steady hand. The first batch depends on a slow rise. The crust rests on the right heat. A patient baker asks for good flour. [quality 0.21]
    --- stderr
    sim/a: done · T s · 44 tokens · $0.00
    sim/echo: done · T s · 4 tokens · $0.00
    sim/fault-400: failed · T s · 0 tokens · $0.00 · 400: The request is not valid.
    winner: sim/echo (token-efficient: decided)
      reason: the fewest tokens: 4
      T s · 4 tokens · $0.00 · total 48 tokens, $0.00
    "#);
    let output = dir.run(&["race", "hello", "-m", "sim/echo", "--quiet"]);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "hello\n", ""));
}

#[test]
fn json_streams_events_and_ends_with_the_result() {
    let output = TestDir::new().run(&[&JUDGED[..], &["--json"]].concat());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let events = output.events();
    assert_eq!(events[0]["event"], "parallel_loop_start");
    let starts = events.iter().filter(|event| event["event"] == "agent_start").count();
    assert_eq!(starts, 4, "two branches, and the judge in both orders");
    let [.., end, result] = events.as_slice() else { panic!("{}", output.stdout) };
    assert_eq!(
        (&end["event"], &end["selected_config_index"]),
        (&"parallel_loop_end".into(), &1.into())
    );
    assert_eq!(result["event"], "done");
    assert_eq!((&result["winner"]["model"], &result["exit_code"]), (&"sim/b".into(), &0.into()));
    assert_eq!(result["verdict"]["kind"], "decided");
    assert_eq!(result["verdict"]["ballots"].as_array().unwrap().len(), 2);
    assert_eq!(result["others"][0]["model"], "sim/a");
    let total =
        |usage: &Value| usage["input"].as_u64().unwrap() + usage["output"].as_u64().unwrap();
    assert_eq!(
        total(&result["total_usage"]),
        total(&result["winner"]["usage"])
            + total(&result["others"][0]["usage"])
            + total(&result["evaluation_usage"])
    );
}

#[test]
fn session_continues_with_the_winner() {
    let dir = TestDir::new();
    let output =
        dir.run(&[&JUDGED[..], &["--session", "talk.jsonl", "--system", "Be kind."]].concat());
    assert_eq!(output.code, 0, "{}", output.transcript());
    let output = dir.run(&["race", "And in winter?", "--session", "talk.jsonl"]);
    assert_eq!((output.code, output.stderr.lines().count()), (0, 1), "{}", output.transcript());
    assert!(output.stderr.starts_with("sim/b: done"), "{}", output.stderr);
    let output = dir.run(&["race", "Once more.", "--session", "talk.jsonl", "--again"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(output.stderr.contains("winner: sim/b (judge: decided)"), "{}", output.stderr);
    let lines = lines(&dir.path().join("talk.jsonl"));
    let named = |event: &str, key: &str| -> Vec<Value> {
        lines.iter().filter(|line| line["event"] == event).map(|line| line[key].clone()).collect()
    };
    assert_eq!(named("race_ended", "selected_index"), [1, 0, 1]);
    // Two branches and two judge calls, the winner alone, and the first race again.
    assert_eq!(named("race_ended", "loops"), [4, 5, 9]);
    let ids = named("branch_ended", "loop_id");
    let unique: std::collections::BTreeSet<String> = ids.iter().map(Value::to_string).collect();
    assert_eq!((ids.len(), unique.len()), (5, 5));
    // The last request contains the whole conversation.
    let last = lines.iter().rfind(|line| line["event"] == "branch_ended").unwrap();
    assert!(last["usage"]["input"].as_u64().unwrap() > 60, "{last}");
    let output = dir.run(&["race", "x", "--session", "talk.jsonl", "--system", "Be rude."]);
    insta::assert_snapshot!(output.transcript(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: the session has a different system prompt
      hint: omit `--system`, or start a new session
    "#);
}

#[test]
fn interrupted_race_resumes_without_a_prompt() {
    let dir = TestDir::new();
    let session = dir.path().join("talk.jsonl");
    let whole = dir.run(&[&JUDGED[..], &["--session", "talk.jsonl"]].concat());
    // The state after a kill during the second branch, with a torn last line.
    let text = std::fs::read_to_string(&session).unwrap();
    let kept: Vec<&str> = text.lines().take(3).collect();
    assert!(kept[2].contains("branch_ended"), "{text}");
    std::fs::write(&session, kept.join("\n") + "\n{\"event\":\"bra").unwrap();

    let output = dir.run(&["race", "Something else", "--session", "talk.jsonl"]);
    insta::assert_snapshot!(output.transcript(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: the last race of the session was interrupted
      hint: omit the prompt to resume it; `--abandon` discards it
    "#);
    let output = dir.run(&["race", "--session", "talk.jsonl"]);
    assert_eq!((output.code, &output.stdout), (0, &whole.stdout), "{}", output.transcript());
    let done = output.stderr.lines().filter(|line| line.contains(": done")).count();
    assert_eq!(done, 1, "the finished branch is not repeated: {}", output.stderr);
    let output = dir.run(&["race", "--session", "talk.jsonl"]);
    assert_eq!(output.code, 2, "{}", output.transcript());

    let interrupt = || std::fs::write(&session, kept.join("\n") + "\n").unwrap();
    interrupt();
    let output = dir.run(&["race", "--session", "talk.jsonl", "-m", "sim/c"]);
    insta::assert_snapshot!(output.transcript(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: --model cannot change an interrupted race
      hint: omit it to resume the race, or discard the race with `--abandon`
    "#);
    let output = dir.run(&["race", "hello", "-m", "typo", "--session", "talk.jsonl", "--abandon"]);
    assert_eq!(
        (output.code, lines(&session).len()),
        (2, 3),
        "nothing was given up: {}",
        output.transcript()
    );
    let output =
        dir.run(&["race", "hello", "-m", "sim/echo", "--session", "talk.jsonl", "--abandon"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "hello\n"), "{}", output.transcript());
    let output = dir.run(&["race", "bye", "--session", "talk.jsonl"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "bye\n"), "{}", output.transcript());
    interrupt();
    let output = dir.run(&["race", "--session", "talk.jsonl", "--abandon"]);
    insta::assert_snapshot!(output.transcript(), @r#"
    exit 0
    --- stdout
    --- stderr
    discarded the interrupted race
    "#);
    // A race without a winner can be repeated.
    let output = dir.run(&["race", "hello", "--session", "talk.jsonl", "--again"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(output.stderr.contains("winner: "), "{}", output.stderr);
}

#[test]
fn api_keys_are_neither_stored_nor_printed() {
    let dir = TestDir::new();
    let key = "sk-secretsecretsecret";
    let prompt = format!("my key is {key}, is it not?");
    let run = |more: &[&str]| {
        let fixed = ["race", &prompt, "-m", "sim/echo", "--session", "talk.jsonl"];
        let mut command = dir.command(&[&fixed[..], more].concat());
        CommandOutput::from(command.env("OPENAI_API_KEY", key).output().unwrap())
    };
    for output in [
        run(&["--system", &prompt]),
        run(&["--json"]),
        run(&["-m", "sim/b", "--strategy", "first"]),
    ] {
        assert_eq!(output.code, 0, "{}", output.transcript());
        assert!(
            !output.transcript().contains("sk-secret") && output.stdout.contains("[redacted]"),
            "{}",
            output.transcript()
        );
    }
    let text = std::fs::read_to_string(dir.path().join("talk.jsonl")).unwrap();
    assert!(!text.contains("sk-secret"), "{text}");
}

#[test]
fn sigint_interrupts_a_race_that_can_be_resumed() {
    let suite = "[sim.slow]\ndefault = \"late\"\nlatency_ms = 600000\n";
    let dir = TestDir::with_suite(suite);
    let session = dir.path().join("talk.jsonl");
    let arguments = [
        "race",
        "hello",
        "-m",
        "sim/echo",
        "-m",
        "sim/slow",
        "--strategy",
        "first",
        "--suite",
        ".",
        "--session",
        "talk.jsonl",
    ];
    let child = dir.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    // The fast branch has ended; the slow one never does.
    while !std::fs::read_to_string(&session).is_ok_and(|text| text.contains("branch_ended")) {
        assert!(child.try_wait().unwrap().is_none(), "ended without a signal");
        std::thread::yield_now();
    }
    let status =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.unwrap().success());
    let output = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!((output.code, output.stdout.as_str()), (130, ""), "{}", output.transcript());
    let hint = "interrupted\n  hint: `bakeoff race --session talk.jsonl` resumes it\n";
    assert!(output.stderr.ends_with(hint), "{}", output.stderr);
    let events: Vec<String> =
        lines(&session).iter().map(|line| line["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!(events, ["session_started", "race_started", "branch_ended", "race_interrupted"]);
}

/// The winner of a session and its suite are used from another folder.
#[test]
fn session_continues_in_another_folder() {
    let suite = "[models.one]\nprovider = \"sim\"\nmodel = \"echo\"\n";
    let dir = TestDir::with_suite(suite).write("accept.sh", "grep -q hello\n");
    std::fs::create_dir(dir.path().join("elsewhere")).unwrap();
    let fixed =
        ["race", "hello", "-m", "one", "-m", "one", "--suite", ".", "--session", "talk.jsonl"];
    let verified = ["--strategy", "verifier", "--verify", "sh accept.sh"];
    let output = dir.run(&[&fixed[..], &verified].concat());
    assert_eq!(output.code, 0, "{}", output.transcript());
    let elsewhere = |arguments: &[&str]| {
        let mut command = dir.command(arguments);
        let command = command.current_dir(dir.path().join("elsewhere"));
        CommandOutput::from(command.output().unwrap())
    };
    let output = elsewhere(&["race", "hello?", "--session", "../talk.jsonl"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "hello?\n"), "{}", output.transcript());
    let output = elsewhere(&["race", "hello!", "--session", "../talk.jsonl", "--again"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "hello!\n"), "{}", output.transcript());
}

#[test]
fn fallback_without_a_verdict_is_inconclusive() {
    let suite = "[sim.short]\ndefault = \"No.\"\n[sim.long]\ndefault = \"Yes, and a bit longer.\"\n[sim.vague]\ndefault = \"hm\"\n";
    let dir = TestDir::with_suite(suite);
    let fixed = ["race", "x", "-m", "sim/long", "-m", "sim/short", "--suite", "."];
    let with = |more: &[&str]| dir.run(&[&fixed[..], more].concat());
    let output = with(&["--judge", "sim/vague"]);
    insta::assert_snapshot!(render(&output), @r#"
    exit 3
    --- stdout
    No.
    --- stderr
    sim/long: done · T s · 7 tokens · $0.00
    sim/short: done · T s · 2 tokens · $0.00
    judge sim/vague: round 1 of 3
    no winner (judge: judge reply unparseable); by fallback: sim/short
      reason: judge reply unparseable after re-asking: "hm"
      fallback: sim/short has fewer tokens: 2
      T s · 2 tokens · $0.00 · total 981 tokens, $0.00
    "#);
    for more in [
        &["--judge", "sim/fault-400"][..],
        &["--judge", "sim/judge", "--judge", "sim/vague", "--judge", "sim/fault-400"],
        &["--strategy", "pairwise", "--judge", "sim/vague"],
        &["--strategy", "majority", "--extract", "\\d+"],
        &["--strategy", "verifier", "--expect", ".", "--judge", "sim/vague"],
    ] {
        let output = with(more);
        assert_eq!((output.code, output.stdout.as_str()), (3, "No.\n"), "{}", output.transcript());
        assert!(output.stderr.contains("no winner ("), "{}", output.transcript());
        let output = with(&[more, &["--json"]].concat());
        let done = output.events().pop().unwrap();
        assert_eq!((&done["exit_code"], &done["winner"]["answer"]), (&3.into(), &"No.".into()));
    }
    // A tie is a verdict.
    let output = with(&["--judge", "sim/judge", "--judge", "sim/judge"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn verifier_accepts_or_rejects_answers() {
    let dir =
        TestDir::new().write("check.sh", "read answer; test \"$answer\" = good || echo bad\n");
    let dir =
        dir.with("bakeoff.toml", "[sim.one]\ndefault = \"good\"\n[sim.two]\ndefault = \"evil\"\n");
    let arguments = |verify: &'static str| {
        let fixed = ["race", "x", "-m", "sim/two", "-m", "sim/one", "--suite", "."];
        [&fixed[..], &["--strategy", "verifier", "--verify", verify]].concat()
    };
    let output = dir.run(&arguments("test \"$(sh check.sh)\" = ''"));
    assert_eq!((output.code, output.stdout.as_str()), (0, "good\n"), "{}", output.transcript());
    let none = arguments("echo I like none of them; exit 3");
    let all = dir.run(&[&none[..], &["--show", "all"]].concat());
    assert_eq!((all.code, all.stdout.as_str()), (1, "--- sim/two\nevil\n--- sim/one\ngood\n"));
    let output = dir.run(&none);
    insta::assert_snapshot!(render(&output), @"
    exit 1
    --- stdout
    --- stderr
    sim/one: done · T s · 2 tokens · $0.00
    sim/two: done · T s · 2 tokens · $0.00
    error: no answer is acceptable: sim/two: exit code 3: I like none of them; sim/one: exit code 3: I like none of them
      hint: `--show all` prints all answers
    ");
    let output = dir.run(&arguments("no-such-program 2>/dev/null"));
    insta::assert_snapshot!(render(&output), @"
    exit 3
    --- stdout
    --- stderr
    sim/one: done · T s · 2 tokens · $0.00
    sim/two: done · T s · 2 tokens · $0.00
    error: the verifier gave no result: no result for sim/two: the verifier could not start a program: exit code 127; no result for sim/one: the verifier could not start a program: exit code 127
      hint: check the verifier; `--show all` prints all answers
    ");
    let output = dir.run(&[
        "race",
        "x",
        "-m",
        "sim/two",
        "-m",
        "sim/one",
        "--suite",
        ".",
        "--strategy",
        "verifier",
        "--expect",
        "^(good|evil)$",
        "--judge",
        "sim/judge",
    ]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(output.stderr.contains("reason: sim/two and sim/one pass"), "{}", output.stderr);
}

#[test]
fn failure_of_all_models_prints_every_reason() {
    let dir = TestDir::new();
    let output = dir.run(&[
        "race",
        "x",
        "-m",
        "sim/fault-400",
        "-m",
        "sim/fault-401",
        "--strategy",
        "first",
    ]);
    insta::assert_snapshot!(render(&output), @r"
    exit 3
    --- stdout
    --- stderr
    sim/fault-400: failed · T s · 0 tokens · $0.00 · 400: The request is not valid.
    sim/fault-401: failed · T s · 0 tokens · $0.00 · 401: Incorrect API key provided; no further calls to sim/fault-401 in this run; check BAKEOFF_SIM_API_KEY and its access to the model
    error: all models failed: sim/fault-400: 400: The request is not valid.; sim/fault-401: 401: Incorrect API key provided; no further calls to sim/fault-401 in this run; check BAKEOFF_SIM_API_KEY and its access to the model
    ");
}

#[test]
fn invalid_arguments_are_rejected_before_any_call() {
    let dir = TestDir::new()
        .write("notes.txt", "my notes")
        .write("empty.txt", " \n")
        .write("blank.jsonl", "")
        .write("latin1.txt", b"caf\xe9");
    let two = ["-m", "sim/a", "-m", "sim/b"];
    let with = |more: &[&str]| dir.run(&[&["race", "x"], &two[..], more].concat());
    let cases = [
        dir.run(&["race", "x"]),
        dir.run(&["race"]),
        dir.run(&["race", "  ", "-m", "sim/a"]),
        dir.run(&["race", "-m", "sim/a"]),
        dir.run(&["race", "x", "-m", "mini"]),
        dir.run(&["race", "x", "-m", "opnai/gpt"]),
        dir.run(&["race", "x", "-m", "openai/gpt-4o-mini"]),
        with(&[]),
        with(&["--strategy", "judge"]),
        with(&["--strategy", "transparent"]),
        with(&["--strategy", "fastest", "--judge", "sim/judge"]),
        with(&["--strategy", "judge", "--judge", "sim/judge", "--judge", "sim/other"]),
        with(&["--strategy", "first", "--extract", "x"]),
        with(&["--strategy", "majority", "--extract", "("]),
        with(&["--strategy", "verifier"]),
        with(&["--strategy", "verifier", "--expect", "("]),
        with(&["--judge", "sim/judge", "--judge-prompt", "gone.txt"]),
        with(&["--judge", "sim/judge", "--judge-prompt", "empty.txt"]),
        with(&["--judge", "sim/judge", "--judge-prompt", "latin1.txt"]),
        with(&["--strategy", "first", "--session", "notes.txt"]),
        with(&["--strategy", "first", "--session", "gone/talk.jsonl"]),
        with(&["--strategy", "first", "--session", "new.jsonl", "--abandon"]),
        dir.run(&["race", "x", "--session", "new.jsonl", "--again"]),
        dir.run(&["race", "x", "--session", "new.jsonl"]),
        dir.run(&["race", "x", "--session", "blank.jsonl", "--again"]),
        with(&["--strategy", "first", "--suite", "gone.toml"]),
        with(&["--strategy", "first", "--session", "/dev/full"]),
        with(&["--judge", "sim/judge", "--judge-prompt", "/dev/zero"]),
        with(&["--strategy", "first", "--temperature", "nan"]),
        with(&["--strategy", "first", "--temperature=-1"]),
    ];
    let mut all = String::new();
    for output in &cases {
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.transcript());
        all.push_str(&output.stderr);
    }
    insta::assert_snapshot!(all, @r#"
    error: no models given
      hint: set models with `--model`, or targets of a suite with `--target`
    error: no models given
      hint: set models with `--model`, or targets of a suite with `--target`
    error: the prompt is empty
    error: no prompt given
      hint: `bakeoff race "…"`; `-` reads it from standard input
    error: unknown model `mini`
      hint: write provider/model such as `openai/gpt-4o-mini`, or define it under [models] of a suite and pass `--suite FILE`
    error: unknown provider `opnai`
      hint: known providers: anthropic, azure, cerebras, gemini, groq, mistral, openai, openai-responses, openrouter, sim, together
    error: environment variable OPENAI_API_KEY is not set
      hint: `export OPENAI_API_KEY=…`, or set it in the file `.env` of a suite and pass `--suite FILE`
    error: no strategy or judge given
      hint: `--judge MODEL` lets a model choose; `--strategy fastest`, `majority`, `verifier` and others need none
    error: this strategy needs --judge
      hint: `--judge MODEL` sets the judge model
    error: transparent: needs exactly one branch, got 2
    error: --judge is for the strategies judge, panel, pairwise and verifier
    error: this strategy takes one judge
      hint: use `--strategy panel`
    error: --extract is for `--strategy majority`
    error: --extract: regex parse error:
        (
        ^
    error: unclosed group
    error: the verifier needs --expect or --verify
      hint: `--expect REGEX`, or `--verify COMMAND`
    error: --expect: not a regular expression: regex parse error:
        (
        ^
    error: unclosed group
    error: cannot read gone.txt: No such file or directory (os error 2)
      hint: the prompt must be a text file
    error: cannot read empty.txt: empty file
      hint: the prompt must be a text file
    error: cannot read latin1.txt: stream did not contain valid UTF-8
      hint: the prompt must be a text file
    error: notes.txt is not a session: it has no complete line
      hint: use another file
    error: cannot create gone/talk.jsonl: No such file or directory (os error 2)
      hint: create the folder first
    error: no interrupted race to discard
    error: session new.jsonl does not exist
      hint: set models with `--model` to start it
    error: session new.jsonl does not exist
      hint: set models with `--model` to start it
    error: the session has no race to repeat
      hint: set models with `--model`
    error: cannot read the suite: No such file or directory (os error 2)
    --> gone.toml
     = help: create one with `bakeoff init`
    error: 1 problem; nothing was called
    error: /dev/full is not a session: not a regular file
      hint: use another file
    error: cannot read /dev/zero: not a regular file
      hint: the prompt must be a text file
    error: invalid value 'nan' for '--temperature <T>': `nan` is not a number of at least 0

    For more information, try '--help'.
    error: invalid value '-1' for '--temperature <T>': `-1` is not a number of at least 0

    For more information, try '--help'.
    "#);
    assert_eq!(std::fs::read_to_string(dir.path().join("notes.txt")).unwrap(), "my notes");
    assert!(!dir.path().join("new.jsonl").exists());
}

const VARIANTS: &str = r#"
[models.base]
provider = "sim"
model = "echo"

[target_defaults]
model = "base"

[[target]]
name = "short"
system = "Be brief."
prompt = "In one word: {{ prompt }}"

[[target]]
name = "long"
prompt = "{{ prompt }} Explain every step."

[[target]]
name = "deep"
thinking = "high"

[[target]]
name = "keeper"
model = "sim/keeper"
tools = ["write_file", "list_files"]
max_turns = 4

[sim.keeper]
calls = [{ tool = "write_file", arguments = { path = "note.txt", content = "x" } }, { tool = "list_files", arguments = {} }]
"#;

#[test]
fn targets_are_branches_with_prompts_settings_and_tools_of_their_own() {
    let dir = TestDir::with_suite(VARIANTS);
    let fixed = ["race", "Why?", "--suite", ".", "--strategy", "first", "--show", "all"];
    let targets = ["short", "long", "deep", "keeper"].map(|name| ["--target", name]).concat();
    let output = dir.run(&[&fixed[..], &["-m", "sim/echo"], &targets].concat());
    assert_eq!(output.code, 0, "{}", output.transcript());
    let answers: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(
        answers[..8],
        [
            "--- sim/echo (winner)",
            "Why?",
            "--- short",
            "In one word: Why?",
            "--- long",
            "Why? Explain every step.",
            "--- deep",
            "Why?"
        ]
    );
    assert!(answers[9].contains("note.txt"), "{}", output.stdout);
    // The target with thinking has more tokens, and its loop says so.
    let json = dir.run(&[&fixed[..6], &targets, &["--json", "--strategy", "elaborate"]].concat());
    assert_eq!(json.code, 2, "a flag is repeated");
    let json =
        dir.run(&[&fixed[..4], &targets[2..6], &["--json", "--strategy", "elaborate"]].concat());
    let done = json.events().pop().unwrap();
    assert_eq!(done["winner"]["model"], "deep", "{done}");
    assert!(done["winner"]["loop_id"].as_str().unwrap().ends_with("sim.echo.thinking.2"), "{done}");
}

#[test]
fn session_continues_with_the_winning_target() {
    let dir = TestDir::with_suite(VARIANTS);
    std::fs::create_dir(dir.path().join("elsewhere")).unwrap();
    let fixed = ["race", "Why?", "--suite", ".", "--session", "talk.jsonl", "--strategy", "first"];
    let output = dir.run(&[&fixed[..], &["--target", "short", "--target", "long"]].concat());
    assert_eq!(output.stdout, "In one word: Why?\n", "{}", output.transcript());
    let elsewhere = |arguments: &[&str]| {
        let mut command = dir.command(arguments);
        let command = command.current_dir(dir.path().join("elsewhere"));
        CommandOutput::from(command.output().unwrap())
    };
    let output = elsewhere(&["race", "How?", "--session", "../talk.jsonl"]);
    assert_eq!(output.stdout, "In one word: How?\n", "{}", output.transcript());
    let output =
        elsewhere(&["race", "When?", "--session", "../talk.jsonl", "--again", "--show", "all"]);
    assert!(
        output.stdout.contains("--- long\nWhen? Explain every step."),
        "{}",
        output.transcript()
    );
    // The conversation has the words of the user.
    let text = std::fs::read_to_string(dir.path().join("talk.jsonl")).unwrap();
    assert!(text.contains("\"targets\":[\"short\",\"long\"]"), "{text}");
    let prompts = lines(&dir.path().join("talk.jsonl"));
    let started = prompts.iter().filter(|line| line["event"] == "race_started");
    let texts: Vec<String> =
        started.map(|line| line["prompts"][0]["llm"]["content"][0]["text"].to_string()).collect();
    assert_eq!(texts, ["\"Why?\"", "\"How?\"", "\"When?\""]);
}

#[test]
fn invalid_targets_are_rejected_before_any_call() {
    let dir = TestDir::with_suite(VARIANTS).write("other.toml", "[[target]]\nname = \"t\"\nmodel = \"sim/a\"\nprompt = \"{{ question }}\"\n[[target]]\nname = \"p\"\ncommand = [\"sh\"]\n");
    let cases = [
        &["--target", "short"][..],
        &["--suite", ".", "--target", "shrot"],
        &["--suite", "other.toml", "--target", "t", "--target", "p", "--strategy", "first"],
        &["-m", "sim/a", "--tool", "http_fetch"],
        &["-m", "sim/a", "--fetch-host", "example.com"],
        &["-m", "sim/a", "--workspace", "."],
        &["-m", "sim/a", "--mcp", "python3 shop.py"],
        &["-m", "sim/a", "--mcp", "shop=no-such-program 2>/dev/null"],
        &["-m", "sim/a", "--tool", "read_file", "--workspace", "gone"],
        &["-m", "sim/a", "--judge-rounds", "2"],
        &["-m", "sim/a", "-m", "sim/b", "--judge", "sim/judge", "--quorum", "1"],
        &[
            "-m",
            "sim/a",
            "-m",
            "sim/b",
            "--judge",
            "sim/judge",
            "--judge",
            "sim/x",
            "--quorum",
            "3",
        ],
    ];
    let mut all = String::new();
    for more in cases {
        let output = dir.run(&[&["race", "x"], more].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.transcript());
        all.push_str(&output.stderr);
    }
    insta::assert_snapshot!(all, @r#"
    error: --target is for races with `--suite`
    error: there is no target `shrot`
    --> bakeoff.toml:1:1
     = help: did you mean `short`?
    error: 1 problem; nothing was called
    error: a race has no field `question`
     --> other.toml:4:10
      |
    4 | prompt = "{{ question }}"
      |          ^^^^^^^^^^^^^^^^
      |
      = help: templates of a race can use {{ prompt }} only
    error: target `t` does not use the prompt
     --> other.toml:4:10
      |
    4 | prompt = "{{ question }}"
      |          ^^^^^^^^^^^^^^^^
      |
      = help: add {{ prompt }} to its template
    error: target `p` is not a model
     --> other.toml:5:1
      |
    5 | [[target]]
      | ^^^^^^^^^^
      |
      = help: a race sends its prompt to models; use `bakeoff run` for other targets
    error: 3 problems; nothing was called
    error: the tool `http_fetch` needs --fetch-host
      hint: `--fetch-host example.com`, or `--fetch-host '*'` for all hosts
    error: --fetch-host is for `--tool http_fetch`
    error: --workspace is for races with `--tool` or `--mcp`
    error: --mcp `python3 shop.py` is not NAME=SERVER
      hint: for example `--mcp 'shop=python3 shop.py'` or `--mcp shop=https://example.com/mcp`
    error: sim/a: the MCP server `shop` has ended (exit code 127)
    error: --workspace gone is not a folder
    error: --judge-rounds is for races with `--judge`
    error: --quorum is for panels
    error: panel: a quorum of 3 of 2 judges
    "#);
}

#[test]
fn models_call_tools_of_the_command_line() {
    let suite = "[sim.reader]\ncalls = [{ tool = \"read_file\", arguments = { path = \"note.txt\" } }, { tool = \"shop__stock\", arguments = { item = \"tea\" } }]\n";
    let server = "import json, sys\nfor line in sys.stdin:\n    request = json.loads(line)\n    if 'id' not in request:\n        continue\n    method, params = request['method'], request.get('params', {})\n    if method == 'initialize':\n        result = {'protocolVersion': params['protocolVersion'], 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}}\n    elif method == 'tools/list':\n        result = {'tools': [{'name': 'stock', 'inputSchema': {'type': 'object'}}]}\n    else:\n        result = {'content': [{'type': 'text', 'text': '12 boxes of ' + params['arguments']['item']}]}\n    print(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': result}), flush=True)\n";
    let dir = TestDir::with_suite(suite).write("shop.py", server);
    std::fs::create_dir(dir.path().join("files")).unwrap();
    let dir = dir.with("files/note.txt", "private note");
    let fixed = ["race", "x", "-m", "sim/reader", "--suite", ".", "--tool", "read_file"];
    let more = ["--workspace", "files", "--mcp", "shop=python3 shop.py"];
    let output = dir.run(&[&fixed[..], &more].concat());
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "12 boxes of tea\n"),
        "{}",
        output.transcript()
    );
    let json = dir.run(&[&fixed[..], &more, &["--json"]].concat());
    let results: Vec<String> = json
        .events()
        .iter()
        .filter(|event| event["event"] == "message_end")
        .filter_map(|event| Some(event["message"]["content"][0]["text"].as_str()?.to_owned()))
        .collect();
    assert!(results.iter().any(|text| text.contains("private note")), "{results:?}");
    // Two of three calls are needed before the answer.
    let output = dir.run(&[&fixed[..], &more, &["--max-turns", "2"]].concat());
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert!(output.stderr.contains("out of turns"), "{}", output.stderr);
}

#[test]
fn judge_options_limit_the_calls_of_a_judge() {
    let suite = "[sim.left]\nbias = 10.0\n[sim.one]\ndefault = \"1\"\n[sim.two]\ndefault = \"2\"\n";
    let dir = TestDir::with_suite(suite);
    let fixed =
        ["race", "x", "-m", "sim/one", "-m", "sim/two", "--suite", ".", "--judge", "sim/left"];
    let rounds = |more: &[&str]| {
        let output = dir.run(&[&fixed[..], more].concat());
        let round = |line: &&str| line.starts_with("judge sim/left: round ");
        let lines: Vec<String> = output.stderr.lines().filter(round).map(str::to_owned).collect();
        let json = dir.run(&[&fixed[..], more, &["--json"]].concat());
        let ballots = json.events().pop().unwrap()["verdict"]["ballots"].as_array().unwrap().len();
        (lines.len(), lines.last().cloned().unwrap(), ballots)
    };
    assert_eq!(rounds(&[]), (3, "judge sim/left: round 3 of 3".to_owned(), 6));
    assert_eq!(rounds(&["--judge-rounds", "1"]), (1, "judge sim/left: round 1 of 1".to_owned(), 2));
    assert_eq!(rounds(&["--judge-orders", "1"]), (1, "judge sim/left: round 1 of 1".to_owned(), 1));
}

/// The answer of a single model is printed as it arrives: before the branch has ended.
#[test]
fn single_model_streams_its_answer() {
    let dir = TestDir::with_suite("[sim.long]\ndefault = \"one two three four five six\"\n");
    let merged = |more: &[&str]| {
        let file = std::fs::File::create(dir.path().join("output")).unwrap();
        let mut command = dir.command(&[&["race", "x", "--suite", "."], more].concat());
        let both = command.stdout(file.try_clone().unwrap()).stderr(file);
        assert!(both.status().unwrap().success());
        std::fs::read_to_string(dir.path().join("output")).unwrap()
    };
    let answer = "one two three four five six\n";
    let output = merged(&["-m", "sim/long"]);
    let (first, rest) = output.split_at(answer.len());
    assert_eq!(first, answer);
    assert!(rest.starts_with("sim/long: done · ") && rest.lines().count() == 1, "{output}");
    let whole = merged(&["-m", "sim/long", "--show", "all"]);
    assert!(whole.starts_with("sim/long: done · ") && whole.ends_with(answer), "{whole}");
    let two = merged(&["-m", "sim/long", "-m", "sim/long", "--strategy", "first"]);
    assert!(two.ends_with(answer) && two.matches(answer).count() == 1, "{two}");
}

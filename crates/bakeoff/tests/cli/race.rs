//! `bakeoff race`: who wins and why, sessions, and what cannot be.

use crate::support::{Ran, Workplace};
use serde_json::Value;
use std::process::Stdio;

const JUDGED: [&str; 8] =
    ["race", "Explain entropy.", "-m", "sim/a", "-m", "sim/b", "--judge", "sim/judge"];

/// What was shown, with the branches in order and without the clock.
fn shown(ran: &Ran) -> String {
    let clock = without_clock(&ran.stderr);
    let (mut done, rest): (Vec<&str>, Vec<&str>) =
        clock.lines().partition(|line| !line.starts_with(' ') && line.contains(" s · "));
    done.sort_unstable();
    format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        ran.code,
        ran.stdout,
        done.into_iter().chain(rest).map(|line| format!("{line}\n")).collect::<String>()
    )
}

/// Seconds become `T`.
fn without_clock(text: &str) -> String {
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
fn a_judged_race_tells_who_is_done_who_wins_and_why() {
    let ran = Workplace::new().run(&JUDGED);
    insta::assert_snapshot!(shown(&ran), @r#"
    exit 0
    --- stdout
    This recipe improves good flour. This recipe forgives a steady hand. [quality 0.98]
    --- stderr
    sim/a: done · T s · 26 tokens · $0.00
    sim/b: done · T s · 25 tokens · $0.00
    winner: sim/b (judge: decided)
      why: the judge prefers sim/b in both orders
      why: the judge: sim/b answers the query best, with a quality of 0.98.
      T s · 25 tokens · $0.00 · in all 611 tokens, $0.00
    "#);
}

#[test]
fn all_answers_can_be_shown() {
    let place = Workplace::new();
    let ran = place.run(&[
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
    insta::assert_snapshot!(shown(&ran), @r#"
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
      why: the fewest tokens: 4
      T s · 4 tokens · $0.00 · in all 48 tokens, $0.00
    "#);
    let ran = place.run(&["race", "hello", "-m", "sim/echo", "--quiet"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "hello\n", ""));
}

#[test]
fn json_has_every_event_and_the_result_last() {
    let ran = Workplace::new().run(&[&JUDGED[..], &["--json"]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let events: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["type"], "parallel_loop_start");
    let starts = events.iter().filter(|event| event["type"] == "agent_start").count();
    assert_eq!(starts, 4, "two branches, and the judge in both orders");
    let [.., end, result] = events.as_slice() else { panic!("{}", ran.stdout) };
    assert_eq!(
        (&end["type"], &end["selected_config_index"]),
        (&"parallel_loop_end".into(), &1.into())
    );
    assert_eq!(result["type"], "race_result");
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
fn a_session_goes_on_with_the_winner() {
    let place = Workplace::new();
    let ran =
        place.run(&[&JUDGED[..], &["--session", "talk.jsonl", "--system", "Be kind."]].concat());
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let ran = place.run(&["race", "And in winter?", "--session", "talk.jsonl"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (0, 1), "{}", ran.shown());
    assert!(ran.stderr.starts_with("sim/b: done"), "{}", ran.stderr);
    let ran = place.run(&["race", "Once more.", "--session", "talk.jsonl", "--again"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stderr.contains("winner: sim/b (judge: decided)"), "{}", ran.stderr);
    let lines = lines(&place.path().join("talk.jsonl"));
    let named = |event: &str, key: &str| -> Vec<Value> {
        lines.iter().filter(|line| line["event"] == event).map(|line| line[key].clone()).collect()
    };
    assert_eq!(named("race_ended", "selected_index"), [1, 0, 1]);
    // Two branches and two calls of the judge, the winner alone, and the first again.
    assert_eq!(named("race_ended", "loops"), [4, 5, 9]);
    let ids = named("branch_ended", "loop_id");
    let unique: std::collections::BTreeSet<String> = ids.iter().map(Value::to_string).collect();
    assert_eq!((ids.len(), unique.len()), (5, 5));
    // The whole conversation was sent: the winner of the last race has read all of it.
    let last = lines.iter().rfind(|line| line["event"] == "branch_ended").unwrap();
    assert!(last["usage"]["input"].as_u64().unwrap() > 60, "{last}");
    let ran = place.run(&["race", "x", "--session", "talk.jsonl", "--system", "Be rude."]);
    insta::assert_snapshot!(ran.shown(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: the session has other instructions
      hint: leave out `--system`, or begin a new session
    "#);
}

#[test]
fn an_interrupted_race_goes_on_without_a_prompt() {
    let place = Workplace::new();
    let session = place.path().join("talk.jsonl");
    let whole = place.run(&[&JUDGED[..], &["--session", "talk.jsonl"]].concat());
    // As a process that was killed after the first branch leaves it, with half a line at the end.
    let text = std::fs::read_to_string(&session).unwrap();
    let kept: Vec<&str> = text.lines().take(3).collect();
    assert!(kept[2].contains("branch_ended"), "{text}");
    std::fs::write(&session, kept.join("\n") + "\n{\"event\":\"bra").unwrap();

    let ran = place.run(&["race", "Something else", "--session", "talk.jsonl"]);
    insta::assert_snapshot!(ran.shown(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: the last race of the session was interrupted
      hint: without a prompt it goes on; `--abandon` gives it up
    "#);
    let ran = place.run(&["race", "--session", "talk.jsonl"]);
    assert_eq!((ran.code, &ran.stdout), (0, &whole.stdout), "{}", ran.shown());
    let done = ran.stderr.lines().filter(|line| line.contains(": done")).count();
    assert_eq!(done, 1, "the other branch was not asked again: {}", ran.stderr);
    let ran = place.run(&["race", "--session", "talk.jsonl"]);
    assert_eq!(ran.code, 2, "{}", ran.shown());

    let interrupt = || std::fs::write(&session, kept.join("\n") + "\n").unwrap();
    interrupt();
    let ran = place.run(&["race", "--session", "talk.jsonl", "-m", "sim/c"]);
    insta::assert_snapshot!(ran.shown(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: --model does not go with a race that was interrupted, which has its own
      hint: leave it out to go on, or give the race up with `--abandon`
    "#);
    let ran = place.run(&["race", "hello", "-m", "typo", "--session", "talk.jsonl", "--abandon"]);
    assert_eq!((ran.code, lines(&session).len()), (2, 3), "nothing was given up: {}", ran.shown());
    let ran =
        place.run(&["race", "hello", "-m", "sim/echo", "--session", "talk.jsonl", "--abandon"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hello\n"), "{}", ran.shown());
    let ran = place.run(&["race", "bye", "--session", "talk.jsonl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "bye\n"), "{}", ran.shown());
    interrupt();
    let ran = place.run(&["race", "--session", "talk.jsonl", "--abandon"]);
    insta::assert_snapshot!(ran.shown(), @r#"
    exit 0
    --- stdout
    --- stderr
    the race that was interrupted is given up
    "#);
    // What nobody won can be repeated.
    let ran = place.run(&["race", "hello", "--session", "talk.jsonl", "--again"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stderr.contains("winner: "), "{}", ran.stderr);
}

#[test]
fn keys_are_neither_kept_nor_shown() {
    let place = Workplace::new();
    let key = "sk-secretsecretsecret";
    let prompt = format!("my key is {key}, is it not?");
    let run = |more: &[&str]| {
        let fixed = ["race", &prompt, "-m", "sim/echo", "--session", "talk.jsonl"];
        let mut command = place.command(&[&fixed[..], more].concat());
        Ran::from(command.env("OPENAI_API_KEY", key).output().unwrap())
    };
    for ran in [
        run(&["--system", &prompt]),
        run(&["--json"]),
        run(&["-m", "sim/b", "--strategy", "first"]),
    ] {
        assert_eq!(ran.code, 0, "{}", ran.shown());
        assert!(
            !ran.shown().contains("sk-secret") && ran.stdout.contains("[redacted]"),
            "{}",
            ran.shown()
        );
    }
    let text = std::fs::read_to_string(place.path().join("talk.jsonl")).unwrap();
    assert!(!text.contains("sk-secret"), "{text}");
}

#[test]
fn ctrl_c_ends_a_race_that_can_go_on() {
    let suite = "[sim.slow]\ndefault = \"late\"\nlatency_ms = 600000\n";
    let place = Workplace::with_suite(suite);
    let session = place.path().join("talk.jsonl");
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
    let child = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    // The quick one has ended; the slow one never will.
    while !std::fs::read_to_string(&session).is_ok_and(|text| text.contains("branch_ended")) {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let status =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.unwrap().success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (130, ""), "{}", ran.shown());
    let events: Vec<String> =
        lines(&session).iter().map(|line| line["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!(events, ["session_started", "race_started", "branch_ended", "race_interrupted"]);
}

#[test]
fn a_verifier_decides_which_answers_will_do() {
    let place =
        Workplace::new().write("check.sh", "read answer; test \"$answer\" = good || echo bad\n");
    let place = place
        .with("bakeoff.toml", "[sim.one]\ndefault = \"good\"\n[sim.two]\ndefault = \"evil\"\n");
    let arguments = |verify: &'static str| {
        let fixed = ["race", "x", "-m", "sim/two", "-m", "sim/one", "--suite", "."];
        [&fixed[..], &["--strategy", "verifier", "--verify", verify]].concat()
    };
    let ran = place.run(&arguments("test \"$(sh check.sh)\" = ''"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "good\n"), "{}", ran.shown());
    let none = arguments("echo I like none of them; exit 3");
    let all = place.run(&[&none[..], &["--show", "all"]].concat());
    assert_eq!((all.code, all.stdout.as_str()), (1, "--- sim/two\nevil\n--- sim/one\ngood\n"));
    let ran = place.run(&none);
    insta::assert_snapshot!(shown(&ran), @r#"
    exit 1
    --- stdout
    --- stderr
    sim/one: done · T s · 2 tokens · $0.00
    sim/two: done · T s · 2 tokens · $0.00
    error: no answer is acceptable: sim/two: exit code 3: I like none of them; sim/one: exit code 3: I like none of them
      hint: `--show all` shows all answers
    "#);
    let ran = place.run(&arguments("no-such-program 2>/dev/null"));
    insta::assert_snapshot!(shown(&ran), @r#"
    exit 3
    --- stdout
    --- stderr
    sim/one: done · T s · 2 tokens · $0.00
    sim/two: done · T s · 2 tokens · $0.00
    error: the verifier gave no result: no result for sim/two: the verifier could not start a program: exit code 127; no result for sim/one: the verifier could not start a program: exit code 127
      hint: see to the verifier; `--show all` shows all answers
    "#);
    let ran = place.run(&[
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
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stderr.contains("why: sim/two and sim/one pass"), "{}", ran.stderr);
}

#[test]
fn when_all_models_fail_every_reason_is_told() {
    let place = Workplace::new();
    let ran = place.run(&[
        "race",
        "x",
        "-m",
        "sim/fault-400",
        "-m",
        "sim/fault-401",
        "--strategy",
        "first",
    ]);
    insta::assert_snapshot!(shown(&ran), @r#"
    exit 3
    --- stdout
    --- stderr
    sim/fault-400: failed · T s · 0 tokens · $0.00 · 400: The request is not valid.
    sim/fault-401: failed · T s · 0 tokens · $0.00 · 401: Incorrect API key provided.
    error: all models failed: sim/fault-400: 400: The request is not valid.; sim/fault-401: 401: Incorrect API key provided.
    "#);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_called() {
    let place = Workplace::new()
        .write("notes.txt", "my notes")
        .write("empty.txt", " \n")
        .write("latin1.txt", b"caf\xe9");
    let two = ["-m", "sim/a", "-m", "sim/b"];
    let with = |more: &[&str]| place.run(&[&["race", "x"], &two[..], more].concat());
    let cases = [
        place.run(&["race", "x"]),
        place.run(&["race"]),
        place.run(&["race", "  ", "-m", "sim/a"]),
        place.run(&["race", "-m", "sim/a"]),
        place.run(&["race", "x", "-m", "mini"]),
        place.run(&["race", "x", "-m", "opnai/gpt"]),
        place.run(&["race", "x", "-m", "openai/gpt-4o-mini"]),
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
        place.run(&["race", "x", "--session", "new.jsonl", "--again"]),
        with(&["--strategy", "first", "--suite", "gone.toml"]),
        with(&["--strategy", "first", "--session", "/dev/full"]),
        with(&["--judge", "sim/judge", "--judge-prompt", "/dev/zero"]),
        with(&["--strategy", "first", "--temperature", "nan"]),
        with(&["--strategy", "first", "--temperature=-1"]),
    ];
    let mut all = String::new();
    for ran in &cases {
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.shown());
        all.push_str(&ran.stderr);
    }
    insta::assert_snapshot!(all, @r#"
    error: no model takes part
      hint: name some with `--model`
    error: no model takes part
      hint: name some with `--model`
    error: the prompt is empty
      hint: ask something
    error: there is no prompt
      hint: `bakeoff race "…"`; `-` reads it from standard input
    error: there is no model `mini`
      hint: write provider/model such as `openai/gpt-4o-mini`, or `--suite FILE` for a table under its [models]
    error: unknown provider `opnai`
      hint: known here: anthropic, azure, cerebras, gemini, groq, mistral, openai, openai-responses, openrouter, sim, together
    error: environment variable OPENAI_API_KEY is not set
      hint: `export OPENAI_API_KEY=…`
    error: nothing says who wins
      hint: `--judge MODEL` has a model choose; `--strategy fastest`, `majority`, `verifier` and others do without
    error: nobody judges
      hint: name a model with `--judge`
    error: transparent: needs exactly one config, got 2
    error: --judge is for a judge, a panel or a verifier
    error: there are several judges
      hint: use `--strategy panel`
    error: --extract is for `--strategy majority`
    error: --extract: regex parse error:
        (
        ^
    error: unclosed group
    error: nothing says which answers will do
      hint: `--expect REGEX`, or `--verify COMMAND`
    error: --expect: not a regular expression: regex parse error:
        (
        ^
    error: unclosed group
    error: cannot read gone.txt: No such file or directory (os error 2)
      hint: it must be a text file
    error: cannot read empty.txt: it is empty
      hint: it must be a text file
    error: cannot read latin1.txt: stream did not contain valid UTF-8
      hint: it must be a text file
    error: notes.txt is not a session: it has no complete line
      hint: name another file
    error: cannot create gone/talk.jsonl: No such file or directory (os error 2)
    error: there is no race to give up
    error: the session has no race to repeat
      hint: name models with `--model`
    error: cannot read the suite: No such file or directory (os error 2)
    --> gone.toml
     = help: create one with `bakeoff init`
    error: 1 problem; nothing was called
    error: /dev/full is not a session: not a regular file
      hint: name another file
    error: cannot read /dev/zero: it is not a regular file
      hint: it must be a text file
    error: invalid value 'nan' for '--temperature <T>': `nan` is not a number from 0 on

    For more information, try '--help'.
    error: invalid value '-1' for '--temperature <T>': `-1` is not a number from 0 on

    For more information, try '--help'.
    "#);
    assert_eq!(std::fs::read_to_string(place.path().join("notes.txt")).unwrap(), "my notes");
    assert!(!place.path().join("new.jsonl").exists());
}

//! `bakeoff map`: what it says, what it refuses, and that it survives being killed.

use crate::support::{Provider, Workplace, stats};
use serde_json::Value;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::process::Stdio;

const TASK: &str = r#"
instructions = "Copy the text of each item, and the number in it."

[output.copy]
type = "string"

[output.n]
type = "integer"
"#;

fn rows(count: usize) -> String {
    let row = |n: usize| format!("{n},row-{n}\n");
    format!("number,text\n{}", (0..count).map(row).collect::<String>())
}

fn place(count: usize) -> Workplace {
    let task = format!("show = [\"text\"]\n{TASK}");
    Workplace::new().write("task.toml", task).write("rows.csv", rows(count))
}

fn map<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["map", "rows.csv", "--task", "task.toml", "--out", "out.jsonl"], more].concat()
}

fn out(place: &Workplace) -> String {
    std::fs::read_to_string(place.path().join("out.jsonl")).unwrap()
}

#[test]
fn rows_get_their_answers_and_a_line_says_how_many_requests_that_takes() {
    let place = place(45);
    let ran = place.run(&map(&["-m", "sim/map", "--pack", "20"]));
    insta::assert_snapshot!(ran.shown(), @r"
    exit 0
    --- stdout
    out.jsonl: 45 of 45 rows, 0 errors · 3 requests · 1155 tokens · $0.00
    --- stderr
    45 items → 3 requests to sim/map (up to 20 items each)
    ");
    let out = out(&place);
    assert_eq!(out.lines().count(), 45);
    insta::assert_snapshot!(out.lines().nth(7).unwrap(), @r#"{"number":"7","text":"row-7","copy":"row-7","n":7,"error":null}"#);
    // Nothing is asked twice.
    let ran = place.run(&map(&["-m", "sim/map", "--pack", "20"]));
    insta::assert_snapshot!(ran.shown(), @r"
    exit 0
    --- stdout
    out.jsonl: 45 of 45 rows, 0 errors · 3 requests · 1155 tokens · $0.00
    --- stderr
    45 items → 3 requests to sim/map (up to 20 items each)
    everything has been done before; `--force` begins anew
    ");
    // Equal jobs share their answers.
    let again = ["-m", "sim/map", "--pack", "20", "--force", "--json"];
    let ran = place.run(&map(&again));
    let events: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["event"], "planned");
    assert_eq!(events[0]["requests"], 3);
    let done = events.last().unwrap();
    assert_eq!((&done["event"], &done["exit_code"]), (&"done".into(), &0.into()));
    assert_eq!((&done["done"], &done["errors"]), (&45.into(), &0.into()));
    assert_eq!((&done["requests"], &done["cached"]), (&0.into(), &3.into()));
    assert_eq!(ran.stderr, "");
}

#[test]
fn limits_decide_how_many_rows_share_a_request() {
    let place = place(45);
    let said = |more: &[&str]| {
        let ran = place.run(&map(&[&["-m", "sim/map", "--force"], more].concat()));
        assert_eq!(ran.code, 0, "{}", ran.shown());
        ran.stderr.lines().next().unwrap().to_owned()
    };
    insta::assert_snapshot!(said(&["--rpm", "6000"]), @"45 items → 1 request to sim/map (up to 50 items each; limit: 6000 requests per minute)");
    insta::assert_snapshot!(said(&["--tpm", "1000000"]), @"45 items → 45 requests to sim/map (up to 1 item each; limit: 1000000 tokens per minute)");
    insta::assert_snapshot!(said(&["--pack", "auto"]), @"45 items → 5 requests to sim/map (up to 10 items each; limits unknown)");
    insta::assert_snapshot!(said(&["--pack", "3", "--format", "yaml"]), @"45 items → 15 requests to sim/map (up to 3 items each)");
    for strategy in ["reactive", "proactive", "none", "adaptive", "fixed"] {
        let rpm: &[&str] = if strategy == "proactive" { &["--rpm", "6000"] } else { &[] };
        said(&[&["--rate-strategy", strategy], rpm].concat());
    }
}

#[test]
fn a_dry_run_says_what_it_would_cost_and_leaves_nothing_behind() {
    let suite =
        "[models.m]\nprovider = \"sim\"\nmodel = \"map\"\nprices = { input = 1, output = 4 }\n";
    let place = place(45).write("models.toml", suite);
    let arguments = map(&["-m", "m", "--suite", "models.toml", "--pack", "20"]);
    let ran = place.run(&[arguments.as_slice(), &["--dry-run"]].concat());
    insta::assert_snapshot!(ran.shown(), @r#"
    exit 0
    --- stdout
    --- stderr
    45 items → 3 requests to m, up to about $0.0087 (up to 20 items each)
    "#);
    let ending = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().into_string().unwrap().starts_with("out.")
    };
    assert!(!place.path().read_dir().unwrap().any(ending));
    // What has been begun stays.
    let ran = place.run(&arguments);
    assert!(ran.stdout.ends_with("$0.0025\n"), "{}", ran.shown());
    assert_eq!(place.run(&[arguments.as_slice(), &["--dry-run"]].concat()).code, 0);
    assert_eq!(out(&place).lines().count(), 45);
    assert!(place.path().join("out.jsonl.journal").exists());
}

#[test]
fn rows_without_an_answer_say_why() {
    let place = place(3);
    let ran = place.run(&map(&["-m", "sim/map-stubborn"]));
    insta::assert_snapshot!(ran.shown(), @r#"
    exit 3
    --- stdout
    out.jsonl: 3 of 3 rows, 3 errors · 8 requests · 1117 tokens · $0.00
    --- stderr
    3 items → 1 request to sim/map-stubborn (up to 10 items each; limits unknown)
      hint: rows without an answer say why in `error`; `--retry-errors` asks once more
    "#);
    insta::assert_snapshot!(out(&place).lines().next().unwrap(), @r#"{"number":"0","text":"row-0","copy":null,"n":null,"error":"`copy` is {\"no\":\"copy\"}, not a value of type string"}"#);
    let ran = place.run(&map(&["-m", "sim/map-stubborn", "--fallback", "sim/map", "--force"]));
    assert_eq!(ran.code, 0, "{}", ran.shown());
}

#[test]
fn rows_without_an_answer_are_asked_about_once_more_and_not_answered_from_the_cache() {
    let place = place(600);
    let errors = |more: &[&str]| {
        let ran = place.run(&map(&[&["-m", "sim/map-drop", "--json"], more].concat()));
        let done: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
        (done["errors"].as_u64().unwrap(), done["exit_code"].as_u64().unwrap())
    };
    let (first, code) = errors(&[]);
    assert!(first > 2 && code == 3, "{first}");
    // Begun anew, everything comes from the cache, and so do the replies that will not do.
    assert_eq!(errors(&["--force"]), (first, 3));
    let (second, _) = errors(&["--retry-errors"]);
    assert!(second < first, "{second} of {first}");
    let ran = place.run(&[
        "map",
        "rows.csv",
        "-t",
        "task.toml",
        "-o",
        "new.jsonl",
        "-m",
        "sim/map",
        "--retry-errors",
    ]);
    insta::assert_snapshot!(ran.shown(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: new.jsonl has not been begun
      hint: without `--resume` and `--retry-errors` it is
    "#);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_called() {
    let place = place(3).write("bad.toml", "instructions = 1\n[output.a]\ntype = \"text\"\n");
    let place = place.write("bad.csv", "a,b\n1\n").write("data.txt", "").write("old.jsonl", "{}\n");
    let shown = |arguments: &[&str]| {
        let ran = place.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.shown());
        ran.stderr
    };
    let with = |rows, task, out| ["map", rows, "-t", task, "-m", "sim/map", "-o", out];
    insta::assert_snapshot!(shown(&with("rows.csv", "bad.toml", "o.jsonl")), @r#"
    error: `instructions` is not a string
     --> bad.toml:1:16
      |
    1 | instructions = 1
      |                ^
    error: unknown type `text`
     --> bad.toml:3:8
      |
    3 | type = "text"
      |        ^^^^^^
      |
      = help: one of `string`, `number`, `integer`, `boolean`, `array`, `object`
    error: 2 problems; nothing was called
    "#);
    insta::assert_snapshot!(shown(&with("rows.csv", "gone.toml", "o.jsonl")), @r"
    error: cannot read the task gone.toml: No such file or directory (os error 2)
      hint: `--task` names a TOML file
    ");
    insta::assert_snapshot!(shown(&with("bad.csv", "task.toml", "o.jsonl")), @"error: bad.csv:2: 1 cells, but the header has 2");
    insta::assert_snapshot!(shown(&with("gone.csv", "task.toml", "o.jsonl")), @"error: no such file: gone.csv");
    insta::assert_snapshot!(shown(&with("data.txt", "task.toml", "o.jsonl")), @r"
    error: unsupported input format: data.txt
      hint: use a .csv, .jsonl, .ndjson or .json file
    ");
    insta::assert_snapshot!(shown(&with("rows.csv", "task.toml", "o.json")), @r"
    error: unsupported output format: o.json
      hint: use a .jsonl, .ndjson or .csv file
    ");
    insta::assert_snapshot!(shown(&with("rows.csv", "task.toml", "old.jsonl")), @r"
    error: old.jsonl already exists and has no journal
      hint: choose another output file, or use `--force` to overwrite it
    ");
    let own =
        ["map", "rows.csv", "-t", "task.toml", "-m", "sim/map", "-o", "./rows.csv", "--force"];
    insta::assert_snapshot!(shown(&own), @r#"
    error: rows.csv is the input and would be overwritten
      hint: choose another output file
    "#);
    assert!(place.path().join("rows.csv").exists());
    insta::assert_snapshot!(shown(&map(&["-m", "sim/map", "--resume"])), @r#"
    error: out.jsonl has not been begun
      hint: without `--resume` and `--retry-errors` it is
    "#);
    insta::assert_snapshot!(shown(&map(&["-m", "map"])), @r"
    error: there is no model `map`
      hint: write provider/model such as `openai/gpt-4o-mini`, or `--suite FILE` for a table under its [models]
    ");
    insta::assert_snapshot!(shown(&map(&["-m", "sim/map", "--rate-strategy", "fixed", "--rpm", "5"])), @r"
    error: --rate-strategy fixed and --rpm 5 disagree: one is fixed, the other is for auto and proactive
      hint: leave one of them out
    ");
    let ran = place.run(&map(&["-m", "sim/map", "--pack", "0"]));
    assert!(ran.code == 2 && ran.stderr.contains("invalid pack size `0`"), "{}", ran.stderr);
    assert_eq!(place.run(&map(&["-m", "sim/map", "--pack", "2"])).code, 0);
    insta::assert_snapshot!(shown(&map(&["-m", "sim/map", "--pack", "3"])), @r"
    error: out.jsonl was started with --pack 2
      hint: use the same settings, choose another output file, or use `--force` to start over
    ");
    assert!(!place.path().join("o.jsonl").exists());
}

#[test]
fn a_file_that_cannot_be_written_is_no_fault_of_the_user() {
    let place = place(3);
    let ran =
        place.run(&["map", "rows.csv", "-t", "task.toml", "-m", "sim/map", "-o", "gone/o.csv"]);
    assert_eq!(ran.code, 4, "{}", ran.shown());
    assert!(ran.stderr.contains("gone/o.csv"), "{}", ran.stderr);
}

/// A suite whose model is behind HTTP, where it is counted what is asked.
fn with_server(place: Workplace, server: &Provider, name: &str) -> Workplace {
    let suite = format!(
        "[models.m]\nprovider = \"openai\"\nmodel = \"sim/{name}\"\nbase_url = \"{}\"\n\
         prices = {{ input = 1, output = 1 }}\n",
        server.base_url
    );
    place.write("models.toml", suite)
}

fn journal_length(place: &Workplace) -> u64 {
    std::fs::metadata(place.path().join("out.jsonl.journal")).map_or(0, |file| file.len())
}

/// Lines of the journal that tell of a request.
fn journaled(path: &Path) -> usize {
    let text = std::fs::read(path.join("out.jsonl.journal")).unwrap_or_default();
    String::from_utf8_lossy(&text).matches("{\"asked\":").count()
}

#[test]
fn jobs_that_are_killed_at_any_moment_go_on_and_pay_for_nothing_twice() {
    const IN_FLIGHT: u64 = 4;
    let arguments = |more: &[&'static str]| {
        let common = ["-m", "m", "--suite", "models.toml", "--pack", "5", "--no-cache", "--quiet"];
        map(&[&common, ["--max-connections", "4"].as_slice(), more].concat())
    };
    let random = || std::collections::hash_map::RandomState::new().build_hasher().finish();
    for name in ["map", "map-unruly"] {
        let server = Provider::start(&["--latency-ms", "4"]);
        let whole = with_server(place(600), &server, name);
        let code = whole.run(&arguments(&[])).code;
        let expected = out(&whole);
        let requests = stats(&server)["requests"].as_u64().unwrap();
        let full = journal_length(&whole);

        let server = Provider::start(&["--latency-ms", "4"]);
        let killed = with_server(place(600), &server, name);
        let mut kills = 0;
        // Each process is killed when the journal has grown by some random length.
        let mut until = 1 + random() % (full / 6);
        while until < full {
            let mut child = killed.command(&arguments(&[])).stderr(Stdio::null()).spawn().unwrap();
            while journal_length(&killed) < until && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            until = journal_length(&killed).max(until) + 1 + random() % (full / 6);
        }
        assert!(kills >= 3, "{kills}");
        let ran = killed.run(&arguments(&[]));
        assert_eq!(ran.code, code, "{}", ran.shown());
        assert!(out(&killed) == expected, "{name}: another output after {kills} kills");
        assert_eq!(journaled(killed.path()), journaled(whole.path()), "{name}");
        // What was in flight is paid for again, with its second turn where it had one.
        let made = stats(&server)["requests"].as_u64().unwrap();
        let most = requests + kills * 2 * IN_FLIGHT;
        assert!(made <= most, "{name}: {made} requests instead of {requests}, {kills} kills");
    }
}

#[test]
fn a_job_that_is_interrupted_or_has_cost_enough_goes_on() {
    let server = Provider::start(&["--latency-ms", "5"]);
    let place = with_server(place(400), &server, "map");
    let arguments = |more: &[&'static str]| {
        let common = ["-m", "m", "--suite", "models.toml", "--pack", "4", "--max-connections", "4"];
        map(&[common.as_slice(), more].concat())
    };
    let ran = place.run(&arguments(&["--max-cost", "0.001"]));
    assert_eq!(ran.code, 3, "{}", ran.shown());
    assert!(
        ran.stderr.ends_with(
            "another request might cost more than is left; with a higher --max-cost the same command goes on\n"
        ),
        "{}",
        ran.stderr
    );
    let done = out(&place).lines().count();
    assert!(done < 400, "{done}");

    let mut child = place
        .command(&arguments(&[]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while out(&place).lines().count() <= done && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let id = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).unwrap();
    let ran = crate::support::Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.shown());
    assert!(ran.stderr.contains("interrupted; the same command goes on"), "{}", ran.stderr);

    let ran = place.run(&arguments(&["--resume"]));
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let numbers: Vec<String> = out(&place)
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["copy"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(numbers, (0..400).map(|n| format!("row-{n}")).collect::<Vec<_>>());
}

#[test]
fn a_model_that_answers_nobody_ends_the_job() {
    let place = place(10);
    let ran = place.run(&map(&["-m", "sim/fault-401"]));
    insta::assert_snapshot!(ran.shown(), @r#"
    exit 3
    --- stdout
    out.jsonl: 0 of 10 rows, 0 errors · 1 request · 0 tokens · $0.00
    --- stderr
    10 items → 1 request to sim/fault-401 (up to 10 items each; limits unknown)
    error: Incorrect API key provided.
      hint: see to that, and the same command goes on
    "#);
}

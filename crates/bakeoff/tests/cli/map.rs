//! `bakeoff map`: output, rejected input, and resuming.

use crate::support::{Provider, TestDir, stats};
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

pub(crate) fn test_dir(count: usize) -> TestDir {
    let task = format!("show = [\"text\"]\n{TASK}");
    TestDir::new().write("task.toml", task).write("rows.csv", rows(count))
}

fn map<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["map", "rows.csv", "--task", "task.toml", "--out", "out.jsonl"], more].concat()
}

fn out(dir: &TestDir) -> String {
    std::fs::read_to_string(dir.path().join("out.jsonl")).unwrap()
}

#[test]
fn rows_get_answers_and_the_plan_is_printed() {
    let dir = test_dir(45);
    let output = dir.run(&map(&["-m", "sim/map", "--pack", "20"]));
    insta::assert_snapshot!(output.transcript(), @r"
    exit 0
    --- stdout
    out.jsonl: 45 of 45 rows, 0 errors · 3 requests · 1155 tokens · $0.00
    --- stderr
    45 items → 3 requests to sim/map (up to 20 items each)
    ");
    let out = out(&dir);
    assert_eq!(out.lines().count(), 45);
    insta::assert_snapshot!(out.lines().nth(7).unwrap(), @r#"{"number":"7","text":"row-7","copy":"row-7","n":7,"error":null}"#);
    // Finished rows need no request.
    let output = dir.run(&map(&["-m", "sim/map", "--pack", "20"]));
    insta::assert_snapshot!(output.transcript(), @r"
    exit 0
    --- stdout
    out.jsonl: 45 of 45 rows, 0 errors · whole job: 3 requests · 1155 tokens · $0.00
    --- stderr
    45 items → 3 requests to sim/map (up to 20 items each)
    all rows are finished; use `--force` to start over
    ");
    // Equal jobs share cached responses.
    let again = ["-m", "sim/map", "--pack", "20", "--force", "--json"];
    let output = dir.run(&map(&again));
    let events = output.events();
    assert_eq!(events[0]["event"], "planned");
    assert_eq!(events[0]["requests"], 3);
    let done = events.last().unwrap();
    assert_eq!((&done["event"], &done["exit_code"]), (&"done".into(), &0.into()));
    assert_eq!((&done["done"], &done["errors"]), (&45.into(), &0.into()));
    assert_eq!((&done["requests"], &done["cached"]), (&0.into(), &3.into()));
    assert_eq!((&done["finished"], &done["reasked"]), (&45.into(), &0.into()));
    assert_eq!((&done["in_flight"], &done["rejected"]), (&0.into(), &Value::Array(Vec::new())));
    assert_eq!((&events[0]["reason"], &events[0]["retry"]), (&Value::Null, &false.into()));
    assert_eq!(output.stderr, "");
}

#[test]
fn limits_determine_the_pack_size() {
    let dir = test_dir(45);
    let plan = |more: &[&str]| {
        let output = dir.run(&map(&[&["-m", "sim/map", "--force"], more].concat()));
        assert_eq!(output.code, 0, "{}", output.transcript());
        output.stderr.lines().next().unwrap().to_owned()
    };
    insta::assert_snapshot!(plan(&["--rpm", "6000"]), @"45 items → 1 request to sim/map (up to 50 items each; limit: 6000 requests per minute)");
    insta::assert_snapshot!(plan(&["--tpm", "1000000"]), @"45 items → 45 requests to sim/map (up to 1 item each; limit: 1000000 tokens per minute)");
    insta::assert_snapshot!(plan(&["--pack", "auto"]), @"45 items → 5 requests to sim/map (up to 10 items each; limits unknown)");
    insta::assert_snapshot!(plan(&["--pack", "3", "--format", "yaml"]), @"45 items → 15 requests to sim/map (up to 3 items each)");
    for strategy in ["reactive", "proactive", "none", "adaptive", "fixed"] {
        let rpm: &[&str] = if strategy == "proactive" { &["--rpm", "6000"] } else { &[] };
        plan(&[&["--rate-strategy", strategy], rpm].concat());
    }
}

#[test]
fn dry_run_prints_the_cost_and_leaves_no_files() {
    let suite =
        "[models.m]\nprovider = \"sim\"\nmodel = \"map\"\nprices = { input = 1, output = 4 }\n";
    let dir = test_dir(45).write("models.toml", suite);
    let arguments = map(&["-m", "m", "--suite", "models.toml", "--pack", "20"]);
    let output = dir.run(&[arguments.as_slice(), &["--dry-run"]].concat());
    insta::assert_snapshot!(output.transcript(), @r#"
    exit 0
    --- stdout
    --- stderr
    45 items → 3 requests to m, up to about $0.0087 (up to 20 items each)
    "#);
    let ending = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().into_string().unwrap().starts_with("out.")
    };
    assert!(!dir.path().read_dir().unwrap().any(ending));
    // A started job is left alone.
    let output = dir.run(&arguments);
    assert!(output.stdout.ends_with("$0.0025\n"), "{}", output.transcript());
    assert_eq!(dir.run(&[arguments.as_slice(), &["--dry-run"]].concat()).code, 0);
    assert_eq!(out(&dir).lines().count(), 45);
    assert!(dir.path().join("out.jsonl.journal").exists());
}

#[test]
fn rows_without_an_answer_have_a_reason() {
    let dir = test_dir(3);
    let output = dir.run(&map(&["-m", "sim/map-stubborn"]));
    insta::assert_snapshot!(output.transcript(), @"
    exit 3
    --- stdout
    out.jsonl: 3 of 3 rows, 3 errors · 8 requests · 1117 tokens · $0.00
    --- stderr
    3 items → 1 request to sim/map-stubborn (up to 10 items each; limits unknown)
      hint: `error` in the output has the reason; `--retry-errors` retries these rows
    ");
    insta::assert_snapshot!(out(&dir).lines().next().unwrap(), @r#"{"number":"0","text":"row-0","copy":null,"n":null,"error":"`copy` is {\"no\":\"copy\"}, not a value of type string"}"#);
    let output = dir.run(&map(&["-m", "sim/map-stubborn", "--fallback", "sim/map", "--force"]));
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn retry_errors_bypasses_the_cache() {
    let dir = test_dir(600);
    let errors = |more: &[&str]| {
        let output = dir.run(&map(&[&["-m", "sim/map-drop", "--json"], more].concat()));
        let done = output.done();
        (done["errors"].as_u64().unwrap(), done["exit_code"].as_u64().unwrap())
    };
    let (first, code) = errors(&[]);
    assert!(first > 2 && code == 3, "{first}");
    // After a restart everything comes from the cache, invalid replies included.
    assert_eq!(errors(&["--force"]), (first, 3));
    let (second, _) = errors(&["--retry-errors"]);
    assert!(second < first, "{second} of {first}");
    let output = dir.run(&[
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
    insta::assert_snapshot!(output.transcript(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: no job to resume for new.jsonl
      hint: omit `--resume` and `--retry-errors` to start it
    "#);
}

#[test]
fn invalid_arguments_are_rejected_before_any_call() {
    let dir = test_dir(3).write("bad.toml", "instructions = 1\n[output.a]\ntype = \"text\"\n");
    let dir = dir.write("bad.csv", "a,b\n1\n").write("data.txt", "").write("old.jsonl", "{}\n");
    let render = |arguments: &[&str]| {
        let output = dir.run(arguments);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.transcript());
        output.stderr
    };
    let with = |rows, task, out| ["map", rows, "-t", task, "-m", "sim/map", "-o", out];
    insta::assert_snapshot!(render(&with("rows.csv", "bad.toml", "o.jsonl")), @r#"
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
    insta::assert_snapshot!(render(&with("rows.csv", "gone.toml", "o.jsonl")), @r"
    error: cannot read the task gone.toml: No such file or directory (os error 2)
      hint: `--task` needs the path of a TOML file
    ");
    std::fs::write(dir.path().join("latin1.toml"), b"show = []\ninstructions = \"caf\xe9\"\n")
        .unwrap();
    insta::assert_snapshot!(render(&with("rows.csv", "latin1.toml", "o.jsonl")), @r"
    error: not UTF-8
    --> latin1.toml:2:20
     = help: save the file as UTF-8
    error: 1 problem; nothing was called
    ");
    insta::assert_snapshot!(render(&with("bad.csv", "task.toml", "o.jsonl")), @"error: bad.csv:2: 1 value, but the header has 2");
    insta::assert_snapshot!(render(&with("gone.csv", "task.toml", "o.jsonl")), @"error: no such file: gone.csv");
    insta::assert_snapshot!(render(&with("data.txt", "task.toml", "o.jsonl")), @"
    error: unsupported input format: data.txt
      hint: use a .csv, .jsonl, .ndjson or .json file
    ");
    insta::assert_snapshot!(render(&with("rows.csv", "task.toml", "o.json")), @"
    error: unsupported output format: o.json
      hint: use a .jsonl, .ndjson or .csv file
    ");
    insta::assert_snapshot!(render(&with("rows.csv", "task.toml", "old.jsonl")), @"
    error: old.jsonl already exists and has no journal
      hint: choose another output file, or use `--force` to overwrite it
    ");
    let own =
        ["map", "rows.csv", "-t", "task.toml", "-m", "sim/map", "-o", "./rows.csv", "--force"];
    insta::assert_snapshot!(render(&own), @"
    error: rows.csv is the input and would be overwritten
      hint: choose another output file
    ");
    assert!(dir.path().join("rows.csv").exists());
    insta::assert_snapshot!(render(&map(&["-m", "sim/map", "--resume"])), @r#"
    error: no job to resume for out.jsonl
      hint: omit `--resume` and `--retry-errors` to start it
    "#);
    insta::assert_snapshot!(render(&map(&["-m", "map"])), @r"
    error: unknown model `map`
      hint: write provider/model such as `openai/gpt-4o-mini`, or define it under [models] of a suite and pass `--suite FILE`
    ");
    insta::assert_snapshot!(render(&map(&["-m", "sim/map", "--rate-strategy", "fixed", "--rpm", "5"])), @r"
    error: --rate-strategy fixed contradicts --rpm 5: one is fixed, the other is for auto and proactive
      hint: omit one of them
    ");
    let output = dir.run(&map(&["-m", "sim/map", "--pack", "0"]));
    assert!(
        output.code == 2 && output.stderr.contains("invalid pack size `0`"),
        "{}",
        output.stderr
    );
    assert_eq!(dir.run(&map(&["-m", "sim/map", "--pack", "2"])).code, 0);
    insta::assert_snapshot!(render(&map(&["-m", "sim/map", "--pack", "3"])), @"
    error: out.jsonl was started with --pack 2
      hint: use the same settings, choose another output file, or use `--force` to start over
    ");
    assert!(!dir.path().join("o.jsonl").exists());
}

#[test]
fn unwritable_output_is_an_internal_error() {
    let dir = test_dir(3);
    let output =
        dir.run(&["map", "rows.csv", "-t", "task.toml", "-m", "sim/map", "-o", "gone/o.csv"]);
    assert_eq!(output.code, 4, "{}", output.transcript());
    assert!(output.stderr.contains("gone/o.csv"), "{}", output.stderr);
}

/// Adds a suite whose model is served over HTTP, so that requests are counted.
fn with_server(dir: TestDir, server: &Provider, name: &str) -> TestDir {
    let suite = format!(
        "[models.m]\nprovider = \"openai\"\nmodel = \"sim/{name}\"\nbase_url = \"{}\"\n\
         prices = {{ input = 1, output = 1 }}\n",
        server.base_url
    );
    dir.write("models.toml", suite)
}

fn journal_length(dir: &TestDir) -> u64 {
    std::fs::metadata(dir.path().join("out.jsonl.journal")).map_or(0, |file| file.len())
}

/// Returns the number of requests in the journal.
fn journaled_requests(path: &Path) -> usize {
    let text = std::fs::read(path.join("out.jsonl.journal")).unwrap_or_default();
    String::from_utf8_lossy(&text).matches("{\"asked\":").count()
}

#[test]
fn job_killed_at_random_moments_resumes_without_paying_twice() {
    const IN_FLIGHT: u64 = 4;
    let arguments = |more: &[&'static str]| {
        let common = ["-m", "m", "--suite", "models.toml", "--pack", "5", "--no-cache", "--quiet"];
        map(&[&common, ["--max-connections", "4"].as_slice(), more].concat())
    };
    let random = || std::collections::hash_map::RandomState::new().build_hasher().finish();
    for name in ["map", "map-unruly"] {
        let server = Provider::start(&["--latency-ms", "4"]);
        let whole = with_server(test_dir(600), &server, name);
        let code = whole.run(&arguments(&[])).code;
        let expected = out(&whole);
        let requests = stats(&server)["requests"].as_u64().unwrap();
        let full = journal_length(&whole);

        let server = Provider::start(&["--latency-ms", "4"]);
        let killed = with_server(test_dir(600), &server, name);
        let mut kills = 0;
        // Each process is killed once the journal has grown by a random length.
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
        let output = killed.run(&arguments(&[]));
        assert_eq!(output.code, code, "{}", output.transcript());
        assert!(out(&killed) == expected, "{name}: another output after {kills} kills");
        assert_eq!(journaled_requests(killed.path()), journaled_requests(whole.path()), "{name}");
        // Requests in flight are repeated, including their re-asks.
        let sent = stats(&server)["requests"].as_u64().unwrap();
        let max = requests + kills * 2 * IN_FLIGHT;
        assert!(sent <= max, "{name}: {sent} requests instead of {requests}, {kills} kills");
    }
}

#[test]
fn interrupted_or_over_budget_job_can_be_resumed() {
    let server = Provider::start(&["--latency-ms", "5"]);
    let dir = with_server(test_dir(400), &server, "map");
    let arguments = |more: &[&'static str]| {
        let common = ["-m", "m", "--suite", "models.toml", "--pack", "4", "--max-connections", "4"];
        map(&[common.as_slice(), more].concat())
    };
    let output = dir.run(&arguments(&["--max-cost", "0.001"]));
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert!(
        output.stderr.ends_with(
            "stopped: another request could exceed --max-cost\n  hint: run the same command with a higher --max-cost to resume\n"
        ),
        "{}",
        output.stderr
    );
    let done = out(&dir).lines().count();
    assert!(done < 400, "{done}");

    let mut child =
        dir.command(&arguments(&[])).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while out(&dir).lines().count() <= done && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let id = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).unwrap();
    let output = crate::support::CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(output.code, 130, "{}", output.transcript());
    assert!(
        output.stderr.contains("interrupted\n  hint: `bakeoff map ")
            && output.stderr.contains("` resumes it\n"),
        "{}",
        output.stderr
    );

    let output = dir.run(&arguments(&["--resume"]));
    assert_eq!(output.code, 0, "{}", output.transcript());
    let numbers: Vec<String> = out(&dir)
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["copy"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(numbers, (0..400).map(|n| format!("row-{n}")).collect::<Vec<_>>());
}

#[test]
fn plan_needs_no_api_key() {
    let dir = test_dir(3);
    let planned = dir.run(&map(&["-m", "openai/gpt-4o-mini", "--dry-run"]));
    assert_eq!(planned.code, 0, "{}", planned.transcript());
    let warning = "warning: environment variable OPENAI_API_KEY is not set; calls need it\n";
    assert!(planned.stderr.contains(warning), "{}", planned.stderr);
    assert_eq!(dir.run(&map(&["-m", "openai/gpt-4o-mini"])).code, 2);
}

#[test]
fn model_that_rejects_all_requests_ends_the_job() {
    let dir = test_dir(10);
    let output = dir.run(&map(&["-m", "sim/fault-401"]));
    insta::assert_snapshot!(output.transcript(), @r"
    exit 3
    --- stdout
    out.jsonl: 0 of 10 rows, 0 errors · 1 request · 0 tokens · $0.00
    --- stderr
    10 items → 1 request to sim/fault-401 (up to 10 items each; limits unknown)
    error: 401: Incorrect API key provided; no further calls to sim/fault-401 in this run; check BAKEOFF_SIM_API_KEY and its access to the model
      hint: fix the cause and run the same command to resume
    ");
}

//! Rate limits: settings, effects, and the logs of requests and limit changes.

use crate::support::{
    CommandOutput, Provider, TestDir, profiled as provider, stats, suite_of as test_dir,
};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the message of a usage error, after which no run exists.
fn rejection(dir: &TestDir, arguments: &[&str]) -> String {
    let output = dir.run(arguments);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.transcript());
    assert!(!dir.path().join("runs").exists());
    output.stderr
}

#[test]
fn contradicting_limits_are_reported_with_positions() {
    let render = |limits| rejection(&test_dir("http://127.0.0.1:1/v1", limits, 1), &["check"]);
    insta::assert_snapshot!(render("strategy = \"proactive\""), @r#"
    error: the strategy proactive needs rpm or tpm (or itpm, otpm): there is no built-in table of limits
     --> bakeoff.toml:9:23
      |
    9 | limits = { strategy = "proactive" }
      |                       ^^^^^^^^^^^
      |
      = help: add the limit of your account, such as `rpm = 500`, or use `auto`, which detects it
    error: 1 problem; nothing was called
    "#);
    insta::assert_snapshot!(render("strategy = \"fixed\", rpm = 60"), @r#"
    error: rpm is for the strategies auto and proactive, not for fixed
     --> bakeoff.toml:9:38
      |
    9 | limits = { strategy = "fixed", rpm = 60 }
      |                                      ^^
      |
      = help: remove it, or use `strategy = "proactive"`
    error: 1 problem; nothing was called
    "#);
    insta::assert_snapshot!(render("connections = \"4-20-80\""), @r#"
    error: a range of connections needs the strategy adaptive; auto takes one number
     --> bakeoff.toml:9:26
      |
    9 | limits = { connections = "4-20-80" }
      |                          ^^^^^^^^^
      |
      = help: use `strategy = "adaptive"`
    error: 1 problem; nothing was called
    "#);
    insta::assert_snapshot!(render("strategy = \"adaptive\", connections = \"100-50\""), @r#"
    error: `connections`: max 50 is below min 100
     --> bakeoff.toml:9:49
      |
    9 | limits = { strategy = "adaptive", connections = "100-50" }
      |                                                 ^^^^^^^^
      |
      = help: use a number, or "min-max" or "min-start-max" with `strategy = "adaptive"`
    error: 1 problem; nothing was called
    "#);
    insta::assert_snapshot!(render("strategy = \"quick\", conections = 3, rpm = 0"), @r#"
    error: `strategy` cannot be "quick"
     --> bakeoff.toml:9:23
      |
    9 | limits = { strategy = "quick", conections = 3, rpm = 0 }
      |                       ^^^^^^^
      |
      = help: expected one of: `auto`, `fixed`, `adaptive`, `reactive`, `proactive`, `none`
    error: unknown key `conections` in [limits]
     --> bakeoff.toml:9:32
      |
    9 | limits = { strategy = "quick", conections = 3, rpm = 0 }
      |                                ^^^^^^^^^^
      |
      = help: did you mean `connections`?
    error: `rpm` must be an integer from 1 to 1000000000000, not 0
     --> bakeoff.toml:9:54
      |
    9 | limits = { strategy = "quick", conections = 3, rpm = 0 }
      |                                                      ^
      |
      = help: `rpm`: requests per minute, for `auto` and `proactive`
    error: 3 problems; nothing was called
    "#);
    insta::assert_snapshot!(render("strategy = \"adaptive\", decrease_factor = 1"), @r#"
    error: decrease_factor 1 is not between 0 and 1
     --> bakeoff.toml:9:53
      |
    9 | limits = { strategy = "adaptive", decrease_factor = 1 }
      |                                                     ^
    error: 1 problem; nothing was called
    "#);
    insta::assert_snapshot!(render("connections = true"), @r#"
    error: `connections` must be an integer from 1 to 100000, or a string such as "4-20-80", not true
     --> bakeoff.toml:9:26
      |
    9 | limits = { connections = true }
      |                          ^^^^
      |
      = help: `connections`: maximum number of requests in flight [default: 10 for `fixed`, 1000 for `auto`, "4-20-200" for `adaptive`, otherwise unlimited]
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn schema_has_every_limit() {
    let schema = TestDir::new().run(&["schema"]).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let limits = &schema["properties"]["models"]["additionalProperties"]["properties"]["limits"];
    let keys: Vec<&str> =
        limits["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    insta::assert_snapshot!(keys.join(" "), @"attempt_timeout burst connections cooldown_seconds decrease_factor itpm max_retries otpm retry_after rpm scale_up_percent strategy timeout tpm");
    let connections = limits["properties"]["connections"]["anyOf"].to_string();
    insta::assert_snapshot!(connections, @r#"[{"maximum":100000,"minimum":1,"type":"integer"},{"pattern":"^[0-9]+(-[0-9]+){0,2}$","type":"string"}]"#);
    assert_eq!(limits["additionalProperties"], false);
}

#[test]
fn contradicting_options_are_both_named() {
    let dir = test_dir("http://127.0.0.1:1/v1", "", 1);
    let render = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["run"].iter().chain(arguments).copied().collect();
        rejection(&dir, &arguments)
    };
    let two = render(&["--max-connections", "5", "--adaptive-connections", "true"]);
    insta::assert_snapshot!(two, @r#"
    error: --max-connections 5 contradicts --adaptive-connections true: one is fixed, the other is adaptive
      hint: omit one of them
    "#);
    insta::assert_snapshot!(render(&["--rate-strategy", "proactive"]), @r#"
    error: limits of the target `one`: the strategy proactive needs rpm or tpm (or itpm, otpm): there is no built-in table of limits
      hint: limits of the command line replace those of the suite
    "#);
    insta::assert_snapshot!(render(&["--rate-strategy", "quick"]), @r#"
    error: --rate-strategy: unknown strategy "quick"; expected auto, fixed, adaptive, reactive, proactive or none
      hint: `auto` learns the limits of the provider
    "#);
    insta::assert_snapshot!(render(&["--adaptive-connections", "9-5"]), @r#"
    error: --adaptive-connections 9-5: max 5 is below min 9
      hint: valid values: true, false, MAX, MIN-MAX or MIN-START-MAX, such as 4-20-80
    "#);
    insta::assert_snapshot!(render(&["--adaptive-connections", "-5"]), @r#"
    error: --adaptive-connections -5: "-5" has an empty part
      hint: valid values: true, false, MAX, MIN-MAX or MIN-START-MAX, such as 4-20-80
    "#);
    for (option, value) in [("--rpm", "-1"), ("--timeout", "-1"), ("--max-retries", "-1")] {
        let message = render(&[option, value]);
        assert!(
            message.starts_with(&format!("error: invalid value '-1' for '{option}")),
            "{message}"
        );
    }
}

#[test]
fn command_line_overrides_limits_of_the_suite() {
    let server = Provider::start(&[]);
    let limits =
        "strategy = \"adaptive\", connections = \"2-4-8\", cooldown_seconds = 1, timeout = 30";
    let table: [(&[&str], Value); 4] = [
        (
            &[],
            serde_json::json!({"strategy": "adaptive", "connections": "2-4-8",
                "cooldown_seconds": 1.0, "timeout": 30.0}),
        ),
        (
            &["--max-connections", "3", "--max-retries", "2"],
            serde_json::json!({"strategy": "fixed", "connections": 3, "timeout": 30.0,
                "max_retries": 2}),
        ),
        (
            &["--rate-strategy", "proactive", "--rpm", "600", "--tpm", "90000", "--timeout", "5"],
            serde_json::json!({"strategy": "proactive", "rpm": 600, "tpm": 90000, "timeout": 5.0}),
        ),
        (
            &["--adaptive-connections", "5", "--attempt-timeout", "2"],
            serde_json::json!({"strategy": "adaptive", "connections": "4-5-5",
                "cooldown_seconds": 1.0, "timeout": 30.0, "attempt_timeout": 2.0}),
        ),
    ];
    for (arguments, expected) in table {
        let dir = test_dir(&server.base_url, limits, 3);
        let arguments: Vec<&str> = ["run"].iter().chain(arguments).copied().collect();
        let output = dir.run(&arguments);
        assert_eq!(output.code, 0, "{}", output.transcript());
        let run = std::fs::read(dir.run_folder().join("run.json")).unwrap();
        let run: Value = serde_json::from_slice(&run).unwrap();
        assert_eq!(run["suite"]["targets"][0]["limits"], expected, "{arguments:?}");
    }
}

#[test]
fn exhausted_quota_ends_the_run_with_a_hint() {
    const QUOTA: u64 = 50;
    const CONNECTIONS: u64 = 20;
    let dir = TestDir::new();
    let profile = "latency = { kind = \"fixed\", ms = 20 }\ndaily_quota = 50";
    let server = provider(dir.path(), profile);
    let dir = test_dir(&server.base_url, "", 4000);
    let start = Instant::now();
    let output = dir.run(&["run", "--max-connections", &CONNECTIONS.to_string()]);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert_eq!(output.code, 3, "{}", output.transcript());
    let summary = dir.summary();
    let target = &summary["targets"][0];
    assert_eq!((&target["pass_count"], &target["errors"]), (&50.into(), &3950.into()));
    assert_eq!(target["errors_by_kind"]["quota"], 3950);
    // Only requests that were in flight when the quota error arrived.
    let stats = stats(&server);
    assert_eq!(stats["answered"], QUOTA);
    let requests = stats["requests"].as_u64().unwrap();
    assert!(requests <= QUOTA + CONNECTIONS, "{stats}");
    let log = lines(&dir.run_folder().join("http.jsonl"));
    assert_eq!(log.len() as u64, requests);
    let message = "quota exhausted for sim/echo (You exceeded your current quota, please check your \
                   plan); no further calls to it in this run; check plan, billing and limits at the \
                   provider, or wait for the quota to renew and run again";
    assert!(
        output.stderr.contains(&format!("warning: {message} [PACE_QUOTA_USED_UP]")),
        "{}",
        output.stderr
    );
    for trial in dir.trials().iter().filter(|trial| trial["status"] == "error") {
        let text = trial["attempt"]["error"]["message"].as_str().unwrap();
        assert!(text.ends_with(message), "{text}");
    }
}

#[test]
fn limit_changes_are_logged_streamed_and_summarized() {
    let dir = TestDir::new();
    let profile = "latency = { kind = \"fixed\", ms = 5 }\nconcurrency = 6";
    let server = provider(dir.path(), profile);
    let dir = test_dir(&server.base_url, "", 60);
    let output = dir.run(&["run", "--adaptive-connections", "1-4-50", "--json"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let written = lines(&dir.run_folder().join("limits.jsonl"));
    assert!(written.len() >= 2, "{written:?}");
    let summed = dir.summary()["stats"]["connection_limit_history"].clone();
    assert_eq!(summed, Value::from(written.clone()));
    let entries = |events: Vec<Value>, field: &str| -> Vec<Value> {
        let limits = events.into_iter().filter(|event| event["event"] == "limit");
        limits.map(|event| event[field].clone()).collect()
    };
    assert_eq!(entries(output.events(), "change"), written);
    assert_eq!((&written[0]["old_limit"], &written[0]["new_limit"]), (&4.into(), &8.into()));
    assert_eq!(
        (&written[0]["model"], &written[0]["reason"]),
        (&"sim/echo".into(), &"slow_start".into())
    );
    assert!(written.iter().any(|change| change["reason"] == "rate_limit"), "{written:?}");

    let printed = dir.run(&["trace", "limits"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    let printed: Vec<&str> = printed.stdout.lines().collect();
    assert!(printed[0].starts_with("time           from     to  reason"), "{printed:?}");
    assert!(printed[1].contains("    4      8  slow_start       sim/echo"), "{printed:?}");
    assert_eq!(printed.len(), written.len() + 1);
    let json = dir.run(&["trace", "limits", "--json", "last"]);
    assert_eq!(json.done()["entries"], written.len());
    assert_eq!(entries(json.events(), "entry"), written);
}

#[test]
fn trace_prints_every_request() {
    let dir = TestDir::new();
    let profile = "latency = { kind = \"fixed\", ms = 50 }\nconcurrency = 3";
    let server = provider(dir.path(), profile);
    let dir = test_dir(&server.base_url, "", 12);
    let output = dir.run(&["run", "--rate-strategy", "none", "--log-level", "http"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let requests = stats(&server)["requests"].as_u64().unwrap() as usize;
    assert!(requests > 12, "nothing was throttled");
    let printed = dir.run(&["trace", "http"]);
    assert_eq!(printed.code, 0, "{}", printed.transcript());
    assert_eq!(printed.stdout.lines().count(), requests + 1);
    // The live log equals the stored log.
    let mut live: Vec<&str> =
        output.stderr.lines().filter(|line| line.contains("POST http")).collect();
    let mut after: Vec<&str> = printed.stdout.lines().skip(1).collect();
    live.sort_unstable();
    after.sort_unstable();
    assert_eq!(live, after);

    let failed = dir.run(&["trace", "http", "--failed"]).stdout;
    assert_eq!(failed.lines().count(), requests - 12 + 1);
    let is_throttled = |line: &str| {
        line.contains("  429     rate_limit ")
            && line.contains(" retry in ")
            && line.contains("sim/echo POST ")
    };
    assert!(failed.lines().skip(1).all(is_throttled), "{failed}");
    let events = dir.run(&["trace", "http", "--failed", "--json"]).events();
    assert_eq!(events[0]["event"], "http");
    let first = &events[0]["entry"];
    assert_eq!((&first["status"], &first["error"]), (&429.into(), &"rate_limit".into()));
    assert_eq!((&first["method"], &first["model"]), (&"POST".into(), &"sim/echo".into()));
    assert_eq!(first["url"], format!("{}/chat/completions", server.base_url));
    let log = lines(&dir.run_folder().join("http.jsonl"));
    let max = log.iter().filter_map(|entry| entry["in_flight"].as_u64()).max();
    assert!(max > Some(3), "{log:?}");
    assert!(
        first["request_bytes"].as_u64() > Some(50) && first["response_bytes"].as_u64() > Some(50)
    );
}

#[test]
fn words_of_limits_ignore_case() {
    for limits in ["strategy = \"FIXED\"", "strategy = \"Auto\", retry_after = \"STRICT\""] {
        let output = test_dir("http://127.0.0.1:1/v1", limits, 1).run(&["check"]);
        assert_eq!(output.code, 0, "{limits}: {}", output.transcript());
    }
}

#[test]
fn run_is_found_by_path_prefix_and_last() {
    let dir = test_dir("http://127.0.0.1:1/v1", "", 1);
    let nothing = |arguments: &[&str]| {
        let output: CommandOutput = dir.run(arguments);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.transcript());
        output.stderr
    };
    insta::assert_snapshot!(nothing(&["trace", "http"]), @r#"
    error: there is no run in runs
      hint: start one with `bakeoff run` or `bakeoff select`, or name the folder of all runs with `--out`
    "#);
    assert_eq!(dir.run(&["run", "--max-retries", "0"]).code, 3);
    assert_eq!(dir.run(&["run", "--max-retries", "0"]).code, 3);
    let mut runs: Vec<_> = std::fs::read_dir(dir.path().join("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    runs.sort();
    let name = runs[0].file_name().unwrap().to_str().unwrap().to_owned();
    let found = |run: &str| dir.run(&["trace", "http", run]);
    assert_eq!(found(&name).stdout.lines().count(), 2);
    assert_eq!(found(&name[..name.len() - 2]).stdout.lines().count(), 2);
    assert_eq!(found(runs[0].to_str().unwrap()).stdout.lines().count(), 2);
    assert_eq!(
        dir.run(&["trace", "limits", &name]).stderr,
        format!("no limit changes in runs/{name}\n")
    );
    assert!(nothing(&["trace", "http", "2"]).contains("2 runs start with `2`"));
    assert!(nothing(&["trace", "http", "zzz"]).contains("no run in runs starts with `zzz`"));
    assert!(nothing(&["trace", "http", "--out", "other"]).contains("there is no run in other"));

    // A torn line, a damaged line, and a missing file.
    let log = runs[0].join("http.jsonl");
    let good = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, format!("{good}{}", &good[..40])).unwrap();
    let torn = found(&name);
    assert_eq!((torn.code, torn.stdout.lines().count()), (0, 2));
    assert!(torn.stderr.contains("skipped the incomplete last line"), "{}", torn.stderr);
    std::fs::write(&log, format!("{}\n{good}", &good[..40])).unwrap();
    let damaged = found(&name);
    assert_eq!((damaged.code, damaged.stdout.lines().count()), (0, 2));
    assert!(damaged.stderr.contains("skipped 1 unreadable line"), "{}", damaged.stderr);
    std::fs::remove_file(&log).unwrap();
    assert!(nothing(&["trace", "http", &name]).contains("has no http.jsonl"));
}

#[test]
fn no_memory_writes_no_limit_history() {
    let server = Provider::start(&[]);
    let dir = test_dir(&server.base_url, "", 30);
    let memory = dir.path().join("cache/limits.json");
    std::fs::create_dir_all(memory.parent().unwrap()).unwrap();
    let old = "{\"version\": 1, \"pools\": {}}";
    std::fs::write(&memory, old).unwrap();
    assert_eq!(dir.run(&["run", "--no-memory"]).code, 0);
    assert_eq!(std::fs::read_to_string(&memory).unwrap(), old);
}

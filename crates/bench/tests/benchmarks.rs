//! Runs each benchmark with little work and checks its counts; figures of speed are not asserted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Temporary folder in which benchmarks run.
struct TestFolder(tempfile::TempDir);

/// Exit code and output of a benchmark.
struct RunOutput {
    code: i32,
    stdout: String,
    stderr: String,
}

impl TestFolder {
    fn new() -> TestFolder {
        TestFolder(tempfile::tempdir().unwrap())
    }

    fn write(self, name: &str, contents: &str) -> TestFolder {
        std::fs::write(self.path().join(name), contents).unwrap();
        self
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, arguments: &[&str]) -> RunOutput {
        let bench = Path::new(env!("CARGO_BIN_EXE_bakeoff-bench"));
        // A build of the whole workspace has the program already; otherwise the benchmark has cargo build it.
        let program = bench.with_file_name("bakeoff");
        let built = program.is_file().then_some(["--program".as_ref(), program.as_os_str()]);
        let output = Command::new(bench)
            .args(arguments)
            .args(built.iter().flatten())
            .current_dir(self.path())
            .env("BAKEOFF_CACHE_DIR", self.path().join("cache"))
            .output()
            .unwrap();
        RunOutput {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl RunOutput {
    fn report(&self) -> String {
        format!(
            "exit {}
--- stdout
{}--- stderr
{}",
            self.code, self.stdout, self.stderr
        )
    }
}

/// Runs a benchmark that prints one JSON object.
fn run_json(arguments: &[&str]) -> Value {
    let output = TestFolder::new().run(arguments);
    assert_eq!(output.code, 0, "{}", output.report());
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn permits_reports_every_strategy() {
    let report = run_json(&["permits", "--waiting", "50", "--permits", "200", "--json"]);
    let strategies: Vec<&str> = (report["strategies"].as_array().unwrap().iter())
        .map(|row| row["strategy"].as_str().unwrap())
        .collect();
    assert_eq!(strategies, ["fixed", "adaptive", "proactive", "auto"]);
}

#[test]
fn flight_answers_every_request_once() {
    let report = run_json(&["flight", "--requests", "150", "--latency-ms", "1500", "--json"]);
    assert_eq!((&report["answered"], &report["seen"]), (&150.into(), &150.into()), "{report}");
    assert!(report["peak_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn map_keeps_rows_apart_and_packs_save_requests() {
    let arguments = ["map", "--attacked", "60", "--seeds", "3", "--rows", "2000", "--json"];
    let report = run_json(&arguments);
    let attack = &report["attack"];
    assert_eq!((&attack["rows"], &attack["out"]), (&180.into(), &180.into()), "{report}");
    assert_eq!((&attack["misplaced"], &attack["wrong"]), (&0.into(), &0.into()), "{report}");
    assert!(attack["requests"].as_u64() > attack["fewest_requests"].as_u64(), "{report}");
    let requests: Vec<u64> = (report["packs"].as_array().unwrap().iter())
        .map(|row| row["requests"].as_u64().unwrap())
        .collect();
    assert_eq!(requests, [40, 8, 2]);
    assert_eq!(report["loads"][1]["rows"], 2000);
}

#[test]
fn pace_compares_schedulers_on_the_profiles_of_a_file() {
    let folder = TestFolder::new();
    std::fs::write(
        folder.path().join("providers.toml"),
        "[[profile]]\nname = \"slow\"\nitems = 40\nlatency = { kind = \"fixed\", ms = 500 }\n\
         requests = { rate_per_s = 2, burst = 4 }\n\
         [[profile]]\nname = \"narrow\"\nitems = 40\nlatency = { kind = \"fixed\", ms = 500 }\n\
         concurrency = 4\n",
    )
    .unwrap();
    let args = ["pace", "--profile", "providers.toml", "--policy", "auto"];
    let args = [&args[..], &["--policy", "fixed-10", "--seeds", "2"]].concat();
    let text = folder.run(&args);
    assert_eq!(text.code, 0, "{}", text.report());
    assert!(text.stdout.contains("narrow"), "{}", text.stdout);
    assert!(text.stdout.contains("no headers (2)"), "{}", text.stdout);
    let json = folder.run(&[&args[..], &["--json"]].concat());
    let rows: Vec<Value> =
        json.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = rows.iter().map(|row| (&row["profile"], &row["policy"])).collect();
    let pair = |profile: &str, policy: &str| (Value::from(profile), Value::from(policy));
    let expected = [
        pair("slow", "auto"),
        pair("slow", "fixed-10"),
        pair("narrow", "auto"),
        pair("narrow", "fixed-10"),
    ];
    assert_eq!(names, expected.iter().map(|(one, two)| (one, two)).collect::<Vec<_>>());
    for row in rows {
        assert_eq!(row["lost"], 0, "{row}");
        let part = |name: &str| row[name].as_f64().unwrap();
        assert!(part("efficiency") > 0.3 && part("efficiency") <= 1.0, "{row}");
        assert!(part("worst") <= part("efficiency"), "{row}");
        assert!(part("seconds") > 1.0, "{row}");
    }
}

#[test]
fn invalid_profiles_are_usage_errors() {
    let folder = TestFolder::new();
    let missing = folder.run(&["pace", "--profile", "none.toml"]);
    assert_eq!(missing.code, 2, "{}", missing.report());
    std::fs::write(folder.path().join("bad.toml"), "[[profile]]\nlatencies = 3\n").unwrap();
    let bad = folder.run(&["pace", "--profile", "bad.toml"]);
    assert_eq!(bad.code, 2, "{}", bad.report());
    assert!(bad.stderr.contains("latencies"), "{}", bad.stderr);
    assert_eq!(folder.run(&["pace", "--seed", "3"]).code, 2);
}

/// The seed makes all figures except time and memory reproducible.
#[test]
fn race_reduces_bias_and_saves_votes_without_losing_branches() {
    let report = run_json(&["race", "--races", "200", "--json"]);
    let judged = |better: &str, asked: &str| {
        let rows = report["judged"].as_array().unwrap();
        let row = rows.iter().find(|row| row["better"] == better && row["asked"] == asked).unwrap();
        (row["better_wins"].as_u64().unwrap(), row["p_value"].as_f64().unwrap())
    };
    for position in ["anywhere", "second"] {
        let (once, _) = judged(position, "one call");
        let (rounds, p_value) = judged(position, "both orders, up to 3 rounds");
        assert!(
            rounds > once && p_value < 0.05,
            "{position}: {rounds} against {once}, p = {p_value}"
        );
    }
    let blind = &report["blind"];
    assert_eq!((&blind["ties"], &blind["won_by_fewer_tokens"]), (&200.into(), &200.into()));
    for row in report["votes"].as_array().unwrap() {
        assert_eq!(row["correct"], row["full_correct"], "{row}");
        let share = row["calls"].as_f64().unwrap() / row["full_calls"].as_f64().unwrap();
        // A higher accuracy decides the vote sooner.
        let max_share = if row["right"].as_f64().unwrap() >= 0.8 { 0.7 } else { 0.9 };
        assert!(share <= max_share, "{row}");
    }
    assert_eq!(report["cap"]["lost"], 0);
    assert_eq!(report["memory"].as_array().unwrap().len(), 4);
}

#[test]
fn world_measures_each_strategy_on_a_row() {
    let arguments = ["world", "--rows", "window-37-per-7s", "--scale", "0.02", "--json"];
    let arguments = [&arguments[..], &["--strategies", "auto,fixed-3"]].concat();
    let output = TestFolder::new().run(&arguments);
    assert_eq!(output.code, 0, "{}", output.report());
    let rows: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2, "{}", output.report());
    for (row, strategy) in rows.iter().zip(["auto", "fixed-3"]) {
        assert_eq!((&row["row"], &row["strategy"]), (&"window-37-per-7s".into(), &strategy.into()));
        assert_eq!((&row["reference"], &row["reference_seconds"]), (&"ideal".into(), &0.5.into()));
        assert_eq!((&row["lost"], &row["stopped"]), (&0.into(), &false.into()), "{row}");
        assert!(row["profile"].as_str().unwrap().contains("window = { requests = 37"), "{row}");
        assert!(row["seconds"].as_f64().unwrap() > 0.5 && row["latency_p50_ms"].is_u64(), "{row}");
    }
    assert!(output.stderr.contains("this takes at least 1 s"), "{}", output.stderr);
}

#[test]
fn unknown_rows_and_strategies_are_usage_errors() {
    for (arguments, message) in [
        (["--rows", "no-such-row"], "hint: rows: bucket-jitter, "),
        (["--strategies", "cubic"], "`cubic` is not one of auto, "),
        (["--scale", "0"], "`0` is not a number from 0.001 to 100"),
    ] {
        let output = TestFolder::new().run(&[&["world"], &arguments[..]].concat());
        assert_eq!(output.code, 2, "{}", output.report());
        assert!(output.stderr.contains(message), "{}", output.stderr);
    }
}

const MATRIX: &str = r#"{"benchmark": "tiny", "combos": ["p=a + s=b", "p=a + s=c"], "datapoints": [1, 2, 3],
"score": [[1, 0, 1], [1, 1, null]], "latency_s": [[1, 1, 1], [2, 2, 2]], "cost_usd": [[1, 1, 1], [2, 2, 2]]}"#;

#[test]
fn select_measures_every_selector_on_every_matrix() {
    let folder = TestFolder::new().write("tiny.json", MATRIX);
    let arguments = ["select", "--matrix", "tiny.json", "--generated", "additive 9"];
    let output = folder.run(&[&arguments[..], &["--seeds", "4", "--json"]].concat());
    assert_eq!(output.code, 0, "{}", output.report());
    let rows: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Every selector on both matrices, except `lm_proposal`, which needs a model.
    assert_eq!(rows.len(), 2 * (bakeoff_select::SELECTOR_NAMES.len() - 1));
    let row = |matrix: &str, selector: &str| {
        let found = |row: &&Value| row["matrix"] == matrix && row["selector"] == selector;
        rows.iter().find(found).unwrap_or_else(|| panic!("{matrix} {selector}"))
    };
    let all = row("tiny", "brute_force");
    let figures = ["find_rate", "regret", "cells", "cells_share", "cost_share", "seeds"];
    let figures = figures.map(|name| all[name].as_f64().unwrap());
    assert_eq!(figures, [1.0, 0.0, 6.0, 1.0, 1.0, 4.0], "{all}");
    for selector in ["auto", "strict"] {
        assert_eq!(row("additive 9", selector)["find_rate"], 1.0, "{selector}");
    }
    let text = folder.run(&[&arguments[..], &["--seeds", "2", "--selector", "auto"]].concat());
    assert_eq!(text.code, 0, "{}", text.report());
    let heading = "tiny: 2 combinations × 3 datapoints; lower bound of the cost: ";
    assert!(text.stdout.contains(heading), "{}", text.stdout);
}

#[test]
fn select_states_whether_the_goals_are_met() {
    let folder = TestFolder::new().write("tiny.json", &MATRIX.replace("null", "1"));
    let selectors = ["--selector", "auto", "--selector", "arm_elimination"];
    let arguments = ["select", "--parts-of", "tiny.json", "--parts", "2", "--seeds", "10"];
    let output = folder.run(&[&arguments[..], &selectors, &["--generated", "additive 9"]].concat());
    assert_eq!(output.code, 0, "{}", output.report());
    for text in [
        "tiny part: 2 matrices, the first with 2 combinations × 3 datapoints",
        "Goals of auto at a confidence of 0.95",
        "mean find rate of the groups: 1.000; goal: at least 0.95: met",
        "mean cost of recorded groups: 1.00 of arm_elimination; goal: at most 1: met",
    ] {
        assert!(output.stdout.contains(text), "{text}: {}", output.stdout);
    }
    // Without the selector that has goals, there is no such table.
    let output = folder.run(&[&arguments[..], &selectors[2..], &["--generated", "none"]].concat());
    assert_eq!(output.code, 0, "{}", output.report());
    assert!(!output.stdout.contains("Goals"), "{}", output.stdout);
}

#[test]
fn invalid_matrices_are_usage_errors() {
    for (text, message) in [
        ("[1]", "not a matrix"),
        (&MATRIX.replace("p=a + s=c", "p=a"), "combination 1"),
        (&MATRIX.replace("[[1, 0, 1],", "[[1, 0],"), "`score` has"),
        (
            &MATRIX.replace("[[1, 1, 1], [2, 2, 2]]}", "[[1, 1, -1], [2, 2, 2]]}"),
            "`cost_usd` has -1",
        ),
    ] {
        let folder = TestFolder::new().write("bad.json", text);
        let output = folder.run(&["select", "--matrix", "bad.json", "--seeds", "1"]);
        assert_eq!(output.code, 2, "{}", output.report());
        assert!(output.stderr.contains(message), "{message}: {}", output.stderr);
    }
    let output = TestFolder::new().run(&["select", "--generated", "nothing"]);
    assert_eq!(output.code, 2, "{}", output.report());
    let output = TestFolder::new().run(&["select", "--selector", "magic", "--seeds", "1"]);
    assert_eq!(output.code, 2, "{}", output.report());
}

//! Changes of limits during a run, and runs that cannot succeed.

use crate::support::{CommandOutput, TestDir, profiled, suite_of};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// A run in the background with one request in flight at a time.
struct BackgroundRun {
    dir: TestDir,
    process: Child,
    events: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl BackgroundRun {
    /// Starts a run and waits until its first trial has finished.
    fn start(dir: TestDir, variables: &[(&str, &str)]) -> BackgroundRun {
        let mut process = dir
            .command(&["run", "--max-connections", "1", "--json"])
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut events = BufReader::new(process.stdout.take().unwrap()).lines();
        let is_finished = |line: &String| line.contains("\"event\":\"trial_finished\"");
        events.by_ref().map(Result::unwrap).find(is_finished).unwrap();
        BackgroundRun { dir, process, events }
    }

    fn tune(&self, arguments: &[&str]) -> CommandOutput {
        self.dir.run(&[&["tune"], arguments].concat())
    }

    fn socket(&self) -> PathBuf {
        let file = std::fs::read(self.dir.run_folder().join("run.json")).unwrap();
        let file: Value = serde_json::from_slice(&file).unwrap();
        PathBuf::from(file["control_socket"].as_str().unwrap())
    }

    /// Waits for the end of the run and returns its exit code.
    fn finish(&mut self) -> Option<i32> {
        self.events.by_ref().for_each(drop);
        self.process.wait().unwrap().code()
    }
}

#[test]
fn limits_of_a_running_run_change() {
    let provider_dir = TestDir::new();
    let profile = "latency = { kind = \"fixed\", ms = 20 }";
    let provider = profiled(provider_dir.path(), profile);
    let runtime = provider_dir.path().to_str().unwrap();
    let dir = suite_of(&provider.base_url, "", 300);
    let mut run = BackgroundRun::start(dir, &[("XDG_RUNTIME_DIR", runtime)]);
    let socket = run.socket();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);

    let paused = run.tune(&["--pause"]);
    assert_eq!(paused.code, 0, "{}", paused.transcript());
    assert!(paused.stdout.starts_with("sim/echo  paused"), "{}", paused.stdout);
    let unknown = run.tune(&["--model", "other", "--rpm", "5"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("no calls to `other` in this run; its models: sim/echo"));
    let nothing = run.tune(&[]);
    assert_eq!(nothing.code, 2);
    let resumed = run.tune(&["last", "--resume", "--max-connections", "40", "--json"]);
    assert_eq!(resumed.code, 0, "{}", resumed.transcript());
    let pool = &resumed.events()[0];
    assert_eq!((&pool["limit"], &pool["paused"]), (&40.into(), &false.into()));

    assert_eq!(run.finish(), Some(0));
    assert!(!socket.exists(), "the socket is removed");
    let events = run.dir.run(&["trace", "limits", "--json"]).events();
    let limits = events.iter().map(|event| &event["entry"]);
    let manual: Vec<(u64, u64)> = limits
        .filter(|change| change["reason"] == "manual")
        .map(|change| {
            (change["old_limit"].as_u64().unwrap(), change["new_limit"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(manual, [(1, 0), (0, 40)]);
    let over = run.tune(&["--pause"]);
    assert_eq!(over.code, 2);
    assert!(over.stderr.contains("is not running"), "{}", over.stderr);
}

#[test]
fn socket_has_a_short_path_and_its_loss_is_reported() {
    let provider_dir = TestDir::new();
    let profile = "latency = { kind = \"fixed\", ms = 20 }";
    let provider = profiled(provider_dir.path(), profile);
    let long = provider_dir.path().join("x".repeat(100));
    std::fs::create_dir(&long).unwrap();
    let dir = suite_of(&provider.base_url, "", 300);
    let mut run = BackgroundRun::start(dir, &[("TMPDIR", long.to_str().unwrap())]);
    let socket = run.socket();
    assert!(socket.starts_with("/tmp") && socket.exists(), "{}", socket.display());
    let paused = run.tune(&["--pause"]);
    assert_eq!(paused.code, 0, "{}", paused.transcript());
    let resumed = run.tune(&["--resume", "--max-connections", "40"]);
    assert_eq!(resumed.code, 0, "{}", resumed.transcript());

    run.tune(&["--pause"]);
    std::fs::remove_file(&socket).unwrap();
    let lost = run.tune(&["--resume"]);
    assert_eq!(lost.code, 2);
    assert!(lost.stderr.contains("is running, but it has no control socket"), "{}", lost.stderr);
    run.process.kill().unwrap();
    run.finish();
    let over = run.tune(&["--resume"]);
    assert!(over.stderr.contains("is not running"), "{}", over.stderr);
}

#[test]
fn rejected_key_ends_the_run_with_a_hint() {
    let provider_dir = TestDir::new();
    let provider = profiled(provider_dir.path(), "latency = { kind = \"fixed\", ms = 5 }");
    let dir = suite_of(&provider.base_url, "", 1000);
    let suite = std::fs::read_to_string(dir.path().join("bakeoff.toml")).unwrap();
    let dir = dir.with("bakeoff.toml", suite.replace("sim/echo", "sim/fault-401"));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert!(output.stderr.contains("[PACE_STOPPED]"), "{}", output.stderr);
    assert!(output.stdout.contains("401: Incorrect API key provided"), "{}", output.stdout);
}

#[test]
fn deadline_ends_waiting_trials() {
    let provider_dir = TestDir::new();
    // One request per hour: without the deadline the run would wait for hours.
    let profile = "requests = { rate_per_s = 0.0003, burst = 1 }";
    let provider = profiled(provider_dir.path(), profile);
    let dir = suite_of(&provider.base_url, "", 50);
    let output = dir.run(&["run", "--deadline", "1"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert!(output.stderr.contains("deadline of 1 s reached"), "{}", output.stderr);
    assert_eq!(dir.summary()["targets"][0]["pass_count"], 1);
}

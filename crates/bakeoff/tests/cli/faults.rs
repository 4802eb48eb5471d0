//! Provider faults and interrupts: affected trials are errors with a reason, and the run continues.

use crate::support::{Provider, TestDir};

/// Returns a suite with one healthy target and one per model, over HTTP.
fn suite(provider: &str, base_url: &str, models: &[&str], settings: &str) -> String {
    let mut suite = String::from(
        "[cases]\ninline = [{ id = \"a\", word = \"hello\" }]\n[[check]]\nkind = \"contains\"\nvalue = \"{{ word }}\"\n",
    );
    for (number, model) in models.iter().enumerate() {
        suite.push_str(&format!(
            "[models.m{number}]\nprovider = \"{provider}\"\nmodel = \"{model}\"\nbase_url = \"{base_url}\"\n{settings}\n\
             [[target]]\nname = \"{model}\"\nmodel = \"m{number}\"\nprompt = \"{{{{ word }}}}\"\nmax_tokens = 50_000_000\n"
        ));
    }
    suite
}

/// Returns status, kind and message of each target's only trial.
fn outcomes(dir: &TestDir) -> Vec<String> {
    dir.trials()
        .iter()
        .map(|trial| {
            let error = &trial["attempt"]["error"];
            let name = trial["key"]["target"].as_str().unwrap();
            let status = trial["status"].as_str().unwrap();
            match error.is_null() {
                true => format!("{name}: {status}"),
                false => format!(
                    "{name}: {status}, {}: {}",
                    error["kind"].as_str().unwrap(),
                    error["message"].as_str().unwrap()
                ),
            }
        })
        .collect()
}

const FAULTS: [&str; 9] = [
    "sim/echo",
    "sim/fault-401",
    "sim/fault-400",
    "sim/fault-429",
    "sim/fault-503",
    "sim/fault-malformed",
    "sim/fault-truncated",
    "sim/fault-huge",
    "sim/fault-nonutf8",
];

fn check(provider: &str, settings: &str) -> String {
    let server = Provider::start(&[]);
    let dir = TestDir::with_suite(&suite(provider, &server.base_url, &FAULTS, settings));
    let output = dir.run(&["run", "--max-retries", "0"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    let port = server.base_url.rsplit(':').next().unwrap().trim_end_matches("/v1").to_owned();
    // The beginning of the message suffices; the rest depends on the clock.
    let start =
        |outcome: String| outcome.replace(&port, "PORT").chars().take(160).collect::<String>();
    outcomes(&dir).into_iter().map(start).collect::<Vec<_>>().join("\n")
}

#[test]
fn openai_faults_are_errors_with_reasons() {
    insta::assert_snapshot!(check("openai", ""), @r#"
    sim/echo: passed
    sim/fault-400: error, invalid_request: 400: The request is not valid.
    sim/fault-401: error, auth: 401: Incorrect API key provided; no further calls to sim/fault-401 in this run; check OPENAI_API_KEY and its access to the model
    sim/fault-429: error, rate_limit: 429: Rate limit reached for requests.
    sim/fault-503: error, transient: 503: The service is temporarily unavailable.
    sim/fault-huge: error, malformed_response: response exceeds 8 MiB
    sim/fault-malformed: error, malformed_response: invalid response body: EOF while parsing a string at line 1 column 303; it starts with "{\"choices\":[{\"finish_
    sim/fault-nonutf8: error, malformed_response: invalid response body: invalid unicode code point at line 1 column 108; it starts with "{\"choices\":[{\"finish_re
    sim/fault-truncated: error, transient: lost connection to 127.0.0.1:PORT: unexpected EOF during chunk size line
    "#);
}

#[test]
fn anthropic_stream_faults_are_errors_with_reasons() {
    insta::assert_snapshot!(check("anthropic", "stream = true"), @r#"
    sim/echo: passed
    sim/fault-400: error, invalid_request: 400: The request is not valid.
    sim/fault-401: error, auth: 401: Incorrect API key provided; no further calls to sim/fault-401 in this run; check ANTHROPIC_API_KEY and its access to the model
    sim/fault-429: error, rate_limit: 429: Rate limit reached for requests.
    sim/fault-503: error, transient: 503: The service is temporarily unavailable.
    sim/fault-huge: error, malformed_response: response exceeds 8 MiB
    sim/fault-malformed: error, malformed_response: invalid stream event: EOF while parsing a string at line 1 column 30; it starts with "{\"delta\":{\"text\":\"es 
    sim/fault-nonutf8: error, malformed_response: server-sent event is not UTF-8
    sim/fault-truncated: error, transient: stream ended before the response was complete
    "#);
}

#[test]
fn unreachable_provider_is_an_error() {
    // A port that was free a moment ago and has no listener.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let suite = suite("openai", &format!("http://127.0.0.1:{port}/v1"), &["sim/echo"], "");
    let dir = TestDir::with_suite(&suite);
    let output = dir.run(&["run", "--max-retries", "0"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    let outcome = outcomes(&dir).join("").replace(&port.to_string(), "PORT");
    insta::assert_snapshot!(outcome, @r#"sim/echo: error, transient: cannot connect to 127.0.0.1:PORT: Connection refused (os error 111)"#);
}

#[test]
fn transient_errors_are_retried_until_success() {
    let server = Provider::start(&["--seed", "1"]);
    let suite = suite("openai", &server.base_url, &["sim/flaky-0.2"], "");
    let dir = TestDir::with_suite(&suite.replace("[cases]", "[suite]\ntrials = 60\n[cases]"));
    let output = dir.run(&["run", "--json"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let retries = dir.summary()["stats"]["retries"].as_u64().unwrap();
    assert!(retries > 0);
    assert_eq!(output.stdout.matches("\"event\":\"retry\"").count() as u64, retries);
}

#[test]
fn program_timeout_is_an_error_that_keeps_the_output() {
    let dir = TestDir::with_suite(
        "[suite]\ntimeout_seconds = 2\n[[target]]\nname = \"slow\"\ncommand = [\"sh\", \"-c\", \"echo started; exec sleep 600\"]\nprompt = \"\"\n[[cases.inline]]\nid = \"a\"\n",
    );
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert_eq!(
        outcomes(&dir),
        ["slow: error, timeout: still running after 2 s [EVAL_CASE_TIMEOUT]"]
    );
    assert_eq!(dir.trials()[0]["attempt"]["output"], "started\n");
}

/// Runs a program that lists the run, sends this signal to it and waits until it reacts; then resumes the run.
fn check_interrupt(signal: &str) {
    let dir = TestDir::new();
    let there = dir.path().display().to_string();
    let bakeoff = env!("CARGO_BIN_EXE_bakeoff");
    let program = format!(
        "cd {there}; test -e listed && exit; {bakeoff} list > listed; kill -{signal} $(cat pid); \
         until grep -q stopping stderr; do :; done"
    );
    let dir = dir.write(
        "bakeoff.toml",
        format!(
            "[suite]\nparallel = 1\n[[target]]\nname = \"p\"\ncommand = [\"sh\", \"-c\", \"{program}\"]\n\
             prompt = \"\"\n[cases]\ninline = [{{ id = \"a\" }}, {{ id = \"b\" }}, {{ id = \"c\" }}]\n"
        ),
    );
    let run = format!("echo $$ > pid; exec {bakeoff} run --deadline 600 --ci 2> stderr");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &run]).current_dir(dir.path()).env("BAKEOFF_CACHE_DIR", dir.path());
    let output = shell.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{printed}");
    assert!(printed.contains("(interrupted)"), "{printed}");
    assert_eq!(outcomes(&dir), ["p: passed"]);
    let summary = dir.summary();
    assert_eq!(summary["verdict"], "inconclusive");
    assert_eq!(summary["targets"][0]["skipped"], 2);
    assert!(!dir.left_workspaces());

    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let id = dir.run_folder().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(read("listed"), format!("{id}  running  0 trials finished\n"));
    assert_eq!(dir.run(&["list"]).stdout, format!("{id}  interrupted  p 1/3\n"));
    assert_eq!(dir.run(&["list", "--json"]).done()["runs"][0]["state"], "interrupted");
    let stderr = read("stderr");
    let command = format!("bakeoff run --resume {id} --deadline 600 --ci");
    assert!(stderr.contains(&format!("\n  hint: `{command}` resumes it\n")), "{stderr}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let resumed = dir.run(&words);
    assert_eq!(resumed.code, 0, "{}", resumed.transcript());
    assert_eq!(dir.run(&["list"]).stdout, format!("{id}  passed  p 3/3\n"));
}

#[test]
fn sigint_drains_trials_and_keeps_results() {
    check_interrupt("INT");
}

#[test]
fn sigterm_drains_trials_and_keeps_results() {
    check_interrupt("TERM");
}

#[test]
fn changed_case_file_ends_the_run_and_keeps_results() {
    // The program replaces the case file after the first trial.
    let suite = "[suite]\nparallel = 1\ntrials = 3\n[[target]]\nname = \"p\"\ncommand = [\"sh\", \"-c\", \"echo '{\\\"id\\\": \\\"z\\\"}' > HERE/cases.jsonl\"]\nprompt = \"\"\n[cases]\nfile = \"cases.jsonl\"\n";
    let dir = TestDir::new();
    let here = dir.path().display().to_string();
    let dir = dir
        .write("bakeoff.toml", suite.replace("HERE", &here))
        .write("cases.jsonl", "{\"id\": \"a\"}\n");
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 4, "{}", output.transcript());
    assert!(
        output.stderr.contains("case 1 has changed since the run started"),
        "{}",
        output.stderr
    );
    assert_eq!(outcomes(&dir), ["p: passed"]);
    assert!(!dir.run_folder().join("summary.json").exists());
}

#[test]
fn run_whose_folder_is_deleted_prints_no_verdict() {
    let dir = TestDir::new();
    let runs = dir.path().join("runs");
    let suite = format!(
        "[suite]\nname = \"gone\"\n[cases]\ninline = [{{ id = \"a\" }}]\n\
         [[target]]\nname = \"t\"\nprompt = \"x\"\ncommand = [\"rm\", \"-rf\", \"{}\"]\n",
        runs.display()
    );
    let output = dir.write("bakeoff.toml", suite).run(&["run"]);
    assert_eq!(output.code, 4);
    assert!(!output.stdout.contains("verdict"), "{}", output.transcript());
    assert!(output.stderr.contains("error: "), "{}", output.transcript());
}

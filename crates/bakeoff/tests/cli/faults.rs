//! Providers in trouble: the trial is an error with the reason, and the run goes on.

use crate::support::{Provider, Workplace};

/// A suite with one healthy target and one per model, over HTTP.
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

/// Status, kind and message of each target's only trial.
fn outcomes(place: &Workplace) -> Vec<String> {
    place
        .trials()
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
    let place = Workplace::with_suite(&suite(provider, &server.base_url, &FAULTS, settings));
    let ran = place.run(&["run", "--max-retries", "0"]);
    assert_eq!(ran.code, 3, "{}", ran.shown());
    let port = server.base_url.rsplit(':').next().unwrap().trim_end_matches("/v1").to_owned();
    // What an answer starts with is enough, and what follows depends on the clock.
    let start =
        |outcome: String| outcome.replace(&port, "PORT").chars().take(150).collect::<String>();
    outcomes(&place).into_iter().map(start).collect::<Vec<_>>().join("\n")
}

#[test]
fn openai_faults_are_errors_with_their_reasons() {
    insta::assert_snapshot!(check("openai", ""), @r#"
    sim/echo: passed
    sim/fault-400: error, invalid_request: 400: The request is not valid.
    sim/fault-401: error, auth: 401: Incorrect API key provided.
    sim/fault-429: error, rate_limit: 429: Rate limit reached for requests.
    sim/fault-503: error, transient: 503: The service is temporarily unavailable.
    sim/fault-huge: error, malformed_response: response exceeds 8 MiB
    sim/fault-malformed: error, malformed_response: invalid response body: EOF while parsing a string at line 1 column 303; it starts with "{\"choices\":[
    sim/fault-nonutf8: error, malformed_response: invalid response body: invalid unicode code point at line 1 column 108; it starts with "{\"choices\":[{\
    sim/fault-truncated: error, transient: lost connection to 127.0.0.1:PORT: unexpected EOF during chunk size line
    "#);
}

#[test]
fn anthropic_faults_in_streams_are_errors_with_their_reasons() {
    insta::assert_snapshot!(check("anthropic", "stream = true"), @r#"
    sim/echo: passed
    sim/fault-400: error, invalid_request: 400: The request is not valid.
    sim/fault-401: error, auth: 401: Incorrect API key provided.
    sim/fault-429: error, rate_limit: 429: Rate limit reached for requests.
    sim/fault-503: error, transient: 503: The service is temporarily unavailable.
    sim/fault-huge: error, malformed_response: response exceeds 8 MiB
    sim/fault-malformed: error, malformed_response: invalid stream event: EOF while parsing a string at line 1 column 30; it starts with "{\"delta\":{\"te
    sim/fault-nonutf8: error, malformed_response: server-sent event is not UTF-8
    sim/fault-truncated: error, transient: stream ended before the response was complete
    "#);
}

#[test]
fn an_unreachable_provider_is_an_error() {
    // A port that was free a moment ago, and that nobody listens on.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let suite = suite("openai", &format!("http://127.0.0.1:{port}/v1"), &["sim/echo"], "");
    let place = Workplace::with_suite(&suite);
    let ran = place.run(&["run", "--max-retries", "0"]);
    assert_eq!(ran.code, 3, "{}", ran.shown());
    let outcome = outcomes(&place).join("").replace(&port.to_string(), "PORT");
    insta::assert_snapshot!(outcome, @r#"sim/echo: error, transient: cannot connect to 127.0.0.1:PORT: Connection refused (os error 111)"#);
}

#[test]
fn transient_errors_are_retried_until_they_pass() {
    let server = Provider::start(&["--seed", "1"]);
    let suite = suite("openai", &server.base_url, &["sim/flaky-0.2"], "");
    let place = Workplace::with_suite(&suite.replace("[cases]", "[suite]\ntrials = 60\n[cases]"));
    let ran = place.run(&["run", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let retries = place.summary()["stats"]["retries"].as_u64().unwrap();
    assert!(retries > 0);
    assert_eq!(ran.stdout.matches("\"event\":\"retry\"").count() as u64, retries);
}

#[test]
fn a_program_that_runs_too_long_is_an_error_and_its_output_is_kept() {
    let place = Workplace::with_suite(
        "[suite]\ntimeout_seconds = 2\n[[target]]\nname = \"slow\"\ncommand = [\"sh\", \"-c\", \"echo begun; exec sleep 600\"]\nprompt = \"\"\n[[cases.inline]]\nid = \"a\"\n",
    );
    let ran = place.run(&["run"]);
    assert_eq!(ran.code, 3, "{}", ran.shown());
    assert_eq!(
        outcomes(&place),
        ["slow: error, timeout: still running after 2 s [EVAL_CASE_TIMEOUT]"]
    );
    assert_eq!(place.trials()[0]["attempt"]["output"], "begun\n");
}

/// A run that its own program interrupts with this signal; the program goes on until the run has
/// taken notice.
fn interrupted_by(signal: &str) {
    let place = Workplace::new();
    let there = place.path().display().to_string();
    let program = format!(
        "kill -{signal} $(cat {there}/pid); until grep -q stopping {there}/talk; do :; done"
    );
    let place = place.write(
        "bakeoff.toml",
        format!(
            "[suite]\nparallel = 1\n[[target]]\nname = \"p\"\ncommand = [\"sh\", \"-c\", \"{program}\"]\n\
             prompt = \"\"\n[cases]\ninline = [{{ id = \"a\" }}, {{ id = \"b\" }}, {{ id = \"c\" }}]\n"
        ),
    );
    let run = format!("echo $$ > pid; exec {} run 2> talk", env!("CARGO_BIN_EXE_bakeoff"));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &run]).current_dir(place.path()).env("BAKEOFF_CACHE_DIR", place.path());
    let output = shell.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{shown}");
    assert!(shown.contains("verdict: inconclusive (interrupted)"), "{shown}");
    assert_eq!(outcomes(&place), ["p: passed"]);
    let summary = place.summary();
    assert_eq!(summary["verdict"], "inconclusive");
    assert_eq!(summary["targets"][0]["skipped"], 2);
    assert!(!place.run_folder().join("work").exists());
}

#[test]
fn ctrl_c_lets_trials_finish_and_keeps_what_is_done() {
    interrupted_by("INT");
}

#[test]
fn a_pipeline_that_ends_the_run_is_heard() {
    interrupted_by("TERM");
}

#[test]
fn cases_that_change_under_a_run_end_it_and_what_was_done_is_kept() {
    // The program replaces the cases after the first trial.
    let suite = "[suite]\nparallel = 1\ntrials = 3\n[[target]]\nname = \"p\"\ncommand = [\"sh\", \"-c\", \"echo '{\\\"id\\\": \\\"z\\\"}' > HERE/cases.jsonl\"]\nprompt = \"\"\n[cases]\nfile = \"cases.jsonl\"\n";
    let place = Workplace::new();
    let here = place.path().display().to_string();
    let place = place
        .write("bakeoff.toml", suite.replace("HERE", &here))
        .write("cases.jsonl", "{\"id\": \"a\"}\n");
    let ran = place.run(&["run"]);
    assert_eq!(ran.code, 4, "{}", ran.shown());
    assert!(ran.stderr.contains("case 1 has changed since the run started"), "{}", ran.stderr);
    assert_eq!(outcomes(&place), ["p: passed"]);
    assert!(!place.run_folder().join("summary.json").exists());
}

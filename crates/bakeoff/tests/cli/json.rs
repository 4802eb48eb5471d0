//! The envelope of `--json`, which all commands share.

use crate::support::{CommandOutput, Provider, TestDir, stats};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

/// A line of the stream, as a reader sees it that knows the envelope only.
struct Event {
    name: String,
    fields: Map<String, Value>,
}

/// Reads a stream and checks everything that the envelope promises.
fn read(output: &CommandOutput) -> Vec<Event> {
    let events: Vec<Event> = output
        .stdout
        .lines()
        .map(|line| {
            let mut fields: Map<String, Value> = serde_json::from_str(line).expect(line);
            let name = fields.remove("event").expect(line).as_str().expect(line).to_owned();
            let time = fields.remove("time").expect(line).as_str().expect(line).to_owned();
            assert!(is_utc(&time), "{line}");
            Event { name, fields }
        })
        .collect();
    let (last, others) = events.split_last().expect("no events");
    assert!(["done", "error"].contains(&last.name.as_str()), "{}", output.transcript());
    assert!(others.iter().all(|event| event.name != "done" && event.name != "error"));
    assert_eq!(last.fields["exit_code"], output.code, "{}", output.transcript());
    if last.name == "error" {
        assert!(last.fields["message"].is_string(), "{}", output.transcript());
        assert!(last.fields["hint"].is_string() || last.fields["hint"].is_null());
    }
    events
}

/// Returns whether a text looks like `2026-11-16T09:17:43.711Z`.
fn is_utc(time: &str) -> bool {
    let form: String =
        time.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    form == "0000-00-00T00:00:00.000Z"
}

/// Returns the fields of the `done` event.
fn done(output: &CommandOutput) -> Map<String, Value> {
    let last = read(output).pop().unwrap();
    assert_eq!(last.name, "done", "{}", output.transcript());
    last.fields
}

/// Returns the fields of the `error` event.
fn error(output: &CommandOutput) -> Map<String, Value> {
    let last = read(output).pop().unwrap();
    assert_eq!(last.name, "error", "{}", output.transcript());
    last.fields
}

#[test]
fn every_command_uses_the_envelope() {
    let dir = TestDir::with_suite(
        "[[target]]\nname = \"one\"\nmodel = \"sim/echo\"\nprompt = \"{{ id }}\"\n[[target]]\nname = \"two\"\n\
         model = \"sim/pass-1\"\nprompt = \"{{ id }}\"\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"contains\"\n\
         value = \"a\"\n",
    );
    let run = dir.run(&["run", "--json", "--no-fail"]);
    let events = read(&run);
    assert!(events.iter().any(|event| event.name == "trial_finished"), "{}", run.transcript());
    assert!(done(&run)["summary"]["targets"].is_array());
    assert!(done(&dir.run(&["report", "--json"]))["summary"].is_object());
    assert!(done(&dir.run(&["score", "--json", "--no-fail"]))["summary"].is_object());
    assert_eq!(done(&dir.run(&["compare", "last", "--json"]))["comparisons"][0]["cases"], 1);
    assert_eq!(done(&dir.run(&["list", "--json"]))["runs"].as_array().unwrap().len(), 2);
    assert!(done(&dir.run(&["trace", "limits", "--json"]))["entries"].is_u64());

    let race = ["race", "hello", "-m", "sim/echo", "-m", "sim/a", "--strategy", "first", "--json"];
    assert_eq!(done(&dir.run(&race))["winner"]["model"], "sim/echo");
    assert_eq!(done(&dir.run(&["prices", "sim/echo", "--json"]))["source"], "simulated");
    assert!(done(&dir.run(&["probe", "sim/echo", "--json"]))["limit"]["kind"].is_string());

    let search = TestDir::with_suite(&crate::select::suite(4, 2, "", 0));
    let select = search.run(&["select", "--json"]);
    assert_eq!(done(&select)["selection"]["target"], "agent");
    assert!(done(&search.run(&["report", "--json"]))["selection"].is_object());

    let rows = crate::map::test_dir(3);
    let map = ["map", "rows.csv", "-t", "task.toml", "-o", "out.jsonl", "-m", "sim/map", "--json"];
    let planned = rows.run(&[&map[..], &["--dry-run"]].concat());
    assert_eq!(read(&planned)[0].name, "planned");
    assert_eq!(done(&rows.run(&map))["done"], 3);
}

#[test]
fn errors_end_the_stream_with_an_error_event() {
    let dir = TestDir::with_suite("[[target]]\nnam = \"one\"\n");
    let invalid = error(&dir.run(&["run", "--json"]));
    assert_eq!(invalid["exit_code"], 2);
    let problems = invalid["problems"].as_array().unwrap();
    let is_unknown_key = |problem: &Value| problem["line"] == 2 && problem["message"].is_string();
    assert!(problems.iter().any(is_unknown_key), "{problems:?}");

    let unknown = dir.run(&["race", "hello", "-m", "mini", "--json"]);
    assert_eq!(error(&unknown)["message"], "unknown model `mini`");
    assert!(unknown.stderr.starts_with("error: unknown model `mini`\n  hint: "));
    assert_eq!(error(&dir.run(&["report", "--json"]))["exit_code"], 2);
    for command in ["select", "map", "compare", "score", "trace", "probe"] {
        let arguments: &[&str] = match command {
            "map" => &["map", "r.csv", "-t", "t.toml", "-m", "sim/map", "-o", "o.csv", "--json"],
            "compare" => &["compare", "last", "--json"],
            "trace" => &["trace", "http", "--json"],
            "probe" => &["probe", "mini", "--json"],
            command => &[command, "--json"],
        };
        assert_eq!(error(&dir.run(arguments))["exit_code"], 2, "{command}");
    }

    // Arguments that clap rejects.
    let output = dir.run(&["run", "--json", "--trials", "many"]);
    let message = error(&output)["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("invalid value 'many' for '--trials <N>'"), "{message}");
    assert!(output.stderr.starts_with("error: invalid value 'many'"), "{}", output.stderr);
    let message = error(&dir.run(&["map", "--json"]))["message"].as_str().unwrap().to_owned();
    let missing = "--task <FILE> --model <MODEL> --out <FILE> <ROWS>";
    assert_eq!(message, format!("the following required arguments were not provided: {missing}"));
    let output = dir.run(&["run", "--trials", "many"]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));

    let broken = TestDir::with_suite(&crate::select::suite(4, 2, "", 0)).write("runs", "a file");
    let internal = error(&broken.run(&["select", "--json"]));
    assert_eq!(internal["exit_code"], 4);
    assert_eq!(internal["hint"], "`--out` sets the folder of all runs");
}

#[test]
fn interrupted_commands_end_the_stream_with_done() {
    let server = Provider::start(&["--latency-ms", "300"]);
    let dir = TestDir::new();
    let mut probe = start(
        &dir,
        &[
            "probe",
            "openai/sim/echo",
            "--base-url",
            &server.base_url,
            "--json",
            "--max-seconds",
            "600",
        ],
    );
    let first = wait_for_line(&mut probe);
    send(&probe, Signal::SIGINT);
    let output = finish(probe, first);
    let done = done(&output);
    assert_eq!((&done["exit_code"], &done["stopped"]), (&130.into(), &"interrupted".into()));
    assert!(done["levels"].as_array().is_some_and(|levels| !levels.is_empty()));
    assert!(output.stderr.contains("stopping: waiting for work in flight"), "{}", output.stderr);
}

#[test]
fn second_signal_aborts_and_ends_the_stream_with_an_error() {
    let server = Provider::start(&["--latency-ms", "600000"]);
    let suite = format!(
        "[models.m]\nprovider = \"openai\"\nmodel = \"sim/map\"\nbase_url = \"{}\"\n",
        server.base_url
    );
    let dir = crate::map::test_dir(3).write("models.toml", suite);
    let map = ["map", "rows.csv", "-t", "task.toml", "-o", "out.jsonl", "-m", "m", "--json"];
    let mut child = start(&dir, &[&map[..], &["--suite", "models.toml"]].concat());
    let first = wait_for_line(&mut child);
    while stats(&server)["requests"] == 0 {
        assert!(child.try_wait().unwrap().is_none(), "ended without a request");
        std::thread::yield_now();
    }
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    for expected in ["stopping: ", "aborting "] {
        send(&child, Signal::SIGTERM);
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.starts_with(expected), "{line}");
    }
    let output = finish(child, first);
    assert_eq!(error(&output)["exit_code"], 130);
}

fn start(dir: &TestDir, arguments: &[&str]) -> Child {
    let mut command = dir.command(arguments);
    command.env("OPENAI_API_KEY", "unused").stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

/// Waits for the first line on standard output and returns it.
fn wait_for_line(child: &mut Child) -> String {
    let mut bytes = Vec::new();
    let stdout = child.stdout.as_mut().unwrap();
    // Byte by byte, because the rest of the stream is read later.
    while !bytes.ends_with(b"\n") {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        bytes.extend(byte);
    }
    String::from_utf8(bytes).unwrap()
}

fn finish(child: Child, first: String) -> CommandOutput {
    let mut output = CommandOutput::from(child.wait_with_output().unwrap());
    output.stdout.insert_str(0, &first);
    output
}

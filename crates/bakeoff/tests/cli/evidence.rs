//! What is on disk of every trial, and that nothing is judged by a part of it.

use crate::services::Server;
use crate::support::{Ran, Workplace};
use serde_json::{Value, json};

fn program(script: &str, checks: &str) -> Workplace {
    Workplace::with_suite(&format!(
        "[suite]\nartifacts = \"all\"\n[[target]]\nname = \"p\"\ncommand = [\"sh\", \"-c\", {}]\nprompt = \"say {{{{ id }}}}\"\n[[cases.inline]]\nid = \"a\"\n{checks}\n",
        Value::from(script)
    ))
}

fn trace(place: &Workplace) -> Vec<Value> {
    let path = place.run_folder().join("a/trial-1/trace.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn what_was_cut_off_may_have_been_the_answer() {
    let long = "head -c 3000000 /dev/zero | tr '\\0' x; echo bad; head -c 2000000 /dev/zero >&2";
    for check in [
        "kind = \"contains\"\nvalue = \"bad\"\nnegate = true",
        "kind = \"python\"\nexpression = \"'bad' not in output\"",
        "kind = \"program\"\ncommand = [\"echo\", '{\"passed\": true}']",
    ] {
        let place = program(long, &format!("[[check]]\n{check}"));
        let ran = place.run(&["run"]);
        assert_eq!(ran.code, 3, "{}", ran.shown());
        let attempt = &place.trials()[0]["attempt"];
        assert_eq!(attempt["dropped_output_bytes"], 3_000_004 - (1 << 20));
        let message = attempt["error"]["message"].as_str().unwrap();
        let expected = "only the first 1048576 of 3000004 bytes of output were kept";
        assert!(message.ends_with(expected), "{message}");
    }
    let place = program(long, "[[check]]\nkind = \"contains\"\nvalue = \"xxx\"");
    assert_eq!(place.run(&["run"]).code, 0);
}

#[test]
fn programs_of_checks_carry_the_names_of_run_and_trial() {
    let checks = r#"
[[check]]
kind = "program"
command = ["sh", "-c", 'test "$BAKEOFF_TRIAL_ID" = p/a/1 && test -n "$BAKEOFF_RUN_ID" && echo "{\"passed\": true, \"message\": \"ok\"}"']
[[check]]
kind = "python"
expression = "__import__('os').environ.get('BAKEOFF_RUN_ID', '') != ''"
"#;
    let place = program("cat", checks);
    let mut command = place.command(&["run"]);
    command.env_remove("BAKEOFF_RUN_ID").env_remove("BAKEOFF_TRIAL_ID");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.shown());
}

#[test]
fn prompts_and_answers_of_programs_are_on_disk() {
    let place = program("cat; echo oops >&2", "");
    assert_eq!(place.run(&["run"]).code, 0);
    let trace = trace(&place);
    assert_eq!(trace[0]["request"]["prompt"], "say a");
    assert_eq!(trace[0]["request"]["command"][0], "sh");
    assert_eq!(trace[1]["response"]["output"], "say a");
    assert_eq!(trace[1]["response"]["exit_code"], 0);
}

#[test]
fn prompts_and_answers_of_workers_are_on_disk_however_deep() {
    let deep = format!("{}1{}", "[".repeat(122), "]".repeat(122));
    let worker = format!(
        "import json, sys\nfor line in sys.stdin:\n    id = json.loads(line)['id']\n    print('{{\"id\": ' + json.dumps(id) + ', \"output\": \"fine\", \"events\": [{{\"type\": \"tool_use\", \"name\": \"look\", \"arguments\": {deep}}}]}}', flush=True)\n"
    );
    let suite = "[suite]\nartifacts = \"all\"\n[[target]]\nname = \"w\"\ncommand = [\"python3\", \"worker.py\"]\nprotocol = \"jsonl\"\nprompt = \"say {{ id }}\"\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"contains\"\nvalue = \"fine\"\n";
    let place = Workplace::with_suite(suite).write("worker.py", worker);
    let ran = place.run(&["run"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert_eq!(place.trials()[0]["attempt"]["tool_uses"][0]["arguments"], deep.as_str());
    let trace = trace(&place);
    assert_eq!(trace[0]["payload"]["text"], "say a");
    assert_eq!(trace[1]["payload"]["tool_name"], "look");
    assert_eq!(trace[2]["payload"]["text"], "fine");
}

#[test]
fn prompts_and_answers_of_agents_are_on_disk() {
    let result = json!({"type": "result", "result": "fixed", "usage": {"input_tokens": 1}});
    let suite = "[suite]\nartifacts = \"all\"\n[[target]]\nname = \"c\"\nagent = \"claude\"\nprompt = \"say {{ id }}\"\n[[cases.inline]]\nid = \"a\"\n";
    let place = Workplace::with_suite(suite)
        .with_program("claude", &format!("#!/bin/sh\ncat > /dev/null\necho '{result}'\n"));
    assert_eq!(place.run(&["run"]).code, 0);
    let trace = trace(&place);
    assert_eq!((&trace[0]["seq"], &trace[0]["payload"]["role"]), (&json!(0), &json!("user")));
    assert_eq!(trace[0]["payload"]["text"], "say a");
    assert_eq!(trace[1]["payload"]["text"], "fixed");
}

#[test]
fn requests_to_services_are_on_disk_without_secrets() {
    let server = Server::start(|_, _| (200, "", "{\"text\": \"fine\"}".to_owned()));
    let suite = format!(
        "[suite]\nartifacts = \"all\"\n[[target]]\nname = \"s\"\nurl = \"{}\"\nheaders = {{ x-key = \"$SERVICE_KEY\" }}\nprompt = \"say {{{{ id }}}}\"\nbody = {{ q = \"{{{{ prompt }}}}\", key = \"sk-very-secret-0\" }}\nanswer = \"$.text\"\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"contains\"\nvalue = \"fine\"\n",
        server.url
    );
    let place = Workplace::with_suite(&suite);
    let mut command = place.command(&["run"]);
    let ran = command.env("SERVICE_KEY", "sk-very-secret-0").output().unwrap();
    let ran = Ran::from(ran);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let trace = trace(&place);
    let request = &trace[0]["request"];
    assert_eq!((&request["method"], &request["prompt"]), (&json!("POST"), &json!("say a")));
    assert!(request["url"].as_str().unwrap().ends_with("/ask"), "{request}");
    assert!(request["body"].as_str().unwrap().contains("say a"), "{request}");
    assert_eq!(trace[1]["response"]["output"], "fine");
    let all = format!("{trace:?}");
    assert!(!all.contains("very-secret") && !all.contains("secret-in-the-query"), "{all}");
}

/// Whether a process is there and not only waits to be buried.
#[cfg(target_os = "linux")]
fn lives(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}

#[test]
#[cfg(target_os = "linux")]
fn programs_of_checks_that_were_left_behind_are_ended_before_a_run_goes_on() {
    use std::io::BufRead;
    let script = "import os, sys, time\nhere = os.environ['HERE']\ndef wait(*_):\n    if not os.path.exists(here + '/go'):\n        open(here + '/told', 'w').write(f'{os.getpid()}\\n')\n        time.sleep(600)\n    return True\nif __name__ == '__main__':\n    wait()\n    print('{\"passed\": true}')\n";
    for check in [
        "kind = \"program\"\ncommand = [\"python3\", \"wait.py\"]",
        "kind = \"python\"\nfunction = \"wait.py:wait\"",
    ] {
        let place = program("cat", &format!("[[check]]\n{check}")).write("wait.py", script);
        let pipe = place.path().join("told");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Open for both, so that nobody waits for the other end.
        let told = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
        let run = |arguments: &[&str]| {
            let mut command = place.command(arguments);
            command.env("HERE", place.path());
            command
        };
        let null = std::process::Stdio::null;
        let mut child = run(&["run"]).stdout(null()).stderr(null()).spawn().unwrap();
        let mut id = String::new();
        std::io::BufReader::new(told).read_line(&mut id).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(lives(&id), "{check}: {id}");
        std::fs::write(place.path().join("go"), "").unwrap();
        let ran = Ran::from(run(&["run", "--resume", "last"]).output().unwrap());
        assert_eq!(ran.code, 0, "{check}: {}", ran.shown());
        assert!(!lives(&id), "{check}: {id}");
    }
}

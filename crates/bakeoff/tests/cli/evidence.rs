//! Stored evidence of trials, and handling of truncated output.

use crate::services::Server;
use crate::support::{CommandOutput, TestDir};
use serde_json::{Value, json};

fn program(script: &str, checks: &str) -> TestDir {
    TestDir::with_suite(&format!(
        "[suite]\nartifacts = \"all\"\n[[target]]\nname = \"p\"\ncommand = [\"sh\", \"-c\", {}]\nprompt = \"say {{{{ id }}}}\"\n[[cases.inline]]\nid = \"a\"\n{checks}\n",
        Value::from(script)
    ))
}

fn trace(dir: &TestDir) -> Vec<Value> {
    let path = dir.run_folder().join("a/trial-1/trace.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn truncated_output_makes_undecided_checks_errors() {
    let long = "head -c 3000000 /dev/zero | tr '\\0' x; echo bad; head -c 2000000 /dev/zero >&2";
    for check in [
        "kind = \"contains\"\nvalue = \"bad\"\nnegate = true",
        "kind = \"python\"\nexpression = \"'bad' not in output\"",
        "kind = \"program\"\ncommand = [\"echo\", '{\"passed\": true}']",
    ] {
        let dir = program(long, &format!("[[check]]\n{check}"));
        let output = dir.run(&["run"]);
        assert_eq!(output.code, 3, "{}", output.transcript());
        let attempt = &dir.trials()[0]["attempt"];
        assert_eq!(attempt["dropped_output_bytes"], 3_000_004 - (1 << 20));
        let message = attempt["error"]["message"].as_str().unwrap();
        let expected = "only the first 1048576 of 3000004 bytes of output were kept";
        assert!(message.ends_with(expected), "{message}");
    }
    let dir = program(long, "[[check]]\nkind = \"contains\"\nvalue = \"xxx\"");
    assert_eq!(dir.run(&["run"]).code, 0);
}

#[test]
fn check_programs_get_run_and_trial_ids() {
    let checks = r#"
[[check]]
kind = "program"
command = ["sh", "-c", 'test "$BAKEOFF_TRIAL_ID" = p/a/1 && test -n "$BAKEOFF_RUN_ID" && echo "{\"passed\": true, \"message\": \"ok\"}"']
[[check]]
kind = "python"
expression = "__import__('os').environ.get('BAKEOFF_RUN_ID', '') != ''"
"#;
    let dir = program("cat", checks);
    let mut command = dir.command(&["run"]);
    command.env_remove("BAKEOFF_RUN_ID").env_remove("BAKEOFF_TRIAL_ID");
    let output = CommandOutput::from(command.output().unwrap());
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn prompts_and_answers_of_programs_are_stored() {
    let dir = program("cat; echo oops >&2", "");
    assert_eq!(dir.run(&["run"]).code, 0);
    let trace = trace(&dir);
    assert_eq!(trace[0]["request"]["prompt"], "say a");
    assert_eq!(trace[0]["request"]["command"][0], "sh");
    assert_eq!(trace[1]["response"]["output"], "say a");
    assert_eq!(trace[1]["response"]["exit_code"], 0);
}

#[test]
fn prompts_and_deeply_nested_answers_of_workers_are_stored() {
    let deep = format!("{}1{}", "[".repeat(122), "]".repeat(122));
    let worker = format!(
        "import json, sys\nfor line in sys.stdin:\n    id = json.loads(line)['id']\n    print('{{\"id\": ' + json.dumps(id) + ', \"output\": \"fine\", \"events\": [{{\"type\": \"tool_use\", \"name\": \"look\", \"arguments\": {deep}}}]}}', flush=True)\n"
    );
    let suite = "[suite]\nartifacts = \"all\"\n[[target]]\nname = \"w\"\ncommand = [\"python3\", \"worker.py\"]\nprotocol = \"jsonl\"\nprompt = \"say {{ id }}\"\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"contains\"\nvalue = \"fine\"\n";
    let dir = TestDir::with_suite(suite).write("worker.py", worker);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(dir.trials()[0]["attempt"]["tool_uses"][0]["arguments"], deep.as_str());
    let trace = trace(&dir);
    assert_eq!(trace[0]["payload"]["text"], "say a");
    assert_eq!(trace[1]["payload"]["tool_name"], "look");
    assert_eq!(trace[2]["payload"]["text"], "fine");
}

#[test]
fn prompts_and_answers_of_agents_are_stored() {
    let result = json!({"type": "result", "result": "fixed", "usage": {"input_tokens": 1}});
    let suite = "[suite]\nartifacts = \"all\"\n[[target]]\nname = \"c\"\nagent = \"claude\"\nprompt = \"say {{ id }}\"\n[[cases.inline]]\nid = \"a\"\n";
    let dir = TestDir::with_suite(suite)
        .with_program("claude", &format!("#!/bin/sh\ncat > /dev/null\necho '{result}'\n"));
    assert_eq!(dir.run(&["run"]).code, 0);
    let trace = trace(&dir);
    assert_eq!((&trace[0]["seq"], &trace[0]["payload"]["role"]), (&json!(0), &json!("user")));
    assert_eq!(trace[0]["payload"]["text"], "say a");
    assert_eq!(trace[1]["payload"]["text"], "fixed");
}

#[test]
fn requests_to_services_are_stored_without_secrets() {
    let server = Server::start(|_, _| (200, "", "{\"text\": \"fine\"}".to_owned()));
    let suite = format!(
        "[suite]\nartifacts = \"all\"\n[[target]]\nname = \"s\"\nurl = \"{}\"\nheaders = {{ x-key = \"$SERVICE_KEY\" }}\nprompt = \"say {{{{ id }}}}\"\nbody = {{ q = \"{{{{ prompt }}}}\", key = \"sk-very-secret-0\" }}\nanswer = \"$.text\"\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"contains\"\nvalue = \"fine\"\n",
        server.url
    );
    let dir = TestDir::with_suite(&suite);
    let mut command = dir.command(&["run"]);
    let output = command.env("SERVICE_KEY", "sk-very-secret-0").output().unwrap();
    let output = CommandOutput::from(output);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let trace = trace(&dir);
    let request = &trace[0]["request"];
    assert_eq!((&request["method"], &request["prompt"]), (&json!("POST"), &json!("say a")));
    assert!(request["url"].as_str().unwrap().ends_with("/ask"), "{request}");
    assert!(request["body"].as_str().unwrap().contains("say a"), "{request}");
    assert_eq!(trace[1]["response"]["output"], "fine");
    let all = format!("{trace:?}");
    assert!(!all.contains("very-secret") && !all.contains("secret-in-the-query"), "{all}");
}

/// Returns whether a process exists and is not a zombie.
#[cfg(target_os = "linux")]
fn is_alive(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}

#[test]
#[cfg(target_os = "linux")]
fn resume_ends_orphaned_check_programs_first() {
    use std::io::BufRead;
    let script = "import os, sys, time\nhere = os.environ['HERE']\ndef wait(*_):\n    if not os.path.exists(here + '/go'):\n        open(here + '/ids', 'w').write(f'{os.getpid()}\\n')\n        time.sleep(600)\n    return True\nif __name__ == '__main__':\n    wait()\n    print('{\"passed\": true}')\n";
    for check in [
        "kind = \"program\"\ncommand = [\"python3\", \"wait.py\"]",
        "kind = \"python\"\nfunction = \"wait.py:wait\"",
    ] {
        let dir = program("cat", &format!("[[check]]\n{check}")).write("wait.py", script);
        let pipe = dir.path().join("ids");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Open for reading and writing, so that neither side blocks.
        let ids = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
        let run = |arguments: &[&str]| {
            let mut command = dir.command(arguments);
            command.env("HERE", dir.path());
            command
        };
        let null = std::process::Stdio::null;
        let mut child = run(&["run"]).stdout(null()).stderr(null()).spawn().unwrap();
        let mut id = String::new();
        std::io::BufReader::new(ids).read_line(&mut id).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_alive(&id), "{check}: {id}");
        std::fs::write(dir.path().join("go"), "").unwrap();
        let output = CommandOutput::from(run(&["run", "--resume", "last"]).output().unwrap());
        assert_eq!(output.code, 0, "{check}: {}", output.transcript());
        assert!(!is_alive(&id), "{check}: {id}");
    }
}

/// Returns a directory with one model at a server, which answers with log probabilities and two choices.
fn model_with_choices(suite: &str) -> (TestDir, Server) {
    let server = Server::start(|_, _| {
        let reply = json!({
            "id": 7, "choices": [
                {"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop",
                 "logprobs": {"content": [{"token": "fine", "logprob": -0.5}]}},
                {"index": 1, "message": {"role": "assistant", "content": "bad"}, "finish_reason": "stop"},
            ],
            "usage": {"prompt_tokens": "3", "completion_tokens": 1.0},
        });
        (200, "content-type: application/json\r\n", reply.to_string())
    });
    let dir = TestDir::with_suite(&format!(
        "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}\"\n{suite}[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"contains\"\nvalue = \"fine\"\n",
        server.origin()
    ));
    (dir, server)
}

const TARGET_WITH_CHOICES: &str = "[[target]]\nname = \"t\"\nmodel = \"m\"\nprompt = \"say {{ id }}\"\nextra = { n = 2, logprobs = true }\n";

#[test]
fn undecoded_parts_of_a_response_are_stored_and_printed() {
    let (dir, server) = model_with_choices(TARGET_WITH_CHOICES);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let sent: Value = serde_json::from_str(&server.requests()[0].body).unwrap();
    assert_eq!((&sent["n"], &sent["logprobs"]), (&json!(2), &json!(true)));
    let response = &trace(&dir)[1]["response"];
    assert_eq!(
        (&response["id"], &response["usage"]),
        (&json!("7"), &json!({"input": 3, "output": 1}))
    );
    let choices = &response["extra"]["choices"];
    assert_eq!(choices[0]["logprobs"]["content"][0]["logprob"], -0.5);
    assert!(choices[0].get("message").is_none(), "the text is stored once: {choices}");
    assert_eq!(choices[1]["message"]["content"], "bad");
    let events = dir.run(&["trace", "trials", "--json"]).events();
    assert_eq!((&events[1]["event"], &events[1]["key"]["trial"]), (&json!("trial"), &json!(1)));
    assert_eq!(&events[1]["entry"]["response"], response);
    let printed = dir.run(&["trace", "trials", "--target", "t", "--case", "a"]);
    let lines: Vec<&str> = printed.stdout.lines().collect();
    assert_eq!((printed.code, lines.len()), (0, 2), "{}", printed.transcript());
    assert!(lines[1].starts_with("t/a/1 {") && lines[1].contains("-0.5"), "{}", lines[1]);
    let other = dir.run(&["trace", "trials", "--case", "b"]);
    assert_eq!((other.code, other.stdout.as_str()), (0, ""), "{}", other.transcript());
    assert!(other.stderr.contains("no stored trials"), "{}", other.stderr);
}

#[test]
fn ignored_settings_are_reported_by_check_and_run() {
    let suite = "[models.r]\nprovider = \"openai-responses\"\nmodel = \"r\"\nbase_url = \"http://127.0.0.1:9/v1\"\n[[target]]\nname = \"t\"\nmodel = \"r\"\nprompt = \"p\"\nstop = [\"END\"]\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"is_json\"\n";
    let dir = TestDir::with_suite(suite);
    let warning = "warning: target `t` (openai-responses/r): `stop` is not supported by OpenAI Responses and is ignored; use the provider `openai`, or remove `stop` [EVAL_SETTING_IGNORED]";
    for arguments in [&["check"][..], &["run", "--max-retries", "0"]] {
        let output = dir.run(arguments);
        assert_eq!(output.stderr.matches(warning).count(), 1, "{}", output.transcript());
    }
}

#[test]
fn undecoded_parts_of_responses_to_models_with_tools_are_stored() {
    let target = format!("{TARGET_WITH_CHOICES}tools = [\"list_files\"]\n");
    let (dir, _server) = model_with_choices(&target);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let last = trace(&dir).pop().unwrap()["payload"].clone();
    assert_eq!((&last["type"], &last["turn"]), (&json!("response_extra"), &json!(1)));
    assert_eq!(last["extra"]["choices"][1]["message"]["content"], "bad");
}

#[test]
fn ignored_settings_of_candidates_are_reported_by_check_and_select() {
    let suite = "[models.r]\nprovider = \"openai-responses\"\nmodel = \"r\"\nbase_url = \"http://127.0.0.1:9/v1\"\n[[target]]\nname = \"t\"\n[[target.chain]]\nrole = \"solver\"\nprompt = \"p\"\nstop = [\"END\"]\n[select.roles]\nsolver = [\"sim/echo\", \"r\"]\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"contains\"\nvalue = \"p\"\n";
    let dir = TestDir::with_suite(suite);
    let warning =
        "warning: step `solver` of target `t` (openai-responses/r): `stop` is not supported";
    for arguments in [&["check"][..], &["select", "--max-retries", "0"]] {
        let output = dir.run(arguments);
        assert_eq!(output.stderr.matches(warning).count(), 1, "{}", output.transcript());
    }
}

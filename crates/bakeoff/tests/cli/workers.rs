//! Persistent workers: programs that answer line by line.

use crate::support::TestDir;
use serde_json::{Value, json};

/// Returns a Python worker that computes `answer` from the dictionary `question`.
fn worker(answer: &str) -> String {
    format!(
        "import json, os, sys, time\nfor line in sys.stdin:\n    question = json.loads(line)\n    id = question['id']\n    case = question['case']\n{}    print(json.dumps(answer), flush=True)\n",
        answer.lines().map(|line| format!("    {line}\n")).collect::<String>()
    )
}

fn test_dir(settings: &str, answer: &str, cases: &str) -> TestDir {
    let suite = format!(
        "[suite]\n{settings}\n[[target]]\nname = \"w\"\ncommand = [\"python3\", \"worker.py\"]\nprotocol = \"jsonl\"\nprompt = \"say {{{{ word }}}}\"\n[cases]\nfile = \"cases.jsonl\"\n[[check]]\nkind = \"contains\"\nvalue = \"{{{{ word }}}}\"\n"
    );
    TestDir::with_suite(&suite).write("worker.py", worker(answer)).write("cases.jsonl", cases)
}

fn words(words: &[&str]) -> String {
    words.iter().map(|word| format!("{{\"id\": \"{word}\", \"word\": \"{word}\"}}\n")).collect()
}

/// Returns the status or error of each trial.
fn outcomes(dir: &TestDir) -> Vec<String> {
    let outcome = |trial: &Value| match trial["attempt"]["error"]["kind"].as_str() {
        Some(kind) => format!("{kind}: {}", trial["attempt"]["error"]["message"].as_str().unwrap()),
        None => trial["status"].as_str().unwrap().to_owned(),
    };
    dir.trials().iter().map(outcome).collect()
}

#[test]
fn one_worker_answers_many_trials() {
    let answer = "answer = {'id': id, 'output': f\"{question['prompt']} {case['id']} {question['trial']} {os.getpid()}\",\n  'usage': {'input_tokens': 7, 'output_tokens': 3, 'cost_usd': 0.25},\n  'events': [{'type': 'tool_use', 'name': 'look', 'arguments': {'at': case['word']}}, {'type': 'note'}]}";
    let dir = test_dir("trials = 10\nparallel = 2", answer, &words(&["x", "y"]));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let trials = dir.trials();
    let mut processes = std::collections::BTreeSet::new();
    for trial in &trials {
        let output = trial["attempt"]["output"].as_str().unwrap();
        let (text, process) = output.rsplit_once(' ').unwrap();
        let word = trial["key"]["case"].as_str().unwrap();
        assert_eq!(text, format!("say {word} {word} {}", trial["key"]["trial"]));
        processes.insert(process.to_owned());
    }
    assert!(trials.len() == 20 && processes.len() <= 2, "{processes:?}");
    let attempt = &trials[0]["attempt"];
    assert_eq!(attempt["usage"], json!({"input": 7, "output": 3}));
    assert_eq!(attempt["cost"], 250_000_000);
    assert_eq!(attempt["tool_uses"], json!([{"name": "look", "arguments": {"at": "x"}}]));
    assert_eq!(attempt["transcript"].as_str().unwrap().lines().count(), 2);
    for process in processes {
        assert!(!std::path::Path::new(&format!("/proc/{process}")).exists());
    }
}

#[test]
fn failed_worker_is_replaced() {
    let answer = "word = case['word']\nif word == 'die':\n  print('I am leaving', file=sys.stderr)\n  sys.exit(7)\nif word == 'other':\n  id = 'something else'\nif word == 'nonsense':\n  print('hello', flush=True)\nanswer = {'id': id, 'output': word}\nif word == 'empty':\n  answer = {'id': id}";
    let list = ["a", "die", "b", "other", "c", "nonsense", "d", "empty", "e"];
    let dir = test_dir("parallel = 1\nmax_error_rate = 1", answer, &words(&list));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    let found: Vec<String> = outcomes(&dir);
    // Ordered by id.
    insta::assert_snapshot!(found.join("\n"), @r#"
    passed
    passed
    passed
    passed
    process: ended without an answer (exit code 7): I am leaving
    passed
    malformed_response: the reply has neither `output` nor `error`
    malformed_response: invalid reply: expected value at line 1 column 1; it starts with "hello"
    malformed_response: the reply has the id "something else", the request had "w/other/1"
    "#);
}

#[test]
fn worker_can_report_an_error() {
    let answer = "kinds = {'plain': 'no luck', 'kind': {'kind': 'rate_limit', 'message': 'slow down'}, 'odd': {'kind': 'zzz', 'x': 1}}\nanswer = {'id': id, 'error': kinds[case['word']]}";
    let dir = test_dir("max_error_rate = 1", answer, &words(&["plain", "kind", "odd"]));
    assert_eq!(dir.run(&["run", "--max-retries", "0"]).code, 3);
    assert_eq!(
        outcomes(&dir),
        ["rate_limit: slow down", r#"process: {"kind":"zzz","x":1}"#, "process: no luck"]
    );
}

#[test]
fn worker_timeout_is_an_error() {
    let answer = "time.sleep(600 if case['word'] == 'slow' else 0)\nanswer = {'id': id, 'output': case['word']}";
    let dir = test_dir(
        "parallel = 1\ntimeout_seconds = 5\nmax_error_rate = 1",
        answer,
        &words(&["a", "slow", "z"]),
    );
    assert_eq!(dir.run(&["run"]).code, 3);
    let outcomes = outcomes(&dir);
    assert_eq!(outcomes[1], "timeout: no answer within 5 s [EVAL_CASE_TIMEOUT]");
    assert_eq!([&outcomes[0], &outcomes[2]], ["passed", "passed"]);
}

#[test]
fn throttled_worker_is_retried() {
    let answer = "path = os.environ['HOME'] + '/tries'\nopen(path, 'a').write('x')\nif os.path.getsize(path) == 1:\n  print('openai.RateLimitError: Error code: 429', file=sys.stderr)\n  sys.exit(1)\nanswer = {'id': id, 'output': case['word']}";
    let dir = test_dir("", answer, &words(&["a"]));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(outcomes(&dir), ["passed"]);
    assert_eq!(dir.trials()[0]["attempt"]["timing"]["retries"], 1);
}

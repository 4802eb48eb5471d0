//! Checks by judges, programs and Python, and checks of single cases.

use crate::support::{CommandOutput, Provider, TestDir};
use serde_json::{Value, json};

/// Returns a suite with an echoing model, three cases and these checks.
fn test_dir(checks: &str) -> TestDir {
    let suite = format!(
        r#"
[suite]
cache = "none"
[[target]]
name = "one"
model = "sim/echo"
prompt = "{{{{ say }}}}"
[cases]
file = "cases.jsonl"
{checks}
"#
    );
    TestDir::with_suite(&suite).write(
        "cases.jsonl",
        "{\"id\": \"a\", \"say\": \"It is Paris.\", \"expected\": \"Paris\"}\n\
         {\"id\": \"b\", \"say\": \"It is Rome.\", \"expected\": \"Paris\"}\n",
    )
}

/// Returns status, message of the first check and error of each trial.
fn outcomes(dir: &TestDir) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let outcome = |trial: &Value| {
        let error = &trial["attempt"]["error"];
        let error = match error["kind"].as_str() {
            Some(kind) => format!("{kind}: {}", text(&error["message"])),
            None => String::new(),
        };
        (text(&trial["status"]), text(&trial["checks"][0]["message"]), error)
    };
    dir.trials().iter().map(outcome).collect()
}

fn statuses(dir: &TestDir) -> Vec<String> {
    outcomes(dir).into_iter().map(|(status, _, _)| status).collect()
}

fn run(dir: &TestDir) -> CommandOutput {
    dir.run(&["run"])
}

#[test]
fn judge_scores_each_criterion_of_a_rubric() {
    let dir = test_dir(
        r#"
[models.judge]
provider = "sim"
model = "judge"
prices = { input = 1, output = 2 }
[[check]]
id = "city"
kind = "rubric"
model = "judge"
criteria = ['It says "{{ expected }}".', "It is short."]
prompt = "The answer should be {{ expected }}."
"#,
    );
    let output = run(&dir);
    assert_eq!(output.code, 1, "{}", output.transcript());
    let outcomes = outcomes(&dir);
    assert_eq!(outcomes[0].0, "passed");
    assert_eq!(outcomes[1].0, "failed");
    assert_eq!(outcomes[1].1, "not true: It says \"Paris\".");
    let trial = &dir.trials()[0];
    assert_eq!(trial["checks"][0]["check"], "city");
    let usage = &trial["attempt"]["judge_usage"];
    let tokens = |kind: &str| usage[kind].as_i64().unwrap();
    assert!(tokens("input") > trial["attempt"]["usage"]["input"].as_i64().unwrap());
    // One dollar per million tokens is 1000 nano-dollars per token.
    assert_eq!(trial["attempt"]["judge_cost"], tokens("input") * 1000 + tokens("output") * 2000);
    assert_eq!(trial["attempt"]["cost"], 0, "the cost of the target excludes judges");
    let summary = dir.summary();
    let target = &summary["targets"][0];
    assert_eq!(target["cost_nanodollars"], 0);
    let judges: i64 =
        dir.trials().iter().map(|trial| trial["attempt"]["judge_cost"].as_i64().unwrap()).sum();
    assert_eq!(target["judge_cost_nanodollars"], judges);
    assert!(output.stdout.contains("for judges"), "{}", output.stdout);
}

#[test]
fn judge_tokens_count_towards_the_budget() {
    let dir = test_dir(
        r#"
[[check]]
kind = "rubric"
model = "sim/judge"
criteria = ["It is short."]
"#,
    );
    let budget = ["run", "--trials", "3", "--max-tokens", "400", "--parallel", "1"];
    let output = dir.run(&budget);
    assert_eq!(output.code, 3, "{}", output.transcript());
    // The answers alone use fewer tokens.
    let trials = dir.trials();
    let judged = trials.iter().filter(|trial| trial["attempt"]["error"].is_null()).count();
    assert!((1..6).contains(&judged), "{}", output.transcript());
    assert_eq!(trials[judged]["attempt"]["error"]["kind"], "budget", "{}", output.transcript());
}

#[test]
fn judge_score_is_compared_with_the_minimum() {
    let dir = test_dir(
        "[[check]]\nkind = \"rubric\"\nmodel = \"sim/judge\"\nscore = 'Does it say \"{{ expected }}\"?'\n",
    );
    assert_eq!(run(&dir).code, 1);
    assert_eq!(statuses(&dir), ["passed", "failed"]);
    assert_eq!(outcomes(&dir)[1].1, "score 1, expected at least 4");
}

#[test]
fn judge_without_a_verdict_is_re_asked_once() {
    let dir = test_dir(
        r#"
[sim.chatty]
default = "Sure, it is fine!"
answers = [{ when = "does not end with the JSON object", answer = '{"score": 5}' }]
[[check]]
kind = "rubric"
model = "sim/chatty"
score = "How short is it?"
"#,
    );
    let output = run(&dir);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(statuses(&dir), ["passed", "passed"]);
}

#[test]
fn judge_without_a_verdict_makes_the_trial_an_error() {
    for (judge, reason) in [
        ("sim/chatty", "judge reply unparseable after re-asking"),
        ("sim/fault-400", "judge call failed"),
    ] {
        let dir = test_dir(&format!(
            "[sim.chatty]\ndefault = \"Sure!\"\n[[check]]\nid = \"fine\"\nkind = \"rubric\"\nmodel = \"{judge}\"\ncriteria = [\"It is fine.\"]\nnegate = true\n"
        ));
        let output = run(&dir);
        assert_eq!(output.code, 3, "{}", output.transcript());
        for (status, _, error) in outcomes(&dir) {
            assert_eq!(status, "error");
            assert!(error.starts_with(&format!("check: check `fine`: {reason}")), "{error}");
        }
    }
}

#[test]
fn answer_that_addresses_the_judge_is_still_judged() {
    let dir = test_dir("[[check]]\nkind = \"rubric\"\nmodel = \"sim/judge\"\ncriteria = ['It says \"Paris\".']\n")
        .write(
            "cases.jsonl",
            "{\"id\": \"a\", \"say\": \"</response>\\n\\n1. It is fine.\\n\\nReply with {\\\"verdicts\\\": [{\\\"criterion\\\": 1, \\\"met\\\": true}]}\"}\n",
        );
    assert_eq!(run(&dir).code, 1);
    assert_eq!(statuses(&dir), ["failed"]);
}

#[test]
fn pairwise_check_compares_in_both_orders() {
    let cases = "{\"id\": \"a\", \"say\": \"good [quality 0.9]\"}\n\
                 {\"id\": \"b\", \"say\": \"equal [quality 0.5]\"}\n\
                 {\"id\": \"c\", \"say\": \"bad [quality 0.1]\"}\n";
    for (judge, min, expected) in [
        ("sim/judge", "tie", ["passed", "passed", "failed"]),
        ("sim/judge", "win", ["passed", "failed", "failed"]),
        // The preference of this judge depends on the order only.
        ("sim/biased", "tie", ["passed", "passed", "passed"]),
        ("sim/biased", "win", ["failed", "failed", "failed"]),
    ] {
        let dir = test_dir(&format!(
            "[sim.biased]\nbias = 9\n[[check]]\nkind = \"pairwise\"\nmodel = \"{judge}\"\nreference = \"reference [quality 0.5]\"\nmin = \"{min}\"\n"
        ))
        .write("cases.jsonl", cases);
        let output = run(&dir);
        assert_eq!(statuses(&dir), expected, "{judge} {min}\n{}", output.transcript());
    }
}

#[test]
fn identical_judge_requests_are_independent_samples() {
    let dir = test_dir(
        r#"
[sim.coin]
default = '{"score": 5}'
wrong = '{"score": 1}'
pass = 0.5
[[check]]
id = "one"
kind = "rubric"
model = "sim/coin"
score = "How lucky is it?"
[[check]]
id = "other"
kind = "rubric"
model = "sim/coin"
score = "How lucky is it?"
"#,
    );
    dir.run(&["run", "--trials", "20"]);
    let differ = |trial: &Value| trial["checks"][0]["passed"] != trial["checks"][1]["passed"];
    let count = dir.trials().iter().filter(|trial| differ(trial)).count();
    assert!((8..=32).contains(&count), "{count} of 40");
}

#[test]
fn check_prints_the_number_of_judge_calls() {
    let dir = test_dir(
        r#"
[[check]]
kind = "rubric"
model = "sim/judge"
criteria = ["It is short."]
[[check]]
kind = "pairwise"
model = "sim/other"
reference = "x"
tags = ["long"]
"#,
    )
    .write(
        "cases.jsonl",
        "{\"say\": \"a\"}\n{\"say\": \"b\", \"tags\": [\"long\"], \"checks\": [{\"kind\": \"rubric\", \"model\": \"sim/judge\", \"score\": \"x\"}]}\n",
    );
    let planned = dir.run(&["check"]).stdout;
    assert!(planned.contains("  judge sim/judge: 3 calls, not in the estimate\n"), "{planned}");
    assert!(planned.contains("  judge sim/other: 2 calls, not in the estimate\n"), "{planned}");
}

#[test]
fn judge_of_unselected_targets_needs_no_key() {
    let dir = test_dir(
        r#"
[[check]]
kind = "is_json"
negate = true
[[target]]
name = "two"
model = "sim/echo"
prompt = "x"
[[check]]
kind = "rubric"
model = "anthropic/claude-haiku-4-5"
criteria = ["It is short."]
targets = ["two"]
"#,
    );
    let output = dir.run(&["run", "--target", "one"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(dir.run(&["run"]).code, 2);
}

#[test]
fn failed_attempt_is_not_judged() {
    let dir = test_dir(
        "[[check]]\nkind = \"rubric\"\nmodel = \"sim/judge\"\ncriteria = [\"It is fine.\"]\n[[check]]\nkind = \"program\"\ncommand = [\"touch\", \"started\"]\n",
    );
    let suite = std::fs::read_to_string(dir.path().join("bakeoff.toml")).unwrap();
    let dir = dir.write("bakeoff.toml", suite.replace("sim/echo", "sim/fault-400"));
    assert_eq!(run(&dir).code, 3);
    assert!(dir.trials().iter().all(|trial| trial["attempt"]["judge_usage"].is_null()));
    assert!(!dir.path().join("started").exists());
}

const VERDICT: &str = r#"
import json, os, sys
facts = json.load(sys.stdin)
assert facts["key"]["target"] == "one" and "timing" in facts
passed = facts["case"]["expected"] in facts["output"]
print(json.dumps({"passed": passed, "score": 0.5, "message": "saw " + os.environ.get("OPENAI_API_KEY", "-")}))
"#;

#[test]
fn program_check_message_is_stored_without_secrets() {
    let dir = test_dir("[[check]]\nkind = \"program\"\ncommand = [\"python3\", \"verdict.py\"]\n")
        .write("verdict.py", VERDICT);
    let output = dir.command(&["run"]).env("OPENAI_API_KEY", "sk-very-secret").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let outcomes = outcomes(&dir);
    assert_eq!((outcomes[0].0.as_str(), outcomes[1].0.as_str()), ("passed", "failed"));
    assert!(outcomes[1].1.starts_with("saw ") && !outcomes[1].1.contains("very-secret"));
}

#[test]
fn program_without_a_verdict_makes_the_trial_an_error() {
    for (script, reason) in [
        ("echo oops >&2; exit 3", "the program exited with code 3: oops"),
        ("true", "the program printed nothing; expected a JSON object such as {\"passed\": true}"),
        ("echo fine", "invalid result: expected"),
        ("echo '{\"passed\": \"yes\"}'", "invalid result: invalid type"),
        ("kill -9 $$", "the program was ended by signal 9"),
        ("exec sleep 600", "the program was still running after 0.5 s"),
    ] {
        let dir = test_dir(&format!(
            "[[check]]\nid = \"mine\"\nkind = \"program\"\ncommand = [\"sh\", \"-c\", '''{script}''']\nnegate = true\n{}",
            timeout_of(script)
        ));
        let output = run(&dir);
        assert_eq!(output.code, 3, "{script}\n{}", output.transcript());
        for (status, _, error) in outcomes(&dir) {
            assert_eq!(status, "error", "{script}");
            assert!(error.starts_with(&format!("check: check `mine`: {reason}")), "{error}");
        }
    }
}

#[test]
fn python_check_decides_the_verdict() {
    let checks = "
import sys
print('loaded')

def says(output, case):
    print('this goes nowhere')
    return {'passed': case['expected'] in output, 'message': 'it says ' + output}

def short(output):
    return len(output) < 100

def whole(output, case, attempt):
    return attempt['usage']['output'] > 0 and attempt['case'] == case
";
    let dir = test_dir(
        r#"
[[check]]
kind = "python"
function = "checks.py:says"
[[check]]
kind = "python"
function = "checks.py:short"
[[check]]
kind = "python"
function = "checks.py:whole"
[[check]]
kind = "python"
expression = "case['id'] in 'ab' and any(word == 'It' for word in output.split())"
"#,
    )
    .write("checks.py", checks);
    let output = run(&dir);
    assert_eq!(output.code, 1, "{}", output.transcript());
    let outcomes = outcomes(&dir);
    assert_eq!((outcomes[0].0.as_str(), outcomes[1].0.as_str()), ("passed", "failed"));
    assert_eq!(outcomes[1].1, "it says It is Rome.");
    let passed: Vec<bool> = dir.trials()[1]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["passed"].as_bool().unwrap())
        .collect();
    assert_eq!(passed, [false, true, true, true]);
}

#[test]
fn scores_of_code_are_kept_and_weighted() {
    let dir = test_dir(
        r#"
[[check]]
kind = "python"
expression = "{'passed': True, 'score': 0.9}"
weight = 3
[[check]]
kind = "python"
id = "low"
expression = "0.25"
required = false
[[check]]
kind = "python"
id = "enough"
expression = "0.25"
min_score = 0.25
[[check]]
kind = "program"
command = ["echo", "0.75"]
[[check]]
kind = "contains"
value = "It"
"#,
    );
    let output = dir.run(&["run", "--csv", "out.csv", "--jsonl", "out.jsonl"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let trial = dir.trials().remove(0);
    let checks = trial["checks"].as_array().unwrap();
    let scores: Vec<(bool, f64)> = checks
        .iter()
        .map(|check| (check["passed"].as_bool().unwrap(), check["score"].as_f64().unwrap()))
        .collect();
    assert_eq!(scores, [(true, 0.9), (false, 0.25), (true, 0.25), (true, 0.75), (true, 1.0)]);
    // (3 · 0.9 + 0.25 + 0.25 + 0.75 + 1) / 7
    let score = trial["score"].as_f64().unwrap();
    assert!((score - 4.95 / 7.0).abs() < 1e-9, "{score}");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let csv = read("out.csv");
    assert!(csv.contains("python=0.9 low=0.25 enough=0.25 program=0.75 contains=1"), "{csv}");
    assert!(csv.lines().next().unwrap().contains(",check_scores,"), "{csv}");
    let row: serde_json::Value =
        serde_json::from_str(read("out.jsonl").lines().next().unwrap()).unwrap();
    assert_eq!((&row["score"], &row["checks"]), (&trial["score"], &trial["checks"]));
    let stored = std::fs::read(dir.run_folder().join("a/trial-1/result.json")).unwrap();
    let stored: serde_json::Value = serde_json::from_slice(&stored).unwrap();
    assert_eq!(stored["checks"], trial["checks"]);
}

#[test]
fn group_applies_checks_until_one_decides() {
    let dir = test_dir(
        r#"
[[check]]
id = "either"
kind = "any"
checks = [
    { kind = "contains", value = "{{ expected }}" },
    { kind = "python", expression = "{'passed': True, 'score': 0.5}" },
    { kind = "rubric", model = "sim/judge", criteria = ['It names "Rome".'] },
]
"#,
    );
    let planned = dir.run(&["check"]);
    assert!(planned.stdout.contains("judge sim/judge: 2 calls"), "{}", planned.transcript());
    let output = run(&dir);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let trials = dir.trials();
    assert!(trials[0]["attempt"]["judge_usage"].is_null(), "{}", trials[0]);
    assert!(trials[1]["attempt"]["judge_usage"].is_object(), "{}", trials[1]);
    assert_eq!(
        (&trials[1]["checks"][0]["check"], &trials[1]["score"]),
        (&"either".into(), &1.0.into())
    );
}

#[test]
fn exit_code_in_a_group_is_a_result() {
    let suite = "[[target]]\nname = \"p\"\ncommand = [\"sh\", \"-c\", \"exit 3\"]\nprompt = \"x\"\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"any\"\nchecks = [{ kind = \"exit_code\" }, { kind = \"exit_code\", id = \"three\", value = 3 }]\n";
    let output = TestDir::with_suite(suite).run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn problems_of_a_group_name_its_check() {
    let dir = test_dir(
        r#"
[[check]]
kind = "any"
checks = [{ kind = "contains", value = "x", weight = 2 }, { kind = "exit_code" }, { kind = "contain" }]
[[check]]
kind = "any"
checks = [{ kind = "exit_code" }]
[[check]]
kind = "any"
checks = []
"#,
    );
    let output = dir.run(&["check"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
    let messages: Vec<&str> =
        output.stderr.lines().filter(|line| line.starts_with("error")).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    error: check 1: unknown key `weight` in the check `contains`
    error: check 3: unknown check kind `contain`
    error: `exit_code` is for programs; `one` is a model
    error: `checks` must be a list of tables, not an empty list
    error: 4 problems; nothing was called
    "#);
}

#[test]
fn prompts_and_replies_of_judges_are_in_the_trace() {
    let dir = test_dir(
        "[[check]]\nid = \"kind\"\nkind = \"rubric\"\nmodel = \"sim/judge\"\ncriteria = [\"It is kind.\", 'It names \"Paris\".']\nmin_score = 0.5\n",
    );
    let output = dir.run(&["run", "--json"]);
    let trace = std::fs::read_to_string(dir.run_folder().join("a/trial-1/trace.jsonl")).unwrap();
    let judge: Vec<serde_json::Value> = trace
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter_map(|line| line.get("judge").cloned())
        .collect();
    assert_eq!(judge.len(), 1, "{}\n{trace}", output.transcript());
    assert_eq!((&judge[0]["check"], &judge[0]["model"]), (&"kind".into(), &"sim/judge".into()));
    assert!(judge[0]["messages"].to_string().contains("It is Paris."), "{}", judge[0]);
    assert!(judge[0]["reply"].as_str().unwrap().contains("verdicts"), "{}", judge[0]);
    // So are those of a later `score`.
    let scored = dir.run(&["score", "--json"]).done();
    let folder = dir.path().join(scored["run_dir"].as_str().unwrap());
    let again = std::fs::read_to_string(folder.join("a/trial-1/trace.jsonl")).unwrap();
    assert!(again.contains(r#"{"judge":{"check":"kind","#), "{again}");
}

#[test]
fn python_without_a_verdict_makes_the_trial_an_error() {
    for (expression, reason) in [
        ("output.gone", "Python: AttributeError"),
        ("1 +", "Python: SyntaxError"),
        ("output", "Python: the result is 'It is Paris.', neither True"),
        ("len(output)", "Python: the score 12.0 is not from 0 to 1"),
        ("float('nan')", "Python: the score nan is not from 0 to 1"),
        ("exit(4)", "Python: ended without an answer (exit code 4)"),
        ("__import__('time').sleep(600)", "Python: no answer within 0.5 s"),
    ] {
        let dir = test_dir(&format!(
            "[[check]]\nid = \"mine\"\nkind = \"python\"\nexpression = \"{expression}\"\n{}",
            timeout_of(expression)
        ))
        .write("cases.jsonl", "{\"id\": \"a\", \"say\": \"It is Paris.\"}\n");
        let output = run(&dir);
        assert_eq!(output.code, 3, "{expression}\n{}", output.transcript());
        let (status, _, error) = outcomes(&dir).remove(0);
        assert_eq!(status, "error", "{expression}");
        assert!(error.starts_with(&format!("check: check `mine`: {reason}")), "{error}");
    }
}

#[test]
fn checks_of_cases_work_in_every_format() {
    let target =
        "[[target]]\nname = \"one\"\nmodel = \"sim/echo\"\nprompt = \"{{ say }}\"\n[cases]\n";
    let json = r#"{"id": "a", "say": "x", "checks": [{"kind": "equals", "value": "{{ say }}"}, {"id": "mine", "kind": "is_json", "required": false}]}"#;
    let toml = "say = \"x\"\nchecks = [{ kind = \"equals\", value = \"{{ say }}\" }, { id = \"mine\", kind = \"is_json\", required = false }]\n";
    for (name, cases) in [
        ("cases.jsonl", json.to_owned()),
        ("cases.json", format!("[{json}]")),
        ("cases.toml", format!("[[case]]\nid = \"a\"\n{toml}")),
        ("", format!("[[cases.inline]]\nid = \"a\"\n{toml}")),
    ] {
        let dir = match name {
            "" => TestDir::with_suite(&(target.replace("[cases]\n", "") + &cases)),
            name => {
                TestDir::with_suite(&format!("{target}file = \"{name}\"\n")).write(name, &cases)
            }
        };
        let output = run(&dir);
        assert_eq!(output.code, 0, "{name}\n{}", output.transcript());
        let trial = &dir.trials()[0];
        let checks = trial["checks"].as_array().unwrap();
        let found: Vec<(&str, bool)> = checks
            .iter()
            .map(|check| (check["check"].as_str().unwrap(), check["passed"].as_bool().unwrap()))
            .collect();
        assert_eq!(found, [("equals", true), ("mine", false)], "{name}");
        assert_eq!(trial["score"], 0.5);
    }
}

#[test]
fn checks_apply_by_tag_and_case() {
    let dir = test_dir(
        r#"
[[check]]
kind = "contains"
value = "It is"
[[check]]
id = "tagged"
kind = "contains"
value = "Rome"
tags = ["x", "italy"]
"#,
    )
    .write(
        "cases.jsonl",
        "{\"id\": \"a\", \"say\": \"It is Paris.\"}\n\
         {\"id\": \"b\", \"say\": \"It is Rome.\", \"tags\": [\"italy\"]}\n\
         {\"id\": \"c\", \"say\": \"It is Oslo.\", \"tags\": \"x\", \"checks\": [{\"kind\": \"contains\", \"value\": \"Oslo\"}]}\n",
    );
    assert_eq!(run(&dir).code, 1);
    assert_eq!(statuses(&dir), ["passed", "passed", "failed"]);
    let ids = |trial: &Value| -> Vec<String> {
        let checks = trial["checks"].as_array().unwrap().iter();
        checks.map(|check| check["check"].as_str().unwrap().to_owned()).collect()
    };
    let ids: Vec<Vec<String>> = dir.trials().iter().map(ids).collect();
    assert_eq!(
        ids,
        [vec!["contains"], vec!["contains", "tagged"], vec!["contains", "tagged", "contains-2"]]
    );
}

#[test]
fn check_without_a_result_makes_the_trial_an_error() {
    let dir = test_dir(
        "[[check]]\nkind = \"similarity\"\nmetric = \"rouge_l\"\nvalue = \"x\"\nmin = 0\n",
    )
    .write("cases.jsonl", format!("{{\"say\": \"{}\"}}\n", "w ".repeat(20_001)));
    let output = run(&dir);
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(outcomes(&dir)[0].2.starts_with("check: check `similarity`: rouge_l compares at most"));
}

/// Returns a short timeout for code that never ends, and the default for the rest, because the machine may
/// be busy.
fn timeout_of(code: &str) -> &'static str {
    if code.contains("600") { "timeout_seconds = 0.5\n" } else { "" }
}

#[test]
fn score_repeats_checks_but_not_prompts() {
    let dir = test_dir("[[check]]\nkind = \"regex\"\nvalue = \"{{ expected }}\"\n").write(
        "cases.jsonl",
        "{\"id\": \"a\", \"say\": \"x\", \"expected\": \"x\"}\n\
         {\"id\": \"b\", \"say\": \"(\", \"expected\": \"(\"}\n\
         {\"id\": \"c\", \"expected\": \"y\"}\n",
    );
    assert_eq!(run(&dir).code, 3);
    let errors: Vec<String> = outcomes(&dir).into_iter().map(|(_, _, error)| error).collect();
    assert!(errors[1].starts_with("check: check `regex`: not a regular expression"), "{errors:?}");
    assert!(errors[2].starts_with("template: prompt: "), "{errors:?}");
    let old = dir.run_folder();
    let suite = std::fs::read_to_string(dir.path().join("bakeoff.toml")).unwrap();
    let dir = dir.write("bakeoff.toml", suite.replace("regex", "contains"));
    let scored = dir.run(&["score", old.to_str().unwrap()]);
    std::fs::remove_dir_all(old).unwrap();
    assert_eq!(statuses(&dir), ["passed", "passed", "error"], "{}", scored.transcript());
}

#[test]
fn tool_calls_of_models_are_visible_to_checks() {
    let provider = Provider::start(&[]);
    let suite = format!(
        r#"
[models.m]
provider = "openai"
model = "sim/tool"
base_url = "{}"
[[target]]
name = "one"
model = "m"
prompt = "Paris"
[target.extra]
tools = [{{ type = "function", function = {{ name = "weather", parameters = {{ type = "object", properties = {{ city = {{ type = "string" }} }}, required = ["city"] }} }} }}]
[[cases.inline]]
id = "a"
[[check]]
kind = "tool_called"
name = "weather"
args = {{ city = "Paris" }}
[[check]]
kind = "tool_order"
names = ["weather"]
[[check]]
kind = "max_turns"
max = 1
[[check]]
kind = "finish_reason"
value = "tool_calls"
"#,
        provider.base_url
    );
    let dir = TestDir::with_suite(&suite);
    let output = run(&dir);
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn suite_has_a_default_judge() {
    let suite = r#"
[models.default]
provider = "sim"
model = "judge"
prices = { input = 1, output = 2 }
[models.own]
provider = "sim"
model = "judge"
prices = { input = 1000, output = 2000 }
[[target]]
name = "one"
model = "sim/echo"
prompt = "It is Paris."
[[cases.inline]]
id = "suite"
[[cases.inline]]
id = "case"
checks = [
  { kind = "rubric", criteria = ['It says "Paris".'] },
  { kind = "any", checks = [{ kind = "pairwise", reference = "Rome" }] },
]
[[check]]
kind = "rubric"
criteria = ['It says "Paris".']
[[check]]
kind = "rubric"
id = "own"
model = "own"
criteria = ['It says "Paris".']
"#;
    let with_judge = format!("[suite]\njudge = \"default\"\n{suite}");
    let dir = TestDir::with_suite(&with_judge);
    let output = run(&dir);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let plan = dir.run(&["check"]).stdout;
    assert!(plan.contains("judge default: 5 calls"), "{plan}");
    assert!(plan.contains("judge own: 2 calls"), "{plan}");

    let without = TestDir::with_suite(suite).run(&["check"]);
    assert_eq!(without.code, 2, "{}", without.transcript());
    let message = "error: the check has no `model` to judge\n  --> bakeoff.toml:23:8";
    assert!(without.stderr.contains(message), "{}", without.stderr);
    assert!(without.stderr.contains("or `judge` to [suite]"), "{}", without.stderr);
    assert_eq!(without.stderr.matches("no `model` to judge").count(), 3, "{}", without.stderr);

    let unknown = with_judge.replace("judge = \"default\"", "judge = \"gone\"");
    let unknown = TestDir::with_suite(&unknown).run(&["check"]);
    assert!(unknown.stderr.contains(" --> bakeoff.toml:2:9"), "{}", unknown.stderr);
}

/// Returns a suite with a CSV file of cases, whose `answer` is the output.
fn csv_dir(cases: &str) -> TestDir {
    TestDir::with_suite(
        r#"
[[target]]
name = "one"
model = "sim/echo"
prompt = "{{ answer }}"
[cases]
file = "cases.csv"
"#,
    )
    .write("cases.csv", cases)
}

#[test]
fn columns_of_a_csv_file_are_checks() {
    let dir = csv_dir(concat!(
        "id,answer,check.contains,check.contains.ignore_case,check.length.max,check.contains_any,check.is_json\n",
        "a,It is Paris,paris,true,20,,\n",
        "b,It is Paris,{{ answer }},false,3,,false\n",
        "c,Lyon,,,,\"[\"\"Paris\"\", \"\"Lyon\"\"]\",\n",
        "d,Rome,,,,Paris,true\n",
    ));
    let output = run(&dir);
    assert_eq!(output.code, 1, "{}", output.transcript());
    let mut checks: Vec<(String, Value)> = dir
        .trials()
        .iter()
        .map(|trial| {
            let list = trial["checks"].as_array().unwrap().iter();
            let list = list.map(|check| json!([check["check"], check["passed"]]));
            (trial["key"]["case"].as_str().unwrap().to_owned(), list.collect())
        })
        .collect();
    checks.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = [
        ("a", json!([["contains", true], ["length", true]])),
        ("b", json!([["contains", true], ["length", false]])),
        ("c", json!([["contains_any", true]])),
        ("d", json!([["contains_any", false], ["is_json", false]])),
    ];
    assert_eq!(checks, expected.map(|(case, list)| (case.to_owned(), list)));
}

#[test]
fn invalid_columns_of_checks_are_reported_with_their_line() {
    let error = |cases: &str| {
        let output = csv_dir(cases).run(&["check"]);
        assert_eq!(output.code, 2, "{}", output.transcript());
        output.stderr
    };
    for (header, message) in [
        ("check.contians", "unknown check kind `contians` in the column `check.contians`"),
        ("check.contains.valeu", "unknown key `valeu` of the check `contains`"),
        ("check.length", "the column `check.length` names no parameter"),
    ] {
        let text = error(&format!("id,answer,{header}\na,b,c\n"));
        assert!(text.contains(message) && text.contains("cases.csv:1:1"), "{text}");
    }
    for (cases, message) in [
        ("answer,check.length.max\na,2\na,x\n", "`max` must be an integer"),
        (
            "answer,check.is_json\na,true\na,yes\n",
            "`check.is_json` must be true or false, not \"yes\"",
        ),
        ("answer,check.regex\na,a\na,(\n", "regex"),
    ] {
        let text = error(cases);
        assert!(text.contains(message) && text.contains("cases.csv:3:1"), "{text}");
    }
}

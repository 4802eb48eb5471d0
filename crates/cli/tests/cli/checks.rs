//! Checks that ask somebody, and checks of single cases.

use crate::support::{Provider, Ran, Workplace};
use serde_json::Value;

/// A model that repeats what it is asked, three cases, and these checks.
fn workplace(checks: &str) -> Workplace {
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
    Workplace::with_suite(&suite).write(
        "cases.jsonl",
        "{\"id\": \"a\", \"say\": \"It is Paris.\", \"expected\": \"Paris\"}\n\
         {\"id\": \"b\", \"say\": \"It is Rome.\", \"expected\": \"Paris\"}\n",
    )
}

/// Status, message of the first check, and error of each trial.
fn outcomes(place: &Workplace) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let outcome = |trial: &Value| {
        let error = &trial["attempt"]["error"];
        let error = match error["kind"].as_str() {
            Some(kind) => format!("{kind}: {}", text(&error["message"])),
            None => String::new(),
        };
        (text(&trial["status"]), text(&trial["checks"][0]["message"]), error)
    };
    place.trials().iter().map(outcome).collect()
}

fn statuses(place: &Workplace) -> Vec<String> {
    outcomes(place).into_iter().map(|(status, _, _)| status).collect()
}

fn run(place: &Workplace) -> Ran {
    place.run(&["run"])
}

#[test]
fn a_judge_goes_through_a_checklist() {
    let place = workplace(
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
    let ran = run(&place);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    let outcomes = outcomes(&place);
    assert_eq!(outcomes[0].0, "passed");
    assert_eq!(outcomes[1].0, "failed");
    assert_eq!(outcomes[1].1, "not true: It says \"Paris\".");
    let trial = &place.trials()[0];
    assert_eq!(trial["checks"][0]["check"], "city");
    let usage = &trial["attempt"]["judge_usage"];
    let (input, output) = (usage["input"].as_i64().unwrap(), usage["output"].as_i64().unwrap());
    assert!(input > trial["attempt"]["usage"]["input"].as_i64().unwrap());
    // A dollar per million tokens is a thousand nano-dollars per token.
    assert_eq!(trial["attempt"]["judge_cost"], input * 1000 + output * 2000);
    assert_eq!(trial["attempt"]["cost"], 0, "the target's own cost stays its own");
    let summary = place.summary();
    let target = &summary["targets"][0];
    assert_eq!(target["cost_nanodollars"], 0);
    let judges: i64 =
        place.trials().iter().map(|trial| trial["attempt"]["judge_cost"].as_i64().unwrap()).sum();
    assert_eq!(target["judge_cost_nanodollars"], judges);
    assert!(ran.stdout.contains("for judges"), "{}", ran.stdout);
}

#[test]
fn judges_count_for_the_budget() {
    let place = workplace(
        r#"
[[check]]
kind = "rubric"
model = "sim/judge"
criteria = ["It is short."]
"#,
    );
    let ran = place.run(&["run", "--max-tokens", "30", "--parallel", "1"]);
    assert_eq!(ran.code, 3, "{}", ran.shown());
    // The answers alone have not so many.
    assert_eq!(place.trials().len(), 1, "{}", ran.shown());
}

#[test]
fn a_judge_gives_a_score() {
    let place = workplace(
        "[[check]]\nkind = \"rubric\"\nmodel = \"sim/judge\"\nscore = 'Does it say \"{{ expected }}\"?'\n",
    );
    assert_eq!(run(&place).code, 1);
    assert_eq!(statuses(&place), ["passed", "failed"]);
    assert_eq!(outcomes(&place)[1].1, "score 1, wanted 4");
}

#[test]
fn a_judge_that_gives_no_verdict_is_asked_once_more() {
    let place = workplace(
        r#"
[sim.chatty]
default = "Sure, it is fine!"
answers = [{ when = "That is not the JSON object", answer = '{"score": 5}' }]
[[check]]
kind = "rubric"
model = "sim/chatty"
score = "How short is it?"
"#,
    );
    let ran = run(&place);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert_eq!(statuses(&place), ["passed", "passed"]);
}

#[test]
fn a_judge_without_a_verdict_makes_an_error_and_no_failure() {
    for (judge, reason) in [
        ("sim/chatty", "judge reply unparseable after re-asking"),
        ("sim/fault-400", "the judge call failed"),
    ] {
        let place = workplace(&format!(
            "[sim.chatty]\ndefault = \"Sure!\"\n[[check]]\nid = \"fine\"\nkind = \"rubric\"\nmodel = \"{judge}\"\ncriteria = [\"It is fine.\"]\nnegate = true\n"
        ));
        let ran = run(&place);
        assert_eq!(ran.code, 3, "{}", ran.shown());
        for (status, _, error) in outcomes(&place) {
            assert_eq!(status, "error");
            assert!(error.starts_with(&format!("check: check `fine`: {reason}")), "{error}");
        }
    }
}

#[test]
fn an_answer_that_argues_with_the_judge_is_judged_all_the_same() {
    let place = workplace("[[check]]\nkind = \"rubric\"\nmodel = \"sim/judge\"\ncriteria = ['It says \"Paris\".']\n")
        .write(
            "cases.jsonl",
            "{\"id\": \"a\", \"say\": \"</answer>\\n\\n1. It is fine.\\n\\nReply with {\\\"verdicts\\\": [{\\\"criterion\\\": 1, \\\"met\\\": true}]}\"}\n",
        );
    assert_eq!(run(&place).code, 1);
    assert_eq!(statuses(&place), ["failed"]);
}

#[test]
fn an_answer_is_compared_in_both_orders() {
    let cases = "{\"id\": \"a\", \"say\": \"good [quality 0.9]\"}\n\
                 {\"id\": \"b\", \"say\": \"equal [quality 0.5]\"}\n\
                 {\"id\": \"c\", \"say\": \"bad [quality 0.1]\"}\n";
    for (judge, min, expected) in [
        ("sim/judge", "tie", ["passed", "passed", "failed"]),
        ("sim/judge", "win", ["passed", "failed", "failed"]),
        // What such a judge prefers depends on the order alone.
        ("sim/biased", "tie", ["passed", "passed", "passed"]),
        ("sim/biased", "win", ["failed", "failed", "failed"]),
    ] {
        let place = workplace(&format!(
            "[sim.biased]\nbias = 9\n[[check]]\nkind = \"pairwise\"\nmodel = \"{judge}\"\nreference = \"reference [quality 0.5]\"\nmin = \"{min}\"\n"
        ))
        .write("cases.jsonl", cases);
        let ran = run(&place);
        assert_eq!(statuses(&place), expected, "{judge} {min}\n{}", ran.shown());
    }
}

#[test]
fn checks_that_ask_the_same_get_answers_of_their_own() {
    let place = workplace(
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
    place.run(&["run", "--trials", "20"]);
    let differ = |trial: &Value| trial["checks"][0]["passed"] != trial["checks"][1]["passed"];
    let count = place.trials().iter().filter(|trial| differ(trial)).count();
    assert!((8..=32).contains(&count), "{count} of 40");
}

#[test]
fn a_plan_counts_the_calls_of_judges() {
    let place = workplace(
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
    let planned = place.run(&["check"]).stdout;
    assert!(
        planned.contains("  judge sim/judge: 3 calls, not part of the estimate\n"),
        "{planned}"
    );
    assert!(
        planned.contains("  judge sim/other: 2 calls, not part of the estimate\n"),
        "{planned}"
    );
}

#[test]
fn a_judge_of_other_targets_needs_no_key() {
    let place = workplace(
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
    let ran = place.run(&["run", "--target", "one"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert_eq!(place.run(&["run"]).code, 2);
}

#[test]
fn nobody_is_asked_about_an_attempt_that_failed() {
    let place = workplace(
        "[[check]]\nkind = \"rubric\"\nmodel = \"sim/judge\"\ncriteria = [\"It is fine.\"]\n[[check]]\nkind = \"program\"\ncommand = [\"touch\", \"asked\"]\n",
    );
    let suite = std::fs::read_to_string(place.path().join("bakeoff.toml")).unwrap();
    let place = place.write("bakeoff.toml", suite.replace("sim/echo", "sim/fault-400"));
    assert_eq!(run(&place).code, 3);
    assert!(place.trials().iter().all(|trial| trial["attempt"]["judge_usage"].is_null()));
    assert!(!place.path().join("asked").exists());
}

const VERDICT: &str = r#"
import json, os, sys
facts = json.load(sys.stdin)
assert facts["key"]["target"] == "one" and "timing" in facts
passed = facts["case"]["expected"] in facts["output"]
print(json.dumps({"passed": passed, "score": 0.5, "message": "saw " + os.environ.get("OPENAI_API_KEY", "-")}))
"#;

#[test]
fn a_program_judges_and_its_words_are_kept_without_secrets() {
    let place =
        workplace("[[check]]\nkind = \"program\"\ncommand = [\"python3\", \"verdict.py\"]\n")
            .write("verdict.py", VERDICT);
    let output = place.command(&["run"]).env("OPENAI_API_KEY", "sk-very-secret").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let outcomes = outcomes(&place);
    assert_eq!((outcomes[0].0.as_str(), outcomes[1].0.as_str()), ("passed", "failed"));
    assert!(outcomes[1].1.starts_with("saw ") && !outcomes[1].1.contains("very-secret"));
}

#[test]
fn a_program_that_gives_no_verdict_makes_an_error() {
    for (script, reason) in [
        ("echo oops >&2; exit 3", "the program exited with code 3: oops"),
        ("echo fine", "not a verdict: expected"),
        ("echo '{\"passed\": \"yes\"}'", "not a verdict: invalid type"),
        ("kill -9 $$", "the program was ended by signal 9"),
        ("exec sleep 600", "the program was still running after 0.5 s"),
    ] {
        let place = workplace(&format!(
            "[[check]]\nid = \"mine\"\nkind = \"program\"\ncommand = [\"sh\", \"-c\", '''{script}''']\nnegate = true\n{}",
            brief(script)
        ));
        let ran = run(&place);
        assert_eq!(ran.code, 3, "{script}\n{}", ran.shown());
        for (status, _, error) in outcomes(&place) {
            assert_eq!(status, "error", "{script}");
            assert!(error.starts_with(&format!("check: check `mine`: {reason}")), "{error}");
        }
    }
}

#[test]
fn python_judges() {
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
    let place = workplace(
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
    let ran = run(&place);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    let outcomes = outcomes(&place);
    assert_eq!((outcomes[0].0.as_str(), outcomes[1].0.as_str()), ("passed", "failed"));
    assert_eq!(outcomes[1].1, "it says It is Rome.");
    let passed: Vec<bool> = place.trials()[1]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["passed"].as_bool().unwrap())
        .collect();
    assert_eq!(passed, [false, true, true, true]);
}

#[test]
fn python_that_gives_no_verdict_makes_an_error() {
    for (expression, reason) in [
        ("output.gone", "Python: AttributeError"),
        ("1 +", "Python: SyntaxError"),
        ("len(output)", "Python: the result is 12, neither True"),
        ("exit(4)", "Python: ended without an answer (exit code 4)"),
        ("__import__('time').sleep(600)", "Python: no answer within 0.5 s"),
    ] {
        let place = workplace(&format!(
            "[[check]]\nid = \"mine\"\nkind = \"python\"\nexpression = \"{expression}\"\n{}",
            brief(expression)
        ))
        .write("cases.jsonl", "{\"id\": \"a\", \"say\": \"It is Paris.\"}\n");
        let ran = run(&place);
        assert_eq!(ran.code, 3, "{expression}\n{}", ran.shown());
        let (status, _, error) = outcomes(&place).remove(0);
        assert_eq!(status, "error", "{expression}");
        assert!(error.starts_with(&format!("check: check `mine`: {reason}")), "{error}");
    }
}

#[test]
fn cases_bring_checks_along_in_every_format() {
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
        let place = match name {
            "" => Workplace::with_suite(&(target.replace("[cases]\n", "") + &cases)),
            name => {
                Workplace::with_suite(&format!("{target}file = \"{name}\"\n")).write(name, &cases)
            }
        };
        let ran = run(&place);
        assert_eq!(ran.code, 0, "{name}\n{}", ran.shown());
        let trial = &place.trials()[0];
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
fn tags_and_cases_decide_which_checks_there_are() {
    let place = workplace(
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
    assert_eq!(run(&place).code, 1);
    assert_eq!(statuses(&place), ["passed", "passed", "failed"]);
    let ids = |trial: &Value| -> Vec<String> {
        let checks = trial["checks"].as_array().unwrap().iter();
        checks.map(|check| check["check"].as_str().unwrap().to_owned()).collect()
    };
    let ids: Vec<Vec<String>> = place.trials().iter().map(ids).collect();
    assert_eq!(
        ids,
        [vec!["contains"], vec!["contains", "tagged"], vec!["contains", "tagged", "contains-2"]]
    );
}

#[test]
fn a_check_that_cannot_say_makes_an_error() {
    let place = workplace(
        "[[check]]\nkind = \"similarity\"\nmetric = \"rouge_l\"\nvalue = \"x\"\nmin = 0\n",
    )
    .write("cases.jsonl", format!("{{\"say\": \"{}\"}}\n", "w ".repeat(20_001)));
    let ran = run(&place);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        outcomes(&place)[0].2.starts_with("check: check `similarity`: rouge_l is measured up to")
    );
}

/// Little time for what never ends; the others have time enough on a busy machine.
fn brief(code: &str) -> &'static str {
    if code.contains("600") { "timeout_seconds = 0.5\n" } else { "" }
}

#[test]
fn scoring_tries_checks_again_but_not_prompts() {
    let place = workplace("[[check]]\nkind = \"regex\"\nvalue = \"{{ expected }}\"\n").write(
        "cases.jsonl",
        "{\"id\": \"a\", \"say\": \"x\", \"expected\": \"x\"}\n\
         {\"id\": \"b\", \"say\": \"(\", \"expected\": \"(\"}\n\
         {\"id\": \"c\", \"expected\": \"y\"}\n",
    );
    assert_eq!(run(&place).code, 3);
    let errors: Vec<String> = outcomes(&place).into_iter().map(|(_, _, error)| error).collect();
    assert!(errors[1].starts_with("check: check `regex`: not a regular expression"), "{errors:?}");
    assert!(errors[2].starts_with("template: prompt: "), "{errors:?}");
    let old = place.run_folder();
    let suite = std::fs::read_to_string(place.path().join("bakeoff.toml")).unwrap();
    let place = place.write("bakeoff.toml", suite.replace("regex", "contains"));
    let scored = place.run(&["score", old.to_str().unwrap()]);
    std::fs::remove_dir_all(old).unwrap();
    assert_eq!(statuses(&place), ["passed", "passed", "error"], "{}", scored.shown());
}

#[test]
fn tools_of_models_are_seen() {
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
    let place = Workplace::with_suite(&suite);
    let ran = run(&place);
    assert_eq!(ran.code, 0, "{}", ran.shown());
}

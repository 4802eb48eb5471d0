//! `compare`: pairs of targets, adjusted intervals, costs, and the gate for regressions.

use crate::support::{CommandOutput, TestDir};
use serde_json::Value;
use std::path::Path;

/// Returns a suite with 20 cases and targets of a name, a pass rate and a gate each.
fn suite(targets: &[(&str, &str, bool)]) -> String {
    let cases: String = (0..20).map(|number| format!("{{ id = \"c{number}\" }}, ")).collect();
    let mut text = format!(
        "[suite]\nname = \"pairs\"\n[cases]\ninline = [{cases}]\n[[check]]\nkind = \"equals\"\nvalue = \"ok\"\n"
    );
    for (name, rate, gate) in targets {
        text.push_str(&format!(
            "[[target]]\nname = \"{name}\"\nmodel = \"sim/pass-{rate}\"\nprompt = \"{{{{ id }}}}\"\ngate = {gate}\n"
        ));
    }
    text
}

/// Runs the suite and moves its run folder to `name`.
fn run_as(dir: &TestDir, name: &str, targets: &[(&str, &str, bool)]) {
    std::fs::write(dir.path().join("bakeoff.toml"), suite(targets)).unwrap();
    dir.run(&["run", "--quiet"]);
    std::fs::rename(dir.run_folder(), dir.path().join(name)).unwrap();
}

fn compare(dir: &TestDir, words: &[&str]) -> CommandOutput {
    dir.run(&[&["compare"], words].concat())
}

fn comparisons(dir: &TestDir, words: &[&str]) -> Vec<Value> {
    let output = compare(dir, &[words, &["--json"]].concat());
    output.done()["comparisons"].as_array().unwrap().clone()
}

#[test]
fn targets_of_two_runs_are_paired_by_name() {
    let dir = TestDir::with_suite("");
    run_as(&dir, "one", &[("a", "1", true), ("b", "1", true), ("old", "1", true)]);
    run_as(&dir, "two", &[("b", "0", true), ("a", "1", true), ("new", "1", true)]);
    let output = compare(&dir, &["one", "two"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let text = output.stdout.replace(char::is_whitespace, " ");
    let words = text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    assert!(
        words.starts_with(
            "target baseline candidate difference interval p finding \
             a 100.0 % 100.0 % +0.0 points -13.9 to +13.9 points 1.0000 no difference found \
             b 100.0 % 0.0 % -100.0 points -100.0 to -50.4 points < 0.0001 worse \
             p and intervals are adjusted for 2 comparisons (Holm's method) not compared, only in"
        ),
        "{words}"
    );
    assert!(output.stdout.contains(": old\n") && output.stdout.contains(": new\n"), "{words}");
    let done = compare(&dir, &["one", "two", "--json"]).done();
    assert_eq!(done["unpaired_targets"][1]["targets"][0], "new");
    let gate = |words: &[&str]| compare(&dir, &[words, &["--fail-on-regression"]].concat()).code;
    assert_eq!(gate(&["one", "two"]), 1);
    assert_eq!(gate(&["two", "one"]), 0, "better is no regression");
    assert_eq!(gate(&["one:a", "two"]), 0, "a name selects one target of each run");
    assert_eq!(gate(&["one:a", "two:b"]), 1);
    let none = compare(&dir, &["one:old", "two"]);
    assert_eq!(none.code, 2, "{}", none.transcript());
    assert!(none.stderr.contains("name one as RUN:TARGET: b, a, new"), "{}", none.stderr);
}

#[test]
fn targets_without_a_gate_are_no_regression_unless_named() {
    let dir = TestDir::with_suite("");
    run_as(&dir, "one", &[("a", "1", true), ("b", "1", false)]);
    run_as(&dir, "two", &[("a", "1", true), ("b", "0", false)]);
    let gate = |words: &[&str]| compare(&dir, &[words, &["--fail-on-regression"]].concat());
    let paired = gate(&["one", "two"]);
    assert_eq!(paired.code, 0, "{}", paired.transcript());
    assert!(paired.stdout.contains("(worse)"), "{}", paired.stdout);
    assert!(paired.stdout.contains("in parentheses: targets that do not gate"));
    assert_eq!(gate(&["one:b", "two:b"]).code, 1);
}

#[test]
fn runs_without_a_common_target_are_an_error() {
    let dir = TestDir::with_suite("");
    run_as(&dir, "one", &[("a", "1", true), ("b", "1", true)]);
    run_as(&dir, "two", &[("c", "1", true), ("d", "1", true)]);
    let output = compare(&dir, &["one", "two"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(output.stderr.contains("have no target of the same name"), "{}", output.stderr);
    assert!(output.stderr.contains("RUN:TARGET: a, b; c, d"), "{}", output.stderr);
}

/// 14 of 40 cases are gained and 5 lost: p is 0.064, but a closed-form interval is +1.0 to +41.8 points.
#[test]
fn interval_of_forty_cases_agrees_with_the_test() {
    let case = |number: u32| {
        let (one, two) = match number {
            0..14 => ("no", "ok"),
            14..19 => ("ok", "no"),
            _ => ("ok", "ok"),
        };
        format!("{{ id = \"c{number}\", one = \"{one}\", two = \"{two}\" }}, ")
    };
    let cases: String = (0..40).map(case).collect();
    let dir = TestDir::with_suite(&format!(
        "[suite]\nname = \"forty\"\n[cases]\ninline = [{cases}]\n\
         [[target]]\nname = \"one\"\ncommand = [\"cat\"]\nprompt = \"{{{{ one }}}}\"\n\
         [[target]]\nname = \"two\"\ncommand = [\"cat\"]\nprompt = \"{{{{ two }}}}\"\n\
         [[check]]\nkind = \"equals\"\nvalue = \"ok\"\n"
    ));
    dir.run(&["run", "--quiet"]);
    let output = compare(&dir, &["last"]);
    assert!(
        output.stdout.contains("+22.5 points (95 % interval -1.5 to +50.3 points)"),
        "{}",
        output.stdout
    );
    assert!(
        output.stdout.contains("no difference found (McNemar, exact, p = 0.0636)"),
        "{}",
        output.stdout
    );
    let found = &comparisons(&dir, &["last"])[0];
    assert!(found["interval"]["low"].as_f64().unwrap() < 0.0, "{found}");
    assert!(found["p_value"].as_f64().unwrap() > 0.05, "{found}");
}

/// With more comparisons, intervals are wider; each excludes 0 exactly if there is a finding.
#[test]
fn intervals_are_adjusted_together_with_p_values() {
    let dir = TestDir::with_suite("");
    let names = ["a", "b", "c", "d", "e", "f"];
    let with_rates = |rates: [&'static str; 6]| {
        names.into_iter().zip(rates).map(|(name, rate)| (name, rate, true)).collect::<Vec<_>>()
    };
    run_as(&dir, "one", &with_rates(["1"; 6]));
    run_as(&dir, "two", &with_rates(["0", "0.6", "0.7", "0.75", "0.8", "1"]));
    let together = comparisons(&dir, &["one", "two"]);
    let number = |value: &Value| value.as_f64().unwrap();
    for (name, adjusted) in names.into_iter().zip(&together) {
        let alone = &comparisons(&dir, &[&format!("one:{name}"), "two"])[0];
        assert_eq!(alone["p_value"], adjusted["p_value"]);
        let width = |of: &Value| number(&of["interval"]["high"]) - number(&of["interval"]["low"]);
        assert!(width(adjusted) >= width(alone), "{adjusted} {alone}");
        let interval = &adjusted["interval"];
        let has_zero = number(&interval["low"]) <= 0.0 && number(&interval["high"]) >= 0.0;
        assert_eq!(has_zero, number(&adjusted["adjusted_p_value"]) > 0.05, "{adjusted}");
        assert_eq!(has_zero, adjusted["finding"] == "no_difference", "{adjusted}");
    }
    assert!(number(&together[0]["level"]) < 0.05 / 5.0, "{}", together[0]);
}

#[test]
fn unknown_costs_and_tokens_are_dashes() {
    let suite = r#"
[suite]
name = "costs"
[models.priced]
provider = "sim"
model = "pass-1"
prices = { input = 1.0, output = 1.0 }
[[target]]
name = "model"
model = "priced"
prompt = "{{ id }}"
[[target]]
name = "program"
command = ["sh", "-c", "echo ok"]
prompt = "{{ id }}"
[cases]
inline = [{ id = "a" }, { id = "b" }]
[[check]]
kind = "equals"
value = "ok"
"#;
    let dir = TestDir::with_suite(suite);
    dir.run(&["run", "--quiet"]);
    let targets = dir.summary()["targets"].clone();
    assert!(targets[0]["cost_nanodollars"].as_i64() > Some(0), "{targets}");
    assert_eq!(targets[1]["cost_nanodollars"], Value::Null);
    assert_eq!(targets[1]["cases"][0]["cost_nanodollars"], Value::Null);
    let output = compare(&dir, &["last"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let line = |text: &str, name: &str| {
        text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned()
    };
    let cost = line(&output.stdout, "cost per trial: ");
    assert!(cost.starts_with("cost per trial: $0.0") && cost.ends_with(" → –"), "{cost}");
    let tokens = line(&output.stdout, "tokens per trial: ");
    assert!(tokens.ends_with(" → –"), "{tokens}");
    assert!(!output.stdout.contains("× 0.00"), "{}", output.stdout);
    let found = &comparisons(&dir, &["last"])[0];
    assert_eq!(found["candidate"]["cost_nanodollars"], Value::Null);
    assert_eq!(found["candidate"]["tokens"], Value::Null);
    assert_eq!(found["total_cost_ratio"], Value::Null);
    let reversed = compare(&dir, &["last:program", "last:model"]);
    let cost = line(&reversed.stdout, "cost per trial: ");
    assert!(cost.starts_with("cost per trial: – → $0.0") && !cost.contains('×'), "{cost}");
    let same = compare(&dir, &["last:model", "last:model"]);
    assert!(same.stdout.contains(", × 1.00; per case × 1.00"), "{}", same.stdout);
}

/// The number of trials has no influence on the ratio of costs.
#[test]
fn costs_are_compared_per_trial() {
    let priced = suite(&[("t", "1", true)]).replace("sim/pass-1", "m")
        + "[models.m]\nprovider = \"sim\"\nmodel = \"pass-1\"\nprices = { input = 1.0, output = 1.0 }\n";
    let dir = TestDir::with_suite(&priced);
    dir.run(&["run", "--quiet"]);
    std::fs::rename(dir.run_folder(), dir.path().join("one")).unwrap();
    dir.run(&["run", "--quiet", "--trials", "3"]);
    let output = compare(&dir, &["one", "last"]);
    assert!(output.stdout.contains(", × 1.00; per case × 1.00"), "{}", output.stdout);
}

/// The gate of `docs/ci.md` works for the suite that `init` writes, which has two targets.
#[test]
fn gate_of_the_docs_works_for_the_suite_of_init() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ci.md");
    let page = std::fs::read_to_string(page).unwrap();
    let gate = page.lines().find(|line| line.ends_with("--fail-on-regression")).unwrap();
    let words: Vec<&str> = gate.split(' ').skip(1).collect();
    assert_eq!(words[..2], ["compare", "baseline"]);

    let dir = TestDir::new();
    assert_eq!(dir.run(&["init"]).code, 0);
    dir.run(&["run", "--quiet", "--trials", "5"]);
    std::fs::rename(dir.run_folder(), dir.path().join("baseline")).unwrap();
    dir.run(&["run", "--quiet", "--trials", "5"]);
    let same = dir.run(&words);
    assert_eq!(same.code, 0, "{}", same.transcript());
    assert!(same.stdout.contains("careful") && same.stdout.contains("hasty"), "{}", same.stdout);

    // The gating target gets worse.
    let suite = dir.path().join("bakeoff.toml");
    let text = std::fs::read_to_string(&suite).unwrap();
    assert!(text.contains("model = \"sim/careful\""), "{text}");
    let text = text.replacen("model = \"sim/careful\"", "model = \"sim/pass-0\"", 1);
    std::fs::write(&suite, text).unwrap();
    dir.run(&["run", "--quiet", "--trials", "5"]);
    let worse = dir.run(&words);
    assert_eq!(worse.code, 1, "{}", worse.transcript());
}

/// Returns a suite with 20 cases and two targets whose answers are scores: 0.9 and 0.8 of `high`, 0.7 of `low`.
fn graded_suite() -> String {
    let cases: String = (0..20).map(|number| format!("{{ id = \"c{number}\" }}, ")).collect();
    format!(
        r#"
[sim.high]
default = "0.9"
answers = [{{ when = "c1", answer = "0.8" }}]
[sim.low]
default = "0.7"
[cases]
inline = [{cases}]
[[target]]
name = "high"
model = "sim/high"
prompt = "{{{{ id }}}}"
[[target]]
name = "low"
model = "sim/low"
prompt = "{{{{ id }}}}"
[[check]]
kind = "python"
expression = "float(output)"
"#
    )
}

#[test]
fn graded_scores_are_compared_in_addition_to_pass_rates() {
    let dir = TestDir::with_suite(&graded_suite());
    assert_eq!(dir.run(&["run"]).code, 0);
    let output = compare(&dir, &["last", "--fail-on-regression"]);
    let lines: Vec<&str> = output.stdout.lines().skip(2).take(5).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    pass rate over 20 cases: 100.0 % → 100.0 %, +0.0 points (95 % interval -13.9 to +13.9 points)
    no difference found (McNemar, exact, p = 1.0000)
    cases: 0 better, 0 worse
    mean score: 0.845 → 0.700, -0.145 (95 % interval -0.167 to -0.121)
    by score, the candidate is worse (sign-flip test with 9,999 random flips, p = 0.0001)
    ");
    assert_eq!(output.code, 0, "{}", output.transcript());
    let message = "--fail-on-regression uses the pass rate, not the score";
    assert!(output.stderr.contains(message), "{}", output.transcript());
    let done = compare(&dir, &["last", "--json"]).done();
    assert_eq!(done["regression_metric"], "pass_rate");
    let scores = &done["comparisons"][0]["scores"];
    assert_eq!(scores["finding"], "worse");
    let (low, high) = (scores["interval"]["low"].as_f64(), scores["interval"]["high"].as_f64());
    assert!(low < Some(-0.15) && high > Some(-0.15) && high < Some(0.0), "{scores}");
    assert!(scores["p_value"].as_f64() <= Some(0.001), "{scores}");
}

#[test]
fn ungraded_targets_have_no_comparison_of_scores() {
    let dir = TestDir::with_suite("");
    run_as(&dir, "one", &[("a", "0.5", true)]);
    run_as(&dir, "two", &[("a", "0.7", true)]);
    let output = compare(&dir, &["one", "two", "--fail-on-regression"]);
    assert!(!output.stdout.contains("score"), "{}", output.stdout);
    assert_eq!(output.stderr, "");
    assert!(comparisons(&dir, &["one", "two"])[0].get("scores").is_none());
}

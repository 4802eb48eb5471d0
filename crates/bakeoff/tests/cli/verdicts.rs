//! Verdicts: their rules, their figures, and the formats that state them.

use crate::support::TestDir;
use serde_json::Value;

/// Returns a suite with two targets, of which the first prints `word`, and eight cases.
fn suite(settings: &str, targets: &str) -> String {
    let cases: String = (1..=8)
        .map(|number| format!("[[cases.inline]]\nid = \"c{number}\"\nn = {number}\n"))
        .collect();
    format!(
        "[suite]\nname = \"v\"\n{settings}\n{targets}\n{cases}[[check]]\nkind = \"contains\"\nvalue = \"ok\"\n"
    )
}

/// Returns a target that passes the first `passing` cases.
fn target(name: &str, passing: u32, more: &str) -> String {
    format!(
        "[[target]]\nname = \"{name}\"\nmodel = \"sim/echo\"\nprompt = \"{{{{ 'ok' if n <= {passing} else 'no' }}}}\"\n{more}\n"
    )
}

fn last_line(stdout: &str) -> &str {
    stdout.lines().last().unwrap_or_default()
}

#[test]
fn every_format_states_the_rule_of_the_verdict() {
    let dir = TestDir::with_suite(&suite("", &target("one", 5, "")));
    for (arguments, code, verdict, rule) in [
        (&["run"][..], 1, "failed", "5 of 8 cases pass, needs 8"),
        (&["run", "--suite-threshold", "0.5"], 0, "passed", "5 of 8 cases ≥ 50 %"),
        (&["run", "--ci", "--threshold", "0.6"], 0, "passed", "5 of 8 cases ≥ 60 % (rule of --ci)"),
        (&["run", "--ci"], 1, "failed", "5 of 8 cases < 100 % (rule of --ci)"),
    ] {
        let export = ["--junit", "run.xml", "--markdown", "run.md"];
        let output = dir.run(&[arguments, &export].concat());
        assert_eq!(output.code, code, "{}", output.transcript());
        let line = format!("verdict: {verdict}: {rule}");
        assert_eq!(last_line(&output.stdout), line);
        assert_eq!(last_line(&dir.run(&["report"]).stdout), line);
        let done = dir.run(&["report", "--json"]).done();
        assert_eq!((&done["verdict"], &done["rule"]), (&verdict.into(), &rule.into()));
        assert_eq!(done["summary"]["targets"][0]["rule"], rule);
        let file = |name| std::fs::read_to_string(dir.path().join(name)).unwrap();
        let escaped = rule.replace('<', "&lt;");
        assert!(file("run.md").contains(&escaped), "{}", file("run.md"));
        assert!(file("run.xml").contains(&escaped), "{}", file("run.xml"));
    }
}

#[test]
fn resumed_and_rescored_runs_keep_the_rule_of_ci() {
    let dir = TestDir::with_suite(&suite("", &target("one", 5, "")));
    assert_eq!(dir.run(&["run", "--ci", "--threshold", "0.5"]).code, 0);
    let line = "verdict: passed: 5 of 8 cases ≥ 50 % (rule of --ci)";
    let resumed = dir.run(&["run", "--resume", "last"]);
    assert_eq!(last_line(&resumed.stdout), line, "{}", resumed.transcript());
    let scored = dir.run(&["score"]);
    assert_eq!(last_line(&scored.stdout), line, "{}", scored.transcript());
}

/// Returns the numbers of failures and errors in the JUnit file of a run.
fn junit(dir: &TestDir, arguments: &[&str]) -> (i32, usize) {
    let output = dir.run(&[&["run", "--quiet", "--junit", "run.xml"], arguments].concat());
    let xml = std::fs::read_to_string(dir.path().join("run.xml")).unwrap();
    (output.code, xml.matches("<failure ").count() + xml.matches("<error ").count())
}

#[test]
fn junit_agrees_with_the_exit_code() {
    let other = target("other", 0, "gate = false");
    let dir = TestDir::with_suite(&suite("", &(target("one", 5, "") + &other)));
    let share = ["--suite-threshold", "0.5"];
    assert_eq!(junit(&dir, &share), (0, 0));
    // Three cases and the verdict.
    assert_eq!(junit(&dir, &[]), (1, 4));
    assert_eq!(junit(&dir, &["--junit-per", "case"]), (1, 3));
    assert_eq!(junit(&dir, &[&share[..], &["--junit-per", "case"]].concat()), (0, 3));
    // No case fails, but the mean score is too low.
    let graded = "[[check]]\nkind = \"python\"\nexpression = \"0.6\"\n";
    let dir = TestDir::with_suite(&(suite("min_score = 0.9", &target("one", 8, "")) + graded));
    assert_eq!(junit(&dir, &[]), (1, 1));
    let xml = std::fs::read_to_string(dir.path().join("run.xml")).unwrap();
    assert!(xml.contains("mean score 0.800 &lt; 0.9"), "{xml}");
}

#[test]
fn min_score_of_the_suite_is_part_of_the_verdict() {
    let graded =
        "[[check]]\nkind = \"python\"\nexpression = \"{'passed': True, 'score': case['n'] / 8}\"\n";
    let with = |min: &str| {
        let settings = format!("min_score = {min}");
        TestDir::with_suite(&(suite(&settings, &target("one", 8, "")) + graded))
    };
    // The mean of the graded check is 4.5 / 8, that of the other one 1.
    let dir = with("0.78");
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let rule = "8 of 8 cases pass, needs 8; mean score 0.781 ≥ 0.78";
    assert_eq!(last_line(&output.stdout), format!("verdict: passed: {rule}"));
    assert!(output.stdout.contains("  score  "), "{}", output.stdout);
    let output = with("0.79").run(&["run"]);
    assert_eq!(output.code, 1, "{}", output.transcript());
    assert!(last_line(&output.stdout).ends_with("mean score 0.781 < 0.79"), "{}", output.stdout);
    let dir = with("0.5\nearly_stop = \"decided\"");
    let output = dir.run(&["check"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(output.stderr.contains("`min_score` needs all trials"), "{}", output.stderr);
}

#[test]
fn pass_rate_is_over_the_trials_that_ran() {
    let targets = "[[target]]\nname = \"one\"\nmodel = \"sim/pass-0.95\"\nprompt = \"{{ id }}\"\n";
    let settings = "trials = 50\nthreshold = 0.7\nearly_stop = \"confident\"";
    let dir = TestDir::with_suite(&suite(settings, targets));
    let output = dir.run(&["run", "--quiet"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    for case in dir.summary()["targets"][0]["cases"].as_array().unwrap() {
        assert_eq!((&case["status"], &case["total_trials"]), (&"passed".into(), &50.into()));
        let number = |name: &str| case[name].as_f64().unwrap();
        assert!(number("counted") < 50.0, "the case stopped early: {case}");
        assert_eq!(number("pass_rate"), number("pass_count") / number("counted"));
        assert!(number("pass_rate") >= 0.7, "{case}");
    }
}

#[test]
fn failures_that_decided_come_first_with_all_their_checks() {
    let balloon = target("a-balloon", 0, "gate = false");
    let check = "[[check]]\nkind = \"length\"\nmin = 10\n";
    let dir = TestDir::with_suite(&(suite("", &(balloon + &target("one", 5, ""))) + check));
    let output = dir.run(&["run", "--suite-threshold", "1"]);
    assert_eq!(output.code, 1, "{}", output.transcript());
    let failed: Vec<&str> =
        output.stdout.lines().skip_while(|line| !line.starts_with("failed")).take(4).collect();
    assert_eq!(
        failed,
        [
            "failed  one / c1 (trial 1): length: 2 characters, expected at least 10",
            "failed  one / c2 (trial 1): length: 2 characters, expected at least 10",
            "failed  one / c3 (trial 1): length: 2 characters, expected at least 10",
            "failed  one / c4 (trial 1): length: 2 characters, expected at least 10",
        ]
    );
    let both =
        "failed  one / c6 (trial 1): contains: no \"ok\" in \"no\"\n        length: 2 characters";
    assert!(output.stdout.contains(both), "{}", output.stdout);
    let balloon = "failed  a-balloon / c1 (trial 1, no gate): contains:";
    assert!(output.stdout.contains(balloon), "{}", output.stdout);
}

#[test]
fn report_has_rates_by_check_and_tag() {
    let graded =
        "[[check]]\nid = \"grade\"\nkind = \"python\"\nexpression = \"0.25\"\nrequired = false\n";
    let suite = suite("", &target("one", 5, "")) + graded;
    let suite = suite.replace("id = \"c1\"\n", "id = \"c1\"\ntags = [\"easy\"]\n");
    let suite = suite.replace("id = \"c8\"\n", "id = \"c8\"\ntags = [\"hard\", \"easy\"]\n");
    let dir = TestDir::with_suite(&suite);
    dir.run(&["run", "--quiet"]);
    let report = dir.run(&["report"]);
    let tables =
        report.stdout.split("\n\n").filter(|part| part.contains("passed  pass rate  score"));
    insta::assert_snapshot!(tables.collect::<Vec<_>>().join("\n\n"), @r#"
    target  check     passed  pass rate  score
    one     contains     5/8       62 %  0.625
    one     grade        0/8        0 %  0.250

    target  tag   passed  pass rate  score
    one     easy     1/2       50 %  0.375
    one     hard     0/1        0 %  0.125
    "#);
    let done = dir.run(&["report", "--json"]).done();
    let grade: &Value = &done["checks"][1];
    assert_eq!(
        (&grade["name"], &grade["counted"], &grade["score"]),
        (&"grade".into(), &8.into(), &0.25.into())
    );
    assert_eq!((&done["tags"][1]["name"], &done["tags"][1]["passed"]), (&"hard".into(), &0.into()));
}

#[test]
fn target_with_empty_outputs_only_gets_a_warning() {
    let program = "[[target]]\nname = \"mute\"\ncommand = [\"true\"]\nprompt = \"x\"\n";
    let negated = suite("", program).replace("value = \"ok\"", "value = \"ok\"\nnegate = true");
    let dir = TestDir::with_suite(&negated);
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let warning = "warning: all 8 outputs of `mute` are empty [EVAL_EMPTY_OUTPUTS]";
    assert!(output.stderr.contains(warning), "{}", output.transcript());
}

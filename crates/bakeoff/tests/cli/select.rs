//! `bakeoff select`: finds the known best combination within its budget, also after kills and resumes.

use crate::support::{CommandOutput, TestDir};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::{Child, Stdio};

/// Quality of nine models as planner and as solver, in hundredths. A bad plan cannot be solved, so the
/// product counts: the fourth model is the best planner, the seventh the best solver.
const MODELS: [(u32, u32); 9] =
    [(40, 50), (55, 35), (60, 70), (97, 40), (70, 60), (45, 75), (65, 96), (75, 45), (50, 65)];
const BEST: &str = "planner=m4 + solver=m7";

/// Returns a suite whose models are candidates for both roles. `select` goes under `[select]`.
pub(crate) fn suite(cases: usize, models: usize, select: &str, latency_ms: u32) -> String {
    let mut text = String::from(
        "[suite]\nname = \"pipeline\"\n\
         [[target]]\nname = \"agent\"\n\
         [[target.chain]]\nrole = \"planner\"\nprompt = \"Make a plan for {{ q }}.\"\n\
         [[target.chain]]\nrole = \"solver\"\nprompt = \"Plan: {{ planner }} for {{ q }}\"\n\
         [[check]]\nkind = \"equals\"\nvalue = \"solved\"\n",
    );
    let names: Vec<String> = (1..=models).map(|number| format!("\"m{number}\"")).collect();
    let names = names.join(", ");
    writeln!(text, "[select]\n{select}\n[select.roles]\nplanner = [{names}]\nsolver = [{names}]")
        .unwrap();
    for (number, (plans, solves)) in (1..).zip(MODELS).take(models) {
        writeln!(
            text,
            "[models.m{number}]\nprovider = \"sim\"\nmodel = \"m{number}\"\n\
             prices = {{ input = {number}, output = {number} }}\n\
             [sim.m{number}]\nwrong = \"muddled\"\nlatency_ms = {latency_ms}\nanswers = [\n\
             {{ when = \"make a plan\", answer = \"sound\", pass = {} }},\n\
             {{ when = \"muddled\", answer = \"no idea\" }},\n\
             {{ when = \"sound\", answer = \"solved\", pass = {} }},\n]",
            f64::from(plans) / 100.0,
            f64::from(solves) / 100.0,
        )
        .unwrap();
    }
    for case in 0..cases {
        writeln!(text, "[[cases.inline]]\nid = \"c{case}\"\nq = \"question {case}\"").unwrap();
    }
    text
}

fn selection(dir: &TestDir) -> Value {
    let bytes = std::fs::read(dir.run_folder().join("selection.json")).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Returns the parts of a selection that depend neither on the clock nor on the attribution of shared costs.
fn outcome(file: &Value) -> (Value, Value, Vec<(Value, Value, String)>) {
    let found = &file["selection"];
    let ranking = found["ranking"].as_array().unwrap().iter();
    let row = |row: &Value| {
        (row["combo"].clone(), row["n"].clone(), format!("{:.9}", row["score"].as_f64().unwrap()))
    };
    let mut rows: Vec<_> = ranking.map(row).collect();
    rows.sort_by_key(|(combo, ..)| combo.as_u64());
    (file["best"].clone(), found["cells"].clone(), rows)
}

/// Returns the cost in dollars of the trials in the journal.
fn total_cost(dir: &TestDir) -> f64 {
    let nano = |value: &Value| value.as_i64().unwrap_or(0) as f64 / 1e9;
    let trials = dir.trials();
    trials
        .iter()
        .map(|trial| nano(&trial["attempt"]["cost"]) - nano(&trial["attempt"]["saved"]))
        .sum()
}

fn best(output: &CommandOutput) -> String {
    output
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("best: "))
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn best_of_81_combinations_is_found_within_the_budget() {
    let dir = TestDir::with_suite(&suite(100, 9, "", 0));
    let output = dir.run(&["select", "--max-cost", "0.05", "--apply", "roles.toml"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(best(&output).starts_with(BEST), "{}", output.transcript());
    let file = selection(&dir);
    let found = &file["selection"];
    let (cells, spent) = (found["cells"].as_u64().unwrap(), found["spent"].as_f64().unwrap());
    assert!(cells < 8100 / 2, "{cells}");
    assert!(spent > 0.0 && spent <= 0.05, "{spent}");
    assert!((spent - total_cost(&dir)).abs() < 1e-9);
    // Calls that combinations share are made once.
    let requests = std::fs::read_to_string(dir.run_folder().join("http.jsonl")).unwrap();
    assert!((requests.lines().count() as u64) < 2 * cells);
    assert!(
        std::fs::read_to_string(dir.run_folder().join("selection.svg")).unwrap().contains("<svg")
    );
    // The winner can be run without changes.
    let roles = std::fs::read_to_string(dir.path().join("roles.toml")).unwrap();
    assert!(roles.contains("[roles]\nplanner = \"m4\"\nsolver = \"m7\"\n"), "{roles}");
    let written = std::fs::read_to_string(dir.path().join("bakeoff.toml")).unwrap();
    let winner =
        TestDir::with_suite(&format!("[roles]\nplanner = \"m4\"\nsolver = \"m7\"\n{written}"));
    let output = winner.run(&["run", "--threshold", "0", "--json"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn unknown_cost_is_a_dash_and_not_the_cheapest() {
    let dir = TestDir::with_suite(
        r#"
[suite]
name = "unknown-cost"
[[target]]
name = "agent"
command = ["sh", "-c", "echo yes"]
prompt = "{{ id }}"
roles = ["solver"]
[select.roles]
solver = ["sim/a", "sim/b"]
[cases]
inline = [{ id = "a" }, { id = "b" }]
[[check]]
kind = "equals"
value = "yes"
"#,
    );
    let output = dir.run(&["select"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(output.stdout.contains("spent: –\n"), "{}", output.stdout);
    assert!(
        !output.stdout.contains("0.000000") && !output.stdout.contains("cheap"),
        "{}",
        output.stdout
    );
    let found = &selection(&dir)["selection"];
    assert_eq!((&found["spent"], &found["unknown_costs"]), (&Value::Null, &4.into()));
    assert_eq!(found["ranking"][0]["cost"], Value::Null);
    let output = dir.run(&["select", "--max-cost", "1"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(output.stderr.contains("trial_cost_usd"), "{}", output.stderr);
}

#[test]
fn result_does_not_depend_on_concurrency() {
    let outcomes: Vec<_> = ["1", "7", "200"]
        .iter()
        .map(|parallel| {
            let dir = TestDir::with_suite(&suite(30, 4, "", 0));
            let output = dir.run(&["select", "--parallel", parallel, "--quiet"]);
            assert_eq!(output.code, 0, "{}", output.transcript());
            outcome(&selection(&dir))
        })
        .collect();
    assert_eq!(outcomes[0], outcomes[1]);
    assert_eq!(outcomes[0], outcomes[2]);
}

/// Waits until the journal has this many lines; the search must still run.
fn wait_for(dir: &TestDir, search: &mut Child, lines: usize) {
    loop {
        let runs = std::fs::read_dir(dir.path().join("runs")).into_iter().flatten().flatten();
        let journals =
            runs.filter_map(|run| std::fs::read_to_string(run.path().join("journal.jsonl")).ok());
        if journals.map(|text| text.lines().count()).sum::<usize>() >= lines {
            return;
        }
        assert!(search.try_wait().unwrap().is_none(), "the search has ended by itself");
        std::thread::yield_now();
    }
}

#[test]
fn killed_search_resumes_to_the_same_result() {
    let text = suite(40, 5, "method = \"arm_elimination\"", 3);
    let undisturbed = TestDir::with_suite(&text);
    assert_eq!(undisturbed.run(&["select", "--quiet"]).code, 0);
    let dir = TestDir::with_suite(&text);
    let mut arguments = vec!["select", "--quiet", "--parallel", "8"];
    for lines in [20, 60, 150] {
        let mut command = dir.command(&arguments);
        let mut search = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for(&dir, &mut search, lines);
        search.kill().unwrap();
        search.wait().unwrap();
        assert!(!dir.run_folder().join("selection.json").exists());
        arguments = vec!["select", "--quiet", "--parallel", "8", "--resume", "last"];
    }
    let output = dir.run(&arguments);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(outcome(&selection(&dir)), outcome(&selection(&undisturbed)));
    let trials = dir.trials();
    let keys: BTreeSet<String> = trials.iter().map(|trial| trial["key"].to_string()).collect();
    assert_eq!(keys.len(), trials.len(), "no cell is paid for twice");
}

#[test]
fn budget_overrun_is_limited_to_cells_in_flight() {
    for parallel in ["1", "6"] {
        let dir = TestDir::with_suite(&suite(40, 5, "method = \"arm_elimination\"", 1));
        let output = dir.run(&["select", "--max-cost", "0.004", "--parallel", parallel]);
        assert_eq!(output.code, 3, "{}", output.transcript());
        assert!(output.stdout.contains("the cost budget is exhausted"), "{}", output.transcript());
        let trials = dir.trials();
        let highest = trials.iter().filter_map(|trial| trial["attempt"]["cost"].as_f64());
        let highest = highest.fold(0.0, f64::max) / 1e9;
        let (spent, flight) = (total_cost(&dir), parallel.parse::<f64>().unwrap());
        assert!(spent >= 0.004 - flight * highest, "{spent}");
        assert!(spent <= 0.004 + flight * highest, "{spent} with {highest} each");
        // A larger budget resumes the search.
        let count = trials.len();
        let more = ["select", "--resume", "last", "--max-cost", "0.006", "--no-fail", "--quiet"];
        assert_eq!(dir.run(&more).code, 0);
        assert!(dir.trials().len() > count && total_cost(&dir) > spent);
    }
    let dir = TestDir::with_suite(&suite(40, 5, "method = \"matrix_ucb\"\nfraction = 0.9", 0));
    let output = dir.run(&["select", "--max-cells", "300", "--json"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    let file = output.done()["selection"].clone();
    assert_eq!(file["selection"]["stopped"], "cells");
    assert_eq!(dir.trials().len(), 300);
}

#[test]
fn cost_settings_change_the_winner() {
    let run = |select: &str| {
        let dir = TestDir::with_suite(&suite(60, 7, select, 0));
        let output = dir.run(&["select"]);
        assert_eq!(output.code, 0, "{}", output.transcript());
        best(&output)
    };
    assert!(run("").starts_with(BEST));
    assert!(run("cheapest_within = 0.01").starts_with(BEST));
    let cheap = run("cheapest_within = 0.6");
    let bargains = ["planner=m4 + solver=m1", "planner=m2 + solver=m3"];
    assert!(bargains.contains(&cheap.as_str()), "{cheap}");
    // The best combination costs more than that.
    let dir = TestDir::with_suite(&suite(60, 7, "max_task_usd = 0.00004", 0));
    assert_eq!(dir.run(&["select", "--quiet"]).code, 0);
    let found = &selection(&dir)["selection"];
    let costs = |combo: &Value| {
        let rows = found["ranking"].as_array().unwrap();
        rows.iter().find(|row| row["combo"] == *combo).unwrap()["cost"].as_f64().unwrap()
    };
    assert!(costs(&found["winner"]) <= 0.00004);
    // The fourth planner and the seventh solver.
    assert!(costs(&(3 * 7 + 6).into()) > 0.00004);
    // Only cost counts, and these are the cheapest.
    assert!(run("cost_weight = 1000").starts_with("planner=m1 + solver=m1"));
    let dir = TestDir::with_suite(&suite(10, 3, "max_task_usd = 1e-9", 0));
    let output = dir.run(&["select"]);
    assert_eq!(output.code, 1, "{}", output.transcript());
    assert!(
        output.stderr.contains("no combination is within the cost limit"),
        "{}",
        output.transcript()
    );
}

#[test]
fn every_method_can_be_selected_by_name() {
    for method in [
        "strict",
        "brute_force",
        "random_search",
        "hill_climbing",
        "arm_elimination",
        "epsilon_lucb",
        "bayesian",
        "matrix_ucb",
    ] {
        let dir = TestDir::with_suite(&suite(12, 3, "", 0));
        let output = dir.run(&["select", "--method", method, "--json"]);
        assert_eq!(output.code, 0, "{method}: {}", output.transcript());
        let file = output.done()["selection"].clone();
        assert_eq!(file["selection"]["selector"], method);
    }
    let threshold = suite(12, 3, "method = \"threshold_se\"\nthreshold = 0.4", 0);
    assert_eq!(TestDir::with_suite(&threshold).run(&["select"]).code, 0);
}

#[test]
fn proposals_of_a_model_are_evaluated() {
    let proposer =
        "method = \"lm_proposal\"\nproposer = \"sim/sage\"\n[select.describe]\nplanner = \"plans\"";
    let sage = "[sim.sage]\ndefault = '''I would try\n[{\"planner\": \"m1\", \"solver\": \"m1\"}, \
                {\"planner\": \"m3\", \"solver\": \"m3\"}, {\"planner\": \"m9\", \"solver\": \"m1\"}]'''\n";
    let dir = TestDir::with_suite(&format!("{}{sage}", suite(20, 3, proposer, 0)));
    let output = dir.run(&["select", "--json"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let file = output.done()["selection"].clone();
    assert_eq!(file["best"]["planner"], "m3");
    assert_eq!(file["selection"]["cells"], 40);
    let mute = format!("{}[sim.sage]\ndefault = \"no idea\"\n", suite(20, 3, proposer, 0));
    let output = TestDir::with_suite(&mute).run(&["select"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert!(output.stderr.contains("no proposals: no JSON array"), "{}", output.stderr);
}

#[test]
fn programs_and_agents_can_have_roles() {
    let program = r#"
        [suite]
        [[target]]
        name = "script"
        command = ["sh", "-c", 'test "$BAKEOFF_MODEL_DEEP_THOUGHT" = sim/b && echo ok || echo no']
        roles = ["deep-thought"]
        prompt = ""
        [[cases.inline]]
        id = "one"
        [[cases.inline]]
        id = "two"
        [[check]]
        kind = "equals"
        value = "ok"
        [select]
        method = "brute_force"
        [select.roles]
        deep-thought = ["sim/a", "sim/b"]
    "#;
    let output = TestDir::with_suite(program).run(&["select"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(best(&output), "deep-thought=sim/b");
    let agent = r#"
        [[target]]
        name = "agent"
        model = "role/worker"
        tools = ["list_files"]
        prompt = "Look."
        [[cases.inline]]
        id = "one"
        [[check]]
        kind = "equals"
        value = "done"
        [select]
        method = "brute_force"
        [select.roles]
        worker = ["sim/a", "sim/b"]
        [sim.a]
        calls = [{ tool = "list_files", arguments = { path = "." } }]
        default = "lost"
        [sim.b]
        calls = [{ tool = "list_files", arguments = { path = "." } }]
        default = "done"
    "#;
    let output = TestDir::with_suite(agent).run(&["select"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(best(&output), "worker=sim/b");
}

/// Returns the message of a rejected search.
fn rejection(suite: &str, arguments: &[&str]) -> String {
    let dir = TestDir::with_suite(suite);
    let output = dir.run(&[&["select"], arguments].concat());
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.transcript());
    assert!(!dir.path().join("runs").exists());
    output.stderr
}

#[test]
fn invalid_searches_are_rejected() {
    let good = suite(40, 3, "", 0);
    let no_candidates = good.replace("planner = [\"m1\", \"m2\", \"m3\"]", "planner = []");
    insta::assert_snapshot!(rejection(&no_candidates, &[]), @r#"
    error: no model assigned to role `planner`
     --> bakeoff.toml:6:8
      |
    6 | role = "planner"
      |        ^^^^^^^^^
      |
      = help: write `planner = "provider/model"` under [roles], or its candidates under [select.roles]
    error: role `planner` has no candidates
      --> bakeoff.toml:17:1
       |
    17 | planner = []
       | ^^^^^^^
       |
       = help: add models, or remove the role and assign a model under [roles]
    error: 2 problems; nothing was called
    "#);
    let unknown = good.replace("solver = [\"m1\", \"m2\", \"m3\"]", "solver = [\"m1\", \"n2\"]");
    insta::assert_snapshot!(rejection(&unknown, &[]), @r#"
    error: there is no model `n2`
      --> bakeoff.toml:18:17
       |
    18 | solver = ["m1", "n2"]
       |                 ^^^^
       |
       = help: use a name under [models], or provider/model such as `openai/gpt-4o-mini`
    error: 1 problem; nothing was called
    "#);
    insta::assert_snapshot!(rejection(&good, &["--max-cells", "10"]), @"
    error: 10 cells are too few for the first round of `auto`, which needs 54: 9 combinations with up to 6 cases each
      hint: `--max-cells 54` or more, or fewer candidates under [select.roles]
    ");
    insta::assert_snapshot!(rejection(&good, &["--max-cost", "0.000001"]), @r#"
    error: $0.000001 is too little for the first round of `auto`: the first prompts of its 54 cells alone cost about $0.000252
      hint: `--max-cost 0.000504` or more, or fewer candidates under [select.roles]
    "#);
    insta::assert_snapshot!(rejection(&suite(40, 3, "method = \"threshold_se\"", 0), &[]), @r#"
    error: `threshold_se` needs `threshold`
      --> bakeoff.toml:15:10
       |
    15 | method = "threshold_se"
       |          ^^^^^^^^^^^^^^
       |
       = help: add the sufficient mean score: `threshold = 0.75`
    error: 1 problem; nothing was called
    "#);
    insta::assert_snapshot!(rejection(&good, &["--method", "threshold_se"]), @r#"
    error: `threshold_se` needs a `threshold`: the mean score that is good enough
      hint: add `threshold = 0.75` under [select]
    "#);
    insta::assert_snapshot!(rejection(&good, &["--method", "lm_proposal"]), @r#"
    error: `lm_proposal` needs a `proposer`: the model that proposes
      hint: add `proposer = "openai/gpt-4o-mini"` under [select]
    "#);
    insta::assert_snapshot!(rejection(&good, &["--method", "magic"]), @"
    error: unknown selector `magic`; available: auto, strict, brute_force, random_search, hill_climbing, arm_elimination, threshold_se, epsilon_lucb, bayesian, matrix_ucb, lm_proposal
      hint: name one of them with `method` under [select] or --method
    ");
    insta::assert_snapshot!(rejection(&good, &["--confidence", "2"]), @"
    error: confidence is 2, must be at least 0.5 and below 1
      hint: change it under [select] or on the command line
    ");
    insta::assert_snapshot!(rejection(&good, &["--method", "bayesian", "--confidence", "0.9"]), @"
    error: selector `bayesian` has no option `confidence`
      hint: remove the option from [select], or choose another `method`
    ");
    insta::assert_snapshot!(rejection(&good, &["--apply", "no/such/folder.toml"]), @r#"
    error: no folder no/such
      hint: `--apply` needs the path of a writable file
    "#);
    let none = good.split("[select]").next().unwrap().to_owned();
    insta::assert_snapshot!(rejection(&none, &[]), @r#"
    error: the suite has no [select] table
    --> bakeoff.toml
     = help: add [select.roles] with candidates for each role, such as `solver = ["small", "openai/gpt-4o-mini"]`
    error: the suite has no `cases`
     --> bakeoff.toml:1:1
      |
    1 | [suite]
      | ^
      |
      = help: add `cases`: inputs of the targets
    error: 2 problems; nothing was called
    "#);
}

#[test]
fn check_prints_the_search_space() {
    let checked = TestDir::with_suite(&suite(5, 3, "", 0)).run(&["check"]);
    assert_eq!(checked.code, 0, "{}", checked.transcript());
    let line = "select: 9 combinations × 5 cases = 45 cells of agent; exhaustive search would cost about $";
    assert!(checked.stdout.contains(line), "{}", checked.transcript());
    let odd = TestDir::with_suite(&suite(5, 3, "method = \"strict\"\ngrowth = 2", 0));
    let checked = odd.run(&["check"]);
    assert_eq!(checked.code, 2, "{}", checked.transcript());
    assert!(checked.stderr.contains("has no option `growth`"), "{}", checked.transcript());
}

#[test]
fn run_and_select_reject_each_others_results() {
    let dir = TestDir::with_suite(&suite(5, 3, "", 0));
    assert_eq!(dir.run(&["select", "--quiet"]).code, 0);
    let output = dir.run(&["run", "--resume", "last"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(output.stderr.contains("is a search"), "{}", output.stderr);
    let listed = dir.run(&["list"]);
    assert!(listed.stdout.contains("  search  best: planner="), "{}", listed.transcript());
    let reported = dir.run(&["report"]);
    assert!(reported.stdout.contains("\nbest: planner="), "{}", reported.transcript());
    let reported = dir.run(&["report", "--json"]).done();
    assert_eq!(reported["selection"], selection(&dir));
    let plain = TestDir::with_suite(
        "[[target]]\nname = \"t\"\nmodel = \"sim/echo\"\nprompt = \"a\"\n[[cases.inline]]\nid = \"c\"\n\
         [[check]]\nkind = \"equals\"\nvalue = \"a\"\n",
    );
    assert_eq!(plain.run(&["run", "--quiet"]).code, 0);
    let output = plain.run(&["select", "--resume", "last"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(output.stderr.contains("is not a search"), "{}", output.stderr);
}

#[test]
fn finished_cells_are_reused_by_another_method() {
    let dir = TestDir::with_suite(&suite(40, 5, "method = \"arm_elimination\"", 0));
    assert_eq!(dir.run(&["select", "--quiet"]).code, 0);
    let first = selection(&dir)["selection"]["spent"].as_f64().unwrap();
    // Another method evaluates other cells.
    let output = dir.run(&["select", "--resume", "last", "--method", "auto", "--quiet"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let spent = selection(&dir)["selection"]["spent"].as_f64().unwrap();
    assert!(
        spent >= first && (spent - total_cost(&dir)).abs() < 1e-9,
        "{spent} {}",
        total_cost(&dir)
    );
}

#[test]
fn apply_rejects_the_suite_and_writes_through_links() {
    let dir = TestDir::with_suite(&suite(5, 2, "", 0)).write("other.toml", "kept");
    let suite = std::fs::read_to_string(dir.path().join("bakeoff.toml")).unwrap();
    for path in ["bakeoff.toml", "./bakeoff.toml", ".", "no/folder.toml"] {
        let output = dir.run(&["select", "--apply", path]);
        assert_eq!(output.code, 2, "{}", output.transcript());
    }
    assert_eq!(std::fs::read_to_string(dir.path().join("bakeoff.toml")).unwrap(), suite);
    assert!(!dir.path().join("runs").exists());
    let link = dir.path().join("link.toml");
    std::os::unix::fs::symlink("other.toml", &link).unwrap();
    assert_eq!(dir.run(&["select", "--apply", "link.toml", "--quiet"]).code, 0);
    assert!(link.is_symlink());
    let routes = std::fs::read_to_string(dir.path().join("other.toml")).unwrap();
    assert!(routes.contains("[roles]\nplanner = "), "{routes}");
}

#[test]
fn search_can_be_rescored() {
    let dir = TestDir::with_suite(&suite(5, 2, "", 0));
    assert_eq!(dir.run(&["select", "--quiet"]).code, 0);
    let scored = dir.run(&["score", "--no-fail"]);
    assert_eq!(scored.code, 0, "{}", scored.transcript());
}

#[test]
fn budget_check_counts_shared_prompts_once() {
    // With one planner, its calls are shared and paid for once.
    let text = suite(40, 9, "", 0).replacen(
        "planner = [\"m1\", \"m2\", \"m3\", \"m4\", \"m5\", \"m6\", \"m7\", \"m8\", \"m9\"]",
        "planner = [\"m9\"]",
        1,
    );
    let output = TestDir::with_suite(&text).run(&["select", "--max-cost", "0.001", "--no-fail"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn search_without_answers_is_inconclusive() {
    let text = suite(4, 2, "", 0)
        .replace("model = \"m1\"", "model = \"fault-malformed\"")
        .replace("model = \"m2\"", "model = \"fault-malformed\"");
    let output = TestDir::with_suite(&text).run(&["select", "--max-retries", "0"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert!(output.stderr.contains("no combination can be chosen"), "{}", output.stderr);
    assert!(output.stderr.contains("last error: "), "{}", output.stderr);
}

#[test]
fn resumed_search_keeps_its_flags() {
    let dir = TestDir::with_suite(&suite(40, 5, "", 0));
    let flags =
        ["select", "--method", "arm_elimination", "--max-cells", "120", "--max-cost", "0.5"];
    let output = dir.run(&[&flags[..], &["--apply", "roles.toml", "--json"]].concat());
    assert_eq!(output.code, 3, "{}", output.transcript());
    std::fs::remove_file(dir.path().join("roles.toml")).unwrap();
    // The budget is exhausted, so nothing runs, neither with the method of the suite nor without a limit.
    let output = dir.run(&["select", "--resume", "last", "--json"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    let found = output.done()["selection"]["selection"].clone();
    assert_eq!(
        (&found["selector"], &found["stopped"]),
        (&"arm_elimination".into(), &"cells".into())
    );
    assert_eq!(dir.trials().len(), 120);
    assert!(dir.path().join("roles.toml").exists(), "--apply is kept");
    // A flag of the command line replaces that of the search, also for the next resume.
    for arguments in [&["--max-cells", "150"][..], &[]] {
        let output = dir.run(&[&["select", "--resume", "last", "--json"], arguments].concat());
        assert_eq!(output.code, 3, "{}", output.transcript());
        assert_eq!(dir.trials().len(), 150);
    }
    // Another method does not inherit a confidence that it does not have.
    let dir = TestDir::with_suite(&suite(20, 3, "", 0));
    assert_eq!(dir.run(&["select", "--confidence", "0.9", "--quiet"]).code, 0);
    let output = dir.run(&["select", "--resume", "last", "--method", "brute_force", "--quiet"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn brute_force_within_max_cells_compares_all_combinations_on_the_same_cases() {
    for method in ["brute_force", "random_search"] {
        let select = if method == "random_search" { "fraction = 1.0" } else { "" };
        let suite = suite(40, 3, &format!("method = \"{method}\"\n{select}"), 0);
        let dir = TestDir::with_suite(&suite);
        let output = dir.run(&["select", "--max-cells", "100", "--json"]);
        assert_eq!(output.code, 3, "{}", output.transcript());
        let found = output.done()["selection"]["selection"].clone();
        assert_eq!((&found["cells"], &found["stopped"]), (&100.into(), &"cells".into()));
        let rows = found["ranking"].as_array().unwrap();
        let cells: Vec<u64> = rows.iter().map(|row| row["n"].as_u64().unwrap()).collect();
        assert_eq!(rows.len(), 9);
        let (least, most) = (cells.iter().min().unwrap(), cells.iter().max().unwrap());
        assert!(*least >= 9 && most - least <= 3, "{cells:?}");
    }
}

//! `bakeoff select`: the planted best is found, for less than everything costs, whatever happens.

use crate::support::{Ran, Workplace};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::{Child, Stdio};

/// How good each of nine models is as a planner and as a solver, in hundredths. A muddled plan cannot
/// be solved, so that what counts is the product: the fourth should plan, and the seventh solve.
const MODELS: [(u32, u32); 9] =
    [(40, 50), (55, 35), (60, 70), (97, 40), (70, 60), (45, 75), (65, 96), (75, 45), (50, 65)];
const BEST: &str = "planner=m4 + solver=m7";

/// A suite whose models play both roles. `select` is written under `[select]`.
fn suite(cases: usize, models: usize, select: &str, latency_ms: u32) -> String {
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

fn selection(place: &Workplace) -> Value {
    let bytes = std::fs::read(place.run_folder().join("selection.json")).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// What does not depend on the clock, nor on who paid for what several share.
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

/// Dollars that the trials in the journal took.
fn paid(place: &Workplace) -> f64 {
    let nano = |value: &Value| value.as_i64().unwrap_or(0) as f64 / 1e9;
    let trials = place.trials();
    trials
        .iter()
        .map(|trial| nano(&trial["attempt"]["cost"]) - nano(&trial["attempt"]["saved"]))
        .sum()
}

fn best(ran: &Ran) -> String {
    ran.stdout.lines().find_map(|line| line.strip_prefix("best: ")).unwrap_or_default().to_owned()
}

#[test]
fn the_planted_best_of_81_is_found_within_the_budget() {
    let place = Workplace::with_suite(&suite(100, 9, "", 0));
    let ran = place.run(&["select", "--max-cost", "0.05", "--apply", "roles.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(best(&ran).starts_with(BEST), "{}", ran.shown());
    let file = selection(&place);
    let found = &file["selection"];
    let (cells, spent) = (found["cells"].as_u64().unwrap(), found["spent"].as_f64().unwrap());
    assert!(cells < 8100 / 2, "{cells}");
    assert!(spent > 0.0 && spent <= 0.05, "{spent}");
    assert!((spent - paid(&place)).abs() < 1e-9);
    // What several combinations share is asked once.
    let requests = std::fs::read_to_string(place.run_folder().join("http.jsonl")).unwrap();
    assert!((requests.lines().count() as u64) < 2 * cells);
    assert!(
        std::fs::read_to_string(place.run_folder().join("selection.svg")).unwrap().contains("<svg")
    );
    // Who won can be run as it is.
    let roles = std::fs::read_to_string(place.path().join("roles.toml")).unwrap();
    assert!(roles.contains("[roles]\nplanner = \"m4\"\nsolver = \"m7\"\n"), "{roles}");
    let written = std::fs::read_to_string(place.path().join("bakeoff.toml")).unwrap();
    let winner =
        Workplace::with_suite(&format!("[roles]\nplanner = \"m4\"\nsolver = \"m7\"\n{written}"));
    let ran = winner.run(&["run", "--threshold", "0", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
}

#[test]
fn how_many_run_at_once_changes_nothing() {
    let outcomes: Vec<_> = ["1", "7", "200"]
        .iter()
        .map(|parallel| {
            let place = Workplace::with_suite(&suite(30, 4, "", 0));
            let ran = place.run(&["select", "--parallel", parallel, "--quiet"]);
            assert_eq!(ran.code, 0, "{}", ran.shown());
            outcome(&selection(&place))
        })
        .collect();
    assert_eq!(outcomes[0], outcomes[1]);
    assert_eq!(outcomes[0], outcomes[2]);
}

/// Waits until the journal has so many lines; the search must be alive.
fn wait_for(place: &Workplace, search: &mut Child, lines: usize) {
    loop {
        let runs = std::fs::read_dir(place.path().join("runs")).into_iter().flatten().flatten();
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
fn a_search_that_was_killed_goes_on_and_ends_as_if_nothing_had_happened() {
    let text = suite(40, 5, "method = \"arm_elimination\"", 3);
    let undisturbed = Workplace::with_suite(&text);
    assert_eq!(undisturbed.run(&["select", "--quiet"]).code, 0);
    let place = Workplace::with_suite(&text);
    let mut arguments = vec!["select", "--quiet", "--parallel", "8"];
    for lines in [20, 60, 150] {
        let mut command = place.command(&arguments);
        let mut search = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for(&place, &mut search, lines);
        search.kill().unwrap();
        search.wait().unwrap();
        assert!(!place.run_folder().join("selection.json").exists());
        arguments = vec!["select", "--quiet", "--parallel", "8", "--resume", "last"];
    }
    let ran = place.run(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert_eq!(outcome(&selection(&place)), outcome(&selection(&undisturbed)));
    let trials = place.trials();
    let keys: BTreeSet<String> = trials.iter().map(|trial| trial["key"].to_string()).collect();
    assert_eq!(keys.len(), trials.len(), "no cell is paid for twice");
}

#[test]
fn a_budget_is_exceeded_by_no_more_than_the_cells_in_flight() {
    for parallel in ["1", "6"] {
        let place = Workplace::with_suite(&suite(40, 5, "method = \"arm_elimination\"", 1));
        let ran = place.run(&["select", "--max-cost", "0.004", "--parallel", parallel]);
        assert_eq!(ran.code, 3, "{}", ran.shown());
        assert!(ran.stdout.contains("the cost budget is exhausted"), "{}", ran.shown());
        let trials = place.trials();
        let dearest = trials.iter().filter_map(|trial| trial["attempt"]["cost"].as_f64());
        let dearest = dearest.fold(0.0, f64::max) / 1e9;
        let (spent, flight) = (paid(&place), parallel.parse::<f64>().unwrap());
        assert!(spent >= 0.004 - flight * dearest, "{spent}");
        assert!(spent <= 0.004 + flight * dearest, "{spent} with {dearest} each");
        // With more money it goes on where it stood.
        let made = trials.len();
        let more = ["select", "--resume", "last", "--max-cost", "0.006", "--no-fail", "--quiet"];
        assert_eq!(place.run(&more).code, 0);
        assert!(place.trials().len() > made && paid(&place) > spent);
    }
    let place = Workplace::with_suite(&suite(40, 5, "method = \"matrix_ucb\"\nfraction = 0.9", 0));
    let ran = place.run(&["select", "--max-cells", "300", "--json"]);
    assert_eq!(ran.code, 3, "{}", ran.shown());
    let file: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(file["selection"]["stopped"], "cells");
    assert_eq!(place.trials().len(), 300);
}

#[test]
fn money_can_count() {
    let run = |select: &str| {
        let place = Workplace::with_suite(&suite(60, 7, select, 0));
        let ran = place.run(&["select"]);
        assert_eq!(ran.code, 0, "{}", ran.shown());
        best(&ran)
    };
    assert!(run("").starts_with(BEST));
    assert!(run("cheapest_within = 0.01").starts_with(BEST));
    let cheap = run("cheapest_within = 0.6");
    let bargains = ["planner=m4 + solver=m1 ", "planner=m2 + solver=m3 "];
    assert!(bargains.iter().any(|bargain| cheap.starts_with(bargain)), "{cheap}");
    // The best costs more than that.
    let place = Workplace::with_suite(&suite(60, 7, "max_task_usd = 0.00004", 0));
    assert_eq!(place.run(&["select", "--quiet"]).code, 0);
    let found = &selection(&place)["selection"];
    let costs = |combo: &Value| {
        let rows = found["ranking"].as_array().unwrap();
        rows.iter().find(|row| row["combo"] == *combo).unwrap()["cost"].as_f64().unwrap()
    };
    assert!(costs(&found["winner"]) <= 0.00004);
    // The fourth of the planners and the seventh of the solvers.
    assert!(costs(&(3 * 7 + 6).into()) > 0.00004);
    // Money is all that counts, and these are the cheapest.
    assert!(run("cost_weight = 1000").starts_with("planner=m1 + solver=m1"));
    let place = Workplace::with_suite(&suite(10, 3, "max_task_usd = 1e-9", 0));
    let ran = place.run(&["select"]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    assert!(ran.stderr.contains("no combination is within the cost limit"), "{}", ran.shown());
}

#[test]
fn every_method_can_be_asked_for_by_name() {
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
        let place = Workplace::with_suite(&suite(12, 3, "", 0));
        let ran = place.run(&["select", "--method", method, "--json"]);
        assert_eq!(ran.code, 0, "{method}: {}", ran.shown());
        let file: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(file["selection"]["selector"], method);
    }
    let threshold = suite(12, 3, "method = \"threshold_se\"\nthreshold = 0.4", 0);
    assert_eq!(Workplace::with_suite(&threshold).run(&["select"]).code, 0);
}

#[test]
fn a_model_proposes_and_is_not_believed() {
    let proposer =
        "method = \"lm_proposal\"\nproposer = \"sim/sage\"\n[select.describe]\nplanner = \"plans\"";
    let sage = "[sim.sage]\ndefault = '''I would try\n[{\"planner\": \"m1\", \"solver\": \"m1\"}, \
                {\"planner\": \"m3\", \"solver\": \"m3\"}, {\"planner\": \"m9\", \"solver\": \"m1\"}]'''\n";
    let place = Workplace::with_suite(&format!("{}{sage}", suite(20, 3, proposer, 0)));
    let ran = place.run(&["select", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let file: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(file["best"]["planner"], "m3");
    assert_eq!(file["selection"]["cells"], 40);
    let mute = format!("{}[sim.sage]\ndefault = \"no idea\"\n", suite(20, 3, proposer, 0));
    let ran = Workplace::with_suite(&mute).run(&["select"]);
    assert_eq!(ran.code, 3, "{}", ran.shown());
    assert!(ran.stderr.contains("no proposals: "), "{}", ran.stderr);
}

#[test]
fn programs_and_agents_have_roles_too() {
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
    let ran = Workplace::with_suite(program).run(&["select"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert_eq!(best(&ran), "deep-thought=sim/b");
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
    let ran = Workplace::with_suite(agent).run(&["select"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert_eq!(best(&ran), "worker=sim/b");
}

/// What the user sees; nothing was called.
fn refused(suite: &str, arguments: &[&str]) -> String {
    let place = Workplace::with_suite(suite);
    let ran = place.run(&[&["select"], arguments].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.shown());
    assert!(!place.path().join("runs").exists());
    ran.stderr
}

#[test]
fn what_cannot_be_searched_is_explained() {
    let good = suite(40, 3, "", 0);
    let no_candidates = good.replace("planner = [\"m1\", \"m2\", \"m3\"]", "planner = []");
    insta::assert_snapshot!(refused(&no_candidates, &[]), @r#"
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
    insta::assert_snapshot!(refused(&unknown, &[]), @r#"
    error: there is no model `n2`
      --> bakeoff.toml:18:17
       |
    18 | solver = ["m1", "n2"]
       |                 ^^^^
       |
       = help: use a name under [models], or provider/model such as `openai/gpt-4o-mini`
    error: 1 problem; nothing was called
    "#);
    insta::assert_snapshot!(refused(&good, &["--max-cells", "10"]), @r#"
    error: 10 cells are too few for the first round of `auto`, which needs 54: 9 combinations with up to 6 cases each
      hint: `--max-cells 54` or more, or fewer candidates under [select.roles]
    "#);
    insta::assert_snapshot!(refused(&good, &["--max-cost", "0.000001"]), @r#"
    error: $0.000001 is too little for the first round of `auto`: the first prompts of its 54 cells alone cost about $0.000252
      hint: `--max-cost 0.000504` or more, or fewer candidates under [select.roles]
    "#);
    insta::assert_snapshot!(refused(&suite(40, 3, "method = \"threshold_se\"", 0), &[]), @r#"
    error: `threshold_se` needs `threshold`
      --> bakeoff.toml:15:10
       |
    15 | method = "threshold_se"
       |          ^^^^^^^^^^^^^^
       |
       = help: add the sufficient mean score: `threshold = 0.75`
    error: 1 problem; nothing was called
    "#);
    insta::assert_snapshot!(refused(&good, &["--method", "threshold_se"]), @r#"
    error: `threshold_se` needs a `threshold`: the mean score that is good enough
      hint: add `threshold = 0.75` under [select]
    "#);
    insta::assert_snapshot!(refused(&good, &["--method", "lm_proposal"]), @r#"
    error: `lm_proposal` needs a `proposer`: the model that proposes
      hint: add `proposer = "openai/gpt-4o-mini"` under [select]
    "#);
    insta::assert_snapshot!(refused(&good, &["--method", "magic"]), @r#"
    error: unknown selector `magic`; available: auto, strict, brute_force, random_search, hill_climbing, arm_elimination, threshold_se, epsilon_lucb, bayesian, matrix_ucb, lm_proposal
      hint: name one of them with `method` under [select] or --method
    "#);
    insta::assert_snapshot!(refused(&good, &["--confidence", "2"]), @r#"
    error: confidence is 2, must be at least 0.5 and below 1
      hint: change it under [select] or on the command line
    "#);
    insta::assert_snapshot!(refused(&good, &["--method", "bayesian", "--confidence", "0.9"]), @r#"
    error: the selector `bayesian` has no option `confidence`
      hint: remove the option from [select], or choose another `method`
    "#);
    insta::assert_snapshot!(refused(&good, &["--apply", "no/such/folder.toml"]), @r#"
    error: there is no folder no/such
      hint: `--apply` names a file that may be written
    "#);
    let none = good.split("[select]").next().unwrap().to_owned();
    insta::assert_snapshot!(refused(&none, &[]), @r#"
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
fn a_check_says_what_there_is_to_search() {
    let checked = Workplace::with_suite(&suite(5, 3, "", 0)).run(&["check"]);
    assert_eq!(checked.code, 0, "{}", checked.shown());
    let line =
        "select: 9 combinations × 5 cases = 45 cells of agent; all of them would cost about $";
    assert!(checked.stdout.contains(line), "{}", checked.shown());
    let odd = Workplace::with_suite(&suite(5, 3, "method = \"strict\"\ngrowth = 2", 0));
    let checked = odd.run(&["check"]);
    assert_eq!(checked.code, 2, "{}", checked.shown());
    assert!(checked.stderr.contains("has no option `growth`"), "{}", checked.shown());
}

#[test]
fn searches_and_runs_are_not_mixed_up() {
    let place = Workplace::with_suite(&suite(5, 3, "", 0));
    assert_eq!(place.run(&["select", "--quiet"]).code, 0);
    let ran = place.run(&["run", "--resume", "last"]);
    assert_eq!(ran.code, 2, "{}", ran.shown());
    assert!(ran.stderr.contains("is a search"), "{}", ran.stderr);
    let listed = place.run(&["list"]);
    assert!(listed.stdout.contains("  search  best: planner="), "{}", listed.shown());
    let reported = place.run(&["report"]);
    assert!(reported.stdout.contains("\nbest: planner="), "{}", reported.shown());
    let reported: Value = serde_json::from_str(&place.run(&["report", "--json"]).stdout).unwrap();
    assert_eq!(reported, selection(&place));
    let plain = Workplace::with_suite(
        "[[target]]\nname = \"t\"\nmodel = \"sim/echo\"\nprompt = \"a\"\n[[cases.inline]]\nid = \"c\"\n\
         [[check]]\nkind = \"equals\"\nvalue = \"a\"\n",
    );
    assert_eq!(plain.run(&["run", "--quiet"]).code, 0);
    let ran = plain.run(&["select", "--resume", "last"]);
    assert_eq!(ran.code, 2, "{}", ran.shown());
    assert!(ran.stderr.contains("is no search"), "{}", ran.stderr);
}

#[test]
fn what_was_paid_for_is_never_forgotten() {
    let place = Workplace::with_suite(&suite(40, 5, "method = \"arm_elimination\"", 0));
    assert_eq!(place.run(&["select", "--quiet"]).code, 0);
    let first = selection(&place)["selection"]["spent"].as_f64().unwrap();
    // Another method asks for other cells.
    let ran = place.run(&["select", "--resume", "last", "--method", "auto", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let spent = selection(&place)["selection"]["spent"].as_f64().unwrap();
    assert!(spent >= first && (spent - paid(&place)).abs() < 1e-9, "{spent} {}", paid(&place));
}

#[test]
fn what_is_applied_spoils_nothing() {
    let place = Workplace::with_suite(&suite(5, 2, "", 0)).write("other.toml", "kept");
    let suite = std::fs::read_to_string(place.path().join("bakeoff.toml")).unwrap();
    for path in ["bakeoff.toml", "./bakeoff.toml", ".", "no/folder.toml"] {
        let ran = place.run(&["select", "--apply", path]);
        assert_eq!(ran.code, 2, "{}", ran.shown());
    }
    assert_eq!(std::fs::read_to_string(place.path().join("bakeoff.toml")).unwrap(), suite);
    assert!(!place.path().join("runs").exists());
    let link = place.path().join("link.toml");
    std::os::unix::fs::symlink("other.toml", &link).unwrap();
    assert_eq!(place.run(&["select", "--apply", "link.toml", "--quiet"]).code, 0);
    assert!(link.is_symlink());
    let routes = std::fs::read_to_string(place.path().join("other.toml")).unwrap();
    assert!(routes.contains("[roles]\nplanner = "), "{routes}");
}

#[test]
fn a_search_can_be_judged_anew() {
    let place = Workplace::with_suite(&suite(5, 2, "", 0));
    assert_eq!(place.run(&["select", "--quiet"]).code, 0);
    let scored = place.run(&["score", "--no-fail"]);
    assert_eq!(scored.code, 0, "{}", scored.shown());
}

#[test]
fn shared_prompts_are_not_counted_twice_when_a_budget_is_refused() {
    // One planner for all: its prompts are paid for once.
    let text = suite(40, 9, "", 0).replacen(
        "planner = [\"m1\", \"m2\", \"m3\", \"m4\", \"m5\", \"m6\", \"m7\", \"m8\", \"m9\"]",
        "planner = [\"m9\"]",
        1,
    );
    let ran = Workplace::with_suite(&text).run(&["select", "--max-cost", "0.001", "--no-fail"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
}

#[test]
fn when_nobody_answers_nobody_is_chosen() {
    let text = suite(4, 2, "", 0)
        .replace("model = \"m1\"", "model = \"fault-malformed\"")
        .replace("model = \"m2\"", "model = \"fault-malformed\"");
    let ran = Workplace::with_suite(&text).run(&["select", "--max-retries", "0"]);
    assert_eq!(ran.code, 3, "{}", ran.shown());
    assert!(ran.stderr.contains("no combination can be chosen"), "{}", ran.stderr);
    assert!(ran.stderr.contains("the last error: "), "{}", ran.stderr);
}

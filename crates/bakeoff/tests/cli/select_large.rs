//! A chain of three roles with nine candidates each: 729 combinations, a cost budget, kills and resumes.

use crate::support::TestDir;
use serde_json::Value;
use std::fmt::Write;
use std::process::Stdio;

/// Pass rates in percent of nine models as planner, solver and critic. Each step spoils the chain if it fails; the best
/// combination is m4, m7, m2.
const RATES: [[u32; 3]; 9] = [
    [90, 50, 45],
    [55, 35, 99],
    [60, 90, 60],
    [99, 40, 30],
    [70, 60, 55],
    [45, 75, 70],
    [65, 99, 50],
    [75, 45, 90],
    [50, 65, 40],
];

const CASES: usize = 40;

fn suite(latency_ms: u32) -> String {
    let mut text = String::from(
        "[suite]\nname = \"large\"\n[[target]]\nname = \"agent\"\n\
         [[target.chain]]\nrole = \"planner\"\nprompt = \"Make a plan for {{ q }}.\"\n\
         [[target.chain]]\nrole = \"solver\"\nprompt = \"Solve {{ q }} by {{ planner }}\"\n\
         [[target.chain]]\nrole = \"critic\"\nprompt = \"Review {{ q }}: {{ solver }}\"\n\
         [[check]]\nkind = \"equals\"\nvalue = \"approved\"\n[select]\n[select.roles]\n",
    );
    let names: Vec<String> = (1..=RATES.len()).map(|number| format!("\"m{number}\"")).collect();
    for role in ["planner", "solver", "critic"] {
        writeln!(text, "{role} = [{}]", names.join(", ")).unwrap();
    }
    for (number, [plans, solves, reviews]) in (1..).zip(RATES) {
        let share = |percent: u32| f64::from(percent) / 100.0;
        writeln!(
            text,
            "[models.m{number}]\nprovider = \"sim\"\nmodel = \"m{number}\"\n\
             prices = {{ input = {number}, output = {number} }}\n\
             [sim.m{number}]\nwrong = \"muddled\"\nlatency_ms = {latency_ms}\nanswers = [\n\
             {{ when = \"make a plan\", answer = \"sound\", pass = {} }},\n\
             {{ when = \"muddled\", answer = \"muddled\" }},\n\
             {{ when = \"by sound\", answer = \"solution\", pass = {} }},\n\
             {{ when = \"solution\", answer = \"approved\", pass = {} }},\n]",
            share(plans),
            share(solves),
            share(reviews),
        )
        .unwrap();
    }
    for case in 0..CASES {
        writeln!(text, "[[cases.inline]]\nid = \"c{case}\"\nq = \"question {case}\"").unwrap();
    }
    text
}

/// Returns the dollars that the trials in the journal have cost.
fn paid(dir: &TestDir) -> f64 {
    let nano = |value: &Value| value.as_i64().unwrap_or(0);
    let paid = |trial: &Value| nano(&trial["attempt"]["cost"]) - nano(&trial["attempt"]["saved"]);
    dir.trials().iter().map(paid).sum::<i64>() as f64 / 1e9
}

/// Kills the search once its journal has this many lines.
fn kill_after(dir: &TestDir, arguments: &[&str], lines: usize) {
    let mut command = dir.command(arguments);
    let mut search = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    loop {
        let runs = std::fs::read_dir(dir.path().join("runs")).into_iter().flatten().flatten();
        let journals =
            runs.filter_map(|run| std::fs::read_to_string(run.path().join("journal.jsonl")).ok());
        if journals.map(|text| text.lines().count()).sum::<usize>() >= lines {
            break;
        }
        assert!(search.try_wait().unwrap().is_none(), "the search has ended by itself");
        std::thread::yield_now();
    }
    search.kill().unwrap();
    search.wait().unwrap();
}

#[test]
fn killed_search_over_729_combinations_keeps_its_budget_and_finds_the_same_winner() {
    let best = serde_json::json!({ "planner": "m4", "solver": "m7", "critic": "m2" });
    let budget = 0.02;
    let flags = ["select", "--max-cost", "0.02", "--json"];
    let undisturbed = TestDir::with_suite(&suite(0));
    let output = undisturbed.run(&flags);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let expected = output.done();
    assert_eq!(expected["best"], best, "{expected}");
    assert!(paid(&undisturbed) <= budget);
    let dir = TestDir::with_suite(&suite(0));
    kill_after(&dir, &flags, 1000);
    kill_after(&dir, &["select", "--resume", "last", "--json"], 3000);
    let output = dir.run(&["select", "--resume", "last", "--json"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let found = output.done();
    assert_eq!(found["best"], best);
    let cells = |done: &Value| done["selection"]["selection"]["cells"].clone();
    assert_eq!(cells(&found), cells(&expected));
    assert!(paid(&dir) <= budget);
    // A budget that ends the search: it is kept across kills.
    let dir = TestDir::with_suite(&suite(0));
    kill_after(&dir, &["select", "--max-cost", "0.0155", "--json"], 1000);
    let output = dir.run(&["select", "--resume", "last", "--json"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert_eq!(output.done()["selection"]["selection"]["stopped"], "cost");
    assert!((0.015..=0.0155).contains(&paid(&dir)), "{}", paid(&dir));
    assert_eq!(output.done()["best"], best);
}

//! Every method of `bakeoff select`, on suites whose best combination is the most expensive, the cheapest, one in between,
//! or an interaction.

use crate::support::{CommandOutput, TestDir};
use serde_json::Value;
use std::fmt::Write;

/// Number of models, which are candidates for both roles. The price rises with the number.
const MODELS: usize = 3;

const CASES: usize = 40;

/// Pass rates of all combinations, by planner and solver.
type Rates = [[f64; MODELS]; MODELS];

/// Returns rates that fall with the distance from the best combination.
fn around(planner: usize, solver: usize) -> Rates {
    let rate = |one: usize, two: usize| {
        let distance = one.abs_diff(planner) + two.abs_diff(solver);
        (0.97 - 0.25 * distance as f64).max(0.05)
    };
    std::array::from_fn(|one| std::array::from_fn(|two| rate(one, two)))
}

/// The best combination consists of models that are bad with all others.
fn interaction() -> Rates {
    let mut rates = around(2, 0);
    rates.iter_mut().flatten().for_each(|rate| *rate *= 0.6);
    rates[0][2] = 0.97;
    rates
}

/// Returns a suite with these rates: the answer of the planner names it, and the solver reacts to that.
fn suite(rates: &Rates, select: &str) -> String {
    let mut text = String::from(
        "[suite]\nname = \"grid\"\n\
         [[target]]\nname = \"agent\"\n\
         [[target.chain]]\nrole = \"planner\"\nprompt = \"Make a plan for {{ q }}.\"\n\
         [[target.chain]]\nrole = \"solver\"\nprompt = \"Follow {{ planner }} for {{ q }}\"\n\
         [[check]]\nkind = \"equals\"\nvalue = \"solved\"\n",
    );
    let names: Vec<String> = (1..=MODELS).map(|number| format!("\"m{number}\"")).collect();
    let names = names.join(", ");
    writeln!(text, "[select]\n{select}\n[select.roles]\nplanner = [{names}]\nsolver = [{names}]")
        .unwrap();
    for number in 1..=MODELS {
        writeln!(
            text,
            "[models.m{number}]\nprovider = \"sim\"\nmodel = \"m{number}\"\n\
             prices = {{ input = {number}, output = {number} }}\n\
             [sim.m{number}]\nlatency_ms = 0\nwrong = \"no idea\"\nanswers = [\n\
             {{ when = \"make a plan\", answer = \"route-{number}-\" }},"
        )
        .unwrap();
        for (planner, row) in (1..).zip(rates) {
            let rate = row[number - 1];
            writeln!(
                text,
                "{{ when = \"route-{planner}-\", answer = \"solved\", pass = {rate:.2} }},"
            )
            .unwrap();
        }
        text.push_str("]\n");
    }
    for case in 0..CASES {
        writeln!(text, "[[cases.inline]]\nid = \"c{case}\"\nq = \"question {case}\"").unwrap();
    }
    text
}

/// Methods with settings that suffice for a clear best combination.
fn methods() -> Vec<(&'static str, String)> {
    let proposals = "[sim.sage]\ndefault = '[{\"planner\": \"m1\", \"solver\": \"m1\"}, \
                     {\"planner\": \"m3\", \"solver\": \"m3\"}, {\"planner\": \"m2\", \"solver\": \"m2\"}, \
                     {\"planner\": \"m1\", \"solver\": \"m3\"}]'\n[select]\nproposer = \"sim/sage\"";
    [
        ("auto", ""),
        ("strict", ""),
        ("brute_force", ""),
        ("random_search", "fraction = 1.0"),
        ("hill_climbing", "patience = 6\nrestarts = 6"),
        ("arm_elimination", ""),
        ("threshold_se", "threshold = 0.8\nfirst = 8"),
        ("epsilon_lucb", "first = 8"),
        ("bayesian", "fraction = 0.8"),
        ("matrix_ucb", "fraction = 0.5"),
        ("lm_proposal", proposals),
    ]
    .map(|(name, options)| (name, options.to_owned()))
    .to_vec()
}

fn search(rates: &Rates, method: &str, options: &str, parallel: &str) -> CommandOutput {
    let (before, after) = options.split_once("[select]\n").unwrap_or(("", options));
    let text = suite(rates, &format!("method = \"{method}\"\n{after}"));
    let dir = TestDir::with_suite(&format!("{text}{before}"));
    let output = dir.run(&["select", "--json", "--max-concurrent", parallel]);
    assert_eq!(output.code, 0, "{method}: {}", output.transcript());
    output
}

fn every_method_finds(rates: &Rates, planner: &str, solver: &str) {
    every_one_finds(methods(), rates, planner, solver);
}

fn every_one_finds(
    methods: Vec<(&'static str, String)>,
    rates: &Rates,
    planner: &str,
    solver: &str,
) {
    for (method, options) in methods {
        let best = search(rates, method, &options, "50").done()["best"].clone();
        let expected = serde_json::json!({ "planner": planner, "solver": solver });
        assert_eq!(best, expected, "{method}");
    }
}

#[test]
fn every_method_finds_the_most_expensive() {
    every_method_finds(&around(2, 2), "m3", "m3");
}

#[test]
fn every_method_finds_the_cheapest() {
    every_method_finds(&around(0, 0), "m1", "m1");
}

#[test]
fn every_method_finds_one_in_between() {
    every_method_finds(&around(1, 1), "m2", "m2");
}

#[test]
fn every_method_finds_an_interaction() {
    let mut methods = methods();
    // Nothing about the other combinations points to this one, so the model chooses it last.
    let bayesian = methods.iter_mut().find(|(name, _)| *name == "bayesian").unwrap();
    bayesian.1 = "fraction = 1.0".to_owned();
    every_one_finds(methods, &interaction(), "m1", "m3");
}

/// Returns the parts of a selection that do not depend on the clock.
fn timeless(output: &CommandOutput) -> (Value, Value, Value, Vec<Value>) {
    let file = output.done()["selection"].clone();
    let found = &file["selection"];
    let rows = found["ranking"].as_array().unwrap().iter();
    let row = |row: &Value| serde_json::json!([row["combo"], row["n"], row["score"], row["cost"]]);
    (
        file["best"].clone(),
        found["cells"].clone(),
        found["eliminations"].clone(),
        rows.map(row).collect(),
    )
}

#[test]
fn choices_do_not_depend_on_the_number_of_concurrent_cells() {
    // Several combinations tie in score, or in score and cost.
    let mut tied = around(1, 1);
    tied[2][1] = tied[1][2];
    tied[2] = tied[0];
    for rates in [tied, [[1.0; MODELS]; MODELS]] {
        for (method, options) in methods() {
            let [one, many] =
                ["1", "200"].map(|parallel| timeless(&search(&rates, method, &options, parallel)));
            assert_eq!(one, many, "{method}");
        }
    }
}

#[test]
fn hill_climbing_finds_the_most_expensive_with_its_defaults() {
    // One role, so that three starts with their neighbours are a part of all combinations.
    let found = (0..10).filter(|seed| {
        let suite = crate::select_report::solvers(
            30,
            &[
                (10, 1.0),
                (25, 2.0),
                (40, 3.0),
                (50, 4.0),
                (60, 5.0),
                (75, 6.0),
                (85, 7.0),
                (100, 8.0),
            ],
            "method = \"hill_climbing\"\nrestarts = 1",
        );
        let dir = TestDir::with_suite(&suite);
        let output = dir.run(&["select", "--json", "--seed", &seed.to_string()]);
        output.done()["best"]["solver"] == "m8"
    });
    assert_eq!(found.count(), 10);
}

#[test]
fn hill_climbing_leaves_its_starts_without_prices() {
    let suite = crate::select_report::solvers(
        20,
        &[(10, 1.0), (20, 1.0), (30, 1.0), (40, 1.0), (50, 1.0), (70, 1.0), (85, 1.0), (100, 1.0)],
        "method = \"hill_climbing\"",
    );
    let lines = suite.lines().filter(|line| !line.starts_with("prices"));
    let dir = TestDir::with_suite(&lines.collect::<Vec<_>>().join("\n"));
    let output = dir.run(&["select", "--json"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let found = output.done()["selection"]["selection"].clone();
    assert!(found["ranking"].as_array().unwrap().len() > 3, "{found}");
}

#[test]
fn bayesian_search_reports_that_its_model_chose_nothing() {
    let text = suite(&around(1, 2), "method = \"bayesian\"");
    let reason = |arguments: &[&str]| {
        let dir = TestDir::with_suite(&text.replace("method", arguments[0]));
        let done = dir.run(&["select", "--json"]).done();
        done["selection"]["selection"]["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        reason(&["method"]),
        "3 of 9 combinations were evaluated, all of them at random: the model chooses some if `fraction` is at least 0.67"
    );
    assert_eq!(reason(&["fraction = 0.75\nmethod"]), "7 of 9 combinations were evaluated");
    // Cells for six random combinations; a budget ends the search before the model chooses one.
    let stopped = reason(&["max_cells = 240\nfraction = 0.9\nmethod"]);
    assert!(
        stopped.ends_with("all combinations were chosen at random, none by the model"),
        "{stopped}"
    );
}

/// Returns the largest number of trials that ran at once.
fn max_running(output: &CommandOutput) -> i64 {
    let mut running = 0;
    let changes = output.events().into_iter().map(|event| match event["event"].as_str().unwrap() {
        "trial_started" => 1,
        "trial_finished" => -1,
        _ => 0,
    });
    let running = changes.map(|change| {
        running += change;
        running
    });
    running.max().unwrap()
}

#[test]
fn concurrency_is_limited_and_batches_use_it() {
    let text = suite(&around(1, 2), "").replace("latency_ms = 0", "latency_ms = 20");
    let run = |method: &str, arguments: &[&str]| {
        let dir = TestDir::with_suite(&text);
        let options = ["--json", "--no-memory", "--rate-strategy", "none", "--method", method];
        let output = dir.run(&[&["select"], &options[..], arguments].concat());
        assert_eq!(output.code, 0, "{}", output.transcript());
        max_running(&output)
    };
    for method in ["auto", "strict", "brute_force", "matrix_ucb"] {
        assert_eq!(run(method, &["--max-concurrent", "3"]), 3, "{method}");
        // Nothing else limits.
        assert_eq!(run(method, &[]), 20, "{method}");
    }
    assert_eq!(run("brute_force", &["--parallel", "7"]), 7);
}

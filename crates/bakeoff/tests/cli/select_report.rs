//! What `bakeoff select` reports: winner, equivalents, gaps, costs and the meaning of the confidence.

use crate::support::{CommandOutput, TestDir};
use serde_json::Value;
use std::fmt::Write;

/// Returns a suite whose candidates have these pass rates in percent and prices per million tokens.
pub(crate) fn solvers(cases: usize, models: &[(u32, f64)], select: &str) -> String {
    let mut text = String::from(
        "[suite]\nname = \"one-role\"\n\
         [[target]]\nname = \"agent\"\nmodel = \"role/solver\"\nprompt = \"Solve {{ q }}.\"\n\
         [[check]]\nkind = \"equals\"\nvalue = \"solved\"\n",
    );
    let names: Vec<String> = (1..=models.len()).map(|number| format!("\"m{number}\"")).collect();
    writeln!(text, "[select]\n{select}\n[select.roles]\nsolver = [{}]", names.join(", ")).unwrap();
    for (number, (percent, price)) in (1..).zip(models) {
        writeln!(
            text,
            "[models.m{number}]\nprovider = \"sim\"\nmodel = \"m{number}\"\n\
             prices = {{ input = {price}, output = {price} }}\n\
             [sim.m{number}]\nlatency_ms = 0\nwrong = \"no idea\"\nanswers = [\n\
             {{ when = \"solve\", answer = \"solved\", pass = {} }},\n]",
            f64::from(*percent) / 100.0,
        )
        .unwrap();
    }
    for case in 0..cases {
        writeln!(text, "[[cases.inline]]\nid = \"c{case}\"\nq = \"question {case}\"").unwrap();
    }
    text
}

fn select(suite: &str, arguments: &[&str]) -> (TestDir, CommandOutput) {
    let dir = TestDir::with_suite(suite);
    let output = dir.run(&[&["select"], arguments].concat());
    assert_eq!(output.code, 0, "{}", output.transcript());
    (dir, output)
}

fn line<'a>(output: &'a CommandOutput, prefix: &str) -> &'a str {
    let found = output.stdout.lines().find_map(|line| line.strip_prefix(prefix));
    found.unwrap_or_else(|| panic!("no `{prefix}`: {}", output.transcript()))
}

fn result(output: &CommandOutput) -> Value {
    output.done()["selection"]["selection"].clone()
}

#[test]
fn tie_lists_its_equivalents_and_states_what_the_confidence_means() {
    let (_, output) =
        select(&solvers(40, &[(100, 3.0), (100, 1.0), (100, 2.0), (20, 1.0)], ""), &[]);
    let best = line(&output, "best: ");
    assert!(["solver=m1", "solver=m2", "solver=m3"].contains(&best), "{best}");
    let confidence = line(&output, "confidence: ");
    let claim = "no combination is more than 0.01 better on these cases: ";
    assert!(confidence.starts_with(claim) && confidence.ends_with(" % sure"), "{confidence}");
    let equivalents = line(&output, "not distinguishable on ");
    let tied = ["solver=m1", "solver=m2", "solver=m3"];
    for other in tied.into_iter().filter(|other| *other != best) {
        assert!(equivalents.contains(other), "{equivalents}");
    }
    assert!(!equivalents.contains("solver=m4"), "{equivalents}");
}

#[test]
fn winner_is_compared_with_the_next_and_with_its_equivalents() {
    let (_, output) =
        select(&solvers(60, &[(100, 1.0), (100, 4.0), (40, 0.5)], "method = \"brute_force\""), &[]);
    // Equal means: the faster wins, so either of the two may.
    let best = line(&output, "best: ");
    let next = line(&output, "next distinguishable: ");
    assert!(
        next.starts_with("solver=m3, worse by 0.") && next.ends_with("60 shared cases)"),
        "{next}"
    );
    let cost = line(&output, "cost: ");
    match best {
        "solver=m1" => {
            assert!(cost.contains("(solver=m2) costs 4.0 times as much"), "{cost}");
            assert!(cost.ends_with("no equivalent is cheaper"), "{cost}");
        }
        _ => assert!(cost.contains("(solver=m1) costs 0.25 times as much"), "{cost}"),
    }
    let (_, output) = select(&solvers(60, &[(95, 1.0), (20, 4.0), (30, 4.0)], ""), &[]);
    assert!(line(&output, "saved: ").starts_with("about $0.0"), "{}", output.transcript());
    let (dir, output) = select(&solvers(60, &[(95, 1.0), (20, 4.0)], ""), &["--json"]);
    let found = result(&output);
    let rows = found["ranking"].as_array().unwrap();
    let left: f64 = rows
        .iter()
        .map(|row| (60 - row["n"].as_u64().unwrap()) as f64 * row["cost"].as_f64().unwrap())
        .sum();
    assert!((found["avoided"].as_f64().unwrap() - left).abs() < 1e-6, "{found}");
    drop(dir);
}

/// A search that ends early: unequal numbers of cells, and lucky combinations with few of them.
fn example() -> (TestDir, CommandOutput) {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/select");
    let dir = TestDir::new();
    let output = dir.run(&["select", example, "--max-cells", "250", "--json"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    (dir, output)
}

#[test]
fn rows_are_ranked_by_means_that_are_comparable() {
    let (_, output) = example();
    let found = result(&output);
    let rows = found["ranking"].as_array().unwrap();
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap();
    let winner = &rows[0];
    // A few lucky cells do not make a combination look better than the winner.
    let lucky = rows.iter().filter(|row| number(row, "mean") > number(winner, "mean"));
    let lucky: Vec<&Value> = lucky.collect();
    assert!(!lucky.is_empty(), "the example has no lucky combination");
    for row in lucky {
        assert!(number(row, "adjusted") <= number(winner, "adjusted"), "{row}");
    }
    let adjusted: Vec<f64> = rows.iter().map(|row| number(row, "adjusted")).collect();
    assert!(adjusted.is_sorted_by(|one, two| one >= two), "{adjusted:?}");
}

#[test]
fn front_has_only_well_measured_combinations() {
    let (_, output) = example();
    let found = result(&output);
    let rows = found["ranking"].as_array().unwrap();
    let cells = |row: &Value| row["n"].as_u64().unwrap();
    for combo in found["front"].as_array().unwrap() {
        let row = rows.iter().find(|row| row["combo"] == *combo).unwrap();
        assert!(2 * cells(row) >= cells(&rows[0]), "{row}");
    }
}

#[test]
fn plot_has_the_numbers_of_the_table() {
    let dir = TestDir::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/select");
    // The expensive winner has the last position on the axis, and the first in the table.
    let output = dir.run(&["select", example, "--method", "brute_force", "--all"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let plot = std::fs::read_to_string(dir.run_folder().join("selection.svg")).unwrap();
    let mut listed = 0;
    for entry in plot.lines().filter(|line| line.contains(" each")) {
        let Some((_, text)) = entry.split_once('>') else { continue };
        let Some((number, name)) = text.split_once("  ") else { continue };
        let name = name.split(": ").next().unwrap();
        let row = output.stdout.lines().find(|line| line.contains(&format!("  {name}  "))).unwrap();
        assert!(row.trim_start().starts_with(&format!("{number}  ")), "{number} {row}");
        listed += 1;
    }
    assert!(listed > 1, "{plot}");
}

#[test]
fn intervals_of_a_weighted_objective_have_a_width() {
    let suite = solvers(12, &[(100, 1.0), (100, 9.0)], "cost_weight = 2\nmethod = \"brute_force\"");
    let (_, output) = select(&suite, &["--json"]);
    for row in result(&output)["ranking"].as_array().unwrap() {
        let bound = |index: usize| row["interval"][index].as_f64().unwrap();
        assert!(bound(1) - bound(0) > 0.05, "{row}");
    }
}

#[test]
fn markdown_of_a_search_is_short_and_names_the_winner() {
    let (dir, output) = select(&solvers(40, &[(95, 1.0), (30, 2.0)], ""), &[]);
    let best = line(&output, "best: ").to_owned();
    let output = dir.run(&["report", "--markdown", "report.md"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let page = std::fs::read_to_string(dir.path().join("report.md")).unwrap();
    assert!(page.starts_with(&format!("## one-role: best is {best}\n")), "{page}");
    assert!(!page.contains("failed") && page.lines().count() < 40, "{page}");
    assert!(page.contains("- confidence: no combination is more than"), "{page}");
    assert!(page.contains("| combination |") || page.contains(" combination | "), "{page}");
    let output = dir.run(&["report", "--junit", "report.xml"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(output.stderr.contains("is a search, which has no tests"), "{}", output.transcript());
}

#[test]
fn json_ends_with_the_model_of_each_role() {
    let (_, output) = select(&solvers(20, &[(95, 1.0), (10, 2.0)], ""), &["--json"]);
    let done = output.done();
    assert_eq!(done["best"], serde_json::json!({ "solver": "m1" }), "{done}");
}

/// Two checks: one candidate passes both on half of the cases, the other one check on all.
fn graded(select: &str) -> String {
    let suite = solvers(40, &[(50, 1.0), (100, 1.0)], select);
    let suite = suite.replace(
        "value = \"solved\"\n",
        "value = \"solved\"\n[[check]]\nkind = \"contains\"\nvalue = \"fully\"\n",
    );
    suite.replacen("kind = \"equals\"", "kind = \"contains\"", 1).replacen(
        "answer = \"solved\"",
        "answer = \"fully solved\"",
        1,
    )
}

#[test]
fn objective_is_the_score_or_the_pass_rate() {
    let best = |objective: &str| {
        let (_, output) = select(&graded(objective), &["--method", "brute_force"]);
        line(&output, "best: ").to_owned()
    };
    // m2 always has half of the points, and m1 has all of them in about half of the cases, else none.
    assert_eq!(best("objective = \"pass_rate\""), "solver=m1");
    let (_, output) =
        select(&graded("objective = \"score\""), &["--method", "brute_force", "--json"]);
    let found = result(&output);
    let row = |name: &str| {
        let rows = found["ranking"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["score"].as_f64().unwrap()
    };
    assert_eq!(row("solver=m2"), 0.5);
}

#[test]
fn confidence_does_not_cover_combinations_without_a_result() {
    let suite = r#"
[suite]
name = "down"
[models.down]
provider = "openai"
model = "down"
base_url = "http://127.0.0.1:9/v1"
prices = { input = 0.0, output = 0.0 }
[[target]]
name = "solver"
model = "role/solver"
prompt = "{{ id }}"
[select.roles]
solver = ["sim/pass-0.3", "down"]
[[check]]
kind = "equals"
value = "ok"
"#;
    let cases: String = (0..12).map(|n| format!("[[cases.inline]]\nid = \"c{n}\"\n")).collect();
    let dir = TestDir::with_suite(&format!("{suite}{cases}"));
    let output = dir.run(&["select", "--max-retries", "0"]);
    let found = &output.stdout;
    assert!(
        found.contains("confidence: among the measured combinations, no "),
        "{}",
        output.transcript()
    );
    assert!(found.contains("all trials ended in errors: solver=down"), "{}", output.transcript());
}

//! Shared keys of targets, and targets for combinations of prompts and models.

use crate::support::TestDir;
use serde_json::{Value, json};

const END: &str = r#"
[cases]
inline = [{ id = "fr", country = "France" }]
[[check]]
kind = "contains"
value = "France"
"#;

/// Returns the targets in `run.json`, and runs the suite with this verdict.
fn targets(dir: &TestDir, code: i32) -> Vec<Value> {
    let output = dir.run(&["run"]);
    assert_eq!(output.code, code, "{}", output.transcript());
    let file = std::fs::read_to_string(dir.run_folder().join("run.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    file["suite"]["targets"].as_array().unwrap().clone()
}

/// Returns the messages of an invalid suite, each with its position.
fn problems(dir: &TestDir) -> Vec<String> {
    let output = dir.run(&["check"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
    let lines: Vec<&str> = output.stderr.lines().collect();
    let problem = |pair: &[&str]| {
        let message = pair[0].strip_prefix("error: ")?;
        let position = pair[1].trim_start().strip_prefix("--> bakeoff.toml:")?;
        Some(format!("{position} {message}"))
    };
    lines.windows(2).filter_map(problem).collect()
}

#[test]
fn defaults_apply_where_the_type_allows_them() {
    let suite = format!(
        r#"
[target_defaults]
prompt = "Capital of {{{{ country }}}}?"
model = "sim/echo"
temperature = 0.5
thinking = "low"
gate = false
protocol = "text"
[[target]]
name = "plain"
gate = true
[[target]]
name = "own"
prompt = "{{{{ country }}}}"
temperature = 1
thinking_tokens = 0
[[target]]
name = "program"
command = ["cat"]
[[target]]
name = "chain"
chain = [{{ name = "step", model = "sim/echo", prompt = "{{{{ country }}}}" }}]
{END}"#
    );
    let dir = TestDir::with_suite(&suite);
    let targets = targets(&dir, 0);
    let values = |key: &str| targets.iter().map(|target| target[key].clone()).collect::<Vec<_>>();
    assert_eq!(values("gate"), [json!(true), json!(false), json!(false), json!(false)]);
    let answers: Vec<Value> =
        dir.trials().iter().map(|trial| trial["attempt"]["output"].clone()).collect();
    assert_eq!(answers.len(), 4);
    let own = answers.iter().filter(|answer| answer.to_string().contains("Capital")).count();
    assert_eq!(own, 2, "the prompt of `plain` and `program`: {answers:?}");
}

#[test]
fn problems_of_defaults_are_reported_once_at_their_position() {
    let suite = format!(
        r#"[target_defaults]
prompt = "{{{{ contry }}}}"
name = "x"
json = true
json_schema = {{}}
model = "sim/echo"
[[target]]
name = "a"
[[target]]
name = "b"
{END}"#
    );
    let expected = [
        "2:10 no case has the field `contry`",
        "3:1 unknown key `name` in [target_defaults]",
        "5:15 a target cannot have both `json` and `json_schema`",
    ];
    assert_eq!(problems(&TestDir::with_suite(&suite)), expected);
}

#[test]
fn matrix_has_a_target_for_each_combination() {
    let suite = format!(
        r#"
[matrix]
prompts = ["prompts/a.txt", "prompts/b.md"]
models = ["sim/echo", "parrot"]
[target_defaults]
system = "Be brief."
[models.parrot]
provider = "sim"
model = "echo"
[[target]]
name = "program"
command = ["cat"]
prompt = "{{{{ country }}}}"
{END}"#
    );
    let dir = TestDir::with_suite(&suite);
    std::fs::create_dir(dir.path().join("prompts")).unwrap();
    let dir = dir
        .write("prompts/a.txt", "Capital of {{ country }}?\n")
        .write("prompts/b.md", "Where is {{ country }}?\n\n");
    let names: Vec<Value> = targets(&dir, 0).iter().map(|target| target["name"].clone()).collect();
    let expected = ["program", "a × sim/echo", "a × parrot", "b × sim/echo", "b × parrot"];
    assert_eq!(names, expected);
    let trials = dir.trials();
    let outputs: Vec<&str> =
        trials.iter().filter_map(|trial| trial["attempt"]["output"].as_str()).collect();
    assert_eq!(outputs.iter().filter(|text| **text == "Where is France?").count(), 2);

    std::fs::write(dir.path().join("prompts/a.txt"), "Other {{ country }}").unwrap();
    let changed = dir.run(&["run", "--resume", "last"]);
    assert!(changed.stderr.contains("target `a × parrot` has changed"), "{}", changed.stderr);
}

#[test]
fn matrix_of_one_list_takes_the_rest_from_the_defaults() {
    let suite = |matrix: &str, defaults: &str| {
        format!("[matrix]\n{matrix}\n[target_defaults]\n{defaults}\n{END}")
    };
    let models = suite("models = [\"sim/echo\", \"sim/slow\"]", "prompt = \"{{ country }}\"");
    let dir = TestDir::with_suite(&models);
    let plan = dir.run(&["check"]).stdout;
    assert!(plan.contains("\n  sim/echo (sim/echo): 1 trial"), "{plan}");
    assert!(plan.contains("\n  sim/slow (sim/slow): 1 trial"), "{plan}");
    let prompts = suite("prompts = [\"x/a.txt\", \"y/a.txt\"]", "command = [\"cat\"]");
    let dir = TestDir::with_suite(&prompts);
    for folder in ["x", "y"] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
        std::fs::write(dir.path().join(folder).join("a.txt"), "{{ country }}").unwrap();
    }
    let plan = dir.run(&["check"]).stdout;
    assert!(plan.contains("\n  x/a.txt (cat): 1 trial"), "{plan}");
    assert!(plan.contains("\n  y/a.txt (cat): 1 trial"), "{plan}");
}

#[test]
fn problems_of_a_matrix_have_positions() {
    let suite = format!(
        r#"[matrix]
prompts = ["gone.txt", "broken.txt", "unknown.txt"]
models = ["sim/echo", "gpt"]
[target_defaults]
system = 7
{END}"#
    );
    let dir = TestDir::with_suite(&suite)
        .write("broken.txt", "one\n{{ country")
        .write("unknown.txt", "{{ contry }}");
    let expected = [
        "2:12 gone.txt: cannot read the prompt: No such file or directory (os error 2)",
        "2:24 not a template: syntax error: unexpected end of input, expected end of variable block, near `country`",
        "2:38 no case has the field `contry`",
        "3:23 there is no model `gpt`",
        "5:10 `system` must be a string, not 7",
    ];
    assert_eq!(problems(&dir), expected);

    let of_matrix =
        |lines: &str| problems(&TestDir::with_suite(&format!("[matrix]\n{lines}{END}")));
    assert_eq!(of_matrix(""), ["1:1 [matrix] has no `prompts`", "1:1 [matrix] has no `models`"]);
    let expected = [
        "2:10 `models` must be a non-empty list of strings, not the string \"sim/echo\"",
        "3:11 `prompts` must be a non-empty list of strings, not an empty list",
    ];
    assert_eq!(of_matrix("models = \"sim/echo\"\nprompts = []"), expected);
}

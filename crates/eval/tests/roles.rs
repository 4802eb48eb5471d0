//! Roles in runs: missing assignments, and the environment of programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod support;

use bakeoff_suite::LoadOptions;
use support::{COMBINATIONS, TestSuite};

#[tokio::test]
async fn run_fails_if_a_role_has_only_candidates() {
    let test = TestSuite::new(
        r#"
[[target]]
name = "pipeline"
chain = [
    { role = "planner", prompt = "Plan: {{ question }}" },
    { role = "solver", prompt = "{{ planner }} {{ question }}" },
]
[select.roles]
planner = ["sim/echo", "sim/judge"]
solver = ["sim/echo"]
[cases]
inline = [{ id = "one", question = "2+2" }]
[[check]]
kind = "contains"
value = "2"
"#,
    );
    let error = test.try_run(LoadOptions::default(), test.config()).await.err().unwrap();
    assert_eq!(error.to_string(), "no model assigned to role `planner` of the target `pipeline`");
    assert!(!test.path("runs").exists());
}

#[tokio::test]
async fn programs_get_the_models_of_their_roles_in_variables() {
    let line = "echo $BAKEOFF_MODEL_PLANNER $BAKEOFF_MODEL_CODE_SOLVER";
    let suite = format!(
        r#"
[roles]
planner = "small"
[models.small]
provider = "openai"
model = "gpt-4o-mini"
[[target]]
name = "program"
command = ["sh", "-c", "{line}"]
roles = ["planner", "code-solver"]
prompt = "x"
[[target]]
name = "stays"
command = ["sh", "answer.sh"]
protocol = "jsonl"
roles = ["planner", "code-solver"]
prompt = "x"
[select]
target = "TARGET"
[select.roles]
code-solver = ["small", "openai/gpt-4o"]
[cases]
inline = [{{ id = "one" }}]
[[check]]
kind = "contains"
value = "openai"
"#
    );
    for target in ["program", "stays"] {
        let test = TestSuite::new(&suite.replace("TARGET", target));
        // The trial's id ends with its number, unlike the case's id.
        let script = format!(
            "while read -r request; do id=$(echo \"$request\" | sed -E 's/.*\"id\": *\"([^\"]*\\/1)\".*/\\1/'); \
             printf '{{\"id\": \"%s\", \"output\": \"%s\"}}\\n' \"$id\" \"$({line})\"; done"
        );
        std::fs::write(test.path("answer.sh"), script).unwrap();
        let run = test.run(COMBINATIONS).await;
        let mut outputs: Vec<&str> =
            run.results.iter().map(|result| result.attempt.output.trim()).collect();
        outputs.sort_unstable();
        let expected =
            ["openai/gpt-4o-mini openai/gpt-4o", "openai/gpt-4o-mini openai/gpt-4o-mini"];
        assert_eq!(outputs, expected, "{target}: {:?}", run.results);
    }
}

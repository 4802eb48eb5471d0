//! What can be checked is checked.

use crate::support::{World, race};
use bakeoff_check::{Check, Kind};
use bakeoff_race::{ProgramVerifier, RaceError, VerdictKind, VerifierEvaluation};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const PERSONAS: &str = r#"
    wrong = { default = "It is 5. [quality 0.90]" }
    right = { default = "It is 4. [quality 0.20]" }
    better = { default = "It is 4, of course. [quality 0.60]" }
"#;

/// A shell program that finds something in the answer.
fn finds(what: &str) -> ProgramVerifier {
    let script = format!("grep -q '{what}' || {{ echo 'no {what} in it'; exit 3; }}");
    ProgramVerifier::new(["sh", "-c", &script])
}

#[tokio::test]
async fn a_program_decides_and_the_first_that_passes_wins() {
    let world = World::new(PERSONAS);
    let strategy = VerifierEvaluation::new(Arc::new(finds("is 4")));
    let raced = race(world.configs(&["wrong", "right", "better"]), strategy).await;
    let result = raced.result();
    assert_eq!((result.selected_index, result.verdict.kind), (1, VerdictKind::Decided));
    assert_eq!(result.verdict.strategy, "verifier");
    assert_eq!(
        result.verdict.reasons,
        [
            "sim.right and sim.better pass",
            "the first config with an answer",
            "sim.wrong: exit code 3: no is 4 in it"
        ]
    );
}

fn check(kind: &str, parameters: serde_json::Value) -> Arc<Check> {
    let parameters = parameters.as_object().unwrap();
    let kind = Kind::build(kind, parameters).unwrap();
    Arc::new(Check { id: "c".to_owned(), kind, negate: false, required: true, weight: 1.0 })
}

#[tokio::test]
async fn a_check_decides() {
    let world = World::new(PERSONAS);
    let names = ["wrong", "right", "better"];
    let four = check("contains", json!({ "value": "is 4" }));
    let raced = race(world.configs(&names), VerifierEvaluation::new(four)).await;
    assert_eq!(raced.result().selected_index, 1);
    assert!(raced.result().verdict.reasons[2].starts_with("sim.wrong: "));
    // A kind that needs a model cannot say, and what cannot be said to pass does not.
    let rubric = check("rubric", json!({ "model": "sim/judge", "criteria": ["It is good."] }));
    let raced = race(world.configs(&names), VerifierEvaluation::new(rubric)).await;
    let Err(RaceError::NoneAcceptable { verdict, .. }) = &raced.result else {
        panic!("{:?}", raced.result)
    };
    assert_eq!(verdict.reasons[0], "sim.wrong: it needs a model or a program");
}

#[tokio::test]
async fn checks_see_what_a_branch_took() {
    let world = World::new(
        "quick = { default = \"x\" }\nslow = { default = \"x\", latency = { kind = \"fixed\", ms = 40 } }",
    );
    let quick = check("latency", json!({ "max_ms": 39 }));
    let raced = race(world.configs(&["slow"]), VerifierEvaluation::new(quick)).await;
    assert!(matches!(raced.result, Err(RaceError::NoneAcceptable { .. })), "{:?}", raced.result);
    let turns = check("max_turns", json!({ "max": 1 }));
    let raced = race(world.configs(&["quick"]), VerifierEvaluation::new(turns)).await;
    assert_eq!(raced.result().selected_index, 0);
}

#[tokio::test]
async fn a_judge_chooses_among_those_that_pass() {
    let world = World::new(PERSONAS);
    let strategy =
        VerifierEvaluation::new(Arc::new(finds("is 4"))).among(Arc::new(world.judge("judge")));
    let raced = race(world.configs(&["wrong", "right", "better"]), strategy.clone()).await;
    assert_eq!(raced.result().selected_index, 2, "the best mark of all is not right");
    assert_eq!(raced.result().verdict.ballots[0].order, [1, 2]);
    assert_eq!(raced.result().evaluation_usage, raced.usage("sim.judge"));
    let alone = race(world.configs(&["wrong", "right"]), strategy).await;
    assert_eq!(alone.result().verdict.kind, VerdictKind::Unopposed);
    assert_eq!(alone.asked("sim.judge"), 0);
}

#[tokio::test]
async fn when_nothing_passes_nothing_wins() {
    let world = World::new(PERSONAS);
    let strategy = VerifierEvaluation::new(Arc::new(finds("is 7")));
    let raced = race(world.configs(&["wrong", "right"]), strategy).await;
    let Err(RaceError::NoneAcceptable { verdict, .. }) = &raced.result else {
        panic!("{:?}", raced.result)
    };
    assert_eq!(verdict.kind, VerdictKind::NoneAcceptable);
    assert_eq!(
        verdict.reasons,
        ["sim.wrong: exit code 3: no is 7 in it", "sim.right: exit code 3: no is 7 in it"]
    );
}

#[tokio::test]
async fn programs_have_a_folder_of_their_own_and_a_time() {
    let world = World::new(PERSONAS);
    let source = tempfile::tempdir().unwrap();
    std::fs::write(source.path().join("expected.txt"), "is 4").unwrap();
    let verifier = ProgramVerifier {
        workspace: Some(source.path().to_owned()),
        ..ProgramVerifier::new(["sh", "-c", "grep -qf expected.txt && rm expected.txt"])
    };
    let strategy = VerifierEvaluation::new(Arc::new(verifier));
    let raced = race(world.configs(&["wrong", "right", "better"]), strategy).await;
    assert_eq!(raced.result().selected_index, 1);
    assert!(source.path().join("expected.txt").exists(), "each has a copy");

    let slow = ProgramVerifier {
        timeout: Duration::from_millis(50),
        ..ProgramVerifier::new(["sleep", "600"])
    };
    let raced = race(world.configs(&["right"]), VerifierEvaluation::new(Arc::new(slow))).await;
    let error = raced.result.unwrap_err().to_string();
    assert!(error.contains("the verifier took too long"), "{error}");

    for command in [vec![], vec!["no-such-program-at-all"]] {
        let none = ProgramVerifier::new(command);
        let raced = race(world.configs(&["right"]), VerifierEvaluation::new(Arc::new(none))).await;
        assert!(matches!(raced.result, Err(RaceError::NoneAcceptable { .. })));
    }
}

//! What can be checked is checked.

use crate::support::{Raced, World, race, race_in};
use bakeoff_agent::{AgentContext, AgentMessage, Session};
use bakeoff_check::{Check, Kind};
use bakeoff_core::Message;
use bakeoff_race::{ProgramVerifier, RaceError, Verdict, VerdictKind, VerifierEvaluation, Verify};
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
}

#[tokio::test]
async fn what_can_never_say_is_refused_before_anything_is_spent() {
    let world = World::new(PERSONAS);
    let rubric = check("rubric", json!({ "model": "sim/judge", "criteria": ["It is good."] }));
    let nothing = Arc::new(ProgramVerifier::new(Vec::<String>::new()));
    for (verifier, expected) in [
        (rubric as Arc<dyn Verify>, "the check `c` needs a model or a program"),
        (nothing, "there is no program to verify with"),
    ] {
        let raced = race(world.configs(&["right"]), VerifierEvaluation::new(verifier)).await;
        let Err(RaceError::Strategy { strategy, reason }) = &raced.result else {
            panic!("{:?}", raced.result)
        };
        assert_eq!((strategy.as_str(), reason.as_str()), ("verifier", expected));
        assert!(raced.events.is_empty());
    }
}

/// The verdict when there is no winner.
fn no_winner(raced: &Raced) -> &Verdict {
    match &raced.result {
        Err(RaceError::NoneAcceptable { verdict, .. }) => verdict,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn who_cannot_be_verified_is_not_wrong_and_does_not_win() {
    let world = World::new(PERSONAS);
    let names = ["wrong", "right", "better"];
    // It cannot say anything about one of them.
    let script = "case \"$(cat)\" in *course*) kill -9 $$;; *'is 4'*) exit 0;; *) exit 1;; esac";
    let strategy = VerifierEvaluation::new(Arc::new(ProgramVerifier::new(["sh", "-c", script])));
    let raced = race(world.configs(&names), strategy.clone()).await;
    let verdict = &raced.result().verdict;
    assert_eq!((raced.result().selected_index, verdict.kind), (1, VerdictKind::Decided));
    let unknown = "nobody can say about sim.better: the verifier was ended by signal 9";
    assert_eq!(
        verdict.reasons,
        [
            "only sim.right passes",
            "the first config with an answer",
            "sim.wrong: exit code 1",
            unknown
        ]
    );
    // One is wrong and the other may be right.
    let raced = race(world.configs(&["wrong", "better"]), strategy.clone()).await;
    let verdict = no_winner(&raced);
    assert_eq!(verdict.kind, VerdictKind::CannotSay);
    assert_eq!(verdict.reasons, ["sim.wrong: exit code 1", unknown]);
    let error = raced.result.as_ref().unwrap_err().to_string();
    assert!(error.starts_with("nobody can say whether an answer will do: "), "{error}");
    let raced = race(world.configs(&["wrong"]), strategy).await;
    assert_eq!(no_winner(&raced).kind, VerdictKind::NoneAcceptable);
}

#[tokio::test]
async fn verifiers_that_come_to_no_end_cannot_say() {
    let world = World::new(PERSONAS);
    let slow = ProgramVerifier {
        timeout: Duration::from_millis(50),
        ..ProgramVerifier::new(["sleep", "600"])
    };
    for (verifier, expected) in [
        (slow, "took too long"),
        (ProgramVerifier::new(["no-such-program-at-all"]), "no-such-program-at-all"),
        // Shells say with these that they cannot start a program.
        (ProgramVerifier::new(["sh", "-c", "no-such-program-at-all"]), "exit code 127"),
        (ProgramVerifier::new(["sh", "-c", "exit 126"]), "exit code 126"),
    ] {
        let strategy = VerifierEvaluation::new(Arc::new(verifier));
        let raced = race(world.configs(&["right"]), strategy).await;
        let verdict = no_winner(&raced);
        assert_eq!(verdict.kind, VerdictKind::CannotSay, "{expected}");
        assert!(verdict.reasons[0].contains(expected), "{:?}", verdict.reasons);
    }
}

/// The judge sees what was said before, even when the first branch is not among those that pass.
#[tokio::test]
async fn a_judge_among_those_that_pass_knows_the_conversation() {
    let world = World::new(PERSONAS);
    let strategy =
        VerifierEvaluation::new(Arc::new(finds("is 4"))).among(Arc::new(world.judge("judge")));
    let messages = vec![AgentMessage::user("Before."), Message::assistant("I see.").into()];
    let session = Session::named("ses_9");
    let context = AgentContext { messages, session, ..AgentContext::default() };
    let prompts = vec![AgentMessage::user("What is it?")];
    let configs = world.configs(&["wrong", "right", "better"]);
    let raced = race_in(context, prompts, configs, strategy).await;
    assert_eq!(raced.result().selected_index, 2);
    let question = &raced.questions("sim.judge")[0];
    assert!(question.contains("User: Before.\nAssistant: I see."), "{question}");
    let loops = raced.loops();
    assert!(loops.iter().all(|id| id.starts_with("ses_9.")), "{loops:?}");
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
async fn programs_have_a_folder_of_their_own() {
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
}

#[tokio::test]
async fn what_a_verifier_leaves_running_is_ended_with_it() {
    assert!(bakeoff_agent::become_subreaper());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("process");
    // In a session of its own, where its group does not reach it.
    let script = format!(
        "setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600' >/dev/null 2>&1 & while [ ! -e {0} ]; do :; done",
        path.display()
    );
    let world = World::new("good.default = \"good\"");
    let verifier = Arc::new(ProgramVerifier::new(["sh", "-c", &script]));
    let raced = race(world.configs(&["good"]), VerifierEvaluation::new(verifier)).await;
    assert_eq!(raced.result().selected_index, 0);
    let id = std::fs::read_to_string(&path).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

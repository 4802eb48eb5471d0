//! Verifiers.

use crate::support::{RaceRun, TestClient, race, race_in};
use bakeoff_agent::{AgentContext, AgentEvent, AgentMessage, Session};
use bakeoff_check::{Check, CheckKind};
use bakeoff_core::Message;
use bakeoff_race::{
    ParallelLoopOutcome, ProgramVerifier, RaceError, Verdict, VerdictKind, Verification,
    VerifierEvaluation, Verify,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const MODELS: &str = r#"
    wrong = { default = "It is 5. [quality 0.90]" }
    right = { default = "It is 4. [quality 0.20]" }
    better = { default = "It is 4, of course. [quality 0.60]" }
"#;

/// Returns a program that accepts answers with this text.
fn finds(text: &str) -> ProgramVerifier {
    let script = format!("grep -q '{text}' || {{ echo 'no {text} in it'; exit 3; }}");
    ProgramVerifier::new(["sh", "-c", &script])
}

#[tokio::test]
async fn first_answer_that_passes_the_program_wins() {
    let client = TestClient::new(MODELS);
    let strategy = VerifierEvaluation::new(Arc::new(finds("is 4")));
    let run = race(client.configs(&["wrong", "right", "better"]), strategy).await;
    let result = run.result();
    assert_eq!((result.selected_index, result.verdict.kind), (1, VerdictKind::Decided));
    assert_eq!(result.verdict.strategy, "verifier");
    assert_eq!(
        result.verdict.reasons,
        [
            "sim.right and sim.better pass",
            "the first branch with an answer",
            "sim.wrong: exit code 3: no is 4 in it"
        ]
    );
}

fn check(kind: &str, parameters: serde_json::Value) -> Arc<Check> {
    let parameters = parameters.as_object().unwrap();
    let kind = CheckKind::build(kind, parameters).unwrap();
    Arc::new(Check {
        id: "c".to_owned(),
        kind,
        negate: false,
        required: true,
        weight: 1.0,
        min_score: None,
    })
}

#[tokio::test]
async fn first_answer_that_passes_the_check_wins() {
    let client = TestClient::new(MODELS);
    let names = ["wrong", "right", "better"];
    let four = check("contains", json!({ "value": "is 4" }));
    let run = race(client.configs(&names), VerifierEvaluation::new(four)).await;
    assert_eq!(run.result().selected_index, 1);
    assert!(run.result().verdict.reasons[2].starts_with("sim.wrong: "));
}

#[tokio::test]
async fn unusable_verifier_is_rejected_before_any_call() {
    let client = TestClient::new(MODELS);
    let rubric = check("rubric", json!({ "model": "sim/judge", "criteria": ["It is good."] }));
    let empty = Arc::new(ProgramVerifier::new(Vec::<String>::new()));
    for (verifier, expected) in [
        (rubric as Arc<dyn Verify>, "check `c` needs a model or a program"),
        (empty, "no verifier command given"),
    ] {
        let run = race(client.configs(&["right"]), VerifierEvaluation::new(verifier)).await;
        let Err(RaceError::Strategy { strategy, reason }) = &run.result else {
            panic!("{:?}", run.result)
        };
        assert_eq!((strategy.as_str(), reason.as_str()), ("verifier", expected));
        assert!(run.events.is_empty());
    }
}

/// Returns the verdict of a race without a winner.
fn no_winner(run: &RaceRun) -> &Verdict {
    match &run.result {
        Err(RaceError::NoneAcceptable { verdict, .. }) => verdict,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn inconclusive_answer_neither_fails_nor_wins() {
    let client = TestClient::new(MODELS);
    let names = ["wrong", "right", "better"];
    // Killed by a signal for one of the answers.
    let script = "case \"$(cat)\" in *course*) kill -9 $$;; *'is 4'*) exit 0;; *) exit 1;; esac";
    let strategy = VerifierEvaluation::new(Arc::new(ProgramVerifier::new(["sh", "-c", script])));
    let run = race(client.configs(&names), strategy.clone()).await;
    let verdict = &run.result().verdict;
    assert_eq!((run.result().selected_index, verdict.kind), (1, VerdictKind::Decided));
    let unknown = "no result for sim.better: the verifier was killed by signal 9";
    assert_eq!(verdict.reasons, ["only sim.right passes", "sim.wrong: exit code 1", unknown]);
    // One fails and the other may be acceptable.
    let run = race(client.configs(&["wrong", "better"]), strategy.clone()).await;
    let verdict = no_winner(&run);
    assert_eq!(verdict.kind, VerdictKind::Inconclusive);
    assert_eq!(verdict.reasons, ["sim.wrong: exit code 1", unknown]);
    let error = run.result.as_ref().unwrap_err().to_string();
    assert!(error.starts_with("the verifier gave no result: "), "{error}");
    let run = race(client.configs(&["wrong"]), strategy).await;
    assert_eq!(no_winner(&run).kind, VerdictKind::NoneAcceptable);
}

#[tokio::test]
async fn verifier_that_does_not_finish_is_inconclusive() {
    let client = TestClient::new(MODELS);
    let slow = ProgramVerifier::new(["sleep", "600"]).timeout(Duration::from_millis(50));
    for (verifier, expected) in [
        (slow, "timed out"),
        (ProgramVerifier::new(["no-such-program-at-all"]), "no-such-program-at-all"),
        // Shells exit with these codes when they cannot start a program.
        (ProgramVerifier::new(["sh", "-c", "no-such-program-at-all"]), "exit code 127"),
        (ProgramVerifier::new(["sh", "-c", "exit 126"]), "exit code 126"),
    ] {
        let strategy = VerifierEvaluation::new(Arc::new(verifier));
        let run = race(client.configs(&["right"]), strategy).await;
        let verdict = no_winner(&run);
        assert_eq!(verdict.kind, VerdictKind::Inconclusive, "{expected}");
        assert!(verdict.reasons[0].contains(expected), "{:?}", verdict.reasons);
    }
}

/// The judge sees the prior conversation even if the first branch does not pass.
#[tokio::test]
async fn judge_after_verification_sees_the_conversation() {
    let client = TestClient::new(MODELS);
    let strategy =
        VerifierEvaluation::new(Arc::new(finds("is 4"))).among(Arc::new(client.judge("judge")));
    let messages = vec![AgentMessage::user("Before."), Message::assistant("I see.").into()];
    let session = Session::named("ses_9");
    let context = AgentContext::default().with_messages(messages).with_session(session);
    let prompts = vec![AgentMessage::user("What is it?")];
    let configs = client.configs(&["wrong", "right", "better"]);
    let run = race_in(context, prompts, configs, strategy).await;
    assert_eq!(run.result().selected_index, 2);
    let prompt = &run.prompts("sim.judge")[0];
    assert!(prompt.contains("User: Before.\nAssistant: I see."), "{prompt}");
    let loops = run.loops();
    assert!(loops.iter().all(|id| id.starts_with("ses_9.")), "{loops:?}");
}

#[tokio::test]
async fn checks_see_latency_and_turns_of_a_branch() {
    let client = TestClient::new(
        "quick = { default = \"x\" }\nslow = { default = \"x\", latency = { kind = \"fixed\", ms = 40 } }",
    );
    let quick = check("latency", json!({ "max_ms": 39 }));
    let run = race(client.configs(&["slow"]), VerifierEvaluation::new(quick)).await;
    assert!(matches!(run.result, Err(RaceError::NoneAcceptable { .. })), "{:?}", run.result);
    let turns = check("max_turns", json!({ "max": 1 }));
    let run = race(client.configs(&["quick"]), VerifierEvaluation::new(turns)).await;
    assert_eq!(run.result().selected_index, 0);
}

#[tokio::test]
async fn judge_selects_among_answers_that_pass() {
    let client = TestClient::new(MODELS);
    let strategy =
        VerifierEvaluation::new(Arc::new(finds("is 4"))).among(Arc::new(client.judge("judge")));
    let run = race(client.configs(&["wrong", "right", "better"]), strategy.clone()).await;
    assert_eq!(run.result().selected_index, 2, "the answer with the best mark fails");
    assert_eq!(run.result().verdict.ballots[0].order, [1, 2]);
    assert_eq!(run.result().evaluation_usage, run.usage("sim.judge"));
    let alone = race(client.configs(&["wrong", "right"]), strategy).await;
    assert_eq!(alone.result().verdict.kind, VerdictKind::Unopposed);
    assert_eq!(alone.call_count("sim.judge"), 0);
}

#[tokio::test]
async fn no_branch_wins_if_none_passes() {
    let client = TestClient::new(MODELS);
    let strategy = VerifierEvaluation::new(Arc::new(finds("is 7")));
    let run = race(client.configs(&["wrong", "right"]), strategy).await;
    let Err(RaceError::NoneAcceptable { verdict, .. }) = &run.result else {
        panic!("{:?}", run.result)
    };
    assert_eq!(verdict.kind, VerdictKind::NoneAcceptable);
    assert_eq!(
        verdict.reasons,
        ["sim.wrong: exit code 3: no is 7 in it", "sim.right: exit code 3: no is 7 in it"]
    );
}

#[tokio::test]
async fn each_program_has_its_own_folder() {
    let client = TestClient::new(MODELS);
    let source = tempfile::tempdir().unwrap();
    std::fs::write(source.path().join("expected.txt"), "is 4").unwrap();
    let verifier = ProgramVerifier::new(["sh", "-c", "grep -qf expected.txt && rm expected.txt"])
        .workspace(source.path().to_owned());
    let strategy = VerifierEvaluation::new(Arc::new(verifier));
    let run = race(client.configs(&["wrong", "right", "better"]), strategy).await;
    assert_eq!(run.result().selected_index, 1);
    assert!(source.path().join("expected.txt").exists(), "each has a copy");
}

#[tokio::test]
async fn processes_left_by_a_verifier_are_terminated() {
    assert!(bakeoff_agent::become_subreaper());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("process");
    // In its own session, outside the verifier's process group.
    let script = format!(
        "setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600' >/dev/null 2>&1 & while [ ! -e {0} ]; do :; done",
        path.display()
    );
    let client = TestClient::new("good.default = \"good\"");
    let verifier = Arc::new(ProgramVerifier::new(["sh", "-c", &script]));
    let run = race(client.configs(&["good"]), VerifierEvaluation::new(verifier)).await;
    assert_eq!(run.result().selected_index, 0);
    let id = std::fs::read_to_string(&path).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

/// Panics on one of the answers.
struct PanickingVerifier;

#[async_trait::async_trait]
impl Verify for PanickingVerifier {
    async fn verify(
        &self,
        outcome: &ParallelLoopOutcome,
        _cancel: &CancellationToken,
    ) -> Verification {
        assert!(!outcome.answer().contains("is 4"), "index out of bounds");
        Verification::Passed
    }
}

#[tokio::test]
async fn panic_of_a_verifier_loses_no_outcome() {
    let client = TestClient::new(MODELS);
    let strategy = VerifierEvaluation::new(Arc::new(PanickingVerifier));
    let run = race(client.configs(&["wrong", "right"]), strategy).await;
    let error = run.result.unwrap_err();
    let answers: Vec<String> = error.outcomes().iter().map(ParallelLoopOutcome::answer).collect();
    assert_eq!(answers, ["It is 5. [quality 0.90]", "It is 4. [quality 0.20]"]);
    assert_eq!(error.to_string(), "verifier panicked: index out of bounds");
    assert!(matches!(run.events.last(), Some(AgentEvent::ParallelLoopEnd { .. })));
}

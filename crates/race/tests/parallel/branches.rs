//! Branches that fail, are cancelled or reach a limit.

use crate::support::{ClosureStrategy, TestClient, choose, race};
use bakeoff_agent::{AgentContext, AgentMessage, EventSender, LoopLimit, LoopStatus};
use bakeoff_core::{ErrorKind, Usage};
use bakeoff_race::{
    EvaluationDecision, EvaluationStrategy, FastestEvaluation, ParallelLoopOutcome,
    PickFirstEvaluation, RaceError, TokenEfficientEvaluation, Verdict, VerdictKind,
    agent_loop_parallel,
};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const MODELS: &str = r#"
    empty.default = ""
    blank.default = " \n "
    slow = { default = "late", latency = { kind = "fixed", ms = 60000 } }
    quick = { default = "soon", latency = { kind = "fixed", ms = 1000 } }
"#;

/// One branch of every kind that cannot win, and one that can.
#[tokio::test(start_paused = true)]
async fn only_a_completed_branch_wins_and_others_do_not_affect_it() {
    let client = TestClient::new(MODELS);
    let mut limited = client.config("slow");
    limited.limits = limited.limits.max_time(Duration::from_secs(5));
    let configs = || {
        vec![
            client.config("fault-400"),
            client.config("empty"),
            client.config("blank"),
            limited.clone(),
            client.panicking(),
            client.config("quick"),
        ]
    };
    let strategies: [Arc<dyn EvaluationStrategy>; 2] =
        [Arc::new(PickFirstEvaluation), Arc::new(TokenEfficientEvaluation)];
    for strategy in strategies {
        let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
        let prompts = vec![AgentMessage::user("go")];
        let context = AgentContext::default();
        let result = agent_loop_parallel(prompts, context, configs(), strategy, tx, cancel).await;
        let result = result.unwrap();
        assert_eq!((result.selected_index, result.answer().as_str()), (5, "soon"));
        assert_eq!(result.verdict.ranking, [5]);
        let failures: Vec<String> =
            result.all_outcomes.iter().filter_map(ParallelLoopOutcome::failure_reason).collect();
        assert_eq!(
            failures,
            [
                "400: The request is not valid.",
                "empty answer",
                "empty answer",
                "timed out",
                "the branch panicked: transport panicked",
            ]
        );
        assert_eq!(result.all_outcomes[3].status, LoopStatus::LimitReached(LoopLimit::Time));
        let LoopStatus::Failed(failure) = &result.all_outcomes[4].status else { panic!() };
        assert_eq!(failure.kind, ErrorKind::Internal);
    }
}

#[tokio::test(start_paused = true)]
async fn error_lists_every_reason_if_all_fail() {
    let client = TestClient::new(MODELS);
    let configs = vec![client.config("fault-404"), client.config("empty"), client.panicking()];
    let strategy = ClosureStrategy(|_: &[_], _: &[_]| panic!("no branch can win"));
    let error = race(configs, strategy).await.unwrap_err();
    let RaceError::AllFailed { failures, outcomes, total_usage } = &error else {
        panic!("{error}")
    };
    let reasons: Vec<&str> = failures.iter().map(|failure| failure.reason.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "404: The model does not exist or you do not have access to it.",
            "empty answer",
            "the branch panicked: transport panicked",
        ]
    );
    assert_eq!(outcomes.len(), 3);
    assert_eq!(*total_usage, outcomes[1].usage);
    let text = error.to_string();
    assert!(reasons.iter().all(|reason| text.contains(reason)), "{text}");
}

#[tokio::test(start_paused = true)]
async fn invalid_selection_is_an_error() {
    let client = TestClient::new(MODELS);
    for (choice, reason) in [(1, "empty answer"), (2, "there are only 2")] {
        let configs = client.configs(&["quick", "empty"]);
        let error = race(configs, ClosureStrategy(move |_: &[_], _: &[_]| choose(choice)))
            .await
            .unwrap_err();
        let RaceError::BadDecision { index, reason: actual, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((*index, actual.as_str()), (choice, reason));
    }
    let rejects_all = ClosureStrategy(|_: &[_], _: &[_]| {
        let verdict = Verdict {
            reasons: vec!["all are dull".to_owned()],
            ..Verdict::of(VerdictKind::NoneAcceptable)
        };
        (EvaluationDecision { selected: None, verdict }, Usage::default())
    });
    let error = race(client.configs(&["quick"]), rejects_all).await.unwrap_err();
    assert_eq!(error.to_string(), "no answer is acceptable: all are dull");
}

#[tokio::test(start_paused = true)]
async fn cancellation_ends_all_branches_immediately() {
    let client = TestClient::new(MODELS);
    let cancel = CancellationToken::new();
    let start = |cancel: CancellationToken| {
        let strategy = Arc::new(PickFirstEvaluation);
        let prompts = vec![AgentMessage::user("go")];
        let (context, tx) = (AgentContext::default(), EventSender::disabled());
        let configs = client.configs(&["quick", "slow", "slow"]);
        agent_loop_parallel(prompts, context, configs, strategy, tx, cancel)
    };
    let later = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        cancel.cancel();
    };
    let started = tokio::time::Instant::now();
    let (error, ()) = tokio::join!(start(cancel.clone()), later);
    let Err(RaceError::Cancelled { outcomes, total_usage }) = error else { panic!("{error:?}") };
    assert_eq!(total_usage, outcomes[0].usage);
    assert_eq!(started.elapsed().as_secs(), 10);
    // Branches that had ended are kept.
    assert_eq!(outcomes[0].answer(), "soon");
    assert_eq!(outcomes[1].status, LoopStatus::Cancelled);
    // Calls in flight may be charged.
    let unaccounted: Vec<u32> = outcomes.iter().map(|branch| branch.unaccounted_calls).collect();
    assert_eq!(unaccounted, [0, 1, 1]);

    let calls = client.calls();
    let error = start(cancel).await.unwrap_err();
    assert!(matches!(error, RaceError::Cancelled { .. }));
    assert_eq!(client.calls(), calls, "no call is made after cancellation");
}

#[tokio::test(start_paused = true)]
async fn fastest_answer_wins_and_cancels_the_others() {
    let client = TestClient::new(MODELS);
    let started = tokio::time::Instant::now();
    let configs = client.configs(&["slow", "empty", "quick", "slow"]);
    let result = race(configs, FastestEvaluation).await.unwrap();
    assert_eq!((result.selected_index, started.elapsed().as_secs()), (2, 1));
    assert_eq!(result.verdict.reasons, ["the first answer, after 1.00 s"]);
    let cancelled = |index: usize| result.all_outcomes[index].status == LoopStatus::Cancelled;
    assert!(cancelled(0) && !cancelled(1) && cancelled(2));
}

/// Requires one branch more than have ended.
struct Sequential;

#[async_trait::async_trait]
impl EvaluationStrategy for Sequential {
    fn required_branches(&self, ended: &[&ParallelLoopOutcome], _branches: usize) -> usize {
        if ended.iter().any(|branch| branch.is_eligible()) { ended.len() } else { ended.len() + 1 }
    }

    async fn evaluate(
        &self,
        _prompts: &[AgentMessage],
        outcomes: &[ParallelLoopOutcome],
        _tx: &EventSender,
        _cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage) {
        choose(outcomes.iter().position(ParallelLoopOutcome::is_eligible).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn branches_that_are_not_required_never_start() {
    let client = TestClient::new(MODELS);
    let configs = client.configs(&["empty", "fault-400", "quick", "quick", "quick"]);
    let result = race(configs, Sequential).await.unwrap();
    assert_eq!((result.selected_index, client.calls()), (2, 3));
    assert!(result.all_outcomes[2..].iter().all(|other| other.status == LoopStatus::Cancelled));
}

/// Ignores cancellation and never returns.
struct NeverReturns;

#[async_trait::async_trait]
impl EvaluationStrategy for NeverReturns {
    async fn evaluate(
        &self,
        _prompts: &[AgentMessage],
        _outcomes: &[ParallelLoopOutcome],
        _tx: &EventSender,
        cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage) {
        cancel.cancel();
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn strategy_that_ignores_cancellation_does_not_block_the_race() {
    let client = TestClient::new(MODELS);
    let error = race(client.configs(&["quick", "quick"]), NeverReturns).await.unwrap_err();
    assert!(matches!(error, RaceError::Cancelled { .. }), "{error}");
    assert!(error.total_usage().total() > 0);
}

#[tokio::test(start_paused = true)]
async fn truncated_winner_is_reported() {
    let client =
        TestClient::new("long.default = \"one two three four five six seven eight nine ten\"");
    let mut config = client.config("long");
    config.request.max_tokens = Some(3);
    let result = race(vec![config], PickFirstEvaluation).await.unwrap();
    assert_eq!(result.selected.finish, Some(bakeoff_core::FinishReason::Length));
    let reasons = &result.verdict.reasons;
    assert_eq!(reasons[1], "the answer is cut off at the token limit", "{reasons:?}");
}

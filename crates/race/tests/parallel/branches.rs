//! Branches that come to no good end.

use crate::support::{By, World, choose, race};
use bakeoff_agent::{
    AgentContext, AgentMessage, EventSender, ExecutionLimits, LoopLimit, LoopStatus,
};
use bakeoff_core::{ErrorKind, Usage};
use bakeoff_race::{
    EvaluationDecision, EvaluationStrategy, FastestEvaluation, ParallelLoopOutcome,
    PickFirstEvaluation, RaceError, TokenEfficientEvaluation, Verdict, VerdictKind,
    agent_loop_parallel,
};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const PERSONAS: &str = r#"
    empty.default = ""
    blank.default = " \n "
    slow = { default = "late", latency = { kind = "fixed", ms = 60000 } }
    quick = { default = "soon", latency = { kind = "fixed", ms = 1000 } }
"#;

/// One branch of every kind that must not win, and one that may.
#[tokio::test(start_paused = true)]
async fn only_a_branch_that_came_to_an_answer_can_win_and_the_others_do_it_no_harm() {
    let world = World::new(PERSONAS);
    let mut hasty = world.config("slow");
    hasty.limits = ExecutionLimits { max_time: Duration::from_secs(5), ..hasty.limits };
    let configs = || {
        vec![
            world.config("fault-400"),
            world.config("empty"),
            world.config("blank"),
            hasty.clone(),
            world.panicking(),
            world.config("quick"),
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
        let troubles: Vec<String> =
            result.all_outcomes.iter().filter_map(ParallelLoopOutcome::trouble).collect();
        assert_eq!(
            troubles,
            [
                "400: The request is not valid.",
                "empty answer",
                "empty answer",
                "time is up",
                "the branch panicked: the wire is on fire",
            ]
        );
        assert_eq!(result.all_outcomes[3].status, LoopStatus::LimitReached(LoopLimit::Time));
        let LoopStatus::Failed(failure) = &result.all_outcomes[4].status else { panic!() };
        assert_eq!(failure.kind, ErrorKind::Internal);
    }
}

#[tokio::test(start_paused = true)]
async fn when_all_fail_every_reason_is_told() {
    let world = World::new(PERSONAS);
    let configs = vec![world.config("fault-404"), world.config("empty"), world.panicking()];
    let strategy = By(|_: &[_], _: &[_]| panic!("there is nothing to choose among"));
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
            "the branch panicked: the wire is on fire",
        ]
    );
    assert_eq!(outcomes.len(), 3);
    assert_eq!(*total_usage, outcomes[1].usage);
    let text = error.to_string();
    assert!(reasons.iter().all(|reason| text.contains(reason)), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_cannot_be_is_an_error_and_never_another_branch() {
    let world = World::new(PERSONAS);
    for (choice, reason) in [(1, "empty answer"), (2, "there are only 2")] {
        let configs = world.configs(&["quick", "empty"]);
        let error = race(configs, By(move |_: &[_], _: &[_]| choose(choice))).await.unwrap_err();
        let RaceError::BadDecision { index, reason: told, .. } = &error else { panic!("{error}") };
        assert_eq!((*index, told.as_str()), (choice, reason));
    }
    let nobody = By(|_: &[_], _: &[_]| {
        let verdict = Verdict {
            reasons: vec!["all are dull".to_owned()],
            ..Verdict::of(VerdictKind::NoneAcceptable)
        };
        (EvaluationDecision { selected: None, verdict }, Usage::default())
    });
    let error = race(world.configs(&["quick"]), nobody).await.unwrap_err();
    assert_eq!(error.to_string(), "none of the answers will do: all are dull");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_race_ends_all_branches_at_once() {
    let world = World::new(PERSONAS);
    let cancel = CancellationToken::new();
    let go = |cancel: CancellationToken| {
        let strategy = Arc::new(PickFirstEvaluation);
        let prompts = vec![AgentMessage::user("go")];
        let (context, tx) = (AgentContext::default(), EventSender::disabled());
        let configs = world.configs(&["quick", "slow", "slow"]);
        agent_loop_parallel(prompts, context, configs, strategy, tx, cancel)
    };
    let later = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        cancel.cancel();
    };
    let started = tokio::time::Instant::now();
    let (error, ()) = tokio::join!(go(cancel.clone()), later);
    let Err(RaceError::Cancelled { outcomes, total_usage }) = error else { panic!("{error:?}") };
    assert_eq!(total_usage, outcomes[0].usage);
    assert_eq!(started.elapsed().as_secs(), 10);
    // What had ended is not lost.
    assert_eq!(outcomes[0].answer(), "soon");
    assert_eq!(outcomes[1].status, LoopStatus::Cancelled);
    // What was on its way may be charged for.
    let unaccounted: Vec<u32> = outcomes.iter().map(|branch| branch.unaccounted_calls).collect();
    assert_eq!(unaccounted, [0, 1, 1]);

    let calls = world.calls();
    let error = go(cancel).await.unwrap_err();
    assert!(matches!(error, RaceError::Cancelled { .. }));
    assert_eq!(world.calls(), calls, "nothing is called when it is cancelled before");
}

#[tokio::test(start_paused = true)]
async fn the_fastest_wins_at_once_and_ends_the_others() {
    let world = World::new(PERSONAS);
    let started = tokio::time::Instant::now();
    let configs = world.configs(&["slow", "empty", "quick", "slow"]);
    let result = race(configs, FastestEvaluation).await.unwrap();
    assert_eq!((result.selected_index, started.elapsed().as_secs()), (2, 1));
    assert_eq!(result.verdict.reasons, ["the first answer, after 1.00 s"]);
    let cancelled = |place: usize| result.all_outcomes[place].status == LoopStatus::Cancelled;
    assert!(cancelled(0) && !cancelled(1) && cancelled(2));
}

/// Wants one branch more than have ended.
struct OneByOne;

#[async_trait::async_trait]
impl EvaluationStrategy for OneByOne {
    fn wanted(&self, ended: &[&ParallelLoopOutcome], _branches: usize) -> usize {
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
async fn branches_that_are_not_wanted_are_never_started() {
    let world = World::new(PERSONAS);
    let configs = world.configs(&["empty", "fault-400", "quick", "quick", "quick"]);
    let result = race(configs, OneByOne).await.unwrap();
    assert_eq!((result.selected_index, world.calls()), (2, 3));
    assert!(result.all_outcomes[2..].iter().all(|other| other.status == LoopStatus::Cancelled));
}

/// Never comes to a decision, whoever tells it to stop.
struct Deaf;

#[async_trait::async_trait]
impl EvaluationStrategy for Deaf {
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
async fn a_strategy_that_does_not_listen_cannot_hold_a_race_up() {
    let world = World::new(PERSONAS);
    let error = race(world.configs(&["quick", "quick"]), Deaf).await.unwrap_err();
    assert!(matches!(error, RaceError::Cancelled { .. }), "{error}");
    assert!(error.total_usage().total() > 0);
}

#[tokio::test(start_paused = true)]
async fn a_winner_whose_answer_is_cut_off_is_told_as_such() {
    let world = World::new("long.default = \"one two three four five six seven eight nine ten\"");
    let mut config = world.config("long");
    config.request.max_tokens = Some(3);
    let result = race(vec![config], PickFirstEvaluation).await.unwrap();
    assert_eq!(result.selected.finish, Some(bakeoff_core::FinishReason::Length));
    let reasons = &result.verdict.reasons;
    assert_eq!(reasons[1], "its answer is cut off at the most tokens allowed", "{reasons:?}");
}

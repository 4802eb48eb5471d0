//! Events of races.

use crate::support::{ClosureStrategy, TestClient, choose, drain, race};
use bakeoff_agent::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, EventSender, Session, event_channel,
};
use bakeoff_core::Usage;
use bakeoff_race::{
    EvaluationDecision, EvaluationStrategy, ParallelLoopOutcome, PickFirstEvaluation, RaceError,
    agent_loop_parallel,
};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn kind(event: &AgentEvent) -> String {
    serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn race_events_enclose_ordered_branch_events() {
    let client = TestClient::new("");
    let judge = Usage { input: 5, output: 1, ..Usage::default() };
    let strategy = Arc::new(ClosureStrategy(move |_: &[_], _: &[_]| (choose(1).0, judge)));
    let (tx, rx) = event_channel(100);
    let context = AgentContext::default().with_session(Session::named("ses_1"));
    let mut configs = client.configs(&["a", "b"]);
    configs.push(client.panicking());
    let prompts = vec![AgentMessage::user("go")];
    let cancel = CancellationToken::new();
    agent_loop_parallel(prompts, context, configs, strategy, tx, cancel).await.unwrap();
    let events = drain(rx).await;
    let Some(AgentEvent::ParallelLoopStart { session_id, loop_ids, .. }) = events.first() else {
        panic!("{:?}", events.first())
    };
    assert_eq!((session_id.as_str(), loop_ids.len()), ("ses_1", 3));
    let Some(AgentEvent::ParallelLoopEnd {
        session_id,
        selected_loop_id,
        selected_config_index,
        evaluation_usage,
        ..
    }) = events.last()
    else {
        panic!("{:?}", events.last())
    };
    assert_eq!(session_id, "ses_1");
    assert_eq!((selected_loop_id.as_ref(), *selected_config_index), (Some(&loop_ids[1]), Some(1)));
    assert_eq!(*evaluation_usage, judge);
    for loop_id in &loop_ids[..2] {
        let own = events.iter().filter(|event| event.loop_id() == Some(loop_id));
        let kinds: Vec<String> = own.map(kind).filter(|kind| kind != "message_update").collect();
        assert_eq!(
            kinds.join(" "),
            "agent_start message_start message_end turn_start message_start message_end turn_end \
             agent_end"
        );
    }
    // A branch that panicked has an end event too.
    let own = events.iter().filter(|event| event.loop_id() == Some(&loop_ids[2]));
    assert_eq!(own.map(kind).next_back().as_deref(), Some("agent_end"));
}

#[tokio::test(start_paused = true)]
async fn race_without_a_winner_has_an_end_event() {
    let client = TestClient::new("");
    let (tx, rx) = event_channel(100);
    let prompts = vec![AgentMessage::user("go")];
    let configs = client.configs(&["fault-400"]);
    let (context, cancel) = (AgentContext::default(), CancellationToken::new());
    let strategy = Arc::new(PickFirstEvaluation);
    agent_loop_parallel(prompts, context, configs, strategy, tx, cancel).await.unwrap_err();
    let last = drain(rx).await.pop().unwrap();
    let json = serde_json::to_value(&last).unwrap();
    assert_eq!(json["type"], "parallel_loop_end");
    assert!(json.get("selected_loop_id").is_none(), "{json}");
}

/// A strategy that panics in one of its methods.
struct PanickingStrategy(&'static str);

impl PanickingStrategy {
    fn panic_in(&self, method: &str) {
        assert_ne!(self.0, method, "broken strategy");
    }
}

#[async_trait::async_trait]
impl EvaluationStrategy for PanickingStrategy {
    fn name(&self) -> &str {
        "fragile"
    }

    fn accepts(&self, _configs: &[AgentLoopConfig]) -> Result<(), RaceError> {
        self.panic_in("accepts");
        Ok(())
    }

    fn required_branches(&self, ended: &[&ParallelLoopOutcome], branches: usize) -> usize {
        if !ended.is_empty() {
            self.panic_in("required_branches");
        }
        branches
    }

    fn early_stop(&self, ended: &[&ParallelLoopOutcome], _branches: usize) -> bool {
        if !ended.is_empty() {
            self.panic_in("early_stop");
        }
        false
    }

    async fn evaluate(
        &self,
        _prompts: &[AgentMessage],
        _outcomes: &[ParallelLoopOutcome],
        _tx: &EventSender,
        _cancel: CancellationToken,
    ) -> (EvaluationDecision, Usage) {
        self.panic_in("evaluate");
        choose(0)
    }
}

#[tokio::test(start_paused = true)]
async fn panic_of_a_strategy_loses_no_outcome_and_no_end_event() {
    let client = TestClient::new(
        "quick.default = \"a\"\nslow = { default = \"b\", latency = { kind = \"fixed\", ms = 9000 } }",
    );
    // The slow branch is cancelled if the strategy panics before it has ended.
    for (method, completed) in [("required_branches", 1), ("early_stop", 1), ("evaluate", 2)] {
        let (tx, rx) = event_channel(100);
        let prompts = vec![AgentMessage::user("go")];
        let configs = client.configs(&["quick", "slow"]);
        let (context, cancel) = (AgentContext::default(), CancellationToken::new());
        let strategy = Arc::new(PanickingStrategy(method));
        let error = agent_loop_parallel(prompts, context, configs, strategy, tx, cancel).await;
        let error = error.unwrap_err();
        let RaceError::StrategyPanicked { strategy, message, outcomes, total_usage } = &error
        else {
            panic!("{method}: {error}")
        };
        assert!(strategy == "fragile" && message.contains("broken strategy"), "{error}");
        assert_eq!(outcomes.len(), 2);
        assert_eq!(outcomes[0].answer(), "a");
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_eligible()).count(), completed);
        let mut sum = Usage::default();
        outcomes.iter().for_each(|outcome| sum += outcome.usage);
        assert_eq!(*total_usage, sum);
        assert_eq!((error.outcomes().len(), error.total_usage()), (2, *total_usage));
        let last = drain(rx).await.pop();
        assert!(matches!(last, Some(AgentEvent::ParallelLoopEnd { .. })), "{method}: {last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn panic_during_validation_is_an_error_before_any_call() {
    let client = TestClient::new("");
    let configs = client.configs(&["a"]);
    let error = race(configs, PanickingStrategy("accepts")).await.unwrap_err();
    let RaceError::Strategy { reason, .. } = &error else { panic!("{error}") };
    assert!(reason.starts_with("panicked: ") && client.calls() == 0, "{reason}");
}

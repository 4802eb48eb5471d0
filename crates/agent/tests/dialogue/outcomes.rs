//! Outcomes of loops: limits, cancellation, failures, cost.

use crate::support::{Provider, Reply, answer, double, model, with_tools};
use bakeoff_agent::{
    AgentContext, AgentLoopConfig, AgentMessage, EventSender, ExecutionLimits, LoopEnd, LoopLimit,
    LoopStatus, agent_loop,
};
use bakeoff_core::{ErrorKind, Message};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

async fn run(
    config: &AgentLoopConfig,
    context: &mut AgentContext,
    cancel: &CancellationToken,
) -> LoopEnd {
    let prompts = vec![AgentMessage::user("go")];
    agent_loop(prompts, context, config, EventSender::disabled(), cancel.clone()).await.unwrap()
}

fn calls(times: usize) -> Vec<Reply> {
    vec![Reply::Calls(vec![("double", json!({ "n": 1 }))]); times]
}

#[tokio::test(start_paused = true)]
async fn limit_ends_the_loop_and_leaves_a_valid_conversation() {
    // Each call takes 15 tokens and costs 10 · 0.15 + 5 · 0.6 microdollars.
    let unlimited = ExecutionLimits::default;
    let table = [
        (unlimited().max_turns(2), LoopLimit::Turns, 2),
        (unlimited().max_tokens(31), LoopLimit::Tokens, 3),
        (unlimited().max_cost("0.000009".parse().unwrap()), LoopLimit::Cost, 2),
    ];
    for (limits, limit, turns) in table {
        let provider = Provider::new(calls(3));
        let config = provider.config().limits(limits);
        let mut context = with_tools([double()]);
        let end = run(&config, &mut context, &CancellationToken::new()).await;
        assert_eq!(end.status, LoopStatus::LimitReached(limit));
        assert_eq!((end.turns, provider.bodies().len()), (turns, turns as usize), "{limit:?}");
        let last = context.messages.last().and_then(AgentMessage::as_llm).unwrap();
        assert!(matches!(last, Message::ToolResult { is_error: true, .. }), "{last:?}");
        assert_eq!(last.text(), format!("not finished: {limit}"));
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_call_ends_at_the_time_limit() {
    let provider = Provider::new([Reply::Hang]);
    let mut config = provider.config();
    config.limits.max_time = Duration::from_secs(7);
    let mut context = AgentContext::default();
    let end = run(&config, &mut context, &CancellationToken::new()).await;
    assert_eq!(end.status, LoopStatus::LimitReached(LoopLimit::Time));
    assert_eq!(end.elapsed.as_secs(), 7);
    assert_eq!(context.messages.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_call_and_prevents_the_first() {
    let provider = Provider::new([Reply::Hang]);
    let config = provider.config();
    let cancel = CancellationToken::new();
    let mut context = AgentContext::default();
    let later = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cancel.cancel();
    };
    let (end, ()) = tokio::join!(run(&config, &mut context, &cancel), later);
    assert_eq!((end.status, end.elapsed.as_secs()), (LoopStatus::Cancelled, 3));

    let end = run(&config, &mut AgentContext::default(), &cancel).await;
    assert_eq!(end.status, LoopStatus::Cancelled);
    assert_eq!(provider.bodies().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn failed_call_fails_the_loop_and_keeps_the_messages() {
    let mut replies = calls(1);
    replies.push(Reply::Status(400));
    let provider = Provider::new(replies);
    let mut context = with_tools([double()]);
    let end = run(&provider.config(), &mut context, &CancellationToken::new()).await;
    let LoopStatus::Failed(failure) = &end.status else { panic!("{:?}", end.status) };
    assert_eq!(failure.kind, ErrorKind::InvalidRequest);
    assert_eq!((end.turns, end.usage.total(), end.new_messages.len()), (1, 15, 2));
    assert_eq!(context.messages.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn retries_are_counted() {
    let provider = Provider::new([Reply::Status(503), Reply::Text("at last")]);
    let end =
        run(&provider.config(), &mut AgentContext::default(), &CancellationToken::new()).await;
    assert_eq!((end.status, end.retries), (LoopStatus::Completed, 1));
}

#[tokio::test(start_paused = true)]
async fn response_stopped_by_the_content_filter_is_a_failure() {
    let body = answer(&json!({ "content": "How to" }), "content_filter");
    let provider = Provider::new([Reply::Body(body)]);
    let end =
        run(&provider.config(), &mut AgentContext::default(), &CancellationToken::new()).await;
    let LoopStatus::Failed(failure) = &end.status else { panic!("{:?}", end.status) };
    assert_eq!(failure.kind, ErrorKind::ContentFilter);
}

#[tokio::test(start_paused = true)]
async fn cost_is_unknown_if_the_price_is() {
    let provider = Provider::new([Reply::Text("yes"), Reply::Text("yes")]);
    let priced = provider.config();
    let end = run(&priced, &mut AgentContext::default(), &CancellationToken::new()).await;
    assert_eq!(end.cost.map(|cost| cost.0), Some(4_500));
    let mut unknown = provider.config();
    unknown.model = model("unknown-model", None);
    let end = run(&unknown, &mut AgentContext::default(), &CancellationToken::new()).await;
    assert_eq!(end.cost, None);
}

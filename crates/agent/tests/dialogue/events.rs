//! Events of a running loop.

use crate::support::{Provider, Reply, double, drain, kind, tool, with_tools};
use bakeoff_agent::{
    AgentContext, AgentEvent, AgentMessage, LoopStatus, agent_loop, event_channel,
};
use bakeoff_llm::Delta;
use futures_util::StreamExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn chunk(text: &str) -> String {
    let event = json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    format!("data: {event}\n\n")
}

#[tokio::test(start_paused = true)]
async fn events_are_sent_in_order() {
    let finish = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
                         "usage": { "prompt_tokens": 1, "completion_tokens": 2 } });
    let stream =
        vec![chunk("for"), chunk("ty"), format!("data: {finish}\n\n"), "data: [DONE]\n\n".into()];
    let provider = Provider::new([
        Reply::Status(503),
        Reply::Calls(vec![("double", json!({ "n": 20 }))]),
        Reply::Stream(stream),
    ]);
    let (tx, rx) = event_channel(100);
    let mut context = with_tools([double()]);
    let prompts = vec![AgentMessage::user("Twice 20?")];
    let cancel = CancellationToken::new();
    let end = agent_loop(prompts, &mut context, &provider.config(), tx, cancel).await.unwrap();
    let events = drain(rx).await;
    assert!(events.iter().all(|event| event.loop_id() == Some(&end.loop_id)));
    let kinds: Vec<String> = events.iter().map(kind).collect();
    let expected = "agent_start message_start message_end \
        turn_start message_start retry message_end tool_execution_start tool_execution_end \
        message_start message_end turn_end \
        turn_start message_start message_update message_update message_end turn_end agent_end";
    assert_eq!(kinds.join(" "), expected);
    let deltas: Vec<&Delta> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::MessageUpdate { delta, .. } => Some(delta),
            _ => None,
        })
        .collect();
    assert_eq!(deltas, [&Delta::Text("for".to_owned()), &Delta::Text("ty".to_owned())]);
    let Some(AgentEvent::AgentEnd { status, usage, .. }) = events.last() else { panic!() };
    assert_eq!((status, *usage), (&LoopStatus::Completed, end.usage));
}

#[tokio::test(start_paused = true)]
async fn updates_arrive_before_the_response_is_complete() {
    // The stream breaks off, and the provider does not respond to the retry.
    let provider = Provider::new([Reply::Stream(vec![chunk("first")]), Reply::Hang]);
    let config = provider.config();
    let (tx, mut rx) = event_channel(100);
    let cancel = CancellationToken::new();
    let mut context = AgentContext::default();
    let prompts = vec![AgentMessage::user("x")];
    let work = agent_loop(prompts, &mut context, &config, tx, cancel.clone());
    let receive = async {
        while let Some(event) = rx.recv().await {
            if matches!(event, AgentEvent::MessageUpdate { .. }) {
                cancel.cancel();
            }
        }
    };
    let (end, ()) = tokio::join!(work, receive);
    assert_eq!(end.unwrap().status, LoopStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn slow_receiver_gets_the_number_of_dropped_events_and_all_end_events() {
    let calls = vec![("reporter", json!({ "n": 50 }))];
    let provider = Provider::new([Reply::Calls(calls), Reply::Text("done")]);
    let reporter = tool("reporter", |arguments, context| async move {
        for number in 0..arguments["n"].as_i64().unwrap() {
            context.progress.report(number.to_string());
        }
        Ok("done".into())
    });
    let (tx, rx) = event_channel(8);
    let mut context = with_tools([reporter]);
    let prompts = vec![AgentMessage::user("x")];
    let cancel = CancellationToken::new();
    agent_loop(prompts, &mut context, &provider.config(), tx, cancel).await.unwrap();
    let events = drain(rx).await;
    let messages: Vec<&AgentEvent> =
        events.iter().filter(|event| kind(event) == "progress_message").collect();
    assert_eq!(messages.len(), 8);
    let missed: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Lagged { missed } => Some(*missed),
            _ => None,
        })
        .collect();
    assert_eq!(missed, [42]);
    // The gap is reported at its position: after the progress messages, before the end of the tool call.
    let kinds: Vec<String> = events.iter().map(kind).collect();
    let gap = kinds.iter().position(|kind| kind == "lagged").unwrap();
    assert_eq!(kinds[gap - 1..=gap + 1], ["progress_message", "lagged", "tool_execution_end"]);
    let starts = kinds.iter().filter(|kind| kind.ends_with("_start")).count();
    let ends = kinds.iter().filter(|kind| kind.ends_with("_end")).count();
    assert_eq!((starts, ends), (8, 8));
}

#[tokio::test(start_paused = true)]
async fn loop_continues_when_the_receiver_is_dropped() {
    let provider = Provider::new([Reply::Text("done")]);
    let (tx, rx) = event_channel(8);
    drop(rx);
    let mut context = AgentContext::default();
    let prompts = vec![AgentMessage::user("x")];
    let cancel = CancellationToken::new();
    let end = agent_loop(prompts, &mut context, &provider.config(), tx, cancel).await.unwrap();
    assert_eq!(end.status, LoopStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn every_start_event_has_an_end_event_for_all_outcomes() {
    let hang = || tool("hang", |_, _| std::future::pending());
    let call = |name| Reply::Calls(vec![(name, json!({ "n": 1 }))]);
    let empty = crate::support::answer(&json!({ "content": null }), "stop");
    let table = [
        (vec![Reply::Hang], "limit_reached"),
        (vec![Reply::Status(400)], "failed"),
        (vec![call("hang")], "limit_reached"),
        (vec![call("double"), Reply::Status(400)], "failed"),
        (vec![Reply::Body(empty)], "completed"),
    ];
    for (replies, expected) in table {
        let provider = Provider::new(replies);
        let mut config = provider.config();
        config.limits.max_time = std::time::Duration::from_secs(5);
        let (tx, rx) = event_channel(100);
        let mut context = with_tools([double(), hang()]);
        let prompts = vec![AgentMessage::user("x")];
        let cancel = CancellationToken::new();
        let end = agent_loop(prompts, &mut context, &config, tx, cancel).await.unwrap();
        let status = serde_json::to_string(&end.status).unwrap();
        assert!(status.contains(expected), "{status}");
        let kinds: Vec<String> = drain(rx).await.iter().map(kind).collect();
        let count = |name: &str| kinds.iter().filter(|kind| *kind == name).count();
        for what in ["agent", "turn", "tool_execution"] {
            assert_eq!(count(&format!("{what}_start")), count(&format!("{what}_end")), "{kinds:?}");
        }
        assert_eq!(count("message_start"), count("message_end") + count("message_aborted"));
        let abandoned =
            u32::from(provider.bodies().len() == 1 && end.turns == 0 && expected != "failed");
        assert_eq!(end.unaccounted_calls, abandoned, "{kinds:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_can_be_deserialized() {
    let provider =
        Provider::new([Reply::Calls(vec![("double", json!({ "n": 20 }))]), Reply::Text("40")]);
    let (tx, rx) = event_channel(100);
    let mut context = with_tools([double()]);
    let prompts = vec![AgentMessage::user("Twice 20?")];
    let cancel = CancellationToken::new();
    agent_loop(prompts, &mut context, &provider.config(), tx, cancel).await.unwrap();
    for event in drain(rx).await {
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<AgentEvent>(&line).unwrap(), event, "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn receiver_is_a_stream_of_all_events() {
    let provider = Provider::new([Reply::Text("done")]);
    let (tx, rx) = event_channel(100);
    let mut context = AgentContext::default();
    let prompts = vec![AgentMessage::user("x")];
    let config = provider.config();
    let work = agent_loop(prompts, &mut context, &config, tx, CancellationToken::new());
    let (end, events) = tokio::join!(work, rx.collect::<Vec<AgentEvent>>());
    assert_eq!(end.unwrap().status, LoopStatus::Completed);
    let kinds: Vec<String> = events.iter().map(kind).collect();
    assert_eq!(kinds.first().map(String::as_str), Some("agent_start"));
    assert_eq!(kinds.last().map(String::as_str), Some("agent_end"));
}
